"""When the rows of each session were sampled and came: of all rows of the past, whatever a query wants of them, in the order of the log.

Files have that in a few bytes of each row: it is read from them some row groups at a time, in a fraction of the time that SQL would take to
group all rows for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np

from skerry.planner.model.frames import LATENESS_MS
from skerry.planner.model.plans import QueryPlan
from skerry.planner.model.row_time import TIME
from skerry.storage.history.engine.expressions import NETWORK_MS, ROW, SESSION
from skerry.storage.history.engine.messages import Sources, Timing
from skerry.storage.history.engine.row_groups import SAMPLED, RowGroup, row_groups, rows_of
from skerry.storage.history.layout import Int64

#: Row groups that are read together.
_TOGETHER = 8
#: Threads that read ahead.
_READING = 2
#: Places are searched for where there is at most one for so many rows.
_SEARCHED = 64
_NONE = np.empty(0, np.int64)


@dataclass
class Session:
    """Rows of one session of a root, or, by UTC, of all. ``first``, ``first_ms``: number of its first row, and when that was sampled;
    ``latest_ms``, ``latest_utc_ms``: the latest sample. A *step* is a row with which time, that of the latest sample, comes into another
    slide: ``steps`` tell of each which slide, its number, when it was sampled, and UTC of that. UTC is 0 where a query asks for no time."""

    first: int
    first_ms: int
    latest_ms: int
    latest_utc_ms: int
    steps: list[tuple[Int64, Int64, Int64, Int64]]
    first_utc_ms: int = 0

    def of_steps(self) -> tuple[Int64, Int64, Int64, Int64]:
        """The steps' slides, numbers, times and UTC, ascending."""
        slides, rows, times, utc = (np.concatenate(parts) for parts in zip(*self.steps, strict=True))
        return slides, rows, times, utc


class Moments:
    """``sessions`` in the order in which they began; ``late``: numbers of rows that were sampled so long before another that had come that
    they are in no window. ``ends``: whether nobody waits for it any more. Raises DamagedError, FileNotFoundError, RowsGoneError."""

    def __init__(
        self, plan: QueryPlan, timing: Timing, sources: Sources, ends: Callable[[], bool] = lambda: False
    ) -> None:
        frame = plan.window
        assert frame is not None
        self._timing, self._slide_ms = timing, frame.slide_ms
        self._shift_ms = -LATENESS_MS % frame.slide_ms
        #: How many slides behind its end a window's last row may be sampled.
        self.behind = (LATENESS_MS + self._shift_ms) // frame.slide_ms
        self._with_utc = any(node == TIME for expr in plan.exprs() for node in expr.walk())
        self._sessions: dict[int, Session] = {}
        late = [_NONE]
        names = [ROW]
        if not timing.by_utc:
            names += [SESSION, NETWORK_MS]
        if timing.by_utc or self._with_utc:
            names.append(SAMPLED)
        began: dict[int, Sequence[RowGroup]] = {}
        for groups, columns in _read(sources, names):
            if ends():
                raise duckdb.InterruptException("nobody waits for it")
            late += self._taken(columns)
            began |= {number: groups for number in self._sessions if number not in began}
        for number, groups in began.items():
            session = self._sessions[number]
            columns = rows_of(sources, groups, [ROW, SAMPLED])
            place = np.searchsorted(columns[ROW], session.first)
            session.first_utc_ms = int(columns[SAMPLED][place]) // 1000
        self.sessions = dict(sorted(self._sessions.items(), key=lambda known: known[1].first))
        self.late: Int64 = np.concatenate(late)

    def _taken(self, columns: dict[str, Int64]) -> Iterator[Int64]:
        """Take some more rows; gives the numbers of those that are late."""
        utc = columns[SAMPLED] // 1000 if SAMPLED in columns else None
        if self._timing.by_utc:
            assert utc is not None
            exact = self._timing.speed == 1.0
            times = utc if exact else np.rint(utc * self._timing.speed).astype(np.int64)
            yield self._of_session(0, columns[ROW], times, utc)
            return
        rows, times, of_each = columns[ROW], columns[NETWORK_MS], columns[SESSION]
        if len(of_each) == 1:
            yield self._of_session(int(of_each[0]), rows, times, utc)
            return
        for session in np.unique(of_each).tolist():
            at = of_each == session
            yield self._of_session(session, rows[at], times[at], None if utc is None else utc[at])

    def _of_session(self, number: int, rows: Int64, times: Int64, utc: Int64 | None) -> Int64:
        """Take some more rows of a session; returns the numbers of those that are late."""
        session = self._sessions.get(number)
        before = int(times[0]) if session is None else session.latest_ms
        time, late = times, _NONE
        if times[0] < before or (times[1:] < times[:-1]).any():
            time = np.maximum(np.maximum.accumulate(times), before)
            late = rows[times < time - LATENESS_MS]
        last = self._slide_of(before)
        if session is None:
            session = Session(int(rows[0]), before, before, 0, [])
            self._sessions[number] = session
            last -= 1
        places = self._steps(time, last)
        if len(places):
            of_places = np.zeros(len(places), np.int64) if utc is None else utc[places]
            session.steps.append((self._slide_of(time[places]), rows[places], time[places], of_places))
        if time[-1] > before or session.first == rows[0]:
            session.latest_ms = int(time[-1])
            if utc is not None:
                session.latest_utc_ms = int(utc[np.searchsorted(time, time[-1])])
        return late

    def _steps(self, time: Int64, last: int) -> Int64:
        """Where ascending times come into another slide, first from ``last``."""
        until = int(self._slide_of(time[-1]))
        if until - last < len(time) // _SEARCHED:
            begins = np.arange(last + 1, until + 1) * self._slide_ms - self._shift_ms
            return np.unique(np.searchsorted(time, begins))
        return np.flatnonzero(np.diff(self._slide_of(time), prepend=last))

    def _slide_of(self, time: Any) -> Any:
        return (time + self._shift_ms) // self._slide_ms


def _read(sources: Sources, names: Sequence[str]) -> Iterator[tuple[Sequence[RowGroup], dict[str, Int64]]]:
    """Columns of all rows, some at a time in the log's order, and which row groups they are of."""
    units = list(_together(row_groups(sources)))
    ahead: list[Future[dict[str, Int64]]] = []
    with ThreadPoolExecutor(_READING) as pool:
        try:
            for i, unit in enumerate(units):
                while len(ahead) <= min(2 * _READING, len(units) - 1 - i):
                    ahead.append(pool.submit(rows_of, sources, units[i + len(ahead)], names))
                columns = ahead.pop(0).result()
                if len(columns[ROW]):
                    yield unit, columns
        finally:
            for one in ahead:
                one.cancel()


def _together(groups: Sequence[RowGroup]) -> Iterator[list[RowGroup]]:
    """Row groups by the order of their rows: those with rows between each other's at once, others a few at a time."""
    unit: list[RowGroup] = []
    last = -1
    for group in sorted(groups, key=lambda group: group.first):
        if unit and group.first > last and (len(unit) >= _TOGETHER or group.path != unit[0].path):
            yield unit
            unit = []
        unit.append(group)
        last = max(last, group.last)
    if unit:
        yield unit

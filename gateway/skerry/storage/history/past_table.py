"""What a stream was before each of its rows, as a table that a query joins it with.

A row meets those that were sampled before it, at most so long ago, and that had come before it: what it is joined with is the same
whenever it is asked for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from skerry.expressions import build
from skerry.expressions.evaluate import Vector
from skerry.planner.model.joined_tables import EPOCH, PAST, TIME, JoinedTable, TableColumn, columns_read
from skerry.planner.model.plans import QueryPlan
from skerry.storage.history.first_readings import epochs_of
from skerry.storage.history.layout import Int64
from skerry.storage.history.reader import Reader, Samples
from skerry.tables.columns import Column, TableError
from skerry.tables.files import ROWS_MAXIMUM
from skerry.tables.pairs import NETWORK, NODE, ROW, SESSION
from skerry.tables.store import Table
from skerry_protocol.attributes import BY_NAME

#: Rows of the log that are read at a time.
_PIECE_ROWS = 65_536
#: Older rows than are needed that are kept at most, as a share of those that are.
_SLACK = 1.0
#: What UTC of a network time is known to, in ms: rows of a session meet by its time, and none of them may be missing.
_MARGIN_MS = 2_000


def earlier_reader(
    plan: QueryPlan,
    joined: JoinedTable,
    reader: Callable[[frozenset[int], int], Reader],
    earlier: Callable[[float, int], float],
    since_us: int,
) -> Reader:
    """Of rows that those sampled from a time on, UTC in us, may meet; the rest as of :class:`EarlierRows`."""
    assert joined.past_ms is not None
    names = columns_read(plan.joined_exprs(), joined) - {EPOCH, TIME}
    # From the beginning of the epoch on, of which the first row counts.
    since = earlier(earlier(since_us / 1e6, joined.past_ms), plan.period_ms) - _MARGIN_MS / 1000
    return reader(frozenset(BY_NAME[name].number for name in names), round(since * 1e6))


class EarlierRows:
    """The past of one query's stream, as far as its readers have come. ``reader``: of rows sampled from a time on, UTC in us, of the
    streams that there are when it is asked for; ``earlier``: UTC in s so long, in ms of network time, before another."""

    def __init__(
        self,
        plan: QueryPlan,
        joined: JoinedTable,
        reader: Callable[[frozenset[int], int], Reader],
        earlier: Callable[[float, int], float],
    ) -> None:
        assert joined.past_ms is not None
        self._period_ms, self._span_ms, self._earlier = plan.period_ms, joined.past_ms, earlier
        self._names = columns_read(plan.joined_exprs(), joined)
        attributes = frozenset(BY_NAME[name].number for name in self._names - {EPOCH, TIME})
        self._open = partial(reader, attributes)
        self._lock = threading.Lock()
        self._since_ms = 0
        #: How far the log has been read; None: it has not.
        self._at: int | None = None
        self._columns = self._empty()
        #: The newest epoch of which there is a row, by session and mote.
        self._newest: dict[tuple[int, int], int] = {}
        self._version = 0

    def table(self, numbers: Int64, utc_ms: Int64) -> tuple[Table, int]:
        """All rows that some of the stream's may meet, by their numbers in the log and sample times, and how far back in ms of UTC
        those of other sessions go. Raises TableError."""
        with self._lock:
            since_ms, reach_ms = self._since_ms, self._span_ms
            if len(utc_ms):
                first = int(utc_ms.min())
                since_ms = int(self._earlier(first / 1000, self._span_ms) * 1000)
                reach_ms = first - since_ms
                # From the beginning of the epoch on: what is its first row does not depend on when that is asked.
                since_ms = int(self._earlier(since_ms / 1000, self._period_ms) * 1000) - _MARGIN_MS
            last = int(numbers.max()) if len(numbers) else -1
            if self._at is None or since_ms < self._since_ms:
                self._since_ms = since_ms
                self._at, self._columns = self._open(since_ms * 1000).first(), self._empty()
                self._newest.clear()
                self._version += 1
            if self._at < last:
                reader = self._open(self._since_ms * 1000)
                while self._at < last:
                    upto = min(self._at + _PIECE_ROWS, last)
                    self._add(reader.read(self._at, upto))
                    self._at = upto
            self._leave_old(since_ms)
            columns = {
                name: Column(TableColumn(name, _DIGITS.get(name, 0)), values, known)
                for name, (values, known) in self._columns.items()
            }
            rows = len(columns[ROW].values)
            if rows > ROWS_MAXIMUM:
                raise TableError(
                    f"{PAST.name} has {rows} rows in this time, and a table has {ROWS_MAXIMUM} at most"
                )
            return Table(PAST.name, rows, columns, self._version, Path(PAST.name)), reach_ms

    def _empty(self) -> dict[str, Vector]:
        names = self._names | {ROW, SESSION, NODE, NETWORK, TIME}
        return {name: (np.empty(0, np.int64), np.empty(0, np.bool_)) for name in names}

    def _first(self, samples: Samples) -> Int64:
        """Places of the rows that have come first of a mote's in their epoch."""
        places, came = [], set[tuple[int, int, int]]()
        for place, key in enumerate(zip(*epochs_of(samples, self._period_ms).tolist(), strict=True)):
            session, node, epoch = key
            newest = self._newest.get((session, node), -1)
            if epoch > newest:
                self._newest[session, node] = epoch
            elif epoch == newest or key in came or self._has(session, node, epoch):
                continue
            came.add(key)
            places.append(place)
        return np.array(places, np.int64)

    def _has(self, session: int, node: int, epoch: int) -> bool:
        columns = {name: values for name, (values, _) in self._columns.items()}
        there = columns[NETWORK] // self._period_ms == epoch
        return bool((there & (columns[NODE] == node) & (columns[SESSION] == session)).any())

    def _add(self, samples: Samples) -> None:
        places = self._first(samples)
        nodes, _ = samples.rows.column("nodeid")
        everywhere = np.ones(len(places), np.bool_)
        found: dict[str, Vector] = {
            ROW: (samples.numbers[places], everywhere),
            SESSION: (samples.sessions[places], everywhere),
            NODE: (nodes[places], everywhere),
            NETWORK: (samples.rows.sample_ms[places], everywhere),
            TIME: (samples.rows.utc_ms[places], everywhere),
        }
        for name in self._names - {TIME}:
            values, known = samples.rows.evaluate(build.attribute(BY_NAME[name]), self._period_ms)
            found[name] = values[places], known[places]
        for name, (values, known) in found.items():
            old, old_known = self._columns[name]
            self._columns[name] = np.concatenate([old, values]), np.concatenate([old_known, known])
        self._version += 1

    def _leave_old(self, since_ms: int) -> None:
        needed = self._columns[TIME][0] >= since_ms
        if np.count_nonzero(~needed) <= _SLACK * np.count_nonzero(needed):
            return
        self._since_ms = since_ms
        self._columns = {name: (v[needed], k[needed]) for name, (v, k) in self._columns.items()}
        self._version += 1


_DIGITS = {column.name: column.digits for column in PAST.columns}

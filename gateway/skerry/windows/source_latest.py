"""Answers from the newest row of each source, of streams that are no motes': FROM LATEST.

A row is newer whose time is later, or the same and it stands behind in the log. With each record that brings newer rows the answer is made
again, and comes where it has changed; a user's first one comes with the first record behind his question in any case.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby

import numpy as np
import pyarrow as pa

from skerry.execution.deliveries import Delivery
from skerry.execution.source_newest import CHOSEN, NUMBER, OWN, SOURCE, TIME, newest_rows
from skerry.execution.source_rows import SourceRows
from skerry.planner.model.source_plans import SourceNewest, SourcePlan
from skerry.sensors.answers import answer
from skerry.sensors.readings import Readings
from skerry.windows.kept_sources import (
    NOT_UNDERSTOOD,
    KeptLatest,
    KeptOfSources,
    SharedCapture,
    kept_latest,
    latest_again,
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class LatestView:
    """A user's query: its answers are by records from ``first`` on."""

    first: int


class LatestPart:
    """Answers that some records brought: by number. Read by any thread."""

    def __init__(self, answers: Sequence[tuple[int, pa.RecordBatch]]) -> None:
        self._answers = answers

    def delivery(self, view: LatestView) -> Delivery | None:
        """A user's rows, if any."""
        mine = [(number, rows) for number, rows in self._answers if number >= view.first and rows.num_rows]
        if not mine:
            return None
        numbers = np.repeat([number for number, _ in mine], [rows.num_rows for _, rows in mine])
        whole = pa.Table.from_batches([rows for _, rows in mine]).combine_chunks()
        return Delivery(numbers.astype(np.int64), whole.to_batches()[0])


@dataclass
class _Shared:
    """Users of one plan, and the newest rows: by source its time, and the row, if static columns select it."""

    number: int
    plan: SourcePlan
    at: int
    users: set[str] = field(default_factory=set)
    #: Who has had no answer yet, and from which record on he gets some.
    waiting: dict[str, int] = field(default_factory=dict)
    rows: dict[int, tuple[int, pa.RecordBatch | None]] = field(default_factory=dict)
    last: pa.RecordBatch | None = None

    def note(self, batch: pa.RecordBatch) -> bool:
        """The newest rows of some record, or of several; whether any is newer than what was there."""
        newer, columns = False, (batch.column(name).to_pylist() for name in (SOURCE, TIME, CHOSEN))
        for place, (source, time, chosen) in enumerate(zip(*columns, strict=True)):
            if source not in self.rows or self.rows[source][0] <= time:
                newer |= chosen or self.rows.get(source, (0, None))[1] is not None
                self.rows[source] = time, batch.slice(place, 1) if chosen else None
        return newer

    @property
    def newest(self) -> SourceNewest:
        """What executors are to give of rows."""
        return self.plan.newest


class SourceLatest:
    """The answers of all users. Not for several threads at once. ``readings``: of the tables that rows are joined with."""

    def __init__(self, readings: Readings | None = None) -> None:
        self._readings = readings
        self._shared: dict[SourcePlan, _Shared] = {}
        self._of_user: dict[str, _Shared] = {}
        self._ends: dict[str, int] = {}
        self._numbers = 0

    def add(
        self, user: str, plan: SourcePlan, first: int, at: int, before: Callable[[], Sequence[SourceRows]]
    ) -> dict[Hashable, LatestView]:
        """A user's answers by records from ``first`` on; the next one that comes here is ``at``. ``before``: rows of records before that,
        in order."""
        shared = self._shared.get(plan)
        if shared is None:
            self._numbers += 1
            shared = self._shared[plan] = _Shared(self._numbers, plan, at)
            for rows in before():
                shared.note(newest_rows(shared.newest, rows))
        shared.users.add(user)
        self._of_user[user] = shared
        view, own = LatestView(first), ("latest of", user)
        if plan.once:
            return {own: view}
        shared.waiting[user] = first
        return {("latest", shared.number): view, own: view}

    def end(self, user: str, number: int) -> None:
        """What there is at a record is a user's last answer, and the one of ONCE."""
        if user in self._of_user:
            self._ends[user] = number

    def remove(self, user: str) -> None:
        """The user is gone."""
        shared = self._of_user.pop(user, None)
        self._ends.pop(user, None)
        if shared is not None:
            shared.users.discard(user)
            shared.waiting.pop(user, None)
            if not shared.users:
                del self._shared[shared.plan]

    def sources(self, user: str) -> set[int]:
        """Numbers of the tuples of which there is a row."""
        shared = self._of_user.get(user)
        return set(shared.rows) if shared is not None else set()

    def wanted(self) -> dict[int, tuple[int, SourceNewest]]:
        """By number of what is shared: the stream, and what is wanted of it."""
        return {
            shared.number: (shared.plan.stream, shared.newest)
            for shared in self._shared.values()
            if shared.plan.stream is not None
        }

    def begins(self) -> dict[int, int]:
        """By stream, the first record that matters."""
        found: dict[int, int] = {}
        for shared in self._shared.values():
            if shared.plan.stream is not None:
                found[shared.plan.stream] = min(found.get(shared.plan.stream, shared.at), shared.at)
        return found

    # ---- what is kept over a restart: see skerry.windows.snapshot ----

    def __len__(self) -> int:
        """How many answers there are."""
        return len(self._shared)

    def capture(self, texts: Mapping[str, str]) -> list[SharedCapture]:
        """As they are. ``texts``: of users' queries."""
        return [
            SharedCapture(
                {user: texts[user] for user in shared.users},
                partial(kept_latest, dict(shared.rows), shared.last, dict(shared.waiting)),
            )
            for shared in self._shared.values()
        ]

    def go_on(self, kept: KeptOfSources) -> set[str]:
        """As others were that are kept, before the first rows come: returns whose answers do so."""
        went_on: set[str] = set()
        for shared in self._shared.values():
            before = kept.before(shared.users)
            found = kept.of(before)
            if found is None:
                continue
            try:
                unpacked = found.unpacked(KeptLatest)
                shared.rows, shared.last = latest_again(unpacked)
            except ValueError as error:
                log.warning(NOT_UNDERSTOOD, error)
                continue
            waiting = dict(unpacked.waiting)
            for user in before:
                shared.waiting.pop(user, None)
                if user in waiting:
                    shared.waiting[user] = waiting[user]
                if self._ends.get(user, kept.row) < kept.row:
                    # What there was then was the last one.
                    del self._ends[user]
            shared.at = kept.row
            went_on |= shared.users
        return went_on

    def process(self, stream: int, rows: SourceRows, end: int) -> tuple[dict[Hashable, LatestPart], set[str]]:
        """The next rows of a stream: all of the records before ``end``."""
        return self._merge(
            end,
            [shared for shared in self._shared.values() if shared.plan.stream == stream],
            # A record that says that all sources of a query have ended has no rows.
            lambda shared: [newest_rows(shared.newest, rows)] if len(rows.numbers) else [],
        )

    def merge(
        self,
        end: int,
        found: Callable[[int], Sequence[pa.RecordBatch] | None],
        rows: Callable[[int], SourceRows | None],
    ) -> tuple[dict[Hashable, LatestPart], set[str]]:
        """The same of all streams, where executors have looked for the newest; see :class:`skerry.windows.source_windows.SourceWindows`."""

        def of(shared: _Shared) -> Sequence[pa.RecordBatch]:
            known = found(shared.number)
            if known is not None:
                return known
            assert shared.plan.stream is not None
            again = rows(shared.plan.stream)
            return [] if again is None else [newest_rows(shared.newest, again)]

        return self._merge(end, list(self._shared.values()), of)

    def _merge(
        self, end: int, those: Sequence[_Shared], of: Callable[[_Shared], Sequence[pa.RecordBatch]]
    ) -> tuple[dict[Hashable, LatestPart], set[str]]:
        parts: dict[Hashable, LatestPart] = {}
        users: set[str] = set()
        for shared in those:
            changed: list[tuple[int, pa.RecordBatch]] = []
            ends = sorted(
                (self._ends[user], user) for user in shared.users if self._ends.get(user, end) < end
            )
            for number, batch in _records(of(shared), shared.at):
                while ends and ends[0][0] < number:
                    self._last(shared, *ends.pop(0), parts, users)
                self._newer(shared, number, batch, changed, parts, users)
            for one in ends:
                self._last(shared, *one, parts, users)
            shared.at = max(shared.at, end)
            if changed:
                parts["latest", shared.number] = LatestPart(changed)
                users |= shared.users
        return parts, users

    def _newer(
        self,
        shared: _Shared,
        number: int,
        batch: pa.RecordBatch,
        changed: list[tuple[int, pa.RecordBatch]],
        parts: dict[Hashable, LatestPart],
        users: set[str],
    ) -> None:
        if not shared.note(batch):
            return
        rows = self._answer(shared, number)
        if shared.last is None or not rows.equals(shared.last):
            shared.last = rows
            changed.append((number, rows))
            due = [user for user, first in shared.waiting.items() if first <= number]
        else:
            due = [user for user, first in shared.waiting.items() if first <= number]
            parts |= {("latest of", user): LatestPart([(number, rows)]) for user in due}
            users |= set(due)
        for user in due:
            del shared.waiting[user]

    def _last(
        self, shared: _Shared, number: int, user: str, parts: dict[Hashable, LatestPart], users: set[str]
    ) -> None:
        del self._ends[user]
        if shared.plan.once:
            parts["latest of", user] = LatestPart([(number, self._answer(shared, number))])
            users.add(user)

    def _answer(self, shared: _Shared, number: int) -> pa.RecordBatch:
        """As of a record, whose tables all rows are joined with."""
        newest = [rows for _, (_, rows) in sorted(shared.rows.items()) if rows is not None]
        columns = {}
        if newest:
            whole = pa.Table.from_batches(newest).combine_chunks()
            columns = {name: whole.column(OWN + name).combine_chunks() for name, _ in shared.newest.columns}
            columns = {name: _flat(column) for name, column in columns.items()}
        return answer(shared.plan, columns, len(newest), self._readings, number)


def _flat(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column


def _records(batches: Sequence[pa.RecordBatch], since: int) -> list[tuple[int, pa.RecordBatch]]:
    """By record from one on, in order."""
    found: list[tuple[int, pa.RecordBatch]] = []
    for batch in batches:
        numbers = batch.column(NUMBER).to_pylist()
        at = 0
        for number, alike in groupby(numbers):
            count = len(list(alike))
            if number >= since:
                found.append((number, batch.slice(at, count)))
            at += count
    return sorted(found, key=lambda one: one[0])

"""Users' windows over streams that are no motes': who shares which panes, and what each user sees of them."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skerry.execution.deliveries import Delivery
from skerry.execution.source_folding import folded_rows
from skerry.execution.source_rows import SourceRows
from skerry.planner.model import source_windows as columns
from skerry.planner.model.source_plans import SourcePlan
from skerry.planner.model.source_windows import SourceFold, SourceGrouping
from skerry.sensors.aggregate_states import columns as arrays
from skerry.sensors.aggregate_states import in_order, value
from skerry.sensors.evaluate import MOMENT, evaluate, passes, schema_of, shown
from skerry.windows.kept_sources import (
    NOT_UNDERSTOOD,
    KeptOfSources,
    KeptWindows,
    SharedCapture,
    kept_windows,
    windows_again,
)
from skerry.windows.source_panes import KEPT_MAXIMUM, Key, Line, SourcePanes, TooManyError, records_of

log = logging.getLogger(__name__)

#: Of which rows what is shared is made: of a stream, of what the fold says, and how long windows wait.
Selection = tuple[int, SourceFold, int]
#: Where landmarks begin of which no row has come before.
_EVER = -(1 << 62)
TOO_MANY = (
    f"its windows have more than {KEPT_MAXIMUM:,} pieces of time and groups, or values that COUNT(DISTINCT …) tells apart: "
    "write a longer slide, or group by fewer values"
)


@dataclass(frozen=True, slots=True, eq=False)
class SourceWindowView:
    """A user's query on windows: they begin behind ``since_ms``, and were brought by records from ``first`` on."""

    plan: SourcePlan
    since_ms: int | None
    first: int


class SourceWindowPart:
    """What windows gave with some records, for all who have them. Read by any thread."""

    def __init__(self, key: Key, grouping: SourceGrouping, lines: Sequence[Line]) -> None:
        # Rows of one window by group: a reader who comes back amid them finds them as they were.
        ordered = [
            line
            for _, of_window in groupby(lines, _moment)
            for line in sorted(of_window, key=lambda one: in_order(one.group))
        ]
        self.numbers = np.array([line.number for line in ordered], np.int64)
        self._ends = np.array([line.end_ms for line in ordered], np.int64)
        frame, first_ms = key
        begins = [
            [
                window.latest(line.end_ms) - window.length_ms if window.length_ms else first_ms
                for window in frame.windows
            ]
            for line in ordered
        ]
        self._begins = np.array([min(one) for one in begins], np.int64)
        self._revisions = np.array([line.revision for line in ordered], np.int64)
        values = [
            [value(one, line.states[one.window]) for line in ordered if one.window is not None]
            for one in grouping.aggregates
        ]
        self._columns = {
            columns.END: pa.array(self._ends * 1000).cast(pa.timestamp("us")).cast(MOMENT),
            columns.REVISION: pa.array(self._revisions),
            **arrays(grouping, [line.group for line in ordered], values),
        }

    def delivery(self, view: SourceWindowView) -> Delivery | None:
        """A user's rows, if any, as he sees them."""
        plan, count = view.plan, len(self.numbers)
        assert plan.grouping is not None
        passing = passes(plan.grouping.having, self._columns, count).to_numpy(zero_copy_only=False)
        passing = passing & (self.numbers >= view.first)
        if view.since_ms is not None:
            passing &= self._begins > view.since_ms
        if not plan.grouping.revises:
            passing &= self._revisions == 0
        places = np.flatnonzero(passing)
        if plan.order or plan.limit is not None:
            places = self._ordered(places, plan)
        if not len(places):
            return None
        taken = {name: column.take(pa.array(places)) for name, column in self._columns.items()}
        made = [shown(output.term, taken, len(places)) for output in plan.outputs]
        return Delivery(self.numbers[places], pa.RecordBatch.from_arrays(made, schema=schema_of(plan)))

    def _ordered(self, places: npt.NDArray[np.int64], plan: SourcePlan) -> npt.NDArray[np.int64]:
        """Of each window and revision the first rows, in their order; of equal ones that with the lesser group comes first."""
        whole = [self.numbers, self._ends, self._revisions]
        began = np.any(np.diff(np.array(whole), prepend=-1) != 0, axis=0)
        windows = np.cumsum(began)
        keys = {"window": pa.array(windows), **{
            f"by{i}": evaluate(term, self._columns, len(self.numbers)) for i, (term, _) in enumerate(plan.order)
        }}  # fmt: skip
        ways = [("window", "ascending")]
        ways += [(f"by{i}", "descending" if down else "ascending") for i, (_, down) in enumerate(plan.order)]
        table = pa.table({**keys, "place": pa.array(np.arange(len(windows)))}).take(pa.array(places))
        order = pc.sort_indices(table, sort_keys=[*ways, ("place", "ascending")]).to_numpy()
        found: npt.NDArray[np.int64] = places[order]
        if plan.limit is None:
            return found
        of_window = windows[found]
        starts = np.flatnonzero(np.diff(of_window, prepend=0) != 0)
        rank = np.arange(len(found)) - np.repeat(starts, np.diff(np.append(starts, len(found))))
        first: npt.NDArray[np.int64] = found[rank < plan.limit]
        return first


def _moment(line: Line) -> tuple[int, int, int]:
    return line.number, line.end_ms, line.revision


@dataclass
class Shared:
    """The panes of a selection. ``users``: by name, their windows; ``at``: the first record that they are of. ``alike``: users of whom one
    part serves all, as they have the same windows and aggregates."""

    number: int
    selection: Selection
    panes: SourcePanes
    at: int
    users: dict[str, tuple[Key, SourcePlan]] = field(default_factory=dict)
    alike: dict[tuple[Key, SourceGrouping], tuple[str, int, int, set[str]]] = field(default_factory=dict)
    places: int = 0

    @property
    def choice(self) -> str:
        """The selection as text."""
        stream, fold, wait_ms = self.selection
        return json.dumps([stream, fold.to_text(), wait_ms])

    def join(self, user: str, key: Key, plan: SourcePlan) -> Hashable:
        """A user more; returns where parts of his are."""
        assert plan.grouping is not None
        self.users[user] = key, plan
        # HAVING is asked of each user's rows.
        what = key, replace(plan.grouping, having=None, revises=False)
        *place, users = self.alike.setdefault(what, ("windows", self.number, self.places, set()))
        self.places += 1
        users.add(user)
        return tuple(place)

    def leave(self, user: str) -> None:
        """One less."""
        key, plan = self.users.pop(user)
        assert plan.grouping is not None
        what = key, replace(plan.grouping, having=None, revises=False)
        self.alike[what][-1].discard(user)
        if not self.alike[what][-1]:
            del self.alike[what]


@dataclass(slots=True)
class Brought:
    """What records brought: by window's key, and whose it is."""

    parts: dict[Hashable, SourceWindowPart] = field(default_factory=dict)
    users: set[str] = field(default_factory=set)


class SourceWindows:
    """The windows of all users. Not for several threads at once. ``time_before``: the greatest time, in µs, of a stream's rows before a
    record of the log."""

    def __init__(self, time_before: Callable[[int, int], int | None]) -> None:
        self._time_before = time_before
        self._shared: dict[Selection, Shared] = {}
        self._all: dict[int, Shared] = {}
        self._of_user: dict[str, Shared] = {}
        #: By user, the record behind which there are none for him.
        self._ends: dict[str, int] = {}
        self._numbers = 0
        #: By user, why there are no more windows.
        self.exceeded: dict[str, str] = {}

    def add(self, user: str, plan: SourcePlan, first: int, at: int) -> dict[Hashable, SourceWindowView]:
        """A user's windows, of records from ``first`` on; the next one that comes here is ``at``, at the latest ``first``."""
        grouping = plan.grouping
        assert grouping is not None
        assert grouping.frame is not None
        assert plan.stream is not None
        selection = plan.stream, grouping.fold(plan.where, plan.lookups), grouping.wait_ms
        shared = self._shared.get(selection)
        # When a gateway starts again who comes first was first there.
        if shared is None or at < shared.at:
            self._numbers += 1
            before = self._ms(plan.stream, at)
            shared = Shared(self._numbers, selection, SourcePanes(selection[1], grouping.wait_ms, before), at)
            self._shared[selection] = self._all[shared.number] = shared
        since = self._ms(plan.stream, first)
        slide = grouping.frame.slide_ms
        begin = 0
        if not grouping.frame.is_bounded:
            begin = _EVER if since is None else (since // slide + 1) * slide
        key = shared.panes.want(grouping.frame, begin)
        if grouping.revises:
            shared.panes.revising.add(key)
        place = shared.join(user, key, plan)
        self._of_user[user] = shared
        view = SourceWindowView(plan, since, first)
        return {place: view, ("rest of windows", user): view}

    def _ms(self, stream: int, row: int) -> int | None:
        time_us = self._time_before(stream, row)
        return None if time_us is None else time_us // 1000

    def end(self, user: str, number: int) -> None:
        """No rows of a user's sources come behind a record: what his windows have then is all."""
        if user in self._of_user:
            self._ends[user] = number

    def remove(self, user: str) -> None:
        """The user is gone."""
        self.exceeded.pop(user, None)
        self._ends.pop(user, None)
        shared = self._of_user.pop(user, None)
        if shared is None:
            return
        shared.leave(user)
        left = {key for key, _ in shared.users.values()}
        for key in [key for key in shared.panes.courses if key not in left]:
            del shared.panes.courses[key]
            shared.panes.revising.discard(key)
        if not shared.users:
            self._forget(shared)

    def _forget(self, shared: Shared) -> None:
        del self._all[shared.number]
        if self._shared.get(shared.selection) is shared:
            del self._shared[shared.selection]

    def wanted(self) -> dict[int, tuple[int, SourceFold]]:
        """By number of what is shared, what is to be folded: the stream, and how."""
        return {shared.number: shared.selection[:2] for shared in self._all.values()}

    def begins(self) -> dict[int, int]:
        """By stream, the first record that windows are of."""
        found: dict[int, int] = {}
        for shared in self._all.values():
            stream = shared.selection[0]
            found[stream] = min(found.get(stream, shared.at), shared.at)
        return found

    # ---- what is kept over a restart: see skerry.windows.snapshot ----

    def __len__(self) -> int:
        """How many selections of rows there are."""
        return len(self._all)

    def capture(self, texts: Mapping[str, str]) -> list[SharedCapture]:
        """As they are. ``texts``: of users' queries."""
        found = []
        for shared in self._all.values():
            users = {user: key for user, (key, _) in shared.users.items()}
            made = partial(kept_windows, shared.choice, users, shared.panes.state())
            found.append(SharedCapture({user: texts[user] for user in users}, made))
        return found

    def go_on(self, kept: KeptOfSources) -> set[str]:
        """As others were that are kept, before the first rows come: returns whose windows do so."""
        went_on: set[str] = set()
        for shared in self._all.values():
            before = kept.before(shared.users)
            found = kept.of(before)
            if found is None:
                continue
            try:
                unpacked = found.unpacked(KeptWindows)
                keys, state = windows_again(unpacked)
            except ValueError as error:
                log.warning(NOT_UNDERSTOOD, error)
                continue
            # When the log has lost rows, landmarks that are made of it begin elsewhere.
            if unpacked.choice != shared.choice or any(
                keys[user] != shared.users[user][0] for user in before
            ):
                continue
            shared.panes.go_on(state)
            shared.at = kept.row
            for user in before:
                if self._ends.get(user, kept.row) < kept.row:
                    # It has all been given.
                    del self._ends[user]
            went_on |= shared.users.keys()
        return went_on

    def process(self, stream: int, rows: SourceRows, end: int) -> Brought:
        """The next rows of a stream: all of the records before ``end``."""
        found = Brought()
        for shared in [shared for shared in self._all.values() if shared.selection[0] == stream]:
            self._give(shared, self._folded(shared, rows), end, found)
        return found

    def _folded(self, shared: Shared, rows: SourceRows) -> list[pa.Table]:
        later = rows.numbers >= shared.at
        if not later.any():
            return []
        if not later.all():
            mask = pa.array(later)
            columns = {name: one.filter(mask) for name, one in rows.columns.items()}
            rows = SourceRows(rows.numbers[later], columns, rows.readings)
        return [folded_rows(shared.selection[1], rows)]

    def merge(
        self,
        end: int,
        folded: Callable[[int], Sequence[pa.RecordBatch] | None],
        rows: Callable[[int], SourceRows | None],
    ) -> Brought:
        """The same of all streams, where rows have been folded, by number of what is shared; None: it was not known yet. ``rows``: those
        of a stream, which not all may be wanted of."""
        found = Brought()
        for shared in list(self._all.values()):
            tables = folded(shared.number)
            if tables is None:
                of_stream = rows(shared.selection[0])
                tables = [] if of_stream is None else self._folded(shared, of_stream)
            self._give(shared, tables, end, found)
        return found

    def _give(
        self, shared: Shared, tables: Sequence[pa.Table | pa.RecordBatch], end: int, found: Brought
    ) -> None:
        records = [
            one
            for table in tables
            for one in records_of(shared.selection[1], table)
            # A batch may come again, of which what was kept has the beginning.
            if one.number >= shared.at
        ]
        records.sort(key=lambda one: one.number)
        ends = sorted((self._ends[user], user) for user in shared.users if self._ends.get(user, end) < end)
        given: dict[Key, list[Line]] = {}
        try:
            for number, user in [*ends, (end, "")]:
                upto = [one for one in records if one.number <= number]
                records = records[len(upto) :]
                for key, lines in shared.panes.take(upto).items():
                    given.setdefault(key, []).extend(lines)
                if user:
                    self._rest(shared, user, number, found)
        except TooManyError:
            self.exceeded |= dict.fromkeys(shared.users, TOO_MANY)
            for user in list(shared.users):
                self._of_user.pop(user)
            self._forget(shared)
            return
        shared.at = max(shared.at, end)
        for (key, grouping), (*place, users) in shared.alike.items():
            if given.get(key):
                found.parts[tuple(place)] = SourceWindowPart(key, grouping, given[key])
                found.users |= users

    def _rest(self, shared: Shared, user: str, number: int, found: Brought) -> None:
        del self._ends[user]
        key, plan = shared.users[user]
        lines = shared.panes.rest(key, number)
        if lines and plan.grouping is not None:
            found.parts["rest of windows", user] = SourceWindowPart(key, plan.grouping, lines)
            found.users.add(user)

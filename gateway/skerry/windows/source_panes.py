"""Windows over rows of sources that are no motes: aggregates by pane of time and group, put together in the order of the log.

What windows give is a function of the log, a record at a time (:mod:`skerry.execution.source_folding`): the windows' time is the
greatest that a row of the table has had; a window's rows come with the record that moves it to the window's end and the wait behind it,
and of that record all rows are counted. A row that is later changes the windows that hold it, whose rows come again as revisions, for
an hour of that time after they have come: then they are settled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

import pyarrow as pa

from skerry.execution.source_folding import NUMBER, PANE, TIME
from skerry.planner.model.frames import LATENESS_MS, Frame, Window
from skerry.planner.model.source_windows import SourceFold, State
from skerry.sensors.aggregate_states import joined, nothing, read

#: The windows of a query, and where those begin that are landmarks'.
Key = tuple[Frame, int]
Group = tuple[Any, ...]
States = tuple[Any, ...]
#: So many pieces of groups, and values that are told apart, are kept at most.
KEPT_MAXIMUM = 1_000_000
#: So many rows of a landmark's a record brings at most: the last ones, where a source's time jumps.
_LANDMARKS_MAXIMUM = 1000


class TooManyError(Exception):
    """There is no room for more groups."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What rows of one record have of one pane and group."""

    pane: int
    group: Group
    states: States


@dataclass(frozen=True, slots=True)
class Record:
    """A record's rows. ``time_ms``: their greatest time, of those, too, that no condition lets pass."""

    number: int
    time_ms: int
    cells: list[Cell]


@dataclass(frozen=True, slots=True)
class Line:
    """A row of windows: by which record it came, their end, which revision, of which group; and by window the states."""

    number: int
    end_ms: int
    revision: int
    group: Group
    states: Mapping[Window, Mapping[State, Any]]


@dataclass(slots=True)
class SourceCourse:
    """Windows on their way. ``closed_ms``: the end of the last that has come. ``before``: of landmarks what is no longer in panes."""

    frame: Frame
    first_ms: int
    closed_ms: int | None = None
    before: dict[Group, States] = field(default_factory=dict)
    revised: dict[int, int] = field(default_factory=dict)

    def spans(self, end_ms: int) -> dict[Window, tuple[int, int]]:
        """Where the windows begin and end whose row ends then."""
        found = {}
        for window in self.frame.windows:
            latest = window.latest(end_ms)
            found[window] = latest - window.length_ms if window.length_ms else self.first_ms, latest
        return found

    def holding(self, start_ms: int, after_ms: int, until_ms: int) -> Iterator[int]:
        """Ends behind one time and up to another of the rows whose windows hold the pane that begins then."""
        slide = self.frame.slide_ms
        for window in self.frame.windows:
            last = until_ms
            if window.length_ms:
                # It holds it until the next end takes its place.
                last = min(last, window.latest(start_ms + window.length_ms) + window.slide_ms - slide)
            elif start_ms < self.first_ms:
                continue
            yield from range(
                max(window.latest(start_ms) + window.slide_ms, after_ms + slide), last + 1, slide
            )


@dataclass(frozen=True, slots=True)
class SourcePanesState:
    """All that the next rows' answers rest on. ``gone``: panes before this one are no longer held."""

    now_ms: int | None
    gone: int | None
    panes: Mapping[int, Mapping[Group, States]]
    courses: Sequence[SourceCourse]


def records_of(fold: SourceFold, table: pa.Table | pa.RecordBatch) -> list[Record]:
    """What :func:`skerry.execution.source_folding.folded_rows` made."""
    whole = table if isinstance(table, pa.Table) else pa.Table.from_batches([table])
    numbers, panes, times = (whole.column(name).to_pylist() for name in (NUMBER, PANE, TIME))
    columns = [whole.column(f"g{i}").to_pylist() for i in range(len(fold.groups))]
    groups = list(zip(*columns, strict=True)) if columns else [()] * len(numbers)
    states = list(zip(*read(fold.states, whole), strict=True))
    found = []
    for number, places in groupby(range(len(numbers)), numbers.__getitem__):
        first, *others = places
        cells = [Cell(panes[at], groups[at], states[at]) for at in others]
        found.append(Record(number, times[first] // 1000, cells))
    return found


class SourcePanes:
    """One selection of one stream's rows. ``now_ms``: the greatest time before them; None: there were none."""

    def __init__(self, fold: SourceFold, wait_ms: int, now_ms: int | None) -> None:
        self.fold, self._wait_ms, self.now_ms = fold, wait_ms, now_ms
        self.courses: dict[Key, SourceCourse] = {}
        #: Windows of which somebody wants to know what changes them.
        self.revising: set[Key] = set()
        self._panes: dict[int, dict[Group, States]] = {}
        #: Panes before this one are no longer held.
        self._gone: int | None = None
        self._kept = 0

    def want(self, frame: Frame, first_ms: int) -> Key:
        """Windows, from now on."""
        key = frame, first_ms
        if key not in self.courses:
            self.courses[key] = SourceCourse(frame, first_ms)
            if self.now_ms is not None:
                self.courses[key].closed_ms = self._due(frame, self.now_ms)
        return key

    def state(self) -> SourcePanesState:
        """As they are; it stays so while rows come."""
        panes = {pane: dict(groups) for pane, groups in self._panes.items()}
        courses = [
            replace(course, before=dict(course.before), revised=dict(course.revised))
            for course in self.courses.values()
        ]
        return SourcePanesState(self.now_ms, self._gone, panes, courses)

    def go_on(self, state: SourcePanesState) -> None:
        """As others were, with those of their windows that are wanted here."""
        wanted = list(self.courses)
        self.now_ms, self._gone = state.now_ms, state.gone
        self._panes = {pane: dict(groups) for pane, groups in state.panes.items()}
        known = {(course.frame, course.first_ms): course for course in state.courses}
        self.courses = {key: known[key] for key in wanted if key in known}
        for frame, first_ms in wanted:
            self.want(frame, first_ms)
        held = [*self._panes.values(), *(course.before for course in self.courses.values())]
        self._kept = sum(_size(states) for groups in held for states in groups.values())

    def _due(self, frame: Frame, time_ms: int) -> int:
        return (time_ms - self._wait_ms) // frame.slide_ms * frame.slide_ms

    def _settled(self, time_ms: int) -> int:
        """Windows that end up to then change no more."""
        return time_ms - self._wait_ms - LATENESS_MS

    def take(self, records: Iterable[Record]) -> dict[Key, list[Line]]:
        """The next rows; what windows give, in the order in which it comes. Raises TooManyError."""
        found: dict[Key, list[Line]] = {key: [] for key in self.courses}
        for record in records:
            self._take(record, found)
        return found

    def _take(self, record: Record, found: dict[Key, list[Line]]) -> None:
        before = self.now_ms
        now = record.time_ms if before is None else max(before, record.time_ms)
        self.now_ms = now
        width = self.fold.width_ms
        for cell in record.cells:
            self._add(cell)
        if self._kept > KEPT_MAXIMUM:
            raise TooManyError
        for key, course in self.courses.items():
            if course.closed_ms is None:
                # What the stream begins with is in windows, however far its rows are apart.
                least = min((cell.pane * width for cell in record.cells), default=now)
                course.closed_ms = min(
                    self._due(course.frame, now), least // course.frame.slide_ms * course.frame.slide_ms
                )
            elif before is not None:
                found[key] += self._revised(key, course, record, before)
            found[key] += self._closed(course, record.number, self._due(course.frame, now))
        if before is None or now > before:
            self._forget(now)

    def _add(self, cell: Cell) -> None:
        if self._gone is not None and cell.pane < self._gone:
            # Windows with a length are settled there.
            self._keep(cell.pane, {cell.group: cell.states})
            return
        pane = self._panes.setdefault(cell.pane, {})
        self._join(pane, cell.group, cell.states)

    def _join(self, known: dict[Group, States], group: Group, states: States) -> None:
        had = known.get(group)
        known[group] = states if had is None else joined(self.fold.states, had, states)
        self._kept += _size(known[group]) - (0 if had is None else _size(had))

    def _keep(self, pane: int, groups: Mapping[Group, States]) -> None:
        """A pane that is no longer held by itself goes to what landmarks hold."""
        for course in self.courses.values():
            if not course.frame.is_bounded and pane * self.fold.width_ms >= course.first_ms:
                for group, states in groups.items():
                    self._join(course.before, group, states)

    def _forget(self, now_ms: int) -> None:
        """Panes that no window reaches any more that may still change."""
        longest = max((course.frame.lookback_ms for course in self.courses.values()), default=0)
        gone = (self._settled(now_ms) - longest) // self.fold.width_ms
        if self._gone is None or gone > self._gone:
            for pane in sorted(pane for pane in self._panes if pane < gone):
                groups = self._panes.pop(pane)
                self._kept -= sum(map(_size, groups.values()))
                self._keep(pane, groups)
            self._gone = gone
        for course in self.courses.values():
            for end_ms in [end_ms for end_ms in course.revised if end_ms <= self._settled(now_ms)]:
                del course.revised[end_ms]

    # ---- what windows give ----

    def _closed(self, course: SourceCourse, number: int, until_ms: int) -> list[Line]:
        """The windows that end up to then, and have not come."""
        after, slide = course.closed_ms, course.frame.slide_ms
        assert after is not None
        if until_ms <= after:
            return []
        course.closed_ms = until_ms
        steps = (until_ms - after) // slide
        if steps <= _LANDMARKS_MAXIMUM or not course.frame.is_bounded:
            first = max(after + slide, until_ms - slide * (_LANDMARKS_MAXIMUM - 1))
            ends: Iterable[int] = range(first, until_ms + 1, slide)
        else:
            width = self.fold.width_ms
            ends = sorted(
                {end for pane in self._panes for end in course.holding(pane * width, after, until_ms)}
            )
        return [line for end_ms in ends for line in self._lines(course, number, end_ms, 0, None)]

    def _revised(self, key: Key, course: SourceCourse, record: Record, before_ms: int) -> list[Line]:
        """The windows that have come and that a record's rows change."""
        if key not in self.revising:
            return []
        closed, settled = course.closed_ms, self._settled(before_ms)
        assert closed is not None
        changed: dict[int, set[Group]] = {}
        after = settled // course.frame.slide_ms * course.frame.slide_ms
        for cell in record.cells:
            for end_ms in course.holding(cell.pane * self.fold.width_ms, after, closed):
                changed.setdefault(end_ms, set()).add(cell.group)
        found: list[Line] = []
        for end_ms in sorted(changed):
            course.revised[end_ms] = revision = course.revised.get(end_ms, 0) + 1
            only = None if course.frame.whole else changed[end_ms]
            found += self._lines(course, record.number, end_ms, revision, only)
        return found

    def _lines(
        self, course: SourceCourse, number: int, end_ms: int, revision: int, only: set[Group] | None
    ) -> Iterator[Line]:
        width, states = self.fold.width_ms, self.fold.states
        of_windows: dict[Window, dict[Group, States]] = {}
        for window, (begin, latest) in course.spans(end_ms).items():
            of_windows[window] = held = dict(course.before) if not window.length_ms else {}
            if begin >= latest:
                # A window that has not begun: then there is no row of any.
                return
            for pane in self._panes_from(begin // width, latest // width):
                for group, value in self._panes[pane].items():
                    held[group] = joined(states, held[group], value) if group in held else value
        groups = {group for held in of_windows.values() for group in held}
        for group in groups if only is None else groups & only:
            known = {
                window: dict(zip(states, held.get(group) or nothing(states), strict=True))
                for window, held in of_windows.items()
            }
            yield Line(number, end_ms, revision, group, known)

    def _panes_from(self, begin: int, end: int) -> Iterable[int]:
        if end - begin > len(self._panes):
            return sorted(pane for pane in self._panes if begin <= pane < end)
        return (pane for pane in range(begin, end) if pane in self._panes)

    def rest(self, key: Key, number: int) -> list[Line]:
        """The windows that have rows and have not come, as no more rows will come: of landmarks the next one."""
        course, width = self.courses[key], self.fold.width_ms
        if course.closed_ms is None or not self._panes:
            return []
        last = (max(self._panes) + 1) * width
        slide = course.frame.slide_ms
        if course.frame.is_bounded:
            upto = last + course.frame.lookback_ms
            ends = sorted(
                {end for pane in self._panes for end in course.holding(pane * width, course.closed_ms, upto)}
            )
        else:
            assert self.now_ms is not None
            until = (self.now_ms // slide + 1) * slide
            first = max(course.closed_ms + slide, until - slide * (_LANDMARKS_MAXIMUM - 1))
            ends = list(range(first, until + 1, slide))
        return [line for end_ms in ends for line in self._lines(course, number, end_ms, 0, None)]


def _size(states: States) -> int:
    """How much room it takes, in pieces of groups."""
    return 1 + sum(len(value) for value in states if isinstance(value, frozenset))

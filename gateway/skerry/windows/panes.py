"""Partial aggregates of rows by group, cut into panes of time, from which windows of any length are put together.

What a window gives is a function of the rows in the order of the log, not of the batches in which they come:

* time is that of the latest sample seen; a window's rows come with the first row sampled so far behind its end that all that is under
  way has had its time (:func:`skerry.planner.model.waits.grace_ms`);
* a row that is later still changes the windows that hold it: the changed rows come again as revisions, with that row, or the rows of
  all groups where the frame says so;
* a row more than an hour behind the time is in no window.

Source for panes: Li et al., "No pane, no gain", SIGMOD Record 34(1), 2005.
"""

from __future__ import annotations

import copy
import functools
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from skerry.execution.range_index import Int64
from skerry.expressions.evaluate import Mask, Vector
from skerry.expressions.expression import Expr
from skerry.planner.model.frames import LATENESS_MS, Frame, Window

_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
#: The windows of a query, and where those begin that are landmarks'.
Key = tuple[Frame, int]
#: What a state is without rows: how many are known, sum, least, greatest; of what is wider than 32 bits the sum of the lower
#: 32 bits, and then that of the others.
_EMPTY = (0, 0, _MOST, _LEAST, 0)
_JOIN: tuple[np.ufunc, ...] = (np.add, np.add, np.minimum, np.maximum, np.add)
_LOW = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Input:
    """Rows of a batch in the order of the log, ``chosen`` those that count, ascending places among them; of a join one may
    stand there several times.

    ``sample_ms`` is the time that the windows go by, ``utc_ms`` that time in UTC. ``groups``, ``arguments`` and ``motes``, whose rows
    they are, are of the chosen only.
    """

    numbers: Int64
    sample_ms: Int64
    utc_ms: Int64
    chosen: Int64
    groups: Int64
    arguments: Mapping[Expr, Vector]
    motes: Int64

    def part(self, begin: int, end: int) -> Input:
        """Rows ``begin`` .. ``end`` - 1."""
        at, until = np.searchsorted(self.chosen, (begin, end))
        arguments = {e: (values[at:until], known[at:until]) for e, (values, known) in self.arguments.items()}
        whole = (self.numbers[begin:end], self.sample_ms[begin:end], self.utc_ms[begin:end])
        chosen = self.chosen[at:until] - begin
        return Input(*whole, chosen, self.groups[at:until], arguments, self.motes[at:until])


@dataclass(slots=True)
class Result:
    """Rows of windows: by which row of the log they came, when they end, of which group, which revision of the window they are, how many
    motes are in the window, and by window and what is aggregated (None: rows) the states."""

    numbers: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)
    revisions: list[int] = field(default_factory=list)
    motes: list[int] = field(default_factory=list)
    states: dict[tuple[Window, Expr | None], list[list[int]]] = field(default_factory=dict)

    def at(self, places: Sequence[int]) -> Result:
        """Those in these places."""
        lists = (self.numbers, self.ends, self.groups, self.revisions, self.motes)
        numbers, ends, groups, revisions, motes = ([values[place] for place in places] for values in lists)
        states = {key: [cells[place] for place in places] for key, cells in self.states.items()}
        return Result(numbers, ends, groups, revisions, motes, states)

    def extend(self, other: Result) -> None:
        """Add rows of the same windows."""
        self.numbers += other.numbers
        self.ends += other.ends
        self.groups += other.groups
        self.revisions += other.revisions
        self.motes += other.motes
        for key, cells in other.states.items():
            self.states[key] += cells


@dataclass(slots=True)
class Course:
    """The windows of a query on their way through time. ``first_ms``: of landmarks, where they begin.

    ``closed_ms``: the end of the last row that came; None before the first row of the log. ``before``: states of landmarks'
    panes that are no longer held, with the number of rows first, and ``motes_before`` their motes. ``revised``: how often those that end
    within the last hour have changed.
    """

    frame: Frame
    first_ms: int = 0
    closed_ms: int | None = None
    before: dict[Expr | None, list[Int64]] | None = None
    motes_before: int = 0
    revised: dict[int, int] = field(default_factory=dict)

    def due(self, time_ms: int) -> int:
        """End of the last row that is over when all before ``time_ms`` has been seen."""
        return time_ms // self.frame.slide_ms * self.frame.slide_ms

    def span(self, window: Window, end_ms: int) -> tuple[int, int]:
        """Where a window of the row with this end begins, and ends."""
        end_ms = window.latest(end_ms)
        return end_ms - window.length_ms if window.length_ms else self.first_ms, end_ms

    def begin(self, end_ms: int) -> int:
        """Where the earliest window of the row with this end begins."""
        return min(self.span(window, end_ms)[0] for window in self.frame.windows)

    def holding(self, sample_ms: int) -> list[int]:
        """Ends of the rows that have come and whose windows hold a sample."""
        found: set[int] = set()
        slide, closed = self.frame.slide_ms, self.closed_ms
        assert closed is not None
        for window in self.frame.windows:
            if not window.length_ms and sample_ms < self.first_ms:
                continue
            first = window.latest(sample_ms) + window.slide_ms
            # It holds it until the next end takes its place.
            last = window.latest(sample_ms + window.length_ms) + window.slide_ms - slide
            found.update(range(first, min(closed, last if window.length_ms else closed) + 1, slide))
        return sorted(found)

    def revise(self, end_ms: int) -> int:
        """One more revision of a row's windows: its number."""
        self.revised[end_ms] = found = self.revised.get(end_ms, 0) + 1
        return found

    def settle(self, time_ms: int) -> None:
        """Rows that end up to then do not change any more."""
        for end_ms in [end_ms for end_ms in self.revised if end_ms <= time_ms]:
            del self.revised[end_ms]


def is_wide(argument: Expr) -> bool:
    """Whether its values may take more than 32 bits, so that there might be no room for their sum in 64."""
    return max(abs(argument.low), abs(argument.high)) > _LOW >> 1


def cells_of(argument: Expr | None) -> int:
    """How many integers its state has; None: how many rows there are."""
    return 1 if argument is None else len(_EMPTY) if is_wide(argument) else len(_EMPTY) - 1


class Panes:
    """One selection of rows. ``width_ms`` divides the lengths and slides of all windows over it.

    ``grace_ms``: how far behind a window's end the row is sampled that brings it.
    """

    def __init__(self, width_ms: int, grace_ms: int) -> None:
        self.width_ms, self.grace_ms = width_ms, grace_ms
        self.courses: dict[Key, Course] = {}
        #: Time: that of the latest sample.
        self._now_ms: int | None = None
        #: Number of the first pane held, and how many rows and groups there is room for.
        self._first = 0
        self._room = [0, 0]
        self._groups = 0
        #: By expression: arrays of panes by groups; None: (rows,).
        self._states: dict[Expr | None, list[npt.NDArray[np.int64]]] = {None: []}
        #: By pane, the motes that are in it: a bit for each number.
        self._motes: dict[int, int] = {}

    @property
    def now_ms(self) -> int | None:
        """Time; None: no row has come yet. Rows that were sampled :data:`LATENESS_MS` before are no longer counted in."""
        return self._now_ms

    def copy(self) -> Panes:
        """Another one with the same past, without windows."""
        made = copy.copy(self)
        made._states = {
            argument: [array.copy() for array in arrays] for argument, arrays in self._states.items()
        }
        made._room, made.courses, made._motes = list(self._room), {}, dict(self._motes)
        return made

    def want(self, arguments: Iterable[Expr], frame: Frame, first_ms: int) -> Course:
        """Windows over expressions, from now on."""
        for argument in arguments:
            if argument not in self._states:
                kept = _EMPTY[: cells_of(argument)]
                self._states[argument] = [np.full(self._room, empty, np.int64) for empty in kept]
        key = frame, first_ms
        if key not in self.courses:
            self.courses[key] = Course(frame, first_ms)
        return self.courses[key]

    def adopt(self, other: Panes, key: Key) -> None:
        """Windows of another one with the same past, on their way."""
        if key not in self.courses:
            self.courses[key] = copy.deepcopy(other.courses[key])

    def arguments(self) -> list[Expr]:
        """What is aggregated."""
        return [argument for argument in self._states if argument is not None]

    def process(self, rows: Input, groups: int) -> dict[Key, Result]:
        """The next rows; ``groups`` are numbered from 0. Returns what windows give."""
        results = {
            key: Result(states={(window, a): [] for window in key[0].windows for a in self._states})
            for key in self.courses
        }
        if not len(rows.numbers):
            return results
        first = int(rows.sample_ms[0]) if self._now_ms is None else self._now_ms
        time = np.maximum(np.maximum.accumulate(rows.sample_ms), first)
        for course in self.courses.values():
            if course.closed_ms is None:
                course.closed_ms = course.due(first - self.grace_ms)
        self._now_ms, self._groups = first, max(self._groups, groups)
        fresh = rows.sample_ms[rows.chosen] >= time[rows.chosen] - LATENESS_MS
        begin = 0
        while begin < len(time):
            end = int(np.searchsorted(time, time[begin] + LATENESS_MS, side="right"))
            self._stretch(rows, time, fresh, begin, end, results)
            begin = end
        return results

    def _stretch(
        self, rows: Input, time: Int64, fresh: Mask, begin: int, end: int, results: dict[Key, Result]
    ) -> None:
        """Rows ``begin`` .. ``end`` - 1, in which the time goes on by an hour at most: from the first on, that is."""
        closings = self._closings(time, begin, end)
        # What the first row closes lies before it, and may have to go to make room.
        for key, end_ms in closings.pop(begin, ()):
            self._emit(results[key], self.courses[key], int(rows.numbers[begin]), end_ms)
        for course in self.courses.values():
            assert course.closed_ms is not None
            course.closed_ms = max(course.closed_ms, course.due(int(time[begin]) - self.grace_ms))
            course.settle(int(time[begin]) - LATENESS_MS)
        self._make_room(int(time[begin]), int(time[end - 1]))
        at = int(np.searchsorted(rows.chosen, begin))
        for place, closing in sorted(closings.items()):
            until = int(np.searchsorted(rows.chosen, place))
            self._take(rows, fresh, at, until, results)
            at = until
            for key, end_ms in closing:
                self._emit(results[key], self.courses[key], int(rows.numbers[place]), end_ms)
                self.courses[key].closed_ms = end_ms
        self._take(rows, fresh, at, int(np.searchsorted(rows.chosen, end)), results)
        self._now_ms = int(time[end - 1])

    # ---- which windows are over ----

    def _closings(self, time: Int64, begin: int, end: int) -> dict[int, list[tuple[Key, int]]]:
        """By place of the row that brings them: windows with their ends."""
        found: dict[int, list[tuple[Key, int]]] = {}
        assert self._now_ms is not None
        for key, course in self.courses.items():
            slide, closed = course.frame.slide_ms, course.closed_ms
            assert closed is not None
            last = course.due(int(time[end - 1]) - self.grace_ms)
            ends = np.arange(closed + slide, last + slide, slide)
            places = begin + np.searchsorted(time[begin:end], ends + self.grace_ms)
            if course.frame.is_bounded:
                # After a long silence nothing is in those that began after the last row before it.
                holding = (places > begin) | (ends - course.frame.lookback_ms <= self._now_ms)
                ends, places = ends[holding], places[holding]
            for place, end_ms in zip(places.tolist(), ends.tolist(), strict=True):
                found.setdefault(place, []).append((key, end_ms))
        return found

    # ---- rows into panes ----

    def _make_room(self, start_ms: int, end_ms: int) -> None:
        """Room for all panes that rows of this stretch and windows may still touch; older ones may go."""
        longest = max((course.frame.lookback_ms for course in self.courses.values()), default=0)
        first = (start_ms - LATENESS_MS - longest) // self.width_ms - 1
        if not self._room[0]:
            self._first = first
        needed = end_ms // self.width_ms + 1
        if needed - self._first <= self._room[0] and self._groups <= self._room[1]:
            return
        gone = max(0, first - self._first)
        self._keep_landmarks(gone)
        for pane in [pane for pane in self._motes if pane < first]:
            del self._motes[pane]
        kept = max(0, self._room[0] - gone)
        self._first += gone
        # Twice what is needed, so that it is seldom copied.
        panes = max(2 * (needed - first), needed - self._first, kept)
        width = self._room[1] if self._groups <= self._room[1] else self._width()
        for argument, arrays in self._states.items():
            old = arrays or [np.zeros(self._room, np.int64)]
            self._states[argument] = []
            for array, empty in zip(old, _EMPTY, strict=False):
                new = np.full((panes, width), empty, np.int64)
                new[:kept, : self._room[1]] = array[gone : gone + kept]
                self._states[argument].append(new)
        self._room = [panes, width]

    def _width(self) -> int:
        """Room for twice the groups, so that it is seldom copied, but for no more than there may be."""
        most = max((frame.groups_maximum for frame, _ in self.courses), default=0)
        return max(self._groups, min(2 * self._groups, most))

    # ---- groups that none needs any more ----

    def held(self, groups: int) -> dict[Key, Mask]:
        """By windows, which of the first groups have rows where they, or rows that may be late, still reach."""
        found: dict[Key, Mask] = {}
        for key, course in self.courses.items():
            there = np.zeros(groups, np.bool_)
            if self._now_ms is not None and self._room[0]:
                begin = course.first_ms
                if course.frame.is_bounded:
                    begin = self._now_ms - LATENESS_MS - course.frame.lookback_ms
                first = max(begin // self.width_ms - 1 - self._first, 0)
                counted = np.any(self._states[None][0][first:, :groups] > 0, axis=0)
                there[: len(counted)] = counted
            if course.before is not None:
                before = course.before[None][0][:groups] > 0
                there[: len(before)] |= before
            found[key] = there
        return found

    def keep_groups(self, places: Int64) -> None:
        """Forget all other groups: these are numbered from 0 now, in their order."""
        there = places[places < self._room[1]]
        for arrays in self._states.values():
            for array, empty in zip(arrays, _EMPTY, strict=False):
                array[:, : len(there)] = array[:, there]
                array[:, len(there) :] = empty
        for course in self.courses.values():
            if course.before is not None:
                for argument, parts in course.before.items():
                    course.before[argument] = [part[places[places < len(part)]] for part in parts]
        self._groups = len(places)

    def _keep_landmarks(self, gone: int) -> None:
        """Add the first panes, which go, to what landmarks hold."""
        for course in self.courses.values():
            if course.frame.is_bounded or not gone:
                continue
            begin = max(course.first_ms // self.width_ms - self._first, 0)
            if begin < gone:
                course.before = self._joined(course, begin, gone)
                course.motes_before |= self._motes_of(begin + self._first, gone + self._first)

    def _joined(self, course: Course | None, begin: int, end: int) -> dict[Expr | None, list[Int64]]:
        """States by group of panes ``begin`` .. ``end`` - 1 (as places), with what landmarks hold."""
        found = {}
        before = course.before if course is not None else None
        for argument, arrays in self._states.items():
            parts = []
            for i, (array, join) in enumerate(zip(arrays, _JOIN, strict=False)):
                part = join.reduce(array[begin:end], axis=0, initial=_EMPTY[i])
                if before is not None and argument in before:
                    old = before[argument][i]
                    part[: len(old)] = join(part[: len(old)], old)
                parts.append(part)
            found[argument] = parts
        return found

    def _take(
        self,
        rows: Input,
        fresh: Mask,
        at: int,
        until: int,
        results: dict[Key, Result],
    ) -> None:
        """Chosen rows ``at`` .. ``until`` - 1 into their panes; late ones one by one, with the windows that they change."""
        if at == until:
            return
        samples = rows.sample_ms[rows.chosen[at:until]]
        closed = max((course.closed_ms or 0 for course in self.courses.values()), default=0)
        late = samples < closed
        self._add(rows, at + np.flatnonzero(fresh[at:until] & ~late))
        of_late = at + np.flatnonzero(fresh[at:until] & late)
        for places in np.split(of_late, 1 + np.flatnonzero(np.diff(rows.chosen[of_late]))):
            if not len(places):
                continue
            self._add(rows, places)
            row = rows.chosen[places[0]]
            groups = np.unique(rows.groups[places])
            for key, course in self.courses.items():
                for end in course.holding(int(rows.sample_ms[row])):
                    only = None if course.frame.whole else groups
                    self._emit(results[key], course, int(rows.numbers[row]), end, only, course.revise(end))

    def _motes_of(self, begin: int, end: int) -> int:
        """The motes in panes ``begin`` .. ``end`` - 1."""
        panes = range(begin, end) if end - begin < len(self._motes) else self._motes
        return functools.reduce(
            operator.or_, (self._motes.get(pane, 0) for pane in panes if begin <= pane < end), 0
        )

    def _add(self, rows: Input, places: Int64) -> None:
        panes = rows.sample_ms[rows.chosen[places]] // self.width_ms - self._first
        for pane, mote in set(zip((panes + self._first).tolist(), rows.motes[places].tolist(), strict=True)):
            self._motes[pane] = self._motes.get(pane, 0) | 1 << mote
        flat = panes * self._room[1] + rows.groups[places]
        np.add.at(self._states[None][0].reshape(-1), flat, 1)
        for argument, arrays in self._states.items():
            if argument is None:
                continue
            values, known = rows.arguments[argument]
            values, known = values[places], known[places]
            if not known.all():
                values, cells = values[known], flat[known]
            else:
                cells = flat
            count, total, least, most, *high = (array.reshape(-1) for array in arrays)
            np.add.at(count, cells, 1)
            np.add.at(total, cells, values & _LOW if high else values)
            if high:
                np.add.at(high[0], cells, values >> 32)
            np.minimum.at(least, cells, values)
            np.maximum.at(most, cells, values)

    # ---- panes into windows ----

    def _emit(
        self,
        result: Result,
        course: Course,
        number: int,
        end_ms: int,
        only: Int64 | None = None,
        revision: int = 0,
    ) -> None:
        """The rows of windows, of all their groups or of some; none while a window has not begun."""
        spans = {window: course.span(window, end_ms) for window in course.frame.windows}
        if any(begin_ms >= until_ms for begin_ms, until_ms in spans.values()):
            return
        if end_ms // self.width_ms <= self._first and course.before is None:
            return
        states = {window: self._held(course, window, *spans[window]) for window in spans}
        there = np.logical_or.reduce([found[None][0] > 0 for found in states.values()])
        groups = np.flatnonzero(there) if only is None else only
        begin = min(begin_ms for begin_ms, _ in spans.values()) // self.width_ms
        motes = self._motes_of(begin, -(-max(until_ms for _, until_ms in spans.values()) // self.width_ms))
        motes |= 0 if course.frame.is_bounded else course.motes_before
        result.numbers += [number] * len(groups)
        result.ends += [end_ms] * len(groups)
        result.groups += groups.tolist()
        result.revisions += [revision] * len(groups)
        result.motes += [motes.bit_count()] * len(groups)
        for (window, argument), cells in result.states.items():
            cells.extend(np.stack([array[groups] for array in states[window][argument]], axis=1).tolist())

    def _held(
        self, course: Course, window: Window, begin_ms: int, end_ms: int
    ) -> dict[Expr | None, list[Int64]]:
        """States by group of a window."""
        begin = max(begin_ms // self.width_ms - self._first, 0)
        end = max(begin, end_ms // self.width_ms - self._first)
        return self._joined(course if not window.length_ms else None, begin, end)

"""Partial aggregates of rows by group, cut into panes of time, from which windows of any length are put together.

What a window gives is a function of the rows in the order of the log, not of the batches in which they come:

* time is that of the latest sample seen; a window's rows come with the first row sampled so far behind its end that all that is under
  way has had its time (:func:`skerry.planner.model.waits.grace_ms`);
* a row that is later still changes the windows that hold it: the changed rows come again as revisions, with that row, or the rows of
  all groups where the frame says so;
* a row more than an hour behind the time is in no window.

Rows come as partial panes (:mod:`skerry.execution.partial_panes`), folded in executors or, with the time before them, here: what is done
for each of them here is done once for a pane and group, but for rows that come late.

Source for panes: Li et al., "No pane, no gain", SIGMOD Record 34(1), 2005.
"""

from __future__ import annotations

import copy
import functools
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skerry.execution.partial_panes import EMPTY, JOIN, PartialPanes, cells_of, fold
from skerry.execution.range_index import Int64
from skerry.execution.window_rows import Input
from skerry.expressions.evaluate import Mask
from skerry.expressions.expression import Expr
from skerry.planner.model.frames import LATENESS_MS, Frame, Window

#: The windows of a query, and where those begin that are landmarks'.
Key = tuple[Frame, int]
_NEVER = int(np.iinfo(np.int64).min)


class Row(NamedTuple):
    """A row that brings windows: its number, when it was sampled, by the windows' time, and that in UTC."""

    number: int
    sample_ms: int
    utc_ms: int


@dataclass(slots=True)
class Result:
    """Rows of windows: by which row of the log they came, when that was sampled and that in UTC, when they end, of which group, which
    revision of the window they are, how many motes are in the window, and by window and what is aggregated (None: rows) the states."""

    numbers: list[int] = field(default_factory=list)
    brought_ms: list[int] = field(default_factory=list)
    brought_utc_ms: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)
    revisions: list[int] = field(default_factory=list)
    motes: list[int] = field(default_factory=list)
    states: dict[tuple[Window, Expr | None], list[list[int]]] = field(default_factory=dict)

    def at(self, places: Sequence[int]) -> Result:
        """Those in these places."""
        found = Result(states={key: [cells[place] for place in places] for key, cells in self.states.items()})
        for mine, others in zip(found._lists(), self._lists(), strict=True):
            mine.extend(others[place] for place in places)
        return found

    def extend(self, other: Result) -> None:
        """Add rows of the same windows."""
        for mine, others in zip(self._lists(), other._lists(), strict=True):
            mine.extend(others)
        for key, cells in other.states.items():
            self.states[key] += cells

    def ends_utc_ms(self, speed: float) -> Int64:
        """UTC of the windows' ends, by that of the rows that brought them; ``speed``: s of the windows' time in one of UTC's."""
        behind = np.array(self.brought_ms, np.int64) - np.array(self.ends, np.int64)
        return np.array(self.brought_utc_ms, np.int64) - np.rint(behind / speed).astype(np.int64)

    def _lists(self) -> list[list[int]]:
        times = [self.numbers, self.brought_ms, self.brought_utc_ms, self.ends]
        return [*times, self.groups, self.revisions, self.motes]


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
                kept = EMPTY[: cells_of(argument)]
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
        if not len(rows.numbers):
            return self._nothing()
        partial = fold(rows, self.arguments(), self.width_ms, self.grace_ms, self._now_ms)
        return self.merge(partial, groups)

    def accepts(self, parts: Sequence[PartialPanes]) -> bool:
        """Whether the next rows may come as these, which were folded without knowing of the time before, or of each other: whether none
        of their rows lies more than an hour behind the time, and none of a cell of several comes when a window that holds it has."""
        for part in parts:
            before = [
                other.until_ms for other in parts if other is not part and other.steps["row"][0] < part.last
            ]
            before += [] if self._now_ms is None else [self._now_ms]
            if before and part.least_ms < max(before) - LATENESS_MS:
                return False
        steps = np.concatenate([part.steps for part in parts])
        steps = steps[np.argsort(steps["row"])]
        time = np.maximum.accumulate(steps["time_ms"])
        if self._now_ms is not None:
            time = np.maximum(time, self._now_ms)
        closed = np.full(len(time), _NEVER)
        for slide in {course.frame.slide_ms for course in self.courses.values()}:
            closed = np.maximum(closed, (time - self.grace_ms) // slide * slide)
        for part in parts:
            several = part.cells[part.cells["first"] < part.cells["last"]]
            at = np.searchsorted(steps["row"], several["last"], "right") - 1
            if np.any(several["pane"] * self.width_ms < closed[at]):
                return False
        return True

    def merge(self, partial: PartialPanes, groups: int) -> dict[Key, Result]:
        """As :meth:`process`, of rows that have been folded."""
        results = self._nothing()
        steps = partial.steps
        first = int(steps["time_ms"][0]) if self._now_ms is None else self._now_ms
        time, until = (
            np.maximum(np.maximum.accumulate(steps[when]), first) for when in ("time_ms", "until_ms")
        )
        for course in self.courses.values():
            if course.closed_ms is None:
                course.closed_ms = course.due(first - self.grace_ms)
        self._now_ms, self._groups = first, max(self._groups, groups)
        begin = 0
        while begin < len(time):
            end = int(np.searchsorted(time, time[begin] + LATENESS_MS, side="right"))
            self._stretch(partial, time, begin, end, int(until[end - 1]), results)
            begin = end
        return results

    def _nothing(self) -> dict[Key, Result]:
        return {
            key: Result(states={(window, a): [] for window in key[0].windows for a in self._states})
            for key in self.courses
        }

    def _stretch(
        self,
        partial: PartialPanes,
        time: Int64,
        begin: int,
        end: int,
        until_ms: int,
        results: dict[Key, Result],
    ) -> None:
        """From step ``begin`` to step ``end``, in which the time goes on by an hour at most, and then to ``until_ms``."""
        steps = partial.steps
        closings = self._closings(time, begin, end)
        # What the first row closes lies before it, and may have to go to make room.
        for key, end_ms in closings.pop(begin, ()):
            self._emit(results[key], self.courses[key], _row_of(steps[begin]), end_ms)
        for course in self.courses.values():
            assert course.closed_ms is not None
            course.closed_ms = max(course.closed_ms, course.due(int(time[begin]) - self.grace_ms))
            course.settle(int(time[begin]) - LATENESS_MS)
        self._make_room(int(time[begin]), until_ms)
        at = int(steps["row"][begin])
        for place, closing in sorted(closings.items()):
            upto = int(steps["row"][place])
            self._take(partial, at, upto, results)
            at = upto
            for key, end_ms in closing:
                self._emit(results[key], self.courses[key], _row_of(steps[place]), end_ms)
                self.courses[key].closed_ms = end_ms
        self._take(partial, at, int(steps["row"][end]) if end < len(time) else partial.last + 1, results)
        self._now_ms = until_ms

    # ---- which windows are over ----

    def _closings(self, time: Int64, begin: int, end: int) -> dict[int, list[tuple[Key, int]]]:
        """By the step that brings them: windows with their ends."""
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
            for array, empty in zip(old, EMPTY, strict=False):
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
            for array, empty in zip(arrays, EMPTY, strict=False):
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
            for i, (array, join) in enumerate(zip(arrays, JOIN, strict=False)):
                part = join.reduce(array[begin:end], axis=0, initial=EMPTY[i])
                if before is not None and argument in before:
                    old = before[argument][i]
                    part[: len(old)] = join(part[: len(old)], old)
                parts.append(part)
            found[argument] = parts
        return found

    def _take(self, partial: PartialPanes, row: int, end: int, results: dict[Key, Result]) -> None:
        """What begins with rows ``row`` .. ``end`` - 1 into its panes; late rows one by one, with the windows that they change."""
        cells, motes = partial.cells, partial.motes
        at, until = np.searchsorted(cells["first"], (row, end)).tolist()
        noted, known = np.searchsorted(motes["first"], (row, end)).tolist()
        closed = max((course.closed_ms or 0 for course in self.courses.values()), default=0)
        late = cells["pane"][at:until] * self.width_ms < closed
        self._add(partial, at + np.flatnonzero(~late))
        of_late = at + np.flatnonzero(late)
        for places in np.split(of_late, 1 + np.flatnonzero(np.diff(cells["first"][of_late]))):
            if not len(places):
                continue
            self._add(partial, places)
            by = Row(*(int(cells[places[0]][name]) for name in ("first", "sample_ms", "utc_ms")))
            upto = int(np.searchsorted(motes["first"], by.number, "right"))
            self._note(motes[noted:upto])
            noted = upto
            groups = np.unique(cells["group"][places])
            for key, course in self.courses.items():
                for end_ms in course.holding(by.sample_ms):
                    only = None if course.frame.whole else groups
                    self._emit(results[key], course, by, end_ms, only, course.revise(end_ms))
        self._note(motes[noted:known])

    def _note(self, motes: np.ndarray) -> None:
        """Motes that have rows in panes now."""
        for pane, mote in zip(motes["pane"].tolist(), motes["mote"].tolist(), strict=True):
            self._motes[pane] = self._motes.get(pane, 0) | 1 << mote

    def _motes_of(self, begin: int, end: int) -> int:
        """The motes in panes ``begin`` .. ``end`` - 1."""
        panes = range(begin, end) if end - begin < len(self._motes) else self._motes
        return functools.reduce(
            operator.or_, (self._motes.get(pane, 0) for pane in panes if begin <= pane < end), 0
        )

    def _add(self, partial: PartialPanes, places: Int64) -> None:
        cells = partial.cells[places]
        flat = (cells["pane"] - self._first) * self._room[1] + cells["group"]
        columns = iter(partial.states)
        for argument, arrays in self._states.items():
            parts = [cells["rows"]] if argument is None else [next(columns)[places] for _ in arrays]
            for array, part, join in zip(arrays, parts, JOIN, strict=False):
                join.at(array.reshape(-1), flat, part)

    # ---- panes into windows ----

    def _emit(
        self,
        result: Result,
        course: Course,
        by: Row,
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
        result.numbers += [by.number] * len(groups)
        result.brought_ms += [by.sample_ms] * len(groups)
        result.brought_utc_ms += [by.utc_ms] * len(groups)
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


def _row_of(step: np.void) -> Row:
    return Row(int(step["row"]), int(step["sample_ms"]), int(step["utc_ms"]))

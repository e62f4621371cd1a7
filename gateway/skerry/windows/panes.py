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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from skerry.execution.partial_panes import EMPTY, JOIN, PartialPanes, cells_of, fold
from skerry.execution.range_index import Int64
from skerry.execution.window_rows import Input
from skerry.expressions.evaluate import Mask
from skerry.expressions.expression import Expr
from skerry.planner.model.frames import LATENESS_MS, Frame, Window
from skerry.windows.courses import Course, Key
from skerry.windows.panes_state import PanesState, States, cells_with_rows
from skerry.windows.results import GIVEN, Result, in_turn

_NEVER = int(np.iinfo(np.int64).min)
#: Ends of windows times groups that are put together at a time.
_AT_A_TIME = 1 << 18
#: Rows of windows of each course, as they come.
_Found = dict[Key, list[Result]]


@dataclass(frozen=True, slots=True)
class _Closings:
    """Windows of a course that are over, by the steps that bring them: their places, ascending, and the ends."""

    course: Course
    key: Key
    places: Int64
    ends: Int64


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
        self._states: States = {None: []}
        #: Which motes are in panes, and the column of each.
        self._motes = np.zeros((0, 0), np.bool_)
        self._columns: dict[int, int] = {}

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
        made._room, made.courses = list(self._room), {}
        made._motes, made._columns = self._motes.copy(), dict(self._columns)
        return made

    def state(self) -> PanesState:
        """What they hold now, but for their windows."""
        cells, states = cells_with_rows(self._states)
        panes, groups = self._room
        motes, columns = self._motes.copy(), list(self._columns)
        return PanesState(
            self._now_ms, self._first, (panes, groups), self._groups, cells, states, motes, columns
        )

    @classmethod
    def of_state(cls, state: PanesState, width_ms: int, grace_ms: int) -> Panes:
        """Those that held it, without windows."""
        made = cls(width_ms, grace_ms)
        made._now_ms, made._first, made._groups = state.now_ms, state.first, state.groups
        made._room, made._states = list(state.room), state.arrays()
        made._motes, made._columns = state.motes, {mote: place for place, mote in enumerate(state.columns)}
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
            return self._results({key: [] for key in self.courses})
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
        closed = self._closed(time)
        for part in parts:
            several = part.cells[part.cells["first"] < part.cells["last"]]
            at = np.searchsorted(steps["row"], several["last"], "right") - 1
            if np.any(several["pane"] * self.width_ms < closed[at]):
                return False
        return True

    def merge(self, partial: PartialPanes, groups: int) -> dict[Key, Result]:
        """As :meth:`process`, of rows that have been folded."""
        found: _Found = {key: [] for key in self.courses}
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
            self._stretch(partial, time, begin, end, int(until[end - 1]), found)
            begin = end
        return self._results(found)

    def _results(self, found: _Found) -> dict[Key, Result]:
        results = {}
        for key, parts in found.items():
            states = {
                (window, a): np.empty((0, cells_of(a)), np.int64)
                for window in key[0].windows
                for a in self._states
            }
            results[key] = in_turn(parts) if parts else Result(np.empty(0, GIVEN), states)
        return results

    def _stretch(
        self, partial: PartialPanes, time: Int64, begin: int, end: int, until_ms: int, found: _Found
    ) -> None:
        """From step ``begin`` to step ``end``, in which the time goes on by an hour at most, and then to ``until_ms``."""
        steps, cells = partial.steps, partial.cells
        closings = self._closings(time, begin, end)
        # What the first row closes lies before it, and may have to go to make room.
        self._close(closings, partial, begin, begin, found)
        for course in self.courses.values():
            assert course.closed_ms is not None
            course.closed_ms = max(course.closed_ms, course.due(int(time[begin]) - self.grace_ms))
            course.settle(int(time[begin]) - LATENESS_MS)
        self._make_room(int(time[begin]), until_ms)
        row = int(steps["row"][begin])
        upto = int(steps["row"][end]) if end < len(time) else partial.last + 1
        at, until = np.searchsorted(cells["first"], (row, upto)).tolist()
        of_step = np.searchsorted(steps["row"], cells["first"][at:until], "right") - 1
        late = cells["pane"][at:until] * self.width_ms < self._closed(time)[of_step]
        self._add(partial, at + np.flatnonzero(~late))
        # What is not late is in none of the windows that come with rows before it: it may be there already.
        noted, place = row, begin + 1
        of_late = at + np.flatnonzero(late)
        for places in np.split(of_late, 1 + np.flatnonzero(np.diff(cells["first"][of_late]))):
            if len(places):
                number = int(cells["first"][places[0]])
                step = int(np.searchsorted(steps["row"], number, "right")) - 1
                self._note(partial, noted, number)
                self._close(closings, partial, place, step, found)
                self._note(partial, number, number + 1)
                self._revise(partial, places, found)
                noted, place = number + 1, max(place, step + 1)
        self._note(partial, noted, upto)
        self._close(closings, partial, place, end - 1, found)
        self._now_ms = until_ms

    # ---- which windows are over ----

    def _closings(self, time: Int64, begin: int, end: int) -> list[_Closings]:
        """Those that steps ``begin`` .. ``end`` - 1 bring."""
        found = []
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
            found.append(_Closings(course, key, places, ends))
        return found

    def _close(
        self, closings: Iterable[_Closings], partial: PartialPanes, first: int, last: int, found: _Found
    ) -> None:
        """The windows that steps ``first`` .. ``last`` bring."""
        for of_course in closings:
            at, until = np.searchsorted(of_course.places, (first, last + 1)).tolist()
            if at < until:
                by = partial.steps[of_course.places[at:until]]
                rows = np.stack([by[name] for name in ("row", "sample_ms", "utc_ms")])
                ends = of_course.ends[at:until]
                found[of_course.key] += self._given(of_course.course, rows, ends, np.zeros_like(ends))
                of_course.course.closed_ms = int(ends[-1])

    def _closed(self, time: Int64) -> Int64:
        """By time, where the latest of the rows ends that have come by then."""
        closed = np.full(len(time), _NEVER)
        for slide in {course.frame.slide_ms for course in self.courses.values()}:
            closed = np.maximum(closed, (time - self.grace_ms) // slide * slide)
        return closed

    # ---- rows into panes ----

    def _make_room(self, start_ms: int, end_ms: int) -> None:
        """Room for all panes that rows of this stretch and windows may still touch; older ones may go."""
        longest = max((course.frame.lookback_ms for course in self.courses.values()), default=0)
        first = (start_ms - LATENESS_MS - longest) // self.width_ms - 1
        if not self._room[0]:
            self._first = first
        # The last pane stays empty: it ends those before it.
        needed = end_ms // self.width_ms + 2
        if needed - self._first <= self._room[0] and self._groups <= self._room[1]:
            return
        gone = max(0, first - self._first)
        self._keep_landmarks(gone)
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
        motes = np.zeros((panes, self._motes.shape[1]), np.bool_)
        motes[:kept] = self._motes[gone : gone + kept]
        self._motes, self._room = motes, [panes, width]

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
            begin, end = max(course.first_ms // self.width_ms - self._first, 0), min(gone, self._room[0] - 1)
            if begin < end:
                span = np.array([begin]), np.array([end])
                states = self._joined(course, *span)
                course.before = {argument: [part[0] for part in parts] for argument, parts in states.items()}
                course.motes_before = self._motes_of(course, *span)[0]

    def _joined(self, course: Course | None, begins: Int64, ends: Int64) -> dict[Expr | None, list[Int64]]:
        """States, by span and group, of spans of panes (places, ends excluded), with what landmarks hold."""
        before = course.before if course is not None else None
        found: dict[Expr | None, list[Int64]] = {}
        for argument, arrays in self._states.items():
            found[argument] = []
            for i, (array, join) in enumerate(zip(arrays, JOIN, strict=False)):
                part = _reduced(join, array, begins, ends, EMPTY[i])
                if before is not None and argument in before:
                    old = before[argument][i]
                    part[:, : len(old)] = join(part[:, : len(old)], old)
                found[argument].append(part)
        return found

    def _motes_of(self, course: Course | None, begins: Int64, ends: Int64) -> Mask:
        """By span, which motes are in it, with those that landmarks hold."""
        found = _reduced(np.logical_or, self._motes, begins, ends, False)
        if course is not None and not course.frame.is_bounded:
            found[:, : len(course.motes_before)] |= course.motes_before
        return found

    def _note(self, partial: PartialPanes, row: int, end: int) -> None:
        """Motes whose first rows in panes are ``row`` .. ``end`` - 1."""
        motes = partial.motes
        motes = motes[slice(*np.searchsorted(motes["first"], (row, end)).tolist())]
        if not len(motes):
            return
        distinct, place = np.unique(motes["mote"], return_inverse=True)
        columns = np.array([self._columns.setdefault(mote, len(self._columns)) for mote in distinct.tolist()])
        lacking = len(self._columns) - self._motes.shape[1]
        if lacking > 0:
            self._motes = np.pad(self._motes, ((0, 0), (0, 2 * lacking)))
        self._motes[motes["pane"] - self._first, columns[place]] = True

    def _revise(self, partial: PartialPanes, places: Int64, found: _Found) -> None:
        """A late row's cells into their panes, and the windows that they change."""
        self._add(partial, places)
        cells = partial.cells[places]
        by = np.array([cells[name][:1] for name in ("first", "sample_ms", "utc_ms")])
        groups = np.unique(cells["group"])
        for key, course in self.courses.items():
            ends = course.holding(int(by[1, 0]))
            if ends:
                revisions = np.array([course.revise(end_ms) for end_ms in ends])
                rows = np.repeat(by, len(ends), axis=1)
                only = None if course.frame.whole else groups
                found[key] += self._given(course, rows, np.array(ends), revisions, only)

    def _add(self, partial: PartialPanes, places: Int64) -> None:
        cells = partial.cells[places]
        flat = (cells["pane"] - self._first) * self._room[1] + cells["group"]
        columns = iter(partial.states)
        for argument, arrays in self._states.items():
            parts = [cells["rows"]] if argument is None else [next(columns)[places] for _ in arrays]
            for array, part, join in zip(arrays, parts, JOIN, strict=False):
                join.at(array.reshape(-1), flat, part)

    # ---- panes into windows ----

    def _given(
        self, course: Course, by: Int64, ends: Int64, revisions: Int64, only: Int64 | None = None
    ) -> list[Result]:
        """The rows of windows with these ends, of all their groups or of some; none while a window has not begun. ``by``: number, sample
        time and UTC of the rows that bring them."""
        spans = [course.spans(window, ends) for window in course.frame.windows]
        begun = np.logical_and.reduce([begins < latest for begins, latest in spans])
        if course.before is None:
            begun &= ends // self.width_ms > self._first
        some = np.flatnonzero(begun)
        if not self._room[0] or not len(some):
            return []
        step = max(1, _AT_A_TIME // max(1, self._room[1]))
        parts = [
            self._given_at(course, by[:, places], ends[places], revisions[places], only)
            for places in np.split(some, range(step, len(some), step))
        ]
        return [part for part in parts if len(part)]

    def _given_at(
        self, course: Course, by: Int64, ends: Int64, revisions: Int64, only: Int64 | None
    ) -> Result:
        states = {window: self._held(course, window, ends) for window in course.frame.windows}
        there = np.logical_or.reduce([of_window[None][0] > 0 for of_window in states.values()])
        if only is not None:
            there = np.zeros_like(there)
            there[:, only] = True
        of_end, groups = np.nonzero(there)
        latest = np.maximum.reduce([course.spans(window, ends)[1] for window in course.frame.windows])
        motes = np.count_nonzero(self._motes_of(course, *self._places(course.begins(ends), latest)), axis=1)
        rows = np.empty(len(groups), GIVEN)
        of_ends = (*by, ends, revisions, motes)
        for name, values in zip(
            ("row", "brought_ms", "brought_utc_ms", "end", "revision", "motes"), of_ends, strict=True
        ):
            rows[name] = values[of_end]
        rows["group"] = groups
        return Result(
            rows,
            {
                (window, argument): np.stack([part[of_end, groups] for part in parts], axis=1)
                for window, of_window in states.items()
                for argument, parts in of_window.items()
            },
        )

    def _held(self, course: Course, window: Window, ends: Int64) -> dict[Expr | None, list[Int64]]:
        """States of a window, by end and group."""
        return self._joined(
            course if not window.length_ms else None, *self._places(*course.spans(window, ends))
        )

    def _places(self, begins_ms: Int64, ends_ms: Int64) -> tuple[Int64, Int64]:
        """Where spans of time stand among the panes that are held."""
        last = self._room[0] - 1
        begins, ends = (
            np.clip(times // self.width_ms - self._first, 0, last) for times in (begins_ms, ends_ms)
        )
        return begins, np.maximum(begins, ends)


def _reduced(join: np.ufunc, array: np.ndarray, begins: Int64, ends: Int64, empty: int) -> np.ndarray:
    """By span, lines ``begins`` .. ``ends`` - 1 of an array joined. There is a line behind each span."""
    found: np.ndarray = join.reduceat(
        array[: ends.max() + 1], np.stack([begins, ends], axis=1).reshape(-1), axis=0
    )[::2]
    found[begins == ends] = empty
    return found

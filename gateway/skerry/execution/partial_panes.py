"""Partial panes: rows of windows, folded by pane and group where they are, for who merges them in the order of the log.

Rows are cut so that what windows give stays a function of the log, though who folds them knows neither the time before his rows nor which
windows there are:

* A *step* is a row with which time, that of the latest sample, comes into another pane (less the grace by which windows wait). Only with
  such rows windows may be over, as their ends lie between panes.
* A *cell* is what the rows between two steps have of one pane and one group. A row of a pane that may be over already is a cell by
  itself: if windows that hold it have come, it revises them.

Time may have been further on already, by rows that came elsewhere: who merges them sees by the cells' first and last rows whether that
makes a difference to any, and then folds the rows again himself, with the time before them (:meth:`skerry.windows.panes.Panes.accepts`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from skerry.execution.range_index import MOST, Int64
from skerry.execution.window_rows import NULL, Group, Input
from skerry.expressions.evaluate import Vector
from skerry.expressions.expression import Expr
from skerry.planner.model.frames import LATENESS_MS

_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
#: What an aggregate's state is without rows: how many are known, sum, least, greatest; of what is wider than 32 bits the sum of the lower
#: 32 bits, and then that of the others.
EMPTY = (0, 0, _MOST, _LEAST, 0)
#: What makes one state of two, cell by cell.
JOIN: tuple[np.ufunc, ...] = (np.add, np.add, np.minimum, np.maximum, np.add)
_LOW = 0xFFFFFFFF
#: So many codes for each row may be counted without sorting the rows by them.
_DENSE = 4

#: A row with which time goes on: its number, the time then, when it was sampled, that in UTC, and the time before the next step.
STEP = np.dtype([(name, "<i8") for name in ("row", "time_ms", "sample_ms", "utc_ms", "until_ms")])
#: Rows of one pane and group: how many, the numbers of the first and the last; of a single one when it was sampled, and that in UTC.
CELL = np.dtype([(name, "<i8") for name in ("pane", "group", "rows", "first", "last", "sample_ms", "utc_ms")])
#: A mote that has rows in a pane, and its first.
MOTE = np.dtype([(name, "<i8") for name in ("pane", "mote", "first")])


def is_wide(argument: Expr) -> bool:
    """Whether its values may take more than 32 bits, so that there might be no room for their sum in 64."""
    return max(abs(argument.low), abs(argument.high)) > _LOW >> 1


def cells_of(argument: Expr | None) -> int:
    """How many integers its state has; None: how many rows there are."""
    return 1 if argument is None else len(EMPTY) if is_wide(argument) else len(EMPTY) - 1


@dataclass(frozen=True, slots=True)
class PartialPanes:
    """Of some rows: ``steps`` by row, ``cells`` and ``motes`` by their first row. ``states``: by cell, a column of :data:`EMPTY` for each
    integer of each aggregated expression. ``groups``: what the cells' groups are. ``last``: the last row; ``least_ms``: the earliest sample
    that was taken, of none :data:`MOST`."""

    steps: np.ndarray
    cells: np.ndarray
    states: tuple[Int64, ...]
    motes: np.ndarray
    groups: tuple[Group, ...]
    last: int
    least_ms: int

    @property
    def until_ms(self) -> int:
        """The time after the last row."""
        return int(self.steps["until_ms"][-1])

    def renumbered(self, known: dict[Group, int]) -> PartialPanes:
        """With the groups' numbers in ``known``, which has them all."""
        numbers = np.array([known[group] for group in self.groups], np.int64)
        cells = self.cells.copy()
        cells["group"] = numbers[cells["group"]]
        return replace(self, cells=cells, groups=())


def joined(parts: Sequence[PartialPanes]) -> PartialPanes:
    """Parts that number their groups alike as one; their rows may lie between each other's."""
    if len(parts) == 1:
        return parts[0]
    steps = np.concatenate([part.steps for part in parts])
    cells = np.concatenate([part.cells for part in parts])
    motes = np.concatenate([part.motes for part in parts])
    order = np.argsort(cells["first"], kind="stable")
    return PartialPanes(
        steps[np.argsort(steps["row"])],
        cells[order],
        tuple(
            np.concatenate(columns)[order] for columns in zip(*(part.states for part in parts), strict=True)
        ),
        motes[np.argsort(motes["first"], kind="stable")],
        (),
        max(part.last for part in parts),
        min(part.least_ms for part in parts),
    )


def fold(
    rows: Input, arguments: Iterable[Expr], width_ms: int, grace_ms: int, now_ms: int | None = None
) -> PartialPanes:
    """Rows, of which there are some, in panes of this width. ``now_ms``: the time before them, if known. Who wants ``groups`` of them
    adds them."""
    first_ms = int(rows.sample_ms[0]) if now_ms is None else now_ms
    time = np.maximum(np.maximum.accumulate(rows.sample_ms), first_ms)
    # Panes before this one may be over.
    over = (time - grace_ms) // width_ms
    begins = np.flatnonzero(np.diff(over, prepend=over[0] - 1))
    steps = np.empty(len(begins), STEP)
    steps["row"], steps["time_ms"] = rows.numbers[begins], time[begins]
    steps["sample_ms"], steps["utc_ms"] = rows.sample_ms[begins], rows.utc_ms[begins]
    steps["until_ms"] = time[np.append(begins[1:], len(time)) - 1]

    taken = np.flatnonzero(rows.sample_ms[rows.chosen] >= time[rows.chosen] - LATENESS_MS)
    places, groups = rows.chosen[taken], rows.groups[taken]
    samples, numbers = rows.sample_ms[places], rows.numbers[places]
    panes = samples // width_ms
    ahead = panes - over[places]
    step = np.searchsorted(begins, places, "right") - 1
    among, count = _cells(step, ahead, groups, places, len(begins))
    cells = np.zeros(count, CELL)
    cells["rows"] = np.bincount(among, minlength=count)
    first, last = _ends(among, count)
    cells["pane"], cells["group"] = panes[last], groups[last]
    cells["first"], cells["last"] = numbers[first], numbers[last]
    alone = cells["first"] == cells["last"]
    cells["sample_ms"][alone], cells["utc_ms"][alone] = samples[last[alone]], rows.utc_ms[places[last[alone]]]

    columns: list[Int64] = []
    for argument in arguments:
        values, known = rows.arguments[argument]
        columns += _states((values[taken], known[taken]), among, count, wide=is_wide(argument))
    order = np.argsort(cells["first"], kind="stable")
    least_ms = int(samples.min()) if len(samples) else int(MOST)
    motes = _first_rows(panes, rows.motes[taken], numbers)
    states = tuple(column[order] for column in columns)
    return PartialPanes(steps, cells[order], states, motes, (), int(rows.numbers[-1]), least_ms)


def _cells(step: Int64, ahead: Int64, groups: Int64, places: Int64, steps: int) -> tuple[Int64, int]:
    """The cell of each row, and how many cells there are. ``ahead``: how many panes it is ahead of those that may be over."""
    if not len(step):
        return step, 0
    width, wide = int(groups.max()) + 1, max(int(ahead.max()) + 1, 1)
    alone = ahead < 0
    found, count = _ranks(((step * wide + ahead) * width + groups)[~alone], steps * wide * width)
    among = np.empty(len(step), np.int64)
    among[~alone] = found
    if alone.any():
        # Of a join one row may be there several times, even in one group.
        distinct, ranks = np.unique((places * width + groups)[alone], return_inverse=True)
        among[alone], count = count + ranks, count + len(distinct)
    return among, count


def _ranks(codes: Int64, many: int) -> tuple[Int64, int]:
    """The rank of each code among the distinct ones, and how many these are. Codes are below ``many``."""
    if many > _DENSE * len(codes):
        distinct, ranks = np.unique(codes, return_inverse=True)
        return ranks, len(distinct)
    there = np.zeros(many, np.bool_)
    there[codes] = True
    of_codes = np.cumsum(there) - 1
    return of_codes[codes], int(np.count_nonzero(there))


def _ends(ranks: Int64, count: int) -> tuple[Int64, Int64]:
    """Of each of ``count`` ranks, the first place and the last."""
    first, last = np.empty(count, np.int64), np.empty(count, np.int64)
    places = np.arange(len(ranks))
    last[ranks] = places
    first[ranks[::-1]] = places[::-1]
    return first, last


def _states(vector: Vector, among: Int64, count: int, *, wide: bool) -> list[Int64]:
    """An aggregate's state in each cell."""
    values, known = vector
    if not known.all():
        values, among = values[known], among[known]
    parts = [np.ones(1, np.int64), values & _LOW if wide else values, values, values, values >> 32]
    found = []
    for part, empty, join in zip(parts[: len(EMPTY) if wide else len(EMPTY) - 1], EMPTY, JOIN, strict=False):
        state = np.full(count, empty, np.int64)
        join.at(state, among, part)
        found.append(state)
    return found


def _first_rows(panes: Int64, motes: Int64, numbers: Int64) -> np.ndarray:
    """By pane and mote, the first row."""
    found = np.empty(0, MOTE)
    if len(panes):
        least, width = int(panes.min()), int(motes.max()) + 1
        codes, many = (panes - least) * width + motes, (int(panes.max()) - least + 1) * width
        ranks, count = _ranks(codes, many)
        found = np.empty(count, MOTE)
        first, _ = _ends(ranks, count)
        found["pane"], found["mote"], found["first"] = panes[first], motes[first], numbers[first]
    ordered: np.ndarray = found[np.argsort(found["first"], kind="stable")]
    return ordered


def groups_to_array(groups: Sequence[Group]) -> Int64:
    """Groups, one after the other, NULL as :data:`NULL`."""
    return np.array([NULL if value is None else value for group in groups for value in group], np.int64)


def groups_of_array(values: Int64, count: int) -> tuple[Group, ...]:
    """``count`` of them again."""
    rows = values.reshape(count, -1).tolist() if count else []
    return tuple(tuple(None if value == NULL else value for value in row) for row in rows)

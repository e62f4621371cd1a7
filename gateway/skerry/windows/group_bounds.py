"""Groups of windows: their numbers, and how many there may be at once.

A number is an index into the arrays of :class:`skerry.windows.panes.Panes`. Groups come and go, as those of ``GROUP BY light`` do: what
counts is how many have rows where windows and late rows still reach. So nobody is refused for values that an attribute could have; and a
query whose groups outgrow :attr:`skerry.planner.model.frames.Frame.groups_maximum` while it runs has no windows any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from skerry.execution.partial_panes import PartialPanes, groups_to_array, joined
from skerry.execution.range_index import Int64
from skerry.execution.window_rows import Group, Input
from skerry.planner.model.frames import Frame
from skerry.windows.courses import Key
from skerry.windows.panes import Panes
from skerry.windows.results import Result, in_turn

#: What a look for groups without rows has to leave room for, so that it seldom comes again: of those that have rows.
_ROOM = 0.25


def too_many_groups(frame: Frame) -> str:
    """Why a query has no windows any more."""
    return (
        f"there are more than {frame.groups_maximum:,} groups in each of its windows: "
        "write a longer slide, or group by fewer values, as in light >> 8"
    )


@dataclass(slots=True)
class Given:
    """What windows gave, with the group of each row, a line of values (:data:`NULL` for none), and the windows whose groups have become
    too many."""

    results: dict[Key, Result] = field(default_factory=dict)
    groups: dict[Key, Int64] = field(default_factory=dict)
    ended: list[Key] = field(default_factory=list)

    def _add(self, results: dict[Key, Result], known: dict[Group, int]) -> None:
        width = len(next(iter(known), ()))
        values = groups_to_array(list(known)).reshape(len(known), width)
        for key, result in results.items():
            earlier = [key] if key in self.results else []
            of_rows = [*(self.groups[before] for before in earlier), values[result.groups]]
            self.results[key] = in_turn([*(self.results[before] for before in earlier), result])
            self.groups[key] = np.concatenate(of_rows)


@dataclass(slots=True)
class GroupNumbers:
    """The groups of some panes, numbered from 0 in the order in which they came."""

    known: dict[Group, int] = field(default_factory=dict)
    #: With so many of them a look for those without rows is due; 0: with what the windows have room for.
    due: int = 0

    def copy(self) -> GroupNumbers:
        """The same, to go on on its own."""
        return GroupNumbers(dict(self.known), self.due)

    def merge(self, panes: Panes, parts: Sequence[PartialPanes]) -> Given | None:
        """The next rows through the panes, as they were folded elsewhere. None: it has to be rows, as these are late for what came before
        or there might be too many groups, and it matters which row is where among others; nothing is changed then."""
        if not panes.accepts(parts):
            return None
        new = dict.fromkeys(group for part in parts for group in part.groups if group not in self.known)
        if len(self.known) + len(new) > self._room(panes):
            return None
        self.known |= {group: number for number, group in enumerate(new, len(self.known))}
        given = Given()
        merged = joined([part.renumbered(self.known) for part in parts])
        given._add(panes.merge(merged, len(self.known)), self.known)
        return given

    def _room(self, panes: Panes) -> int:
        """With so many groups a look for those without rows is due."""
        return max(self.due, min(frame.groups_maximum for frame, _ in panes.courses))

    def process(self, panes: Panes, rows: Input) -> Given:
        """The next rows through the panes. Their groups are known, the new ones numbered in the order of the rows."""
        given = Given()
        while panes.courses:
            due = self._room(panes)
            beyond = np.flatnonzero(rows.groups >= due)
            if not len(beyond):
                given._add(panes.process(rows, len(self.known)), self.known)
                break
            at = int(rows.chosen[beyond[0]])
            given._add(panes.process(rows.part(0, at), due), self.known)
            rows = rows.part(at, len(rows.numbers))
            rows = self._look(panes, rows, due, given)
        return given

    def _look(self, panes: Panes, rows: Input, due: int, given: Given) -> Input:
        """End the windows that have too many groups, of which ``due`` have been processed, and forget those that none needs; returns the
        rows with the new numbers."""
        new = np.unique(rows.groups[(rows.chosen == 0) & (rows.groups >= due)])
        kept = np.zeros(due, np.bool_)
        for key, held in panes.held(due).items():
            if np.count_nonzero(held) + len(new) > key[0].groups_maximum:
                del panes.courses[key]
                given.ended.append(key)
            else:
                kept |= held
        kept[rows.groups[rows.groups < due]] = True
        places = np.flatnonzero(kept)
        panes.keep_groups(places)
        numbers = np.full(len(self.known), -1, np.int64)
        numbers[places] = np.arange(len(places))
        numbers[due:] = len(places) + np.arange(len(self.known) - due)
        self.known = {group: int(numbers[n]) for group, n in self.known.items() if numbers[n] >= 0}
        self.due = int(len(places) * (1 + _ROOM)) + len(new) + 1
        return replace(rows, groups=numbers[rows.groups])

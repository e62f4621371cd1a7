"""The short form of what reaches, whichever way.

A call or a jump to what is too far for the short form goes to a jump to the same place that does lie within reach: one that is there
anyway (a lender), or one made for the purpose (:mod:`relays`). A conditional branch, which reaches 126 bytes, does so as well, and to
another branch on the same condition. A function goes before the one that it ends with a jump to, which is then left out.

Lengths are found in two steps, each of which ends. First all are short, and those that do not reach grow, until all reach without lenders.
Then those that are long become short where they or a lender reach: nothing grows any more, so that whatever reached before still does, and
no two ever lend to each other, as none borrows from what ends up at itself.
"""

from __future__ import annotations

import bisect
import itertools
from collections import defaultdict
from collections.abc import Iterator

from .assembly import OPPOSITE, Function, Instruction, Item, Label

#: Bytes from an instruction's end that a branch reaches, and a relative call or jump (instruction set manual, 0856L).
BRANCH, RELATIVE = 126, 4094
#: Bytes from the last function to the middle of what the linker takes from libraries, which it shortens calls of itself (-mrelax).
LIBRARY = 700
#: How labels of lenders begin: of an instruction, and of the jump in a long branch.
WAY, WAY_JUMP = ".Lway_", ".Lwayjump_"


class Lengths:
    """Of every instruction, as functions lie in this order. ``timed``: functions whose branches take no other way than their own."""

    def __init__(self, functions: list[Function], timed: set[str]) -> None:
        self.items: list[Item] = []
        #: By item, whether it may borrow.
        self._free: list[bool] = []
        #: Where functions begin that nothing runs into: places for relays.
        self.gaps: list[int] = []
        runs_on = False
        for i, function in enumerate(functions):
            items = function.items
            following = functions[i + 1].name if i + 1 < len(functions) else None
            end = items[-1]
            if not runs_on:
                self.gaps.append(len(self.items))
            runs_on = isinstance(end, Instruction) and end.operation == "jmp" and end.target == following
            if runs_on:
                items = items[:-1]
            own = (
                {item.name for item in items if isinstance(item, Label)} if function.name in timed else set()
            )
            self.items += [Label(function.name), *items]
            self._free += [
                True,
                *(not (isinstance(item, Instruction) and item.target in own) for item in items),
            ]
        self.sizes = [0 if isinstance(item, Label) else item.size for item in self.items]
        #: By item that borrows, the one that lends.
        self._lenders: dict[int, int] = {}
        self._lending: set[int] = set()
        #: Long branches of which the jump is what lends.
        self._parts: set[int] = set()
        self._labels = {item.name: i for i, item in enumerate(self.items) if isinstance(item, Label)}
        self._going = [
            (i, item)
            for i, item in enumerate(self.items)
            if isinstance(item, Instruction) and item.target is not None
        ]
        #: By target, what goes there: in the order in which it lies.
        self._to: dict[str, list[int]] = defaultdict(list)
        for i, item in self._going:
            if item.operation != "call":
                self._to[item.target or ""].append(i)
        self.places: list[int] = []
        self._grow()
        while self._borrow():
            self._measure()

    @property
    def total(self) -> int:
        """Bytes of all."""
        return self.places[-1]

    def _measure(self) -> None:
        self.places = [0, *itertools.accumulate(self.sizes)]

    def _grow(self) -> None:
        grown = True
        while grown:
            self._measure()
            grown = False
            for i, item in self._going:
                needed = self._needed(i, item)
                if needed > self.sizes[i]:
                    self.sizes[i], grown = needed, True

    def distance(self, i: int, place: int) -> int:
        """Bytes from an item's end, were it short, to a place."""
        return abs(place - self.places[i] - 2)

    def _needed(self, i: int, item: Instruction) -> int:
        """Bytes, without a lender."""
        label = self._labels.get(item.target or "")
        distance = RELATIVE + 1 if label is None else self.distance(i, self.places[label])
        if not item.conditional:
            return 2 if distance <= RELATIVE else 4
        return 2 if distance <= BRANCH else 4 if distance <= RELATIVE - 2 else 6

    def _borrow(self) -> bool:
        """Shortens what reaches by now, itself or by a lender; False: there is nothing more. Branches first, which lend less when short."""
        found = False
        for conditional in (True, False):
            for i, item in self._going:
                if item.conditional == conditional and self.sizes[i] > 2 and self._free[i]:
                    found |= self._shorten(i, item)
        return found

    def _shorten(self, i: int, item: Instruction) -> bool:
        size, lending = self.sizes[i], i in self._parts
        if lending and size == 4:
            return False  # its jump is what lends
        if i not in self._lenders and (needed := self._needed(i, item)) < size:
            self.sizes[i] = max(needed, 4) if lending else needed
            return True
        if not item.conditional:
            return self._lent(i, item, RELATIVE, 2)
        if size == 6:
            return self._lent(i, item, RELATIVE - 2, 4)
        return self._lent(i, item, BRANCH, 2)

    def _lent(self, i: int, item: Instruction, reach: int, shorter: int) -> bool:
        """Takes the nearest lender within reach, if any."""
        branch = item.operation if item.conditional and shorter == 2 else ""
        for lender in self._within(i, item.target or "", branch, reach):
            if not self._ends_at(lender, i):
                self._lenders[i] = lender
                self._lending.add(lender)
                if not self._whole(lender, branch):
                    self._parts.add(lender)
                self.sizes[i] = shorter
                return True
        return False

    def _within(self, i: int, target: str, branch: str, reach: int) -> Iterator[int]:
        """What goes to a target, and may be entered, within reach of an item: from there outwards, what lies before first."""
        there = self._to[target]
        at = bisect.bisect_left(there, i)
        for side in (range(at - 1, -1, -1), range(at, len(there))):
            for j in side:
                lender = there[j]
                entry = None if lender == i else self._entry(lender, branch)
                if entry is not None:
                    if self.distance(i, entry) > reach:
                        break
                    yield lender

    def _entry(self, lender: int, branch: str) -> int | None:
        """The place of a jump, of that in a long branch, or of a branch on the same condition as one that was taken; None: it has none."""
        if self._whole(lender, branch):
            return self.places[lender]
        return self.places[lender] + 2 if self.sizes[lender] > 2 else None

    def _whole(self, lender: int, branch: str) -> bool:
        lending = self.items[lender]
        assert isinstance(lending, Instruction)
        return not lending.conditional or lending.operation == branch

    def _ends_at(self, lender: int, i: int) -> bool:
        """Whether what a lender borrows from, and so on, is an item."""
        while lender != i and lender in self._lenders:
            lender = self._lenders[lender]
        return lender == i

    def long(self) -> dict[str, list[int]]:
        """By target, the places of calls and jumps that have no short form."""
        found: dict[str, list[int]] = defaultdict(list)
        for i, item in self._going:
            outside = item.target not in self._labels and self.places[i] + RELATIVE > self.total + LIBRARY
            if self.sizes[i] > 2 and not item.conditional and not outside:
                found[item.target or ""].append(self.places[i])
        return found

    @property
    def far(self) -> bool:
        """Whether the program is longer than short calls reach."""
        return self.total > RELATIVE

    def known(self, target: str) -> list[int]:
        """Places from which a target is reached: its own, and those of jumps to it."""
        label = self._labels.get(target)
        own = self.total + LIBRARY if label is None else self.places[label]
        return [own, *(self.places[i] for i in self._to[target] if self._whole(i, ""))]

    def starts(self, i: int) -> bool:
        """Whether a function begins there."""
        item = self.items[i]
        return isinstance(item, Label) and not item.name.startswith(".L")

    def lends(self, i: int) -> bool:
        """Whether anything goes by an item."""
        return i in self._lending

    def lines(self) -> list[str]:
        """Assembly."""
        text: list[str] = []
        ways: dict[int, str] = {}
        for i, lender in self._lenders.items():
            item = self.items[i]
            assert isinstance(item, Instruction)
            branch = item.operation if item.conditional and self.sizes[i] == 2 else ""
            ways[i] = f"{WAY if self._whole(lender, branch) else WAY_JUMP}{lender}"
        labels = set(ways.values())
        for i, (item, size) in enumerate(zip(self.items, self.sizes, strict=True)):
            if f"{WAY}{i}" in labels:
                text.append(f"{WAY}{i}:")
            if isinstance(item, Label):
                text.append(f"{item.name}:")
            elif not isinstance(item, Instruction):
                text += ["/* #APP */", *item.lines, "/* #NOAPP */"]
            elif item.target is None:
                text.append(f"\t{item.operation} {item.operands}")
            elif item.conditional and size > 2:
                text.append(f"\t{OPPOSITE[item.operation]} .+{size - 2}")
                if f"{WAY_JUMP}{i}" in labels:
                    text.append(f"{WAY_JUMP}{i}:")
                text.append(f"\t{'rjmp' if size == 4 else 'jmp'} {ways.get(i, item.target)}")
            else:
                short = not item.conditional and size == 2
                text.append(f"\t{'r' if short else ''}{item.operation} {ways.get(i, item.target)}")
        return text

"""Which block a function lies in: with what it calls and what calls it, for calls within a block are short.

By simulated annealing (Kirkpatrick, Gelatt and Vecchi 1983), for a second: functions move to the block of another that they call or
that calls them. A seed gives the same image each time.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict

from .assembly import Function, Instruction

#: Bytes of a block and an island, which are to reach each other. Blocks are about an eighth shorter in the end.
BLOCK = 4400
#: By which a block may be longer than all are on average.
UNEVEN = 1.05
#: Bytes that a call from another block takes more; two of the same function share a jump on an island (:func:`layout.relays`), which takes
#: as many as both. Half where the blocks are next to each other: every other call reaches.
LONGER, RELAY, NEXT = 2.0, 4.0, 0.5
MOVES = 250_000
#: At the beginning a move that makes the program longer by so many bytes is taken one time in e.
HEAT = 2.0


def _count(functions: list[Function]) -> int:
    return max(1, round(sum(function.size for function in functions) / BLOCK))


def several(functions: list[Function]) -> bool:
    """Whether there is anything to place."""
    return _count(functions) > 1


def blocks(functions: list[Function], seed: int) -> dict[str, int]:
    """Places of functions: 0, 2, 4, …, about as many bytes in each. Between them lie islands: 1, 3, 5, …"""
    places = _Places(functions)
    places.anneal(random.Random(seed))
    return {name: 2 * block for name, block in places.block.items()}


class _Places:
    """A block for each function, and what that costs."""

    def __init__(self, functions: list[Function]) -> None:
        self._size = {function.name: function.size for function in functions}
        total = sum(self._size.values())
        self._count = _count(functions)
        self._most = total / self._count * UNEVEN
        #: In the order of their files, to begin with: much of what calls each other is in one.
        self.block: dict[str, int] = {}
        before = 0
        for name, size in self._size.items():
            self.block[name] = min(self._count - 1, before * self._count // max(total, 1))
            before += size
        self._calls = {function.name: self._called(function) for function in functions}
        self._bytes = [0] * self._count
        #: Of each function, the calls of it from each block.
        self._from: dict[str, list[int]] = defaultdict(lambda: [0] * self._count)
        callers: dict[str, list[str]] = defaultdict(list)
        for name, calls in self._calls.items():
            self._bytes[self.block[name]] += self._size[name]
            for target, times in calls.items():
                self._from[target][self.block[name]] += times
                callers[target].append(name)
        self._near = {name: [*calls, *callers[name]] for name, calls in self._calls.items()}

    def _called(self, function: Function) -> Counter[str]:
        return Counter(
            item.target
            for item in function.items
            if isinstance(item, Instruction)
            and not item.conditional
            and item.target in self._size
            and item.target != function.name
        )

    def _longer(self, target: str) -> float:
        """Bytes by which calls of a function are longer than short ones."""
        home, total = self.block[target], 0.0
        for block, times in enumerate(self._from[target]):
            if times and block != home:
                total += min(LONGER * times, RELAY) * (NEXT if abs(block - home) == 1 else 1)
        return total

    def _move(self, name: str, to: int) -> float:
        """Moves a function; bytes by which the program gets longer."""
        known = [name, *self._calls[name]]
        before = sum(map(self._longer, known))
        home, size = self.block[name], self._size[name]
        for target, times in self._calls[name].items():
            self._from[target][home] -= times
            self._from[target][to] += times
        self._bytes[home] -= size
        self._bytes[to] += size
        self.block[name] = to
        return sum(map(self._longer, known)) - before

    def anneal(self, chance: random.Random) -> None:
        """Of ``chance`` only ``random()`` is used, which gives the same numbers with all versions of Python."""
        names = [name for name, near in self._near.items() if near]
        for turn in range(MOVES if names and self._count > 1 else 0):
            name = names[int(chance.random() * len(names))]
            near = self._near[name]
            home, to = self.block[name], self.block[near[int(chance.random() * len(near))]]
            if to == home or self._bytes[to] + self._size[name] > self._most:
                continue
            longer = self._move(name, to)
            heat = HEAT * (1 - turn / MOVES)
            if longer > 0 and chance.random() >= math.exp(-longer / heat):
                self._move(name, home)

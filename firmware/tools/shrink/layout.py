"""Where functions lie, and the short form of what reaches.

Functions lie in blocks (:mod:`placement`), and what is shared on islands between them, as near to both sides as a relative
call reaches. A function goes before the one that it ends with a jump to, which is then left out. What is often called from too far has a
jump on an island.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict

from .assembly import OPPOSITE, Function, Instruction, Item, Label, Program
from .repeats import FAR, cover

#: Bytes from an instruction's end that a branch reaches, and a relative call or jump (instruction set manual, 0856L).
BRANCH, RELATIVE = 126, 4094


def arranged(functions: list[Function], places: dict[str, int]) -> list[Function]:
    """In the order in which they lie."""
    ordered = sorted(functions, key=lambda f: places[f.name])
    return [
        f
        for _, group in itertools.groupby(ordered, key=lambda f: places[f.name])
        for f in _chained(list(group))
    ]


def _chained(functions: list[Function]) -> list[Function]:
    """Those that end with a jump before what they jump to, where nobody else is."""
    by_name = {function.name: function for function in functions}
    before: dict[str, str] = {}
    after: dict[str, str] = {}

    def last(name: str) -> str:
        while name in after:
            name = after[name]
        return name

    for function in functions:
        end = function.items[-1]
        target = end.target if isinstance(end, Instruction) and end.operation == "jmp" else None
        if target in by_name and target not in before and last(target) != function.name:
            after[function.name], before[target] = target, function.name
    order: list[Function] = []
    for function in functions:
        name: str | None = function.name if function.name not in before else None
        while name is not None:
            order.append(by_name[name])
            name = after.get(name)
    return order


class Lengths:
    """Of every instruction: the shortest with which all reach."""

    def __init__(self, functions: list[Function]) -> None:
        self._items: list[Item] = []
        for i, function in enumerate(functions):
            items = function.items
            following = functions[i + 1].name if i + 1 < len(functions) else None
            end = items[-1]
            if isinstance(end, Instruction) and end.operation == "jmp" and end.target == following:
                items = items[:-1]
            self._items += [Label(function.name), *items]
        self.sizes = [0 if isinstance(item, Label) else item.size for item in self._items]
        self.places: list[int] = []
        self._settle()

    @property
    def total(self) -> int:
        """Bytes of all."""
        return self.places[-1]

    def _settle(self) -> None:
        while True:
            self.places = [0, *itertools.accumulate(self.sizes)]
            at = {
                item.name: place
                for item, place in zip(self._items, self.places, strict=False)
                if isinstance(item, Label)
            }
            grown = False
            for i, item in enumerate(self._items):
                if isinstance(item, Instruction) and item.target is not None:
                    needed = self._needed(item, self.places[i], at.get(item.target))
                    if needed > self.sizes[i]:
                        self.sizes[i], grown = needed, True
            if not grown:
                return

    @staticmethod
    def _needed(item: Instruction, place: int, target: int | None) -> int:
        """Bytes."""
        distance = RELATIVE + 1 if target is None else abs(target - place - 2)
        if not item.conditional:
            return 2 if distance <= RELATIVE else 4
        return 2 if distance <= BRANCH else 4 if distance <= RELATIVE - 2 else 6

    def far(self) -> dict[str, Counter[str]]:
        """By function, how often it calls or jumps to what is too far for the short form."""
        found: dict[str, Counter[str]] = defaultdict(Counter)
        function = ""
        for item, size in zip(self._items, self.sizes, strict=True):
            if isinstance(item, Label) and not item.name.startswith(".L"):
                function = item.name
            elif isinstance(item, Instruction) and item.target and not item.conditional and size == 4:
                found[function][item.target] += 1
        return found

    def lines(self) -> list[str]:
        """Assembly."""
        text: list[str] = []
        for item, size in zip(self._items, self.sizes, strict=True):
            if isinstance(item, Label):
                text.append(f"{item.name}:")
            elif not isinstance(item, Instruction):
                text += ["/* #APP */", *item.lines, "/* #NOAPP */"]
            elif item.target is None:
                text.append(f"\t{item.operation} {item.operands}")
            elif item.conditional and size > 2:
                text.append(f"\t{OPPOSITE[item.operation]} .+{size - 2}")
                text.append(f"\t{'rjmp' if size == 4 else 'jmp'} {item.target}")
            else:
                short = not item.conditional and size == 2
                text.append(f"\t{'r' if short else ''}{item.operation} {item.target}")
        return text


def relays(program: Program, places: dict[str, int], lengths: Lengths) -> None:
    """Makes jumps, on islands, for what is often called from too far."""
    wanted: dict[str, Counter[int]] = defaultdict(Counter)
    for name, targets in lengths.far().items():
        for target, times in targets.items():
            wanted[target][places[name]] += times
    near = {target: cover(count, FAR, 0) for target, count in wanted.items()}
    copies = [
        (target, island) for target, islands in near.items() for island in sorted(set(islands.values()))
    ]
    names = {copy: f"__far_{number}" for number, copy in enumerate(copies)}
    for function in program.functions:
        place = places[function.name]
        function.items = [
            Instruction(item.operation, target=names[item.target, near[item.target][place]])
            if isinstance(item, Instruction)
            and not item.conditional
            and item.target
            and place in near.get(item.target, {})
            else item
            for item in function.items
        ]
    for (target, island), name in names.items():
        program.functions.append(Function(name, "shared", [Instruction("jmp", target=target)]))
        places[name] = island

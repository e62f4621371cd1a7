"""Sequences of instructions that occur several times, once.

A sequence that ends in a return or a jump is jumped to; any other is called, which a ``ret`` makes possible: neither changes a register
or a flag. What is called may not touch the stack and may be left at its end alone. Calls are counted as short: most of them are made so
by where functions lie (:mod:`order`) and by the ways they take (:mod:`layout`, :mod:`relays`).
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from . import jumps
from .assembly import NAME, Function, Instruction, Item, Label, Opaque, Program
from .frames import PROLOGUE

#: Units of a sequence at most.
LONGEST = 64
#: Bytes of a loop or a condition that is moved as a whole, at most.
WHOLE = 48
#: Bytes of a call or a jump that reaches, and of one that does not.
NEAR, FAR = 2, 4
#: Bytes of a call or a jump whose distance is not known yet, on average.
UNKNOWN = 3

#: Of these the stack has to be as it was.
_STACK = frozenset({"push", "pop", "rcall"})
#: They are not moved at all: where they go is looked up by the function that they are in, or depends on where they are.
_PLACED = frozenset({"icall", "eicall", "ijmp", "reti", "rjmp", "rcall", "sei", "cli", "sleep", "wdr"})


@dataclass(frozen=True)
class Unit:
    """What is moved as a whole: an instruction, one and what it skips, a loop, a condition.

    ``key``: its text, whatever its labels are named; ``callable``: it may be within a called sequence; ``movable``: within one that is
    jumped to.
    """

    items: tuple[Item, ...]
    key: str
    callable: bool
    movable: bool
    ends: bool = False

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(
            UNKNOWN if i.operation in ("call", "jmp") else i.size
            for i in self.items
            if isinstance(i, Instruction)
        )


#: A function as units, and what nothing moves across.
Parts = list[Unit | Label | Opaque]


def _unit(item: Instruction) -> Unit:
    """Of one instruction."""
    placed = item.operation in _PLACED
    stack = item.operation in _STACK or "__SP_" in item.operands or (item.target or "").startswith(PROLOGUE)
    leaves = item.ends or item.conditional
    return Unit((item,), str(item), not (placed or stack or leaves), not placed, item.ends)


def _closed(branch: Unit, inner: list[Unit], backwards: bool) -> Unit:
    """A branch with what it goes around, or over again."""
    condition = branch.items[0]
    assert isinstance(condition, Instruction)
    body = [item for unit in inner for item in unit.items]
    keys = [unit.key for unit in inner]
    label = Label(condition.target or "")
    items, lines = ([label, *body, condition], ["@:", *keys, condition.operation]) if backwards else (
        [condition, *body, label], [condition.operation, *keys, "@:"]
    )  # fmt: skip
    return Unit(tuple(items), "\n".join(lines), True, True)


def units(function: Function, named: Counter[str]) -> Parts:
    """Of a function; ``named``: how often each name is mentioned anywhere."""
    parts: Parts = []
    skipping = False
    for item in function.items:
        if isinstance(item, Instruction):
            unit = _unit(item)
            if skipping and isinstance(last := parts[-1], Unit):
                parts[-1] = Unit(
                    (*last.items, item),
                    f"{last.key}\n{unit.key}",
                    last.callable and unit.callable,
                    last.movable and unit.movable,
                )
            elif skipping:  # by an instruction before a label: it stays where it is
                parts.append(Unit((item,), unit.key, False, False))
            else:
                parts.append(unit)
            skipping = item.skips
        else:
            parts.append(item)
            skipping = skipping and isinstance(item, Label)
    while _close(parts, named):
        pass
    return parts


def _close(parts: Parts, named: Counter[str]) -> bool:
    """Makes one loop or condition that nothing else enters or leaves a unit; False: there is none."""
    at = {part.name: i for i, part in enumerate(parts) if isinstance(part, Label)}
    for i, part in enumerate(parts):
        if not isinstance(part, Unit) or len(part.items) > 1:
            continue
        branch = part.items[0]
        if not isinstance(branch, Instruction) or not branch.conditional or not branch.target:
            continue
        place = at.get(branch.target)
        if place is None or named[branch.target] != 1:
            continue
        first, last = min(i, place), max(i, place)
        between = parts[first + 1 : last]
        inner = [unit for unit in between if isinstance(unit, Unit) and unit.callable]
        if len(inner) == len(between) and sum(unit.size for unit in inner) <= WHOLE:
            parts[first : last + 1] = [_closed(part, inner, place < i)]
            return True
    return False


def mentions(program: Program) -> Counter[str]:
    """How often each name is mentioned, but for where it stands."""
    named: Counter[str] = Counter(name for line in program.data for name in NAME.findall(line))
    for function in program.functions:
        for item in function.items:
            if isinstance(item, Instruction):
                named.update(NAME.findall(item.target or item.operands))
            elif isinstance(item, Opaque):
                named.update(name for line in item.lines for name in NAME.findall(line))
    return named


@dataclass
class Repeat:
    """``places``: where it begins, of all units in a row."""

    units: list[Unit]
    places: list[int]

    @property
    def jumped(self) -> bool:
        """To rather than called."""
        return self.units[-1].ends

    def spared(self, free: list[bool]) -> tuple[int, list[int]]:
        """Bytes, with calls of 2, and where in the row."""
        sites, end = [], -1
        for site in self.places:
            if site >= end and all(free[site : site + len(self.units)]):
                sites.append(site)
                end = site + len(self.units)
        size = sum(unit.size for unit in self.units)
        copy = size if self.jumped else size + 2
        return (size - NEAR) * len(sites) - copy, sites


class Sharer:
    """Finds and shares, round by round. ``untouched``: functions that stay as they are."""

    def __init__(self, program: Program, untouched: set[str]) -> None:
        self._program, self._untouched = program, untouched
        self._number = itertools.count(1)

    def rounds(self) -> None:
        """Until nothing more is spared."""
        self.straighten()
        while self._round() > 0:
            pass

    def _round(self) -> int:
        named = mentions(self._program)
        row: list[Unit | None] = []
        parts: dict[str, Parts] = {}
        starts: dict[str, int] = {}
        for function in self._program.functions:
            if function.name in self._untouched:
                continue
            parts[function.name] = units(function, named)
            starts[function.name] = len(row)
            row += [part if isinstance(part, Unit) else None for part in parts[function.name]]
            row.append(None)
        replaced, made, spared = self._choose(row)
        for function in self._program.functions:
            if function.name in parts:
                function.items = list(self._rewritten(parts[function.name], starts[function.name], replaced))
        self._program.functions += made
        self.straighten()
        return spared

    def straighten(self) -> None:
        """All functions that may be touched."""
        named = mentions(self._program)
        for function in self._program.functions:
            if function.name not in self._untouched:
                jumps.straighten(function, named)

    def _choose(
        self, row: list[Unit | None]
    ) -> tuple[dict[int, tuple[int, Instruction]], list[Function], int]:
        """What each place becomes, for how many units; the shared sequences; bytes."""
        free = [unit is not None and unit.movable for unit in row]
        heap = []
        for number, repeat in enumerate(repeats(row)):
            spared, _ = repeat.spared(free)
            if spared > 0:
                heap.append((-spared, number, repeat))
        heapq.heapify(heap)
        replaced: dict[int, tuple[int, Instruction]] = {}
        made: list[Function] = []
        total = 0
        while heap:
            _, number, repeat = heapq.heappop(heap)
            spared, sites = repeat.spared(free)
            if spared <= 0:
                continue
            if heap and -spared > heap[0][0]:
                heapq.heappush(heap, (-spared, number, repeat))
                continue
            total += spared
            function = self._body(repeat)
            made.append(function)
            for site in sites:
                replaced[site] = (
                    len(repeat.units),
                    Instruction("jmp" if repeat.jumped else "call", target=function.name),
                )
                free[site : site + len(repeat.units)] = [False] * len(repeat.units)
        return replaced, made, total

    def _body(self, repeat: Repeat) -> Function:
        name = f"__shared_{next(self._number)}"
        items: list[Item] = []
        for number, unit in enumerate(repeat.units):
            fresh = {
                item.name: f".L{name}.{number}.{i}"
                for i, item in enumerate(unit.items)
                if isinstance(item, Label)
            }
            for item in unit.items:
                if isinstance(item, Label):
                    items.append(Label(fresh[item.name]))
                elif isinstance(item, Instruction) and item.target in fresh:
                    items.append(Instruction(item.operation, item.operands, fresh[item.target]))
                else:
                    items.append(item)
        last = items[-1]
        if not repeat.jumped:
            if (
                isinstance(last, Instruction)
                and last.operation == "call"
                and len(repeat.units[-1].items) == 1
            ):
                items[-1] = Instruction("jmp", target=last.target)
            else:
                items.append(Instruction("ret"))
        return Function(name, "shared", items)

    @staticmethod
    def _rewritten(parts: Parts, start: int, replaced: dict[int, tuple[int, Instruction]]) -> Iterator[Item]:
        i = 0
        while i < len(parts):
            if start + i in replaced:
                length, item = replaced[start + i]
                yield item
                i += length
                continue
            part = parts[i]
            if isinstance(part, Unit):
                yield from part.items
            else:
                yield part
            i += 1


def repeats(row: list[Unit | None]) -> Iterator[Repeat]:
    """All sequences that a row has at least twice, longer ones grown from shorter ones."""
    numbers: dict[str, int] = {}
    keys = [
        -1 if unit is None or not unit.movable else numbers.setdefault(unit.key, len(numbers)) for unit in row
    ]
    groups: dict[int, list[int]] = defaultdict(list)
    for place, key in enumerate(keys):
        if key >= 0:
            groups[key].append(place)
    prefixes = [(places, True) for places in groups.values() if len(places) > 1]
    for length in range(1, LONGEST):
        longer: list[tuple[list[int], bool]] = []
        for places, able in prefixes:
            unit = row[places[0] + length - 1]
            assert unit is not None
            if unit.ends:
                if length > 1:
                    yield Repeat([u for u in row[places[0] : places[0] + length] if u], places)
                continue
            able = able and unit.callable  # noqa: PLW2901
            if able and (length > 1 or unit.size >= FAR):
                yield Repeat([u for u in row[places[0] : places[0] + length] if u], places)
            following: dict[int, list[int]] = defaultdict(list)
            for place in places:
                if (key := keys[place + length]) >= 0:
                    following[key].append(place)
            longer += [(group, able) for group in following.values() if len(group) > 1]
        prefixes = longer

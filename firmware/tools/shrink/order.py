"""In which order functions lie: one in which few calls and jumps are too far for their short form, and many functions run on into the
one that they end with a jump to. ``order.c`` looks for it."""

from __future__ import annotations

import itertools
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

from .assembly import Function, Instruction, Label
from .layout import LIBRARY, RELATIVE, Lengths

#: Bytes that the search takes off the reach: as it does not know what grows.
SLACK = 40
_SOURCE = Path(__file__).with_name("order.c")


def compiled(folder: Path) -> Path:
    """The program that looks, made with the compiler of this machine."""
    program = folder / "order"
    subprocess.run(["gcc", "-std=c11", "-O2", "-o", program, _SOURCE], check=True)
    return program


def ordered(lengths: Lengths, functions: list[Function], moves: int, heat: int) -> list[Function]:
    """Functions, anew. ``lengths``: as they lie; ``moves`` that are tried; ``heat``: quarters of bytes by which one may make the program
    longer at the beginning, one time in e."""
    with tempfile.TemporaryDirectory() as folder:
        text = " ".join(map(str, _problem(lengths, functions, moves, heat)))
        found = subprocess.run(
            [compiled(Path(folder))], input=text, check=True, stdout=subprocess.PIPE, text=True
        ).stdout
    return [functions[int(number)] for number in found.split()]


def _problem(lengths: Lengths, functions: list[Function], moves: int, heat: int) -> list[int]:
    """Numbers, as ``order.c`` reads them."""
    number = {function.name: i for i, function in enumerate(functions)}
    starts = [
        place
        for item, place in zip(lengths.items, lengths.places, strict=False)
        if isinstance(item, Label) and item.name in number
    ]
    ends = [*starts[1:], lengths.total]
    at: dict[str, tuple[int, int]] = {}
    current = -1
    for item, place in zip(lengths.items, lengths.places, strict=False):
        if isinstance(item, Label):
            current += item.name in number
            at[item.name] = current, place - starts[current]
    #: By target: function and offset of what goes there, and 0 for a call, 1 for a jump, 2 for one at a function's end.
    sites: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    tails = [-1] * len(functions)
    for caller, function in enumerate(functions):
        end = function.items[-1]
        if isinstance(end, Instruction) and end.operation == "jmp" and end.target in number:
            tails[caller] = number[end.target]
            sites[end.target].append((caller, ends[caller] - starts[caller], 2))
    current = -1
    for i, (item, place) in enumerate(zip(lengths.items, lengths.places, strict=False)):
        if isinstance(item, Label):
            current += item.name in number
        elif isinstance(item, Instruction) and item.target and not item.conditional:
            last = i + 1 == len(lengths.items) or lengths.starts(i + 1)
            inside = at.get(item.target, (-1, 0))[0] == current
            if not inside and not (last and tails[current] >= 0):
                kind = int(item.operation == "jmp")
                sites[item.target].append((current, place - starts[current], kind))
    problem = [len(functions), len(sites), sum(map(len, sites.values()))]
    problem += [RELATIVE - SLACK, LIBRARY, moves, heat, 1]
    for start, behind, tail in zip(starts, ends, tails, strict=True):
        problem += [behind - start, tail]
    for target, found in sites.items():
        problem += [*at.get(target, (-1, 0)), len(found), *itertools.chain.from_iterable(found)]
    return problem

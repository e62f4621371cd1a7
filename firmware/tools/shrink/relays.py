"""Jumps made for the purpose: where several calls or jumps are too far from where they go, and no jump there lies within their reach."""

from __future__ import annotations

import bisect
from collections import defaultdict

from .assembly import Function, Instruction, Label
from .layout import RELATIVE, Lengths

#: How the names of relays begin.
RELAY = "__far_"
#: Bytes by which a relay is to lie nearer than reach: what lies between grows with the others.
SLACK = 24
#: Layouts that are tried, each with relays for what was long in the one before.
ROUNDS = 6
#: Bytes of a long call or jump beyond a short one.
LONGER = 2


def with_relays(functions: list[Function], timed: set[str]) -> tuple[list[Function], Lengths]:
    """Functions with relays between them, and their lengths: of several layouts the shortest."""
    lengths = Lengths(functions, timed)
    best = functions, lengths
    number = 0
    for _ in range(ROUNDS):
        made = _wanted(lengths)
        if not made:
            break
        functions, number = _with(_used(functions, lengths), lengths, made, number)
        lengths = Lengths(functions, timed)
        if lengths.total < best[1].total:
            best = functions, lengths
    functions = _used(*best)
    lengths = Lengths(functions, timed)
    return (functions, lengths) if lengths.total <= best[1].total else best


def _wanted(lengths: Lengths) -> dict[int, list[str]]:
    """By gap (an item that begins a function), the targets that a relay there spares bytes for."""
    gaps = [(lengths.places[i], i) for i in lengths.gaps]
    made: dict[int, list[str]] = defaultdict(list)
    for target, sites in lengths.long().items():
        left, known = sites, lengths.known(target)
        while len(left) > 1:
            gain, gap = max((_gain(place, left, known), -i) for place, i in _around(left, gaps))
            if gain <= 0:
                break
            made[-gap].append(target)
            place = lengths.places[-gap]
            left = [site for site in left if not _reaches(site, place)]
            known.append(place)
    return made


def _around(sites: list[int], gaps: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Gaps of which each is, for the sites behind some place, the last that the first of them reaches; and the nearest to each site."""
    found = {}
    for site in sites:
        for place in (site - RELATIVE + SLACK, site, site + RELATIVE - SLACK):
            at = bisect.bisect_left(gaps, (place, -1))
            for i in (at - 1, at):
                if 0 <= i < len(gaps):
                    found[gaps[i][1]] = gaps[i]
    return list(found.values())


def _reaches(site: int, place: int) -> bool:
    return abs(site - place) <= RELATIVE - SLACK


def _gain(place: int, sites: list[int], known: list[int]) -> int:
    """Bytes. ``known``: places from which the target is reached."""
    short = any(_reaches(place, other) for other in known)
    return LONGER * sum(_reaches(site, place) for site in sites) - (2 if short else 4)


def _used(functions: list[Function], lengths: Lengths) -> list[Function]:
    """Without relays that nothing goes through."""
    used = {
        item.name for i, item in enumerate(lengths.items) if isinstance(item, Label) and lengths.lends(i + 1)
    }
    return [f for f in functions if not f.name.startswith(RELAY) or f.name in used]


def _with(
    functions: list[Function], lengths: Lengths, made: dict[int, list[str]], number: int
) -> tuple[list[Function], int]:
    names = {item.name: targets for i, targets in made.items() if isinstance(item := lengths.items[i], Label)}
    found: list[Function] = []
    for function in functions:
        for target in names.get(function.name, []):
            number += 1
            found.append(Function(f"{RELAY}{number}", "shared", [Instruction("jmp", target=target)]))
        found.append(function)
    return found, number

"""Pairs of motes as programs carry them: in groups of motes that are s, t or both, of which each s is a pair with each t behind it.

Pairs that follow from what is equal on both motes, or in order, take a byte a mote so, in place of two a pair.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

from skerry_protocol.limits import PAIRS_MOTES

S, T = 1, 2
Pair = tuple[int, int]
#: Each mote with what it is.
Group = tuple[tuple[int, int], ...]


def groups(pairs: Collection[Pair]) -> list[Group]:
    """Such that have these pairs, and each once."""
    found: list[Group] = []
    for part in _connected(sorted(set(pairs))):
        ordered = _ordered(part)
        by_role = min((_of_equal(part, role) for role in (S, T)), key=lambda these: sum(map(len, these)))
        found += [ordered] if ordered is not None else by_role
    return found


def build(pairs: Collection[Pair], numbers: Sequence[int]) -> bytes:
    """The bytes of their groups; ``numbers``: the motes in their order."""
    at = {mote: number for number, mote in enumerate(numbers)}
    return bytes(at[mote] + PAIRS_MOTES * role for group in groups(pairs) for mote, role in group)


def parse(told: bytes, numbers: Sequence[int]) -> list[Pair]:
    """Their pairs, in order."""
    found, own, before = set[Pair](), list[int](), 0
    for byte in told:
        role, mote = byte // PAIRS_MOTES, numbers[byte % PAIRS_MOTES]
        if role == S and before != S:
            own = []
        found |= {(s, mote) for s in own if role & T}
        own += [mote] * (role & S)
        before = role
    return sorted(found)


def _connected(pairs: Sequence[Pair]) -> Iterator[list[Pair]]:
    """Those that have a mote in common, each as part of the same."""
    part_of: dict[int, set[int]] = {}
    for pair in pairs:
        part = set(pair).union(*(part_of.get(mote, ()) for mote in pair))
        part_of |= dict.fromkeys(part, part)
    found: dict[int, list[Pair]] = defaultdict(list)
    for pair in pairs:
        found[min(part_of[pair[0]])].append(pair)
    yield from found.values()


def _ordered(pairs: Sequence[Pair]) -> Group | None:
    """One group, where there is an order of the motes in which each s is a pair with each t behind it."""
    partners: dict[int, set[int]] = defaultdict(set)
    for s, t in pairs:
        partners[s].add(t)
    targets = {t for _, t in pairs}
    both = sorted(targets & partners.keys(), key=lambda mote: (-len(partners[mote]), mote))
    group = (
        *((mote, S) for mote in sorted(partners.keys() - targets)),
        *((mote, S | T) for mote in both),
        *((mote, T) for mote in sorted(targets - partners.keys())),
    )
    made = {
        (s, t) for at, (s, role) in enumerate(group) if role & S for t, other in group[at + 1 :] if other & T
    }
    return group if group[0][1] == S and made == set(pairs) else None


def _of_equal(pairs: Sequence[Pair], role: int) -> list[Group]:
    """A group for all motes that have the same partners: those of one role."""
    partners: dict[int, set[int]] = defaultdict(set)
    for s, t in pairs:
        partners[s if role == S else t].add(t if role == S else s)
    alike: dict[frozenset[int], list[int]] = defaultdict(list)
    for mote in sorted(partners):
        alike[frozenset(partners[mote])].append(mote)
    return [
        tuple(
            [(mote, S) for mote in (own if role == S else sorted(others))]
            + [(mote, T) for mote in (sorted(others) if role == S else own)]
        )
        for others, own in alike.items()
    ]

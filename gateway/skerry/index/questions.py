"""What a question asks of an index, as motes are told it, and which of them it asks: by the motes' own arithmetic."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from skerry.index.code import Range, motes_code
from skerry.index.placement import Position, field_of

#: Bits of an attribute's point, and how many of them a question tells, the highest.
POINT_BITS, ASKED_BITS = 16, 12

#: Of each attribute the least and the greatest point, 0 to 65535, which is NULL.
Points = Sequence[tuple[int, int]]


#: Bytes that a question has room for behind its index, and those that tell of epochs.
_ROOM, _EPOCHS = 18, 6
#: The last epoch that there may be, and what stands for all.
LAST_EPOCH, ALL_EPOCHS = 2**32 - 1, 2**16 - 1


@dataclass(frozen=True, slots=True)
class Names:
    """Which tuples are asked for, at most: of some epochs, both ends included, and of some motes; None: of all."""

    first: int = 0
    last: int = LAST_EPOCH
    nodes: frozenset[int] | None = None

    def of(self, names: Iterable[tuple[int, int]]) -> Names:
        """These alone, by mote and epoch; there is one."""
        nodes, epochs = zip(*names, strict=True)
        return Names(min(epochs), max(epochs), frozenset(nodes))

    def encoded(self, room: int) -> bytes:
        """As an INDEX_ASK has them, in so many bytes at most; less may be told than is meant."""
        if room < _EPOCHS or self == Names():
            return b""
        more = self.last - self.first
        told = struct.pack("<IH", self.first, more if more < ALL_EPOCHS else ALL_EPOCHS)
        bits, asked = 8 * (room - _EPOCHS), 0
        if self.nodes is None or not bits:
            return told
        for node in self.nodes:
            asked |= 1 << node % bits
        return told + asked.to_bytes(bits // 8, "little")


def codes(places: Mapping[int, Position], others: Iterable[Position] = ()) -> dict[int, int]:
    """Of motes that store a part, by where they stand; ``others``: further places that the part's field spans."""
    field = field_of([*places.values(), *others])
    return {node: motes_code().zone_code(field, x, y) for node, (x, y) in places.items()}


def share(points: Points) -> float:
    """Of what is asked for in all that there may be, were it spread evenly."""
    return math.prod((high - low + 1) / (1 << POINT_BITS) for low, high in points)


def point(low: int, high: int, value: int) -> int:
    """Of a value in its attribute's range."""
    return motes_code().point(Range(low, high), value)


def owners(points: Points, codes: Mapping[int, int]) -> list[int]:
    """The motes that may store what is asked for; ``codes``: of those that store, each another one."""
    code = motes_code()
    box = code.box(len(points), dict(enumerate(points)))
    return [
        node
        for node, own in codes.items()
        if code.asks(box, code.owned(own, (other for other in codes.values() if other != own)))
    ]


def holders(points: Points, settled: Mapping[int, Position], away: Mapping[int, Position]) -> list[int]:
    """The motes that may hold what is asked for where some are away: what was lent is held by those whose zones lie next to theirs."""
    code, own = motes_code(), codes(settled, away.values())
    box = code.box(len(points), dict(enumerate(points)))
    found = [
        node
        for node, of in (*own.items(), *codes(away, settled.values()).items())
        if code.asks(box, code.owned(of, (other for other in own.values() if other != of)))
    ]
    return list(dict.fromkeys(found))


def coarse(points: Points) -> list[tuple[int, int]]:
    """What a question tells of these, which holds them."""
    shift = POINT_BITS - ASKED_BITS
    return [(low >> shift << shift, high | (1 << shift) - 1) for low, high in points]


def encoded(points: Points, names: Names) -> bytes:
    """As an INDEX_ASK has them."""
    shift = POINT_BITS - ASKED_BITS
    told = b"".join(
        ((high >> shift) << ASKED_BITS | low >> shift).to_bytes(3, "little") for low, high in points
    )
    return told + names.encoded(_ROOM - len(told))

"""What a question asks of an index, as motes are told it, and which of them it asks: by the motes' own arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skerry.index.code import Field, Range, motes_code

#: Bits of an attribute's point, and how many of them a question tells, the highest.
POINT_BITS, ASKED_BITS = 16, 12

#: Of each attribute the least and the greatest point, 0 to 65535, which is NULL.
Points = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Corners:
    """Of a field, from left to right, from bottom to top, without the last of each, in cm."""

    left: int
    bottom: int
    right: int
    top: int

    def code(self, x: int, y: int) -> int:
        """Of a position; one outside has that of the field's edge. Raises LibraryError where the library is not built."""
        return motes_code().zone_code(Field(self.left, self.bottom, self.right, self.top), x, y)


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


def coarse(points: Points) -> list[tuple[int, int]]:
    """What a question tells of these, which holds them."""
    shift = POINT_BITS - ASKED_BITS
    return [(low >> shift << shift, high | (1 << shift) - 1) for low, high in points]


def encoded(points: Points) -> bytes:
    """As an INDEX_ASK has them."""
    shift = POINT_BITS - ASKED_BITS
    return b"".join(
        ((high >> shift) << ASKED_BITS | low >> shift).to_bytes(3, "little") for low, high in points
    )

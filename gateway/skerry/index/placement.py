"""Where an index lies in a field: its parts, whose zones are whose, and whom a question asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skerry.index.code import BITS, Box, Field, IndexCode, Owned, Part

#: cm.
Position = tuple[int, int]


@dataclass(frozen=True)
class PlacedPart:
    """A part of the index, and its motes by their number among the positions."""

    attributes: tuple[int, ...]
    part: Part
    motes: list[int]
    owned: list[Owned]

    @property
    def bits(self) -> int:
        """A bit for each attribute."""
        return sum(1 << attribute for attribute in self.attributes)

    def answering(self, code: IndexCode, box: Box) -> list[int]:
        """Motes that may store what a box of all attributes asks for."""
        own = box.of(self.attributes)
        return [mote for mote, owned in zip(self.motes, self.owned, strict=True) if code.asks(own, owned)]

    def zones(self, code: IndexCode, box: Box, depth: int) -> list[str]:
        """Zones that are asked, as bits of their codes, of so many halvings at most."""
        return [
            format(zone.code, f"0{BITS}b")[: zone.length]
            for zone in code.walk(box.of(self.attributes), depth)
        ]


def place(
    code: IndexCode, field: Field, positions: Sequence[Position], groups: Sequence[Sequence[int]],
    weights: Sequence[int] | None = None,
) -> list[PlacedPart] | None:  # fmt: skip
    """The parts of an index; None where there are fewer motes than parts, or too many in one place."""
    found = code.partition(field, positions, list(weights or [1] * len(groups)))
    if found is None:
        return None
    return [_placed(code, positions, tuple(group), part) for group, part in zip(groups, found, strict=True)]


def field_of(positions: Sequence[Position]) -> Field:
    """The least that has all positions in it."""
    across, up = zip(*positions, strict=True)
    return Field(min(across), min(up), max(across) + 1, max(up) + 1)


def _placed(
    code: IndexCode, positions: Sequence[Position], attributes: tuple[int, ...], part: Part
) -> PlacedPart:
    left, bottom, right, top = part.area.sides
    motes = [number for number, (x, y) in enumerate(positions) if left <= x < right and bottom <= y < top]
    codes = [code.zone_code(part.area, *positions[mote]) for mote in motes]
    owned = [code.owned(own, (other for other in codes if other != own)) for own in codes]
    return PlacedPart(attributes, part, motes, owned)

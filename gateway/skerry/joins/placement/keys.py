"""The place to which rows of one join key go (GHT: Ratnasamy et al. 2003): a hash of the key, the same on all motes."""

from __future__ import annotations

from collections.abc import Iterable
from math import hypot

#: FNV-1a, 32 bits.
_BASIS, _PRIME, _MASK = 0x811C9DC5, 0x01000193, 0xFFFFFFFF


def key_hash(values: Iterable[int]) -> int:
    """Of 16-bit values, low byte first."""
    found = _BASIS
    for value in values:
        for byte in (value & 0xFF, value >> 8 & 0xFF):
            found = (found ^ byte) * _PRIME & _MASK
    # The low bits of FNV alone are those of an exclusive or: mixed as MurmurHash3 ends.
    found ^= found >> 16
    found = found * 0x85EBCA6B & _MASK
    found ^= found >> 13
    found = found * 0xC2B2AE35 & _MASK
    return found ^ found >> 16


def place_of(
    values: Iterable[int], left: float, bottom: float, right: float, top: float
) -> tuple[float, float]:
    """In the field with these sides."""
    found = key_hash(values)
    across, along = (found & 0xFFFF) / 0xFFFF, (found >> 16) / 0xFFFF
    return left + across * (right - left), bottom + along * (top - bottom)


def nearest(place: tuple[float, float], motes: Iterable[tuple[int, float, float]]) -> int:
    """The mote at that place: the nearest, of equally near ones that of the lowest number."""
    x, y = place
    return min(motes, key=lambda mote: (hypot(mote[1] - x, mote[2] - y), mote[0]))[0]

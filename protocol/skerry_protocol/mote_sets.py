"""Sets of motes' short addresses, as programs carry them."""

from __future__ import annotations

from collections.abc import Collection
from itertools import groupby

#: Addresses that a byte tells of; its highest bit says that it leaves some out instead.
_ADDRESSES = 7
_LEFT_OUT = 1 << _ADDRESSES


def build(motes: Collection[int]) -> bytes:
    """In as few bytes as there can be."""
    told, at = b"", 0
    for seven, own in groupby(sorted(set(motes)), lambda mote: mote // _ADDRESSES):
        told += _leaving_out(seven - at) + bytes([sum(1 << mote % _ADDRESSES for mote in own)])
        at = seven + 1
    return told


def _leaving_out(sevens: int) -> bytes:
    more, last = divmod(sevens, _LEFT_OUT)
    told = [more] * (more > 0) + [last] * (sevens > 0)
    return bytes(_LEFT_OUT | count for count in told)


def parse(told: bytes) -> list[int]:
    """The motes, in ascending order."""
    found: list[int] = []
    at = left_out = 0
    for byte in told:
        if byte & _LEFT_OUT:
            left_out = left_out * _LEFT_OUT + (byte & ~_LEFT_OUT)
            continue
        at += _ADDRESSES * left_out
        found += [at + bit for bit in range(_ADDRESSES) if byte >> bit & 1]
        at, left_out = at + _ADDRESSES, 0
    return found

"""Functions of numbers in conditions of joins, and over their answers: Arrow in, Arrow out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skerry_protocol.bytecode import HASH_FACTORS, HASH_SHIFTS

#: Of m, as positions are known.
_CENTIMETRES = 100
_LOW = np.uint64(0xFFFFFFFF)


def called(function: str, arguments: list[Any]) -> Any:
    """``ABS`` of a number, ``HASH`` of a whole one, ``DIST`` of two positions, each an x and a y."""
    if function == "ABS":
        return _absolute(arguments[0])
    return _hashes(arguments[0]) if function == "HASH" else _distances(*arguments)


def _absolute(values: Any) -> Any:
    try:
        return pc.abs_checked(values)
    except pa.ArrowInvalid:
        # What has no positive one in 64 bits is NULL.
        least = pc.equal(values, pa.scalar(-(1 << 63)))
        return pc.abs_checked(pc.if_else(least, pa.scalar(None, pa.int64()), values))


def _hashes(values: Any) -> Any:
    """:func:`skerry_protocol.bytecode.hashed` of each."""
    if isinstance(values, pa.Scalar):
        return _hashes(pa.array([values.as_py()], pa.int64()))[0]
    x = values.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64).astype(np.uint64) & _LOW
    for shift, factor in zip(HASH_SHIFTS, (*HASH_FACTORS, 1), strict=True):
        x = (x ^ x >> np.uint64(shift)) * np.uint64(factor) & _LOW
    found = pa.array((x & np.uint64(0x7FFFFFFF)).astype(np.int64))
    return pc.if_else(values.is_valid(), found, pa.scalar(None, pa.int64()))


def _distances(east: Any, north: Any, other_east: Any, other_north: Any) -> Any:
    """In m, to the cm."""
    sides = [
        pc.multiply(pc.subtract(one, other), float(_CENTIMETRES))
        for one, other in ((east, other_east), (north, other_north))
    ]
    squares = [pc.multiply(side, side) for side in map(pc.round, sides)]
    return pc.divide(pc.round(pc.sqrt(pc.add(*squares))), float(_CENTIMETRES))

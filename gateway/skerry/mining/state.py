"""An operator's state as bytes: MessagePack with arrays in it. Nothing in it is code, so that it may come from a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from skerry.mining.errors import MiningError

#: Changes whenever what is kept does.
VERSION = 1
_ARRAY = 1


def pack(kind: str, fields: Mapping[str, Any]) -> bytes:
    """``fields``: numbers, texts, lists, mappings and arrays of numpy."""
    return msgspec.msgpack.encode([VERSION, kind, fields], enc_hook=_array)


def unpack(kind: str, data: bytes) -> dict[str, Any]:
    """What :func:`pack` made of the same kind. Raises MiningError."""
    try:
        version, found, fields = msgspec.msgpack.decode(data, ext_hook=_of_array)
    except (msgspec.DecodeError, ValueError, TypeError) as error:
        raise MiningError(f"this is no state of {kind}: {error}") from None
    if (version, found) != (VERSION, kind) or not isinstance(fields, dict):
        raise MiningError(
            f"this is a state of {found}, version {version}, and not of {kind}, version {VERSION}"
        )
    return fields


def _array(value: Any) -> msgspec.msgpack.Ext:
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if not isinstance(value, np.ndarray) or value.dtype.hasobject:
        raise TypeError(f"{type(value).__name__} is not kept")
    head = msgspec.msgpack.encode([value.dtype.str, value.shape])
    return msgspec.msgpack.Ext(
        _ARRAY, len(head).to_bytes(2, "big") + head + np.ascontiguousarray(value).tobytes()
    )


def _of_array(code: int, data: memoryview) -> np.ndarray[Any, Any]:
    if code != _ARRAY:
        raise ValueError(f"extension {code} is unknown")
    end = 2 + int.from_bytes(data[:2], "big")
    kind, shape = msgspec.msgpack.decode(data[2:end])
    return np.frombuffer(bytes(data[end:]), np.dtype(kind)).reshape(shape).copy()


def numbers(values: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """A column of numbers as doubles, NaN where it has none. Raises MiningError."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        if not (
            pa.types.is_integer(values.type)
            or pa.types.is_floating(values.type)
            or pa.types.is_null(values.type)
        ):
            raise MiningError(f"a column of {values.type} is mined as numbers: give one of numbers")
        values = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
    found = np.asarray(values, np.float64)
    if found.ndim != 1:
        raise MiningError(f"an array of {found.ndim} dimensions is given for a column")
    return found


def symbols(values: Any) -> list[str | None]:
    """A column of symbols as texts; integers and booleans are taken by how they are written, NULL stays. Raises MiningError."""
    if not isinstance(values, pa.Array | pa.ChunkedArray):
        values = pa.array(values)
    kind = values.type
    if pa.types.is_dictionary(kind):
        values, kind = values.cast(kind.value_type), kind.value_type
    if not any(
        test(kind)
        for test in (
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_integer,
            pa.types.is_boolean,
            pa.types.is_null,
        )
    ):
        raise MiningError(
            f"a column of {kind} has no symbols: cut it into steps first, as in CAST(level / 10 AS INT)"
        )
    found: list[str | None] = values.cast(pa.string()).to_pylist()
    return found

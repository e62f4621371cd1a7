"""Keys by which rows are hashed: equal values have equal keys, of numbers and times unequal ones unequal keys as well."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from skerry.joins.progress import Bool, Int64

Kind = Literal["whole", "real", "text"]

#: Of the finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def kind_of(types: Sequence[pa.DataType]) -> Kind | None:
    """How columns of these types are compared by key; None: they cannot be."""
    kinds = {_kind(one) for one in types}
    if kinds == {"whole", "real"}:
        return "real"
    return kinds.pop() if len(kinds) == 1 else None


def _kind(kind: pa.DataType) -> Kind | None:
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_temporal(kind):
        return "whole"
    if pa.types.is_floating(kind):
        return "real"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text"
    return None


def keys_of(columns: Sequence[pa.Array], kinds: Sequence[Kind]) -> tuple[Int64, Bool]:
    """A key for each row, and which rows have one: NULL and NaN equal nothing."""
    length = len(columns[0])
    known = np.ones(length, np.bool_)
    keys: Int64 | None = None
    for column, kind in zip(columns, kinds, strict=True):
        known &= pc.is_valid(column).to_numpy(zero_copy_only=False)
        own = _OF_KIND[kind](column)
        if kind == "real":
            known &= ~np.isnan(own.view(np.float64))
        keys = own if keys is None else mixed(mixed(keys) + own)
    assert keys is not None, "a key has a column"
    return keys, known


def is_exact(kinds: Sequence[Kind]) -> bool:
    """Whether rows of equal keys have equal values, so that these need not be compared any more."""
    return len(kinds) == 1 and kinds[0] != "text"


def _whole(column: pa.Array) -> Int64:
    if (
        pa.types.is_temporal(column.type)
        and not pa.types.is_date64(column.type)
        and column.type.bit_width == 32
    ):
        column = column.view(pa.int32())
    elif pa.types.is_temporal(column.type):
        column = column.view(pa.int64())
    filled = column.cast(pa.int64(), safe=False).fill_null(0)
    return np.asarray(filled.to_numpy(zero_copy_only=False), np.int64)


def _real(column: pa.Array) -> Int64:
    filled = column.cast(pa.float64(), safe=False).fill_null(0.0)
    # Minus zero equals zero.
    found: Int64 = (filled.to_numpy(zero_copy_only=False) + 0.0).view(np.int64)
    return found


def _text(column: pa.Array) -> Int64:
    coded = column.dictionary_encode() if not pa.types.is_dictionary(column.type) else column
    texts = np.asarray(coded.dictionary.to_numpy(zero_copy_only=False), object)
    hashes = np.append(pd.util.hash_array(texts, categorize=False).view(np.int64), 0)
    found: Int64 = hashes[coded.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)]
    return found


_OF_KIND = {"whole": _whole, "real": _real, "text": _text}


def mixed(keys: Int64) -> Int64:
    """Each bit of a key in all bits of what comes out."""
    bits = keys.view(np.uint64)
    bits = (bits ^ (bits >> np.uint64(30))) * _MIX_1
    bits = (bits ^ (bits >> np.uint64(27))) * _MIX_2
    return (bits ^ (bits >> np.uint64(31))).view(np.int64)


def buckets_of(keys: Int64, buckets: int) -> Int64:
    """In which of so many parts of the state a key is."""
    return (mixed(keys).view(np.uint64) % np.uint64(buckets)).astype(np.int64)

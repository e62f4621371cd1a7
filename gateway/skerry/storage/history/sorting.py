"""ORDER BY over a past that ends, of groups: by their keys, up to a number that memory has room for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skerry.expressions.evaluate import Vector
from skerry.planner.model.ordering import PAST_MAXIMUM, Ordering
from skerry.sql.errors import QueryError
from skerry.storage.history.layout import Int64

#: So many numbers for each row may be counted without sorting the rows by them.
_DENSE = 8


def sequence(order: Ordering, keys: Sequence[Vector]) -> Int64:
    """Places of rows in their order, of those that come at all; NULL comes last, and equal ones stay as they are."""
    by: list[Int64] = []
    for (values, known), (_, descending) in zip(keys, order.keys, strict=True):
        filled = np.where(known, values, 0).astype(np.int64)
        by += [(~known).astype(np.int64), -filled if descending else filled]
    found: Int64 = np.lexsort(by[::-1])
    return found if order.limit is None else found[: order.limit]


def in_order(keys: Sequence[Int64]) -> Int64:
    """Places of rows by integers, the first of which counts most; no two have all of them alike."""
    codes, wide = np.zeros(len(keys[0]), np.int64), 1
    for key in keys:
        least, most = (int(key.min()), int(key.max())) if len(key) else (0, 0)
        wide *= most - least + 1
        if wide > _DENSE * len(codes):
            found: Int64 = np.lexsort(keys[::-1])
            return found
        codes = codes * (most - least + 1) + (key - least)
    # So few numbers are there that each row has a place of its own among them.
    places = np.full(wide, -1)
    places[codes] = np.arange(len(codes))
    return places[places >= 0]


def most_ordered() -> int:
    """Rows of a past that may be put in order."""
    return PAST_MAXIMUM


def check_room(order: Ordering, rows: int, room: int) -> None:
    """Raises QueryError where more rows are to be put in order than there is room for."""
    if min(order.limit or rows, rows) > room:
        hint = f"add LIMIT {room}, or ask for fewer with WHERE or a shorter HISTORY"
        raise QueryError(f"this past has more than {room:,} rows, and so many can be ordered", hint)

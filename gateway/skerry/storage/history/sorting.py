"""ORDER BY over a past that ends, of groups and of rows joined with tables: by their keys, up to a number that memory has room for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from skerry.expressions.evaluate import Vector
from skerry.planner.model.ordering import PAST_MAXIMUM, Ordering
from skerry.sql.errors import QueryError
from skerry.storage.history.layout import Int64


def sequence(order: Ordering, keys: Sequence[Vector]) -> Int64:
    """Places of rows in their order, of those that come at all; NULL comes last, and equal ones stay as they are."""
    by: list[Int64] = []
    for (values, known), (_, descending) in zip(keys, order.keys, strict=True):
        filled = np.where(known, values, 0).astype(np.int64)
        by += [(~known).astype(np.int64), -filled if descending else filled]
    found: Int64 = np.lexsort(by[::-1])
    return found if order.limit is None else found[: order.limit]


def most_ordered() -> int:
    """Rows of a past that may be put in order."""
    return PAST_MAXIMUM


def check_room(order: Ordering, rows: int, room: int) -> None:
    """Raises QueryError where more rows are to be put in order than there is room for."""
    if min(order.limit or rows, rows) > room:
        hint = f"add LIMIT {room}, or ask for fewer with WHERE or a shorter HISTORY"
        raise QueryError(f"this past has more than {room:,} rows, and so many can be ordered", hint)


class Ordered:
    """Rows of a past that come in pieces: with LIMIT only the first of them are kept."""

    def __init__(self, order: Ordering) -> None:
        self._order = order
        self._keys: list[list[Vector]] = []
        self._rows: list[pa.RecordBatch] = []
        self._count = 0

    def add(self, keys: list[Vector], rows: pa.RecordBatch) -> None:
        """Rows and what they are ordered by, in the order of the log. Raises QueryError when there are too many."""
        self._keys.append(keys)
        self._rows.append(rows)
        self._count += rows.num_rows
        if self._count > 2 * PAST_MAXIMUM or self._order.limit is None:
            self._leave()

    def _leave(self) -> None:
        """Keep what may come. Earlier rows stand before later ones that are equal, as what is kept is in the log's order."""
        check_room(self._order, self._count, PAST_MAXIMUM)
        if self._order.limit is None:
            return
        keys, table = self._whole()
        kept = np.sort(sequence(self._order, keys))
        self._keys = [[(values[kept], known[kept]) for values, known in keys]]
        self._rows = table.take(pa.array(kept)).to_batches()
        self._count = len(kept)

    def _whole(self) -> tuple[list[Vector], pa.Table]:
        keys = [
            (np.concatenate([v for v, _ in parts]), np.concatenate([k for _, k in parts]))
            for parts in zip(*self._keys, strict=True)
        ]
        return keys, pa.Table.from_batches(self._rows).combine_chunks()

    def rows(self) -> pa.RecordBatch | None:
        """All of them in their order; None: there are none. Raises QueryError when there are too many."""
        if not self._rows:
            return None
        check_room(self._order, self._count, PAST_MAXIMUM)
        keys, table = self._whole()
        return table.take(pa.array(sequence(self._order, keys))).combine_chunks().to_batches()[0]

"""Rows of many users taken out of a batch in one go.

Each user's rows are few, and what it takes to pick them out is mostly the same whether they are ten or a thousand: users who see the
same columns share that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from skerry.execution.deliveries import Delivery
from skerry.execution.matched import Matched
from skerry.execution.range_index import Int64

#: Users at a time: the first one who reads waits for the others' rows, too.
GROUP_USERS = 256
#: Rows that such a group, and all groups on one batch, may hold until their readers come.
GROUP_ROWS = 1 << 18
HELD_ROWS = 1 << 23
#: Batches with fewer rows have none for most users, and are not worth it …
LARGE_ROWS = 16384
#: … unless one in so many users has some.
ONE_IN = 16

#: Bits of a place in a batch: with a user of a group before it, it has room in 32.
_PLACE_BITS = 24
_PLACE = np.uint32((1 << _PLACE_BITS) - 1)


@dataclass(frozen=True, slots=True)
class Shares:
    """Rows of the users of a group, one user's after the other's; ``ends``: behind which row each user's end."""

    numbers: Int64
    columns: pa.RecordBatch
    ends: Int64

    def of(self, user: int) -> Delivery | None:
        """One user's rows, without copying; None: he has none."""
        start, end = self.ends[user - 1] if user else 0, self.ends[user]
        if start == end:
            return None
        return Delivery(self.numbers[start:end], self.columns.slice(start, end - start))


class Group:
    """Users who see the same columns of an entry's rows each, in an order; 256 at most."""

    def __init__(self, entries: Sequence[int]) -> None:
        self._entries = np.array(entries, np.int64)

    def shares(self, found: Matched, columns: pa.RecordBatch, most: int) -> Shares | None:
        """Their rows of 16 million at most; None: they are more than ``most``, those of several counted for each. ``columns``: of all
        rows."""
        first, last = found.ranges(self._entries)
        counts = last - first
        if counts.sum() > most:
            return None
        some = np.flatnonzero(counts)
        if not len(some):
            return Shares(found.numbers[:0], columns.slice(0, 0), counts)
        # By user, then by place: sorting integers is faster than sorting each user's, and narrow ones sort faster.
        keys = np.concatenate(
            [found.places[i:j] for i, j in zip(first[some].tolist(), last[some].tolist(), strict=True)]
        ).view(np.uint32)
        keys |= np.repeat(np.arange(len(counts), dtype=np.uint32) << np.uint32(_PLACE_BITS), counts)
        keys.sort()
        keys &= _PLACE
        return Shares(found.numbers[keys], columns.take(pa.array(keys)), np.cumsum(counts))

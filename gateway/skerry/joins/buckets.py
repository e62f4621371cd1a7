"""From rows to buckets, each an operator of its own: by key where rows meet by key, by panes of time where any rows may meet.

Without an equality over all streams panes of time are dealt to buckets in turn. A pane is as long as rows of an answer are apart at most:
the rows of an answer are in the pane of its earliest one and in the next one. So each row goes to its own pane and to the one before, and
a bucket gives the answers whose earliest row is in a pane of its own. A join with windows of rows has one bucket, as rows of all keys
count, and so has a LEFT or ASOF JOIN without keys, as all that a row could meet decide what it is answered by. Rows that meet nobody have
one, too.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from skerry.joins.group import Group, PoolKey
from skerry.joins.keys import buckets_of
from skerry.joins.operator import Owned
from skerry.joins.progress import Bool, Int64
from skerry.joins.rows import Rows
from skerry.joins.windows import UNBOUNDED

#: Into how many parts a join's state is dealt, more than there are cores; and bytes of each in memory at most.
BUCKETS, BUCKET_BYTES = 8, 1 << 29
#: Of a group that comes beside many others.
_FEWEST = 2
#: So many groups more halve the buckets of the next one.
_HALVED_BY = 4


def buckets_among(groups: int) -> int:
    """Into how many buckets the rows of a group are dealt that comes beside so many others: each takes some ms of a batch, however little
    it has to do, and where there are several groups these keep cores busy."""
    return max(_FEWEST, BUCKETS >> (groups // _HALVED_BY))


class Buckets:
    """``count``: into how many rows are dealt; more than there are cores, so that they are busy alike."""

    def __init__(self, group: Group, count: int) -> None:
        self._by_key = group.algorithm == "HW"
        self.count = 1 if group.has_rows or (group.is_whole and not self._by_key) else count
        reach = max(need.retention_us for need in group.needs.values())
        self._pane_us = max(reach, 1) if reach < UNBOUNDED else UNBOUNDED

    def deal(self, rows: Mapping[PoolKey, Rows]) -> list[dict[PoolKey, Rows]]:
        """By bucket its rows."""
        found: list[dict[PoolKey, Rows]] = [{} for _ in range(self.count)]
        for pool, whole in rows.items():
            if self.count == 1:
                found[0][pool] = whole
            elif self._by_key:
                for bucket, places in enumerate(_places(buckets_of(whole.key, self.count), self.count)):
                    found[bucket][pool] = whole.take(places)
            else:
                pane = whole.time // self._pane_us
                for bucket in range(self.count):
                    own = (pane % self.count == bucket) | ((pane - 1) % self.count == bucket)
                    found[bucket][pool] = whole.take(own)
        return found

    def owned(self, bucket: int) -> Owned | None:
        """Which answers a bucket gives; None: all that it finds."""
        if self._by_key or self.count == 1:
            return None

        def own(earliest: Int64) -> Bool:
            found: Bool = earliest // self._pane_us % self.count == bucket
            return found

        return own


def _places(buckets: Int64, count: int) -> list[Int64]:
    """By bucket the places of its rows, in their order."""
    order = np.argsort(buckets.astype(np.uint16), kind="stable")
    ends = np.cumsum(np.bincount(buckets, minlength=count))
    return np.split(order, ends[:-1])

"""Which users' ranges a value lies in, and which values lie in a user's range.

A batch is sorted once for each column that anybody bounds. The users who get something of it are then found
by two binary searches each; a user's rows are a slice that is copied only when he reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]
#: Places of rows in a batch.
Places = npt.NDArray[np.signedinteger[Any]]

#: Ends of a range that is open on that side.
LEAST, MOST = np.int64(np.iinfo(np.int64).min), np.int64(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True)
class Sorted:
    """A batch's values of one column in ascending order, and where each of them stands."""

    values: Int64
    places: npt.NDArray[np.int32]

    def within(self, low: np.int64, high: np.int64) -> Places:
        """Places of the values in a closed range, ascending."""
        first = self.values.searchsorted(low)
        last = self.values.searchsorted(high, "right")
        found = self.places[first : max(first, last)]
        if len(found) > 1:
            found = np.sort(found)
        return found


def in_order(values: Int64, places: Places) -> Sorted:
    """Values and their places, sorted by value. Values of a small span sort by radix, many times faster."""
    narrow: npt.NDArray[np.integer[Any]] = values
    if len(values):
        lowest = values.min()
        if int(values.max()) - int(lowest) < 1 << 16:
            narrow = (values - lowest).astype(np.uint16)
    order = np.argsort(narrow, kind="stable")
    return Sorted(values[order], places[order].astype(np.int32))


class RangeIndex:
    """Many closed ranges of one column, by their low ends, which keeps binary searches within the processor's cache. ``order``: which
    of the given ranges stands in each place."""

    def __init__(self, lows: Sequence[int], highs: Sequence[int]) -> None:
        low, high = np.array(lows, np.int64), np.array(highs, np.int64)
        self.order = np.lexsort((high, low))
        self._low, self._high = low[self.order], high[self.order]

    def within(self, batch: Sorted) -> tuple[Int64, Int64]:
        """For each range, in the index's order: its values stand at first .. last - 1 of the sorted ones. Of an empty one last is at most
        first."""
        first = batch.values.searchsorted(self._low, side="left").astype(np.int64)
        last = batch.values.searchsorted(self._high, side="right").astype(np.int64)
        return first, last

"""Which users' ranges a value lies in, and which values lie in a user's range.

A batch is sorted once for each column that anybody bounds. The users who get something of it are then found
by two binary searches each, or by hash where they ask for one value; a user's rows are a slice that is
copied only when he reads.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]
#: Places of rows in a batch.
Places = npt.NDArray[np.signedinteger[Any]]
#: A user and his closed range.
Range = tuple[str, int, int]

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
    """Many users' ranges of one column. Users with the same range share an entry."""

    def __init__(self, ranges: Iterable[Range]) -> None:
        spans: dict[tuple[int, int], list[str]] = {}
        #: Users by the one value that they ask for.
        self._points: dict[int, list[str]] = {}
        for user, low, high in ranges:
            if low == high:
                self._points.setdefault(low, []).append(user)
            elif low < high:
                spans.setdefault((low, high), []).append(user)
        # Ends in ascending order keep the binary searches within the cache.
        ordered = sorted(spans)
        self._low = np.array([low for low, _ in ordered], dtype=np.int64)
        self._high = np.array([high for _, high in ordered], dtype=np.int64)
        self._users = [spans[bounds] for bounds in ordered]

    def hits(self, batch: Sorted) -> list[str]:
        """Users in whose range any of the values lies, each once."""
        values = batch.values
        if not len(values):
            return []
        first = values.searchsorted(self._low, side="left")
        last = values.searchsorted(self._high, side="right")
        found = [user for entry in np.flatnonzero(last > first).tolist() for user in self._users[entry]]
        if self._points:
            runs = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
            for value in values[runs].tolist():
                found += self._points.get(value, ())
        return found

"""Which users' ranges a value lies in: the cost of a batch is what it matches, not how many users there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]


class RangeIndex:
    """Closed ranges ``low .. high`` over one column of integers, one per user."""

    def __init__(self, ranges: Sequence[tuple[str, int | None, int | None]]) -> None:
        self._users = [user for user, _, _ in ranges]
        limits = np.iinfo(np.int64)
        self._low = np.array([limits.min if low is None else low for _, low, _ in ranges], dtype=np.int64)
        self._high = np.array([limits.max if high is None else high for _, _, high in ranges], dtype=np.int64)

    def matches(self, values: Int64, places: Int64) -> Iterator[tuple[str, Int64]]:
        """(user, places of the values in its range, ascending) for each user with any. ``places`` numbers the values."""
        order = np.argsort(values, kind="stable")
        ordered, ordered_places = values[order], places[order]
        first = np.searchsorted(ordered, self._low, side="left")
        last = np.searchsorted(ordered, self._high, side="right")
        for i in np.nonzero(last > first)[0]:
            yield self._users[i], np.sort(ordered_places[first[i] : last[i]])

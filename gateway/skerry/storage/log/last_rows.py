"""The last row of each stream in the log, and when it arrived: what tells that a stream is of the past for good."""

from __future__ import annotations

import numpy as np

from skerry.storage.log.record import Int64, Records


class Latest:
    """As far as this process has appended; streams of before may have had the last ``rows`` that there were, arrived at ``now_us``."""

    def __init__(self, rows: int, now_us: int) -> None:
        self._before = rows - 1, now_us
        self._of: dict[int, tuple[int, int]] = {}

    def note(self, numbers: Int64, records: Records) -> None:
        """Records have been appended under these numbers."""
        # Many roots have many streams.
        order = np.argsort(records["stream"], kind="stable")
        streams, begins = np.unique(records["stream"][order], return_index=True)
        if not len(streams):
            return
        last = np.maximum.reduceat(numbers[order], begins).tolist()
        arrived = np.maximum.reduceat(records["arrival"][order], begins).tolist()
        for stream, row, us in zip(streams.tolist(), last, arrived, strict=True):
            number, arrival = self._of.get(stream, (-1, 0))
            self._of[stream] = max(number, row), max(arrival, us)

    def of(self, stream: int) -> tuple[int, int]:
        """The number of a stream's last row and its arrival, UTC in us; neither is less than it is."""
        return self._of.get(stream, self._before)

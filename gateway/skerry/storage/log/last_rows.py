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
        streams = records["stream"]
        if len(streams) and bool((streams == streams[0]).all()):
            self._keep(int(streams[0]), numbers, records)
            return
        for stream in np.unique(streams).tolist():
            mine = streams == stream
            self._keep(stream, numbers[mine], records[mine])

    def _keep(self, stream: int, numbers: Int64, records: Records) -> None:
        number, arrival = self._of.get(stream, (-1, 0))
        self._of[stream] = max(number, int(numbers.max())), max(arrival, int(records["arrival"].max()))

    def of(self, stream: int) -> tuple[int, int]:
        """The number of a stream's last row and its arrival, UTC in us; neither is less than it is."""
        return self._of.get(stream, self._before)

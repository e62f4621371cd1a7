"""What records say of a stream that is no motes': how far its rows' times had come, and where a query's sources had ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from skerry.storage.log import stream_log
from skerry.storage.log.record import Int64, Kind, Records
from skerry.storage.log.source_batches import SourceFiles

#: Records looked through at a time.
_STEP = 65_536


class SourceTimes:
    """``path``: the log's directory. Not for several threads at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        #: By stream, how far the log has been looked through, and the greatest time till there.
        self._known: dict[int, tuple[int, int | None]] = {}

    def before(self, stream: int, row: int) -> int | None:
        """The greatest time in µs of a stream's rows that the log has before a record; None: it has none."""
        at, found = self._known.get(stream, (0, None))
        if at > row:
            at, found = 0, None
        for _, records in self._records(stream, at, row):
            times = records["sample"][records["epoch"] == 0]
            if len(times):
                found = int(np.max(times)) if found is None else max(found, int(np.max(times)))
        self._known[stream] = row, found
        return found

    def end_of(self, stream: int, query: int, start: int, end: int) -> int | None:
        """Which of the records ``start`` .. ``end`` - 1 says that all sources of a query have ended."""
        for numbers, records in self._records(stream, start, end):
            ends = numbers[records["epoch"] == query]
            if len(ends):
                return int(ends[0])
        return None

    def _records(self, stream: int, start: int, end: int) -> Iterator[tuple[Int64, Records]]:
        """Those of a stream, with their numbers."""
        at = max(start, min(SourceFiles(self._path).begins(), default=end))
        while at < end:
            upto = min(at + _STEP, end)
            first, records = stream_log.read_there(self._path, at, upto)
            mine = np.flatnonzero((records["stream"] == stream) & (records["kind"] == Kind.SOURCES))
            yield first + mine, records[mine]
            at = upto

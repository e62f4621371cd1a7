"""The stream log: a directory of segments, appended by one daemon, read by Spark's workers.

A row's number is its place in the log. A segment is a file of records, named by the number of its first row; only the last
one grows. Older segments go once their rows are kept elsewhere (:mod:`skerry.history`), and numbers go on.
"""

from __future__ import annotations

import itertools
import os
from bisect import bisect_right
from pathlib import Path

import numpy as np

from skerry.state import DataError
from skerry.streams.record import RECORD, Records, intact, seal

DIRECTORY = "log"
SUFFIX = ".rows"
#: A segment with so many rows is full (28 MB): the next batch begins another.
SEGMENT_ROWS = 262_144


class RowsGoneError(LookupError):
    """Rows were asked for that the log no longer has. ``first``: the first one it has."""

    def __init__(self, start: int, first: int) -> None:
        super().__init__(f"the log begins at row {first}: row {start} is no longer there")
        self.first = first


class StreamLog:
    """Appends records durably. Opening cuts off a torn tail; ``rows`` is the number of the next record."""

    def __init__(self, data: Path, segment_rows: int = SEGMENT_ROWS) -> None:
        if (data / "rows.log").exists():
            raise DataError(
                f"data directory {data}: rows.log was written by an older skerry: take another directory"
            )
        self.path = data / DIRECTORY
        self.path.mkdir(parents=True, exist_ok=True)
        self._segment_rows = segment_rows
        self._begin = max(segments(self.path), default=0)
        self._file = self._open()
        self.rows = self._recover()

    def _open(self) -> int:
        """The segment that begins at ``_begin``, which outlives a crash from now on."""
        file = os.open(segment(self.path, self._begin), os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        sync_directory(self.path)
        return file

    def _recover(self) -> int:
        rows = os.fstat(self._file).st_size // RECORD.itemsize
        while rows and not intact(os.pread(self._file, RECORD.itemsize, (rows - 1) * RECORD.itemsize)):
            rows -= 1
        os.ftruncate(self._file, rows * RECORD.itemsize)
        os.fsync(self._file)
        return self._begin + rows

    @property
    def first(self) -> int:
        """Number of the first row that is there."""
        return first(self.path)

    def append(self, records: Records) -> int:
        """Append and sync; returns the first row's number. When it returns, the rows are durable. OSError: nothing was appended."""
        number = self.rows
        if number - self._begin >= self._segment_rows:
            self._next_segment()
        data = memoryview(seal(records))
        try:
            while data:
                data = data[os.write(self._file, data) :]
            os.fdatasync(self._file)
        except OSError:
            os.ftruncate(self._file, (number - self._begin) * RECORD.itemsize)
            raise
        self.rows += len(records)
        return number

    def _next_segment(self) -> None:
        before, full = self._begin, self._file
        self._begin = self.rows
        try:
            self._file = self._open()
        except OSError:
            self._begin = before
            raise
        os.close(full)

    def tail(self, count: int) -> Records:
        """The last ``count`` records at most."""
        return read(self.path, max(self.first, self.rows - count), self.rows)

    def drop_before(self, row: int) -> int:
        """Delete the segments that hold only rows before this one; returns how many bytes that frees."""
        begins = segments(self.path)
        freed = 0
        # Oldest first: what a crash leaves has no hole.
        for begin, end in itertools.pairwise(begins):
            if end > row:
                break
            file = segment(self.path, begin)
            freed += file.stat().st_size
            file.unlink()
            sync_directory(self.path)
        return freed

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def sync_directory(path: Path) -> None:
    """Make names that were added to or removed from a directory durable."""
    file = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def segment(path: Path, begin: int) -> Path:
    """The file of the segment that begins at this row."""
    return path / f"{begin:020d}{SUFFIX}"


def segments(path: Path) -> list[int]:
    """First rows of a log's segments, ascending; [] for a log that is not there yet."""
    try:
        names = os.listdir(path)
    except FileNotFoundError:
        return []
    return sorted(int(name.removesuffix(SUFFIX)) for name in names if name.endswith(SUFFIX))


def first(path: Path) -> int:
    """Number of the first row that is there."""
    return min(segments(path), default=0)


def length(path: Path) -> int:
    """Number of the next record of a log that another process may be appending to."""
    begin = max(segments(path), default=None)
    return 0 if begin is None else begin + segment(path, begin).stat().st_size // RECORD.itemsize


def size(path: Path) -> int:
    """Bytes of all segments."""
    return sum(segment(path, begin).stat().st_size for begin in segments(path))


def read(path: Path, start: int, end: int) -> Records:
    """Records ``start`` .. ``end`` - 1, those that have been written. Raises RowsGoneError for rows before the first segment."""
    begins = segments(path)
    end = min(end, length(path))
    if end <= start:
        return np.empty(0, RECORD)
    if start < begins[0]:
        raise RowsGoneError(start, begins[0])
    parts = []
    for place in range(bisect_right(begins, start) - 1, bisect_right(begins, end - 1)):
        begin, limit = begins[place], begins[place + 1] if place + 1 < len(begins) else end
        low, high = max(start, begin), min(end, limit)
        try:
            parts.append(
                np.fromfile(segment(path, begin), RECORD, high - low, offset=(low - begin) * RECORD.itemsize)
            )
        except FileNotFoundError:
            raise RowsGoneError(start, first(path)) from None
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def read_there(path: Path, start: int, end: int) -> tuple[int, Records]:
    """Those of the records ``start`` .. ``end`` - 1 that the log still has, and the number of the first."""
    start = max(start, first(path))
    try:
        return start, read(path, start, end)
    except RowsGoneError:
        return read_there(path, start, end)

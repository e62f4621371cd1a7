"""The log file: appended by one daemon, read by Spark's workers. A row's number is its place in the file."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from skerry.streams.record import RECORD, Records, intact, seal

FILE_NAME = "rows.log"


class StreamLog:
    """Appends records durably. Opening cuts off a torn tail; ``rows`` is the number of durable records."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / FILE_NAME
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        self.rows = self._recover()
        os.lseek(self._file, self.rows * RECORD.itemsize, os.SEEK_SET)

    def _recover(self) -> int:
        rows = os.fstat(self._file).st_size // RECORD.itemsize
        while rows and not intact(os.pread(self._file, RECORD.itemsize, (rows - 1) * RECORD.itemsize)):
            rows -= 1
        os.ftruncate(self._file, rows * RECORD.itemsize)
        os.fsync(self._file)
        return rows

    def append(self, records: Records) -> int:
        """Append and sync; returns the first row's number. When it returns, the rows are durable. OSError: nothing was appended."""
        first = self.rows
        data = memoryview(seal(records))
        try:
            while data:
                data = data[os.write(self._file, data) :]
            os.fdatasync(self._file)
        except OSError:
            os.ftruncate(self._file, first * RECORD.itemsize)
            os.lseek(self._file, first * RECORD.itemsize, os.SEEK_SET)
            raise
        self.rows += len(records)
        return first

    def tail(self, count: int) -> Records:
        """The last ``count`` records at most."""
        return read(self.path, max(0, self.rows - count), self.rows)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def length(path: Path) -> int:
    """Whole records in a log that another process may be appending to."""
    return path.stat().st_size // RECORD.itemsize if path.exists() else 0


def read(path: Path, start: int, end: int) -> Records:
    """Records ``start`` .. ``end`` - 1, those that exist."""
    end = min(end, length(path))
    if end <= start:
        return np.empty(0, RECORD)
    return np.fromfile(path, RECORD, count=end - start, offset=start * RECORD.itemsize)

"""The segments of the stream log: files of records, the number of the first in the file's name. Only the last one grows."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from skerry.storage.log.numbered_files import NumberedFiles
from skerry.storage.log.record import RECORD, Records, damaged, intact, seal
from skerry.storage.replacement import sync_directory

SUFFIX = ".rows"
_WIDTH = RECORD.itemsize
_CLOSED = -1


@dataclass(frozen=True, slots=True)
class Segments:
    """For readers, in whichever process. ``path``: the log's directory."""

    path: Path

    def begins(self) -> list[int]:
        """Names of the segments, ascending; [] where there are none."""
        return NumberedFiles(self.path, SUFFIX).begins()

    def segment(self, begin: int) -> Path:
        """The file of a segment."""
        return NumberedFiles(self.path, SUFFIX).file(begin)

    def end(self) -> int:
        """The number behind the last row, while another process may be appending; at least the last segment's name."""
        begins = self.begins()
        return begins[-1] + self._rows(begins[-1]) if begins else 0

    def count(self, start: int, end: int) -> int:
        """How many of the rows ``start`` .. ``end`` - 1 there are."""
        return sum(high - low for _, low, high in self._places(start, end))

    def read(self, start: int, end: int) -> list[tuple[int, Records]]:
        """Those rows in pieces: the number of the first, and records. One that a damaged disk has changed is of stream 0, which is
        nobody's. FileNotFoundError: some have just been dropped."""
        found = []
        for begin, low, high in self._places(start, end):
            records = np.fromfile(self.segment(begin), RECORD, high - low, offset=low * _WIDTH)
            records[damaged(records)] = np.zeros((), RECORD)
            found.append((begin + low, records))
        return found

    def _places(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Where such rows are: segment, and places in it from .. to. Numbers are left out only between segments, where the log went on
        behind rows that a disk had lost."""
        begins = self.begins()
        for begin, following in pairwise([*begins, max(end, *begins) if begins else end]):
            low, high = max(start - begin, 0), min(end, following) - begin
            if low < high:
                high = min(high, self._rows(begin))
            if low < high:
                yield begin, low, high

    def _rows(self, begin: int) -> int:
        return self.segment(begin).stat().st_size // _WIDTH

    def full(self) -> list[tuple[int, Path]]:
        """Segments that do not grow, oldest first: the number behind their rows, and the file."""
        return [(end, self.segment(begin)) for begin, end in pairwise(self.begins())]


class Writer:
    """Appends, durably. Opening cuts off a torn tail; ``begin``: the first segment's name, where there is none yet."""

    def __init__(self, segments: Segments, segment_rows: int, begin: int = 0) -> None:
        self.segments, self._segment_rows = segments, segment_rows
        self._file = _CLOSED
        self._begin = max(segments.begins(), default=begin)
        self._file = self._open()
        self._rows = self._recover()

    def _open(self) -> int:
        """The segment that begins at ``_begin``, which outlives a crash from now on."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
        file = os.open(self.segments.segment(self._begin), flags, 0o644)
        sync_directory(self.segments.path)
        sync_directory(self.segments.path.parent)
        return file

    def _recover(self) -> int:
        size = os.fstat(self._file).st_size
        rows = size // _WIDTH
        while rows and not intact(os.pread(self._file, _WIDTH, (rows - 1) * _WIDTH)):
            rows -= 1
        if size != rows * _WIDTH:
            # Only then: a file's time says when something was appended.
            os.ftruncate(self._file, rows * _WIDTH)
        os.fsync(self._file)
        return rows

    def append(self, rows: Records) -> None:
        """Append rows, whose checksums this sets, and sync. OSError: nothing was appended, as where the file has been taken away."""
        if self._rows >= self._segment_rows:
            self.begin_segment(self._begin + self._rows)
        self._check_there()
        data = memoryview(seal(rows))
        try:
            while data:
                data = data[os.write(self._file, data) :]
            os.fdatasync(self._file)
        except OSError:
            os.ftruncate(self._file, self._rows * _WIDTH)
            raise
        self._rows += len(rows)

    def _check_there(self) -> None:
        """OSError: the file is no longer where readers look for it, or will be gone once it is closed."""
        path = self.segments.segment(self._begin)
        try:
            there = os.path.samestat(os.stat(path), os.fstat(self._file))
        except FileNotFoundError:
            there = False
        if not there:
            why = "it was taken away while the gateway ran: put it back, or start the gateway again"
            raise FileNotFoundError(errno.ENOENT, why, str(path))

    def begin_segment(self, begin: int) -> None:
        """Another segment grows from now on. OSError: that which did."""
        before, full = self._begin, self._file
        self._begin = begin
        try:
            self._file = self._open()
        except OSError:
            self._begin = before
            raise
        os.close(full)
        self._rows = 0

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, _CLOSED
        if file != _CLOSED:
            os.close(file)

    def __del__(self) -> None:
        self.close()

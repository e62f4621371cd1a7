"""A partition of the stream log: the rows of one root, in a directory of segments of their own.

Rows are numbered over all partitions, so that each record bears its number. A segment is a file of records in the order of their
numbers; its name is the number from which on it has all of its root's rows, as far as the next segment's name. Only the last one grows.
"""

from __future__ import annotations

import errno
import os
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path

import numpy as np

from skerry.storage.log.record import NUMBERED, Records, damaged, intact, seal
from skerry.storage.replacement import sync_directory

SUFFIX = ".rows"
_NUMBER_BYTES = 8
_CLOSED = -1


@dataclass(frozen=True, slots=True)
class Partition:
    """For readers, in whichever process. ``path``: its directory."""

    path: Path

    def begins(self) -> list[int]:
        """Names of its segments, ascending; [] where there are none."""
        try:
            names = os.listdir(self.path)
        except FileNotFoundError:
            return []
        found = [name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)]
        # A copy that somebody has put beside it is none.
        return sorted(int(name) for name in found if name.isdecimal())

    def segment(self, begin: int) -> Path:
        """The file of a segment."""
        return self.path / f"{begin:020d}{SUFFIX}"

    def end(self) -> int:
        """The number behind its last row, while another process may be appending; at least its last segment's name."""
        begins = self.begins()
        if not begins:
            return 0
        with self.segment(begins[-1]).open("rb") as file:
            numbers = _Numbers(file.fileno(), begins[-1])
            return numbers[len(numbers) - 1] + 1 if len(numbers) else begins[-1]

    def count(self, start: int, end: int) -> int:
        """How many of the rows ``start`` .. ``end`` - 1 are its own."""
        return sum(high - low for _, low, high in self._places(start, end))

    def read(self, start: int, end: int) -> Records:
        """Those rows, with their numbers, ascending. One that a damaged disk has changed is of stream 0, which is nobody's.
        FileNotFoundError: some have just been dropped."""
        parts = []
        for begin, low, high in self._places(start, end):
            found = np.fromfile(self.segment(begin), NUMBERED, high - low, offset=low * NUMBERED.itemsize)
            self._leave_out(begin, low, found)
            parts.append(found)
        if len(parts) == 1:
            return parts[0]
        return np.concatenate([np.empty(0, NUMBERED), *parts])

    def _leave_out(self, begin: int, low: int, records: Records) -> None:
        """Leave of records that are not as they were written only the numbers, which their neighbours tell."""
        places = damaged(records)
        if not len(places):
            return
        records[places] = np.zeros((), records.dtype)
        with self.segment(begin).open("rb") as file:
            numbers = _Numbers(file.fileno(), begin)
            records["row"][places] = [numbers[low + place] for place in places.tolist()]

    def _places(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Where such rows are: segment, and places in it from .. to."""
        begins = self.begins()
        for begin, following in pairwise([*begins, end]):
            if start >= following or begin >= end:
                continue
            with self.segment(begin).open("rb") as file:
                numbers = _Numbers(file.fileno(), begin)
                low, high = numbers.place(start), numbers.place(end)
            if low < high:
                yield begin, low, high

    def full(self) -> list[tuple[int, Path]]:
        """Segments that do not grow: the number behind their rows, and the file."""
        return [(end, self.segment(begin)) for begin, end in pairwise(self.begins())]


class _Numbers:
    """The numbers of a segment's rows, in place of reading it."""

    def __init__(self, file: int, begin: int) -> None:
        self._file, self._begin = file, begin
        self._count = os.fstat(file).st_size // NUMBERED.itemsize

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: int) -> int:
        # Of a record that is damaged those beside it tell it.
        for near in chain(range(place, self._count), range(place - 1, -1, -1)):
            record = os.pread(self._file, NUMBERED.itemsize, near * NUMBERED.itemsize)
            if intact(record):
                return int.from_bytes(record[:_NUMBER_BYTES], "little") + place - near
        return self._begin + place

    def place(self, row: int) -> int:
        """Where the first row with this number, or a higher one, is."""
        if not self._count or row <= self[0]:
            return 0
        if row > self[self._count - 1]:
            return self._count
        near = row - self[0]
        # Of a root that is alone no number is left out.
        return near if near < self._count and self[near] == row else bisect_left(self, row)


class Writer:
    """Appends to one partition, durably. Opening cuts off a torn tail; ``begin``: its first segment's name, where it has none yet."""

    def __init__(self, partition: Partition, segment_rows: int, begin: int = 0) -> None:
        self.partition, self._segment_rows = partition, segment_rows
        self._file = _CLOSED
        partition.path.mkdir(parents=True, exist_ok=True)
        self._begin = max(partition.begins(), default=begin)
        self._file = self._open()
        self._rows = self._recover()

    def _open(self) -> int:
        """The segment that begins at ``_begin``, which outlives a crash from now on."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
        file = os.open(self.partition.segment(self._begin), flags, 0o644)
        sync_directory(self.partition.path)
        sync_directory(self.partition.path.parent)
        return file

    def _recover(self) -> int:
        width = NUMBERED.itemsize
        size = os.fstat(self._file).st_size
        rows = size // width
        while rows and not intact(os.pread(self._file, width, (rows - 1) * width)):
            rows -= 1
        if size != rows * width:
            # Only then: a file's time says when something was appended.
            os.ftruncate(self._file, rows * width)
        os.fsync(self._file)
        return rows

    def append(self, rows: Records, since: int) -> None:
        """Append numbered rows and sync. OSError: nothing was appended, as where the file has been taken away.

        ``since``: the first number that is new in any partition. A segment that begins has its name, which holds even if what is
        appended to the other partitions must be taken back.
        """
        if self._rows >= self._segment_rows:
            self.begin_segment(since)
        self._check_there()
        data = memoryview(seal(rows))
        try:
            while data:
                data = data[os.write(self._file, data) :]
            os.fdatasync(self._file)
        except OSError:
            self.cut(self._rows)
            raise
        self._rows += len(rows)

    def _check_there(self) -> None:
        """OSError: the file is no longer where readers look for it, or will be gone once it is closed."""
        path = self.partition.segment(self._begin)
        try:
            there = os.path.samestat(os.stat(path), os.fstat(self._file))
        except FileNotFoundError:
            there = False
        if not there:
            why = "it was taken away while the gateway ran: put it back, or start the gateway again"
            raise FileNotFoundError(errno.ENOENT, why, str(path))

    def cut(self, rows: int) -> None:
        """Leave so many rows in the segment that grows."""
        os.ftruncate(self._file, rows * NUMBERED.itemsize)
        self._rows = rows

    @property
    def rows(self) -> int:
        """How many rows there are in the segment that grows."""
        return self._rows

    @property
    def appended(self) -> float:
        """When something was appended to it, UTC in s."""
        return os.fstat(self._file).st_mtime

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

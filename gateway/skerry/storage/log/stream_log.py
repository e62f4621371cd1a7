"""The stream log: appended by one daemon, read by Spark's workers.

The rows of all roots are one sequence in the order of intake: a row's number is a position. What several roots bring at a time is appended
together, as the disk takes as long for one row as for many. Older segments go once their rows are kept elsewhere
(:mod:`skerry.storage.history`), and numbers go on.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from skerry.storage.log.dating import Dating, MachineClock
from skerry.storage.log.last_rows import Latest
from skerry.storage.log.record import RECORD, Int64, Records
from skerry.storage.log.segments import Segments, Writer
from skerry.storage.log.source_batches import SourceBatch, SourceFiles, SourceWriter
from skerry.storage.log.source_positions import Position, Source, SourcePositions
from skerry.storage.replacement import sync_directory

_log = logging.getLogger(__name__)

DIRECTORY = "log"
#: A segment with so many rows is full (50 MB): the next batch begins another.
SEGMENT_ROWS = 262_144
#: Records that are read at a time.
_READ_ROWS = 65_536


class RowsGoneError(LookupError):
    """Rows were asked for that the log no longer has. ``first``: the first one it has."""

    def __init__(self, start: int, first: int) -> None:
        super().__init__(f"the log begins at row {first}: row {start} is no longer there")
        self.first = first


class StreamLog:
    """Appends records durably. ``rows`` is the number of the next one. Not for several threads at once, but for :meth:`drop_before`.

    ``latest``: which row of each stream is the last. ``machine_clock``: what rows are dated by; None: by a clock that is right.
    """

    def __init__(
        self, data: Path, segment_rows: int = SEGMENT_ROWS, *, machine_clock: MachineClock | None = None
    ) -> None:
        self.path = data / DIRECTORY
        self.path.mkdir(parents=True, exist_ok=True)
        self._segments, self._segment_rows = Segments(self.path), segment_rows
        self._appending = threading.RLock()
        self._writer = Writer(self._segments, segment_rows) if self._segments.begins() else None
        self._sources = SourceWriter(self.path)
        self.rows = length(self.path)
        self.positions = SourcePositions(self.path)
        self._read_positions()
        self.latest = Latest(self.rows, time.time_ns() // 1000)
        last = self.tail(1)["arrival"].tolist() if machine_clock is not None else []
        self.dating = (
            Dating(data, last[0] if last else None, machine_clock) if machine_clock is not None else None
        )

    def go_on_at(self, row: int) -> None:
        """Number the next record at least so: others have had rows up to there, and take none for new whose number is below, but a disk
        has lost them, or somebody has taken the log away. OSError: nothing has changed."""
        if self.rows >= row:
            return
        _log.warning("log: rows %d to %d are gone: it goes on at row %d", self.rows, row - 1, row)
        if self._writer is None:
            self._writer = Writer(self._segments, self._segment_rows, row)
        else:
            self._writer.begin_segment(row)
        self.rows = row

    @property
    def first(self) -> int:
        """Number of the first row that is there."""
        return first(self.path)

    def append(self, records: Records) -> int:
        """Append and sync; returns the first row's number. When it returns, the rows are durable. OSError: nothing was appended."""
        with self._appending:
            numbers = self.numbers(records)
            if self.dating is not None:
                self.dating.note(numbers, records)
            if self._writer is None:
                self._writer = Writer(self._segments, self._segment_rows)
            self._writer.append(records.copy())
            number, self.rows = self.rows, self.rows + len(records)
            self.latest.note(numbers, records)
            return number

    def append_sources(self, batches: Sequence[SourceBatch]) -> int:
        """Append rows of sources that are no motes, and sync; returns the first record's number. As :meth:`append`, and not beside it."""
        with self._appending:
            try:
                number = self.append(self._sources.write(batches, self.rows))
            except OSError:
                self._sources.abandon()
                raise
            for batch in batches:
                self.positions.note(batch.stream, batch.positions)
            if self.positions.is_due:
                self._write_positions()
            return number

    def forget_positions(self, gone: Callable[[Source, Position], bool]) -> None:
        """Sources of which this is true begin anew."""
        with self._appending:
            if self.positions.forget(gone):
                self._write_positions()

    def _write_positions(self) -> None:
        try:
            self.positions.write(self.rows)
        except OSError as error:
            _log.warning("positions of sources are not written, and are read from the log: %s", error)

    def _read_positions(self) -> None:
        begin = max(self.positions.through, min(self._sources.files.begins(), default=self.rows))
        while begin < self.rows:
            start, records = read_there(self.path, begin, min(begin + _READ_ROWS, self.rows))
            numbers = np.arange(start, start + len(records), dtype=np.int64)
            for stream, found in self._sources.files.positions(numbers, records):
                self.positions.note(stream, found)
            begin = max(begin, start) + _READ_ROWS

    def numbers(self, records: Records) -> Int64:
        """The number that each of these records will have if they are appended now."""
        return np.arange(self.rows, self.rows + len(records), dtype=np.int64)

    def tail(self, count: int) -> Records:
        """The last ``count`` records at most."""
        return read(self.path, max(self.first, self.rows - count), self.rows)

    def drop_before(self, row: int) -> int:
        """Delete the full segments that hold only rows before this one; returns how many bytes that frees."""
        freed = 0
        with self._appending:
            if self.positions.changed and self.positions.through < row:
                # What goes must not be needed for them any more.
                self.positions.write(self.rows)
        # Oldest first: what a crash leaves has no hole.
        for end, file in self._segments.full():
            if end > row:
                break
            freed += file.stat().st_size
            file.unlink()
            sync_directory(self.path)
        return freed + self._sources.files.drop_before(self.first)

    def close(self) -> None:
        """Close the file."""
        if self.positions.changed:
            self._write_positions()
        self._sources.close()
        if self._writer is not None:
            self._writer.close()


def full_segments(path: Path) -> list[tuple[int, Path]]:
    """Segments that do not grow, oldest first: the number behind their rows, and the file."""
    return Segments(path).full()


def first(path: Path) -> int:
    """Number of the first row from which on all are there."""
    return min(Segments(path).begins(), default=0)


def length(path: Path) -> int:
    """Number of the next record of a log that another process may be appending to."""
    return Segments(path).end()


def size(path: Path) -> int:
    """Bytes of all segments."""
    segments = Segments(path)
    return SourceFiles(path).size() + sum(
        segments.segment(begin).stat().st_size for begin in segments.begins()
    )


def read(path: Path, start: int, end: int) -> Records:
    """Records ``start`` .. ``end`` - 1, those that have been written. One that a damaged disk has lost is of stream 0, which is nobody's.
    Raises RowsGoneError for rows that were dropped."""
    end = min(end, length(path))
    if end <= start:
        return np.empty(0, RECORD)
    there = first(path)
    if start < there:
        raise RowsGoneError(start, there)
    try:
        pieces = Segments(path).read(start, end)
    except FileNotFoundError:
        raise RowsGoneError(start, first(path)) from None
    if len(pieces) == 1 and len(pieces[0][1]) == end - start:
        return pieces[0][1]
    found = np.zeros(end - start, RECORD)
    for number, records in pieces:
        found[number - start : number - start + len(records)] = records
    return found


def read_there(path: Path, start: int, end: int) -> tuple[int, Records]:
    """Those of the records ``start`` .. ``end`` - 1 that the log still has, and the number of the first."""
    start = max(start, first(path))
    try:
        return start, read(path, start, end)
    except RowsGoneError:
        return read_there(path, start, end)

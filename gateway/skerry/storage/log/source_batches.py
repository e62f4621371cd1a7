"""Rows of sources that are no motes: they come in batches, of which each is one record of the log.

A record has fixed width, and such rows have texts, arrays and whatever fields their table declares. So a batch's rows are an Arrow IPC
stream in a file beside the segments (``<number>.batches``, named for the first record that it has rows of), and the record says where. The
rows are durable before their record is: what a crash leaves behind the last record is nobody's. All rows of a batch have its record's
number, and their order in it; so the rows of all streams, motes' among them, have one order.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from skerry.sensors.readings import Readings
from skerry.storage.log.numbered_files import NumberedFiles
from skerry.storage.log.record import RECORD, Int64, Kind, Records
from skerry.storage.log.source_positions import Position, from_text
from skerry.storage.replacement import sync_directory

SUFFIX = ".batches"
#: In the metadata of a batch's schema: how far its sources have come.
POSITIONS = b"skerry.positions"
#: A file with so many bytes is full.
FILE_BYTES = 64 << 20
#: Where a record says what: the file, the place in it, the bytes, the rows, the bytes' checksum, and of answers how far they are all there.
_FILE, _OFFSET, _BYTES, _ROWS, _CRC, _THROUGH, _THROUGH_US = range(7)


class Through(NamedTuple):
    """How far a query's answers are all in the log, in the order in which they come, which does not depend on batches: of those that rows
    bring one by one, up to before a row's number (``time_us`` is 0); of those that come in the order of time, up to the row of this time
    and number."""

    time_us: int
    number: int


#: Before all answers.
NOTHING = Through(-(1 << 62), 0)


@dataclass(frozen=True, slots=True)
class SourceBatch:
    """Some rows of one stream. ``time_us``: their greatest time, ``arrival_us``: when the last came, UTC; ``data``: an Arrow IPC stream.
    ``through``: of answers to a join, how far all are there with them. ``positions``: of tuples whose types
    can send again, behind these rows, as they stand in ``data`` too. ``ends``: a query of which all
    sources have ended; there are no rows then."""

    stream: int
    rows: int
    time_us: int
    arrival_us: int
    data: bytes
    through: Through = NOTHING
    positions: Mapping[int, Position] = field(default_factory=dict)
    ends: int = 0


class SourceFiles:
    """For readers, in whichever process. ``path``: the log's directory; ``readings``: of the tables that rows are joined with."""

    def __init__(self, path: Path, readings: Readings | None = None) -> None:
        self.path, self.readings = path, readings
        self._files = NumberedFiles(path, SUFFIX)

    def begins(self) -> list[int]:
        """Names of the files, ascending."""
        return self._files.begins()

    def file(self, begin: int) -> Path:
        """One by its name."""
        return self._files.file(begin)

    def tables(self, numbers: Int64, records: Records) -> Iterator[tuple[int, int, pa.Table]]:
        """The rows of each record that is a batch: its number, its stream, and them. What a disk has changed or lost is left out."""
        for number, stream, data in self._read(numbers, records):
            yield number, stream, pa.ipc.open_stream(data).read_all()

    def _read(self, numbers: Int64, records: Records) -> Iterator[tuple[int, int, bytes]]:
        for place in np.flatnonzero(records["kind"] == Kind.SOURCES).tolist():
            where = records["value"][place].tolist()
            try:
                with self.file(where[_FILE]).open("rb") as file:
                    data = os.pread(file.fileno(), where[_BYTES], where[_OFFSET])
            except FileNotFoundError:
                continue
            if zlib.crc32(data) == where[_CRC]:
                yield int(numbers[place]), int(records["stream"][place]), data

    def positions(self, numbers: Int64, records: Records) -> Iterator[tuple[int, Mapping[int, Position]]]:
        """How far the sources of each record that is a batch have come behind it: its stream, and by tuple."""
        for _, stream, data in self._read(numbers, records):
            told = (pa.ipc.open_stream(data).schema.metadata or {}).get(POSITIONS)
            if told is not None:
                yield stream, from_text(told)

    def drop_before(self, first: int) -> int:
        """Delete files that have rows of none of the records from this one on; returns how many bytes that frees."""
        begins, freed = self.begins(), 0
        for begin, following in pairwise(begins):
            if following <= first:
                freed += self.file(begin).stat().st_size
                self.file(begin).unlink()
        return freed

    def size(self) -> int:
        """Bytes of all files."""
        return sum(self.file(begin).stat().st_size for begin in self.begins())


def rows_of(records: Records) -> Int64:
    """How many rows each record is: a mote's is one."""
    found: Int64 = np.where(records["kind"] == Kind.SOURCES, records["value"][:, _ROWS], 1)
    return found


def through_of(records: Records, first: int) -> dict[int, Through]:
    """By stream from this number on, the greatest ``through`` of its batches among some records."""
    found: dict[int, Through] = {}
    for record in records[(records["kind"] == Kind.SOURCES) & (records["stream"] >= first)]:
        stream, value = int(record["stream"]), record["value"]
        through = Through(int(value[_THROUGH_US]), int(value[_THROUGH]))
        found[stream] = max(found.get(stream, NOTHING), through)
    return found


class SourceWriter:
    """For the one process that appends."""

    def __init__(self, path: Path) -> None:
        self.files = SourceFiles(path)
        self._begin: int | None = None
        self._file = -1
        self._size = 0

    def write(self, batches: Sequence[SourceBatch], number: int) -> Records:
        """Make batches durable; returns their records, of which the first is to have this number. OSError: there is nothing that anybody
        would find."""
        if self._begin is None or self._size >= FILE_BYTES or not self._is_there():
            self._open(number)
        records = np.zeros(len(batches), RECORD)
        for place, batch in enumerate(batches):
            record = records[place]
            record["stream"], record["kind"] = batch.stream, Kind.SOURCES
            record["sample"], record["arrival"] = batch.time_us, batch.arrival_us
            record["epoch"] = batch.ends
            where = (
                self._begin,
                self._size,
                len(batch.data),
                batch.rows,
                zlib.crc32(batch.data),
                batch.through.number,
                batch.through.time_us,
            )
            record["value"][: len(where)] = where
            left = memoryview(batch.data)
            while left:
                written = os.write(self._file, left)
                left, self._size = left[written:], self._size + written
        os.fdatasync(self._file)
        return records

    def abandon(self) -> None:
        """After an error: another file begins with the next batch, as what this one ends with is not known."""
        self.close()

    def _is_there(self) -> bool:
        try:
            return self._begin is not None and os.path.samestat(
                os.stat(self.files.file(self._begin)), os.fstat(self._file)
            )
        except FileNotFoundError:
            return False

    def _open(self, number: int) -> None:
        self.close()
        self._file = os.open(self.files.file(number), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._begin, self._size = number, os.fstat(self._file).st_size
        sync_directory(self.files.path)

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
        self._file, self._begin = -1, None

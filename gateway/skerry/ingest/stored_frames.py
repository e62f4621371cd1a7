"""Which frames of a root's serial line brought partial states that are in the log.

A plain row that comes twice is known by its mote and epoch; of two equal partial states both may count. So the frames of the last ones
are written down, each with the number and checksum of its record, before the records go to the log: after a crash those are stored whose
records are there. The line's end lets the root forget them before it begins to number anew (:mod:`skerry.network.link.endpoint`).
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from skerry.ingest.frames import Frame
from skerry.storage.log.record import RECORD, Int64, Records
from skerry.storage.log.stream_log import RowsGoneError, StreamLog, read
from skerry_protocol.framing import WINDOW

_ENTRY = struct.Struct("<BIqI")
_CHECKSUM = struct.Struct("<I")


class _Entry(NamedTuple):
    sequence: int
    checksum: int
    row: int
    record: int


class Line:
    """What is written down of one root, in a file of at most 72 bytes. A root has no more than :data:`WINDOW` frames that it may send
    again, so that older ones are forgotten. A file that a power cut tore says nothing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._entries = self._read()
        self._intended = self._entries

    def intend(self, frames: Sequence[Frame], records: Records, numbers: Int64) -> None:
        """These frames' records are about to be appended to the log, under these numbers; durable when it returns. Raises OSError."""
        entries = [
            _Entry(*frame, int(number), _checksum(record))
            for frame, record, number in zip(frames, records, numbers, strict=True)
        ]
        self._intended = (self._entries + entries)[-WINDOW:]
        data = b"".join(_ENTRY.pack(*entry) for entry in self._intended)
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            os.pwrite(file, data + _CHECKSUM.pack(zlib.crc32(data)), 0)
            os.ftruncate(file, len(data) + _CHECKSUM.size)
            os.fsync(file)
        finally:
            os.close(file)

    def done(self) -> None:
        """The log has them."""
        self._entries = self._intended

    def stored(self, log: StreamLog) -> list[Frame]:
        """After a restart: the frames whose records are in the log, oldest first; none behind one that is not stored."""
        for place, entry in enumerate(self._entries):
            if not _holds(log, entry):
                self._entries = self._entries[:place]
                break
        return [Frame(entry.sequence, entry.checksum) for entry in self._entries]

    def _read(self) -> list[_Entry]:
        try:
            raw = self._path.read_bytes()
        except FileNotFoundError:
            return []
        data, checksum = raw[: -_CHECKSUM.size], raw[-_CHECKSUM.size :]
        if len(data) % _ENTRY.size or checksum != _CHECKSUM.pack(zlib.crc32(data)):
            return []
        return [_Entry(*entry) for entry in _ENTRY.iter_unpack(data)]


class Lines:
    """Those of all roots, by short address."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._lines: dict[int, Line] = {}

    def of(self, root: int) -> Line:
        """A root's."""
        if root not in self._lines:
            self._lines[root] = Line(self._data / f"line-{root}")
        return self._lines[root]


def _holds(log: StreamLog, entry: _Entry) -> bool:
    """Whether an entry's record is in the log, or has been and is too old."""
    try:
        found = read(log.path, entry.row, entry.row + 1)
    except RowsGoneError:
        return True
    return len(found) == 1 and _checksum(found[0]) == entry.record


def _checksum(record: Any) -> int:
    """Of a record without its number."""
    return zlib.crc32(record.tobytes()[: RECORD.fields["checksum"][1]])  # type: ignore[index]

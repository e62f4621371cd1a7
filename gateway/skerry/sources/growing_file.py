"""A file that grows by lines: ``file:detector.jsonl?format=json``, in the data directory's ``streams/`` or where the operator allows.

With ``from=start`` each of its lines comes once, whoever asks and when; else what is appended from when somebody asks. Both hold over
restarts: what was appended meanwhile comes then.
"""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import IO, ClassVar

from skerry.sources.lines import LINE_BYTES
from skerry.sources.stream_type import AddressError, Read, Sensor, Signal, StreamType

#: Looked at so often, in s.
LOOK_S = 0.1
_READ_BYTES = 1 << 18
#: By so many bytes before a position a file is known again.
_KNOWN_BYTES = 256


class GrowingFile(StreamType):
    """One that is replaced, or cut off, begins anew."""

    options: ClassVar[frozenset[str] | None] = frozenset({"format", "from"})
    every_s: float | None = LOOK_S

    def init(self, sensor: Sensor) -> None:
        """Open it."""
        begin = sensor.options.get("from", "start" if sensor.trial else "end")
        if begin not in ("start", "end"):
            raise AddressError(f"from={begin}: write from=start or from=end")
        self.lasting = begin == "start"
        self._path = file_of(sensor)
        self._rest, self._file = b"", self._path.open("rb")
        if sensor.position is not None:
            # Of another file by this name all lines are new.
            self._file.seek(_found_again(self._file, sensor.position))
        elif begin == "end":
            self._file.seek(0, 2)
        self._mark()

    def _mark(self) -> None:
        behind = self._file.tell() - len(self._rest)
        known = os.pread(self._file.fileno(), min(behind, _KNOWN_BYTES), max(0, behind - _KNOWN_BYTES))
        self.position = json.dumps([behind, zlib.crc32(known)])

    def read(self) -> Read:
        """The lines that have been appended."""
        data = self._file.read(_READ_BYTES)
        self.every_s = LOOK_S if len(data) < _READ_BYTES else 0.0
        if not data:
            self._look()
            return Signal.NO_VALUE
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LINE_BYTES:
            # Told as a row that does not fit.
            lines, self._rest = [*lines, self._rest], b""
        if lines:
            self._mark()
        return [line for line in lines if line.strip()] or Signal.NO_VALUE

    def _look(self) -> None:
        """Whether it is still the file that is open. FileNotFoundError: it is gone."""
        there = self._path.stat()
        if (there.st_ino, there.st_dev) != _identity(self._file) or there.st_size < self._file.tell():
            self._file.close()
            self._rest, self._file = b"", self._path.open("rb")
            self._mark()

    def close(self) -> None:
        """Close it."""
        file: IO[bytes] | None = getattr(self, "_file", None)
        if file is not None:
            file.close()


def file_of(sensor: Sensor) -> Path:
    """The file that an address names: ``file:name``, in the folder of files, or ``file:///a/path``."""
    path = sensor.url.netloc + sensor.url.path
    if not path:
        raise AddressError(f"'{sensor.address}' names no file: write {sensor.url.scheme}:name.csv")
    return sensor.folder / path


def _identity(file: IO[bytes]) -> tuple[int, int]:
    found = os.fstat(file.fileno())
    return found.st_ino, found.st_dev


def _found_again(file: IO[bytes], position: str) -> int:
    """Where a file goes on; 0 where it is not the one that the position is of."""
    behind, known = json.loads(position)
    begin = max(0, behind - _KNOWN_BYTES)
    there = os.pread(file.fileno(), behind - begin, begin)
    return int(behind) if len(there) == behind - begin and zlib.crc32(there) == known else 0

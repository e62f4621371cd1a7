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

from skerry.sources.lines import Lines
from skerry.sources.stream_type import AddressError, Read, Sensor, Signal, StreamType

#: Looked at so often, in s.
LOOK_S = 0.1
_READ_BYTES = 1 << 18
#: By so many bytes before a position a file is known again.
_KNOWN_BYTES = 256


class GrowingFile(StreamType):
    """One that is replaced, or cut off, begins anew."""

    options: ClassVar[frozenset[str] | None] = frozenset({"format", "from"})
    reads_tuple: ClassVar[bool] = False
    every_s: float | None = LOOK_S

    def init(self, sensor: Sensor) -> None:
        """Open it."""
        begin = sensor.options.get("from", "start" if sensor.trial else "end")
        if begin not in ("start", "end"):
            raise AddressError(f"from={begin}: write from=start or from=end")
        self.lasting = begin == "start"
        self._path = file_of(sensor)
        #: Where it was allowed to be.
        self._real = self._path.resolve()
        check_file(self._path)
        self._lines, self._file = Lines(), self._path.open("rb")
        if sensor.position is not None:
            # Of another file by this name all lines are new.
            self._file.seek(_found_again(self._file, sensor.position))
        elif begin == "end":
            self._file.seek(0, 2)
        self._mark()

    def _mark(self) -> None:
        behind = self._file.tell() - self._lines.unended
        known = os.pread(self._file.fileno(), min(behind, _KNOWN_BYTES), max(0, behind - _KNOWN_BYTES))
        self.position = json.dumps([behind, zlib.crc32(known)])

    def read(self) -> Read:
        """The lines that have been appended."""
        data = self._file.read(_READ_BYTES)
        is_other = not data and self._is_other()
        if is_other:
            # What was appended to the one before, until nobody had it any more.
            data = self._file.read(_READ_BYTES)
        self.every_s = LOOK_S if len(data) < _READ_BYTES else 0.0
        if is_other and not data:
            self._begin_anew()
        lines = self._lines.take(data)
        if lines:
            self._mark()
        return lines or Signal.NO_VALUE

    def _begin_anew(self) -> None:
        if self._path.resolve() != self._real:
            # Whether it may be read is asked again.
            raise ConnectionError(f"{self._path} leads elsewhere now")
        self._file.close()
        self._lines, self._file = Lines(), self._path.open("rb")
        self._mark()

    def _is_other(self) -> bool:
        """Whether it is not the file any more that is open, or has been cut off. FileNotFoundError: it is gone."""
        there = self._path.stat()
        return (there.st_ino, there.st_dev) != _identity(self._file) or there.st_size < self._file.tell()

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


def check_file(path: Path) -> None:
    """Raises OSError where there is none, or something else: to open what waits for who writes to it would last."""
    if not path.is_file() and path.exists():
        raise ConnectionError(f"{path} is no file")


def _identity(file: IO[bytes]) -> tuple[int, int]:
    found = os.fstat(file.fileno())
    return found.st_ino, found.st_dev


def _found_again(file: IO[bytes], position: str) -> int:
    """Where a file goes on; 0 where it is not the one that the position is of."""
    behind, known = json.loads(position)
    begin = max(0, behind - _KNOWN_BYTES)
    there = os.pread(file.fileno(), behind - begin, begin)
    return int(behind) if len(there) == behind - begin and zlib.crc32(there) == known else 0

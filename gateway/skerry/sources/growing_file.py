"""A file that grows by lines: ``file:detector.jsonl?format=json``, in the data directory's ``streams/`` or where the operator allows.

What is appended while it is open comes once. With ``from=start`` it begins with the first line, each time that it is opened; else with what
is appended from then on.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, ClassVar

from skerry.sources.stream_type import AddressError, Read, Sensor, Signal, StreamType

#: Looked at so often, in s.
LOOK_S = 0.1
_READ_BYTES = 1 << 18


class GrowingFile(StreamType):
    """One that is replaced, or cut off, begins anew."""

    options: ClassVar[frozenset[str] | None] = frozenset({"format", "from"})
    every_s: float | None = LOOK_S

    def init(self, sensor: Sensor) -> None:
        """Open it."""
        begin = sensor.options.get("from", "end")
        if begin not in ("start", "end"):
            raise AddressError(f"from={begin}: write from=start or from=end")
        self._path = file_of(sensor)
        self._rest, self._file = b"", self._path.open("rb")
        if begin == "end":
            self._file.seek(0, 2)

    def read(self) -> Read:
        """The lines that have been appended."""
        data = self._file.read(_READ_BYTES)
        self.every_s = LOOK_S if len(data) < _READ_BYTES else 0.0
        if not data:
            self._look()
            return Signal.NO_VALUE
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [line for line in lines if line.strip()] or Signal.NO_VALUE

    def _look(self) -> None:
        """Whether it is still the file that is open. FileNotFoundError: it is gone."""
        there = self._path.stat()
        if (there.st_ino, there.st_dev) != _identity(self._file) or there.st_size < self._file.tell():
            self._file.close()
            self._rest, self._file = b"", self._path.open("rb")

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

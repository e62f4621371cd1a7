"""A directory that files are put into: ``folder:measured?match=*.csv``, in the data directory's ``streams/`` or where the operator allows.

Files are read in the order of their names, each once, whoever asks and when, also over restarts. One is read when nothing has been written
to it for a while: who moves complete ones into the directory is not waited for. A file whose name comes before that of one that has been
read is passed over, and told.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import ClassVar

from skerry.sources.growing_file import file_of
from skerry.sources.http_polling import seconds
from skerry.sources.stream_type import AddressError, Read, Sensor, Signal, StreamType, Value
from skerry.sources.table_files import SUFFIXES, rows_of

#: Looked at so often, and a file is complete after so long, in s.
LOOK_S, SETTLE_S = 0.5, 2.0
_ROWS = 2048


class Folder(StreamType):
    """Names that begin with a point, or that do not match, are nobody's."""

    options: ClassVar[frozenset[str] | None] = frozenset({"match", "settle"})
    reads_tuple: ClassVar[bool] = False
    lasting = True

    def init(self, sensor: Sensor) -> None:
        """Nothing is read yet. OSError: there is no such directory."""
        options = sensor.options
        self._match = options.get("match", "*")
        self._settle_s = seconds(options.get("settle", f"{SETTLE_S}s"), "settle")
        self._path = file_of(sensor)
        if not self._path.is_dir():
            raise NotADirectoryError(f"{self._path} is no directory")
        self.position = sensor.position or json.dumps(["", 0])
        #: The file that was begun last, its rows that have been given, and those that are left; None: it is read through.
        self._name, self._given = json.loads(self.position)
        self._rows: Iterator[Value] | None = None
        self._go_on = bool(self._name)
        #: Names that were there when the last one was begun.
        self._known = {name for name in self._names() if name <= self._name}

    def read(self) -> Read:
        """The next rows of the file that is read, or of the next one."""
        if self._rows is None and not self._next():
            self.every_s = LOOK_S
            return Signal.NO_VALUE
        assert self._rows is not None
        self.every_s = 0.0
        found = list[Value]()
        try:
            for row in islice(self._rows, _ROWS):
                found.append(row)
        except AddressError as error:
            # Others go on.
            self.note = str(error)
        self._given += len(found)
        if not found:
            self._rows = None
            return Signal.NO_VALUE
        self.position = json.dumps([self._name, self._given])
        return found

    def _next(self) -> bool:
        """Begin a file; whether there is one. A file that was read in part before goes on."""
        names = self._names()
        if self._go_on:
            self._go_on = False
            if self._name in names:
                self._rows = rows_of(self._path / self._name, self._given)
                return True
        late = sorted(name for name in names if name < self._name and name not in self._known)
        if late:
            self._known.update(late)
            self.note = f"passed over {late[-1]}: its name comes before {self._name}, which has been read"
        for name in names:
            if name > self._name:
                age = time.time() - (self._path / name).stat().st_mtime
                if 0 <= age < self._settle_s:
                    # Those behind it wait, too: the order is that of names.
                    return False
                self._known = set(names[: names.index(name) + 1])
                self._name, self._given = name, 0
                self._rows = rows_of(self._path / name)
                return True
        return False

    def _names(self) -> list[str]:
        found, real = list[str](), self._path.resolve()
        with os.scandir(self._path) as entries:
            for entry in entries:
                name = entry.name
                if name.startswith(".") or not fnmatchcase(name, self._match):
                    continue
                if Path(name).suffix.lower() not in SUFFIXES or not entry.is_file():
                    continue
                if entry.is_symlink() and not Path(entry.path).resolve().is_relative_to(real):
                    # What the operator allows is this directory.
                    self.note = f"passed over {name}: it is a link out of {self._path}"
                    continue
                found.append(name)
        return sorted(found)

    def close(self) -> None:
        """Files are closed with their last reader."""

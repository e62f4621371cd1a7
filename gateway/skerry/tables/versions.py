"""Which reading of each table the rows of the log meet: the same whenever, and by whomever, they are joined with it.

The directory has a file ``<version>.arrow`` for each reading (:mod:`skerry.tables.table_file`), and ``notes``: a line of JSON ``[table,
row, version]`` for "rows from this number on meet this version", None: the table was not there. Notes are only ever added, each before the
log has the row that it speaks of, so that whoever reads rows reads all notes that matter to them.
"""

from __future__ import annotations

import json
import os
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO, NamedTuple

from skerry.execution.joined import ReadingGoneError
from skerry.tables import table_file
from skerry.tables.store import Table

DIRECTORY = "tables.versions"
NOTES = "notes"
SUFFIX = ".arrow"
#: Readings that are kept in memory.
_HELD = 8


class Note(NamedTuple):
    """Rows from ``row`` on meet ``version``; None: nothing."""

    row: int
    version: int | None


class TableVersions:
    """The readings in a directory, for anybody who may read it, and any thread."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._notes: dict[str, list[Note]] = {}
        #: The notes' file as it was read, and how far: another one has taken its place when notes were dropped.
        self._read: tuple[int, int] = (0, 0)
        self._tables: OrderedDict[int, Table] = OrderedDict()
        self._lock = threading.Lock()
        self.refresh()

    def refresh(self) -> None:
        """Read what has been noted since."""
        with self._lock:
            try:
                file = (self.directory / NOTES).open("rb")
            except FileNotFoundError:
                return
            with file:
                self._read_from(file)

    def _read_from(self, file: IO[bytes]) -> None:
        (inode, at), status = self._read, os.fstat(file.fileno())
        if status.st_ino != inode:
            inode, at, self._notes = status.st_ino, 0, {}
        file.seek(at)
        for line in file:
            # Another process may be writing it.
            if not line.endswith(b"\n"):
                break
            name, row, version = json.loads(line)
            self._notes.setdefault(name, []).append(Note(row, version))
            at += len(line)
        self._read = inode, at

    def candidates(self, name: str, row: int) -> Iterator[Table]:
        """The reading of a table that a row of the log meets, then those that took its place: a row whose reading is of no use to a query
        meets the next one that is. A row from before all notes meets the first."""
        notes = self._notes.get(name, []).copy()
        at = max(bisect_right(notes, row, key=lambda note: note.row) - 1, 0)
        for note in notes[at:]:
            table = None if note.version is None else self._table(note.version)
            if table is not None:
                yield table

    def met(self, name: str, row: int) -> Iterator[Table]:
        """The reading of a table that a row of a stream which is no motes' meets, then those before it, the latest first: while a table is
        not there, or is of no use to a query, rows meet it as it was. A row from before all notes meets the first."""
        notes = self._notes.get(name, []).copy()
        at = bisect_right(notes, row, key=lambda note: note.row)
        for note in (*notes[:at][::-1], *notes[at:]):
            table = None if note.version is None else self._table(note.version)
            if table is not None:
                yield table

    def changes(self, names: Collection[str], first: int, last: int) -> list[int]:
        """Rows behind ``first``, up to ``last``, from which on one of these tables is another, ascending."""
        with self._lock:
            noted = [note.row for name in names for note in self._notes.get(name, ())]
        return sorted({row for row in noted if first < row <= last})

    def reading(self, version: int) -> Table:
        """A version that a row has met. Raises ReadingGoneError."""
        table = self._table(version)
        if table is None:
            raise ReadingGoneError(self.path(version).name)
        return table

    def _table(self, version: int) -> Table | None:
        """A reading; None: it is not there any more."""
        with self._lock:
            table = self._tables.pop(version, None)
            if table is None:
                try:
                    table = table_file.read(self.path(version), version)
                except FileNotFoundError:
                    return None
            self._tables[version] = table
            while len(self._tables) > _HELD:
                self._tables.popitem(last=False)
            return table

    def path(self, version: int) -> Path:
        """The file of a reading."""
        return self.directory / f"{version}{SUFFIX}"

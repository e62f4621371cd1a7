"""The tables of one gateway: every CSV and Parquet file of a directory, every table of its SQLite files, and those of databases
that its files name (:mod:`skerry.tables.jdbc`).

A file is read when a query first needs it and again when it has changed; while it is not there, or cannot be read, those who
ask for it are told why.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from skerry.planner.model.joined_tables import TableSchema, Trouble
from skerry.tables import csv_files, files, jdbc, sqlite
from skerry.tables.columns import Column, Reading, TableError, columns_of
from skerry.tables.directory import File, Stamps, shown, stamps
from skerry.tables.directory import files as files_of
from skerry.tables.typed_columns import typed

log = logging.getLogger(__name__)

#: How often a file is looked at, in s.
LOOK_S = 1.0
#: Longer than a file system's clock stands still.
_TICK_NS = 100_000_000
#: What is raised where the file is to blame. Anything else is a fault of the gateway's.
_EXPECTED = (TableError, OSError, pa.ArrowException, sqlite3.Error)


@dataclass(frozen=True)
class Table:
    """One reading of a table. ``version`` differs between readings. By a column's name: ``troubles`` why it cannot be used, ``notes``
    why it is of another type than one might think."""

    name: str
    rows: int
    columns: Mapping[str, Column]
    version: int
    path: Path
    troubles: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def schema(self) -> TableSchema:
        """For the planner."""
        described = tuple(column.described for column in self.columns.values())
        return TableSchema(self.name, described, tuple(self.troubles.items()))

    def typed(self, name: str, kind: str) -> pa.Array | None:
        """A column as :func:`skerry.tables.typed_columns.typed` has it; None: there is none either."""
        column = self.columns.get(name)
        return None if column is None else typed(column, kind)

    def described(self) -> list[dict[str, Any]]:
        """Its columns for people, those that cannot be used behind the others."""
        columns = [
            {"name": name, "type": column.type, "trouble": None, "note": self.notes.get(name)}
            for name, column in self.columns.items()
        ]
        return columns + [
            {"name": name, "type": None, "trouble": trouble, "note": None}
            for name, trouble in self.troubles.items()
        ]


@dataclass
class _Entry:
    """A file as it was found last: its tables that can be used, and what is wrong with others by their names; with the whole file,
    by its own."""

    file: File
    tables: list[Table] = field(default_factory=list)
    troubles: dict[str, str] = field(default_factory=dict)
    #: Whether it is to be read again though it has not changed: somebody was writing to it.
    busy: bool = False
    #: Where it is not the file that has the tables: what does, and what of it this is.
    database: jdbc.Database | None = None
    reading: jdbc.Reading | None = None
    #: What else it depends on, as that was when it was read.
    dependencies: Stamps = field(default_factory=dict)

    @property
    def own(self) -> str:
        """The name of the table that a file of one table has."""
        return shown(self.file.path.stem).lower()

    @property
    def name(self) -> str:
        """Of the file."""
        return shown(self.file.path.name)

    def where(self, name: str) -> str:
        """Which table of which file it is."""
        return self.name if name == self.own else f"{self.name}, table {name}"


def _no_spark(jar: Path, options: dict[str, str], most: int) -> None:
    del jar, options, most


class TableStore:
    """The tables of a directory, which is made where it is not there. May be called from any thread. ``read``: how
    databases are read."""

    def __init__(self, directory: Path, read: jdbc.Read = _no_spark) -> None:
        self.directory, self._read_database = directory, read
        # Whoever looks where tables belong finds the place. What stands in the way is said when it is listed.
        with suppress(OSError):
            directory.mkdir(parents=True, exist_ok=True)
        self._entries: dict[Path, _Entry] = {}
        self._looked, self._stood = -LOOK_S, 0
        self._version = 0
        self._lock = threading.Lock()

    def get(self, name: str) -> Table:
        """A table as it is now, ``name`` in lower case. Raises TableError when it is not there, with what is the matter."""
        with self._lock:
            self._look()
            found = self._by_name().get(name)
            if isinstance(found, Table):
                return found
            if found is not None:
                raise TableError(str(found))
            broken = [
                f"{entry.where(other)}: {trouble}"
                for entry in self._entries.values()
                for other, trouble in entry.troubles.items()
            ]
            also = f" ({'; '.join(broken)})" if broken else ""
            raise TableError(f"table {name} is not there: no file of {shown(self.directory)} has it{also}")

    def schemas(self) -> dict[str, TableSchema | Trouble]:
        """The tables by name in lower case, or why one cannot be used."""
        with self._lock:
            self._look()
            return {
                name: found.schema if isinstance(found, Table) else found
                for name, found in self._by_name().items()
            }

    def described(self) -> list[dict[str, Any]]:
        """For people: every table, and all that should be one and is none."""
        with self._lock:
            self._look()
            usable = self._by_name()
            found = [
                {
                    "name": table.name,
                    "file": entry.name,
                    "rows": table.rows,
                    "columns": table.described(),
                    "trouble": str(usable[table.name]) if isinstance(usable[table.name], Trouble) else None,
                }
                for entry in self._entries.values()
                for table in entry.tables
            ]
            found += [
                {"name": name, "file": entry.name, "rows": None, "columns": [], "trouble": trouble}
                for entry in self._entries.values()
                for name, trouble in entry.troubles.items()
            ]
            return found

    def _by_name(self) -> dict[str, Table | Trouble]:
        """What a name in a query stands for: one table, or what is the matter."""
        found: dict[str, Table | Trouble] = {
            name: Trouble(f"table {name} cannot be read", trouble)
            for entry in self._entries.values()
            for name, trouble in entry.troubles.items()
        }
        # A file that can be used stands for a name even where another of that name cannot.
        alike: dict[str, list[Table]] = {}
        for entry in self._entries.values():
            for table in entry.tables:
                alike.setdefault(table.name, []).append(table)
        for name, tables in alike.items():
            holders = " and ".join(sorted(shown(table.path.name) for table in tables))
            found[name] = (
                tables[0] if len(tables) == 1 else Trouble(f"table {name} is in {holders}", "rename one")
            )
        return found

    def _look(self) -> None:
        """See what has changed, at most once in a while; a file that has come is there at once, for who asks for it next."""
        stood = self._stands()
        if time.monotonic() - self._looked < LOOK_S and stood == self._stood:
            return
        # A file that comes within the same tick of the clock leaves the directory's time as it was.
        settled = time.time_ns() - stood > _TICK_NS
        self._looked, self._stood = time.monotonic(), stood if settled else -1
        there = {file.path: file for file in files_of(self.directory, (*files.SUFFIXES, jdbc.SUFFIX))}
        for path in [path for path in self._entries if path not in there]:
            self._forget(path)
        for path, file in there.items():
            known = self._entries.get(path)
            if (
                known is None
                or known.file != file
                or known.busy
                or known.dependencies != stamps(known.dependencies)
            ):
                self._forget(path)
                self._entries[path] = self._read(file)
            elif known.database is not None:
                self._renew(known, known.database)

    def _stands(self) -> int:
        """Since when the directory has the files that it has; 0: it is not there."""
        try:
            return self.directory.stat().st_mtime_ns
        except OSError:
            return 0

    def _forget(self, path: Path) -> None:
        entry = self._entries.pop(path, None)
        if entry is not None and entry.database is not None:
            entry.database.close()

    def close(self) -> None:
        """Look at databases no more."""
        with self._lock:
            for path in list(self._entries):
                self._forget(path)

    def _renew(self, entry: _Entry, database: jdbc.Database) -> None:
        """What a database has by now."""
        reading = database.latest()
        if entry.reading is not None and reading[1:] == entry.reading[1:]:
            return
        tables, trouble, _ = entry.reading = reading
        entry.tables, entry.troubles = [], {}
        if trouble is not None:
            entry.troubles[entry.own] = trouble
        else:
            self._take(entry, ((name, partial(Reading, table)) for name, table in tables.items()))

    def _read(self, file: File) -> _Entry:
        entry = _Entry(file, dependencies=stamps(_dependencies(file.path)))
        try:
            if file.trouble is not None:
                raise TableError(file.trouble)
            if file.path.suffix.lower() == jdbc.SUFFIX:
                connection = jdbc.connection_of(file.path)
                entry.database = jdbc.Database(connection, self._read_database, files.ROWS_MAXIMUM)
                entry.database.start()
                entry.troubles[entry.own] = "its database has not answered yet"
            else:
                self._take(entry, files.tables_of(file.path))
        except Exception as error:  # whatever it is, the other files are not to blame
            entry.troubles[entry.own] = _said(entry.name, error)
            entry.busy = sqlite.is_busy(error)
        return entry

    def _take(self, entry: _Entry, found: Iterable[files.Found]) -> None:
        """Tables in the language's columns, each for itself."""
        self._version += 1
        for written, read in found:
            name = written.lower()
            try:
                if name == "sensors":
                    raise TableError("sensors is the stream of motes' rows: give the table another name")
                reading = read()
                columns, troubles = columns_of(reading)
                for column, trouble in troubles.items():
                    log.warning("table %s: column %s: %s", entry.where(name), column, trouble)
                rows, path = reading.table.num_rows, entry.file.path
                entry.tables.append(Table(name, rows, columns, self._version, path, troubles, reading.notes))
            except Exception as error:  # nor are the other tables
                entry.troubles[name] = _said(entry.where(name), error)
                entry.busy |= sqlite.is_busy(error)


def _dependencies(path: Path) -> list[Path]:
    """What else a table depends on."""
    match path.suffix.lower():
        case ".csv":
            return [csv_files.type_file(path)]
        case jdbc.SUFFIX:
            return jdbc.named_files(path)
        case ".parquet" if path.is_dir():
            return [path]
        case _:
            return []


def _said(what: str, error: Exception) -> str:
    """What is the matter, in one line; told in the log too."""
    text = " ".join(str(error).split())
    if isinstance(error, _EXPECTED):
        log.warning("table %s: %s", what, text)
        return text
    text = f"{type(error).__name__}: {text}"
    log.warning("table %s: %s", what, text, exc_info=error)
    return text

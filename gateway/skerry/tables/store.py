"""The tables of one gateway: every CSV and Parquet file of a directory, every table of its SQLite files, and those of databases
that its files name (:mod:`skerry.tables.jdbc`).

A file is read when a query first needs it and again when it has changed; while it is not there, or cannot be read, those who
ask for it are told why.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from skerry.plan.tables import TableSchema
from skerry.tables import jdbc
from skerry.tables.columns import Column, TableError, column_of

log = logging.getLogger(__name__)

_SQLITE = (".sqlite", ".sqlite3", ".db")
_SUFFIXES = (".csv", ".parquet", *_SQLITE, jdbc.SUFFIX)
#: A table is held in memory.
ROWS_MAXIMUM = 5_000_000
#: How often a file is looked at, in s.
LOOK_S = 1.0
#: What tells that a file has changed: modified (ns), size, number.
Stamp = tuple[int, int, int]


@dataclass(frozen=True)
class Table:
    """One reading of a table. ``version`` differs between readings."""

    name: str
    rows: int
    columns: Mapping[str, Column]
    version: int
    path: Path

    @property
    def schema(self) -> TableSchema:
        """For the planner."""
        return TableSchema(self.name, tuple(column.described for column in self.columns.values()))


@dataclass
class _Entry:
    """A file as it was found last; ``tables`` or ``trouble``."""

    stamp: Stamp
    tables: dict[str, Table]
    trouble: str | None
    #: Where it is not the file that has the tables: what does, and what of it this is.
    database: jdbc.Database | None = None
    reading: jdbc.Reading | None = None


class TableStore:
    """The tables of a directory, which need not be there. May be called from any thread. ``spark``: its session, if there is one,
    for databases."""

    def __init__(self, directory: Path, spark: Callable[[], SparkSession | None] = lambda: None) -> None:
        self.directory, self._spark = directory, spark
        self._entries: dict[Path, _Entry] = {}
        self._looked = -LOOK_S
        self._version = 0
        self._lock = threading.Lock()

    def get(self, name: str) -> Table:
        """A table as it is now, ``name`` in lower case. Raises TableError when it is not there, with what is the matter."""
        with self._lock:
            self._look()
            found = [entry.tables[name] for entry in self._entries.values() if name in entry.tables]
            if len(found) > 1:
                raise TableError(
                    f"table {name} is in {' and '.join(table.path.name for table in found)}: rename one"
                )
            if found:
                return found[0]
            for path, entry in self._entries.items():
                if entry.trouble is not None and path.stem.lower() == name:
                    raise TableError(f"table {name} cannot be read: {entry.trouble}")
            broken = [
                f"{path.name}: {entry.trouble}" for path, entry in self._entries.items() if entry.trouble
            ]
            also = f" ({'; '.join(broken)})" if broken else ""
            raise TableError(f"table {name} is not there: no file of {self.directory} has it{also}")

    def schemas(self) -> dict[str, TableSchema]:
        """The tables that can be used, by name in lower case."""
        with self._lock:
            self._look()
            return {
                name: table.schema for entry in self._entries.values() for name, table in entry.tables.items()
            }

    def described(self) -> list[dict[str, Any]]:
        """For people: every table, and every file that is none."""
        with self._lock:
            self._look()
            found = [
                {
                    "name": table.name,
                    "file": path.name,
                    "rows": table.rows,
                    "columns": [column.described.name for column in table.columns.values()],
                    "trouble": None,
                }
                for path, entry in self._entries.items()
                for table in entry.tables.values()
            ]
            found += [
                {
                    "name": path.stem.lower(),
                    "file": path.name,
                    "rows": None,
                    "columns": [],
                    "trouble": entry.trouble,
                }
                for path, entry in self._entries.items()
                if entry.trouble is not None
            ]
            return found

    def _look(self) -> None:
        """See what has changed, at most once in a while."""
        if time.monotonic() - self._looked < LOOK_S:
            return
        self._looked = time.monotonic()
        there = dict(_files(self.directory))
        for path in [path for path in self._entries if path not in there]:
            self._forget(path)
        for path, stamp in there.items():
            known = self._entries.get(path)
            if known is None or known.stamp != stamp:
                self._forget(path)
                self._entries[path] = self._read(path, stamp)
            elif known.database is not None:
                self._renew(path, known, known.database)

    def _forget(self, path: Path) -> None:
        entry = self._entries.pop(path, None)
        if entry is not None and entry.database is not None:
            entry.database.close()

    def close(self) -> None:
        """Look at databases no more."""
        with self._lock:
            for path in list(self._entries):
                self._forget(path)

    def _renew(self, path: Path, entry: _Entry, database: jdbc.Database) -> None:
        """What a database has by now."""
        reading = database.latest()
        if entry.reading is not None and reading[1:] == entry.reading[1:]:
            return
        tables, trouble, _ = entry.reading = reading
        entry.tables, entry.trouble = {}, trouble
        if trouble is None:
            self._version += 1
            try:
                entry.tables = _named(tables.items(), self._version, path)
            except (TableError, pa.ArrowException) as error:
                entry.trouble = " ".join(str(error).split())

    def _read(self, path: Path, stamp: Stamp) -> _Entry:
        self._version += 1
        try:
            if path.suffix.lower() == jdbc.SUFFIX:
                database = jdbc.Database(jdbc.connection_of(path), self._spark, ROWS_MAXIMUM)
                database.start()
                return _Entry(stamp, {}, "its database has not answered yet", database)
            tables = _named(_tables(path), self._version, path)
        except (TableError, OSError, pa.ArrowException, sqlite3.Error) as error:
            text = " ".join(str(error).split())
            log.warning("table %s: %s", path, text)
            return _Entry(stamp, {}, text)
        return _Entry(stamp, tables, None)


def _named(found: Iterable[tuple[str, pa.Table]], version: int, path: Path) -> dict[str, Table]:
    """Tables in the language's columns, by name. Raises TableError, pyarrow's errors."""
    return {
        name.lower(): Table(name.lower(), table.num_rows, _columns(table), version, path)
        for name, table in found
    }


def _files(directory: Path) -> Iterator[tuple[Path, Stamp]]:
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    for entry in entries:
        if entry.name.lower().endswith(_SUFFIXES):
            try:
                found = entry.stat()
            except FileNotFoundError:
                continue
            yield Path(entry.path), (found.st_mtime_ns, found.st_size, found.st_ino)


def _tables(path: Path) -> list[tuple[str, pa.Table]]:
    match path.suffix.lower():
        case ".csv":
            # An empty field is NULL, "" a text.
            options = pa_csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False)
            found = [(path.stem, pa_csv.read_csv(path, convert_options=options))]
        case ".parquet":
            found = [(path.stem, pq.read_table(path))]
        case _:
            found = _of_sqlite(path)
    for name, table in found:
        if table.num_rows > ROWS_MAXIMUM:
            raise TableError(f"{name} has {table.num_rows} rows, and a table has {ROWS_MAXIMUM} at most")
    return found


def _of_sqlite(path: Path) -> list[tuple[str, pa.Table]]:
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        names = [
            row[0]
            for row in connection.execute(
                "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'"
            )
        ]
        found = []
        for name in names:
            quoted = name.replace('"', '""')
            cursor = connection.execute(f'SELECT * FROM "{quoted}" LIMIT {ROWS_MAXIMUM + 1}')
            rows = cursor.fetchall()
            columns = [place[0] for place in cursor.description]
            arrays = [pa.array([row[i] for row in rows]) for i in range(len(columns))]
            found.append((name, pa.table(arrays, names=columns)))
    connection.close()
    return found


def _columns(table: pa.Table) -> dict[str, Column]:
    found: dict[str, Column] = {}
    for name in table.column_names:
        if name.lower() in found:
            raise TableError(f"two columns are called {name.lower()}")
        found[name.lower()] = column_of(name.lower(), table.column(name))
    return found

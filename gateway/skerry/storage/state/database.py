"""The gateway's state in SQLite: one file with its write-ahead log, opened by the gateway alone, changed by whole transactions.

The database is held exclusively: SQLite keeps the index of its write-ahead log in memory then, not in a mapped file, so that the data
directory may lie on another machine's share, where such a file would not work. What other processes need is in files of its own
(:mod:`skerry.storage.state.published`).
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from skerry.storage.replacement import UNFINISHED, sync_directory
from skerry.storage.state.errors import DataError, StorageError
from skerry.storage.state.schema import MIGRATIONS

FILE = "state.sqlite"
#: A row by the names of its columns, and what tells it from others of its table.
Row = dict[str, Any]
Key = tuple[Any, ...]
#: Of a database, at least.
_HEADER_BYTES = 100
#: The write-ahead log is cut back to so many bytes once it has been brought into the file.
_WAL_BYTES = 4 << 20


class Changes:
    """What one transaction writes, in this order."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, str, Row | None, list[Row]]] = []

    def put(self, table: str, row: Row) -> None:
        """A row that is new or has changed."""
        self.steps.append(("put", table, None, [row]))

    def remove(self, table: str, of: Row) -> None:
        """All rows that have these values are gone."""
        self.steps.append(("replace", table, of, []))

    def replace(self, table: str, of: Row, rows: Iterable[Row]) -> None:
        """The rows that have these values are these from now on."""
        self.steps.append(("replace", table, of, list(rows)))

    def whole(self, table: str, rows: Iterable[Row]) -> None:
        """All rows of a table: those are written that are not there, or are otherwise."""
        self.steps.append(("whole", table, None, list(rows)))


class StateDatabase:
    """The database in a data directory, made if it is missing. Not locked: its owner calls it under his lock.

    Raises DataError where the file is damaged, or of a newer program. ``migrations``: SQL that brings the schema from each version to
    the next.
    """

    def __init__(self, directory: Path, migrations: Sequence[str] = MIGRATIONS) -> None:
        self.path, self._log = directory / FILE, directory / f"{FILE}-wal"
        self._migrations = migrations
        #: Whether nobody has said yet, since the file was opened, what is to be in it: tables are to be given whole.
        self.fresh = True
        #: Of tables that are always given whole, the rows that are there.
        self._known: dict[str, dict[Key, Row]] = {}
        self._connection: sqlite3.Connection | None = self._open()

    # ---- opening ----

    def _open(self) -> sqlite3.Connection:
        try:
            connection = sqlite3.connect(self.path, timeout=0, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise DataError(f"{self.path}: {error}") from None
        try:
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._check(connection)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
            self._migrate(connection)
            connection.execute("PRAGMA foreign_keys = ON")
            sync_directory(self.path.parent)
            self._keys = _keys(connection)
            self._files = {file: file.stat().st_ino for file in (self.path, self._log)}
        except (sqlite3.Error, OSError) as error:
            connection.close()
            if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
                raise self.damaged(str(error)) from None
            raise DataError(f"{self.path}: {error}") from None
        except DataError:
            connection.close()
            raise
        return connection

    def _check(self, connection: sqlite3.Connection) -> None:
        """Raises DataError where the file is not as it was written, or not for this program."""
        if 0 < self.path.stat().st_size < _HEADER_BYTES:
            # SQLite would take it for an empty one.
            raise self.damaged("it is cut off")
        version, known = _version(connection), len(self._migrations)
        if version > known:
            raise DataError(
                f"{self.path}: its schema is of version {version}, and this skerry knows those up to {known}: start the newer skerry that "
                "wrote it, or put back the copy that it made before it changed the schema"
            )
        wrong = [text for (text,) in connection.execute("PRAGMA integrity_check(3)") if text != "ok"]
        wrong += [
            f"a row of {table} belongs to one of {parent} that is not there"
            for table, _, parent, _ in connection.execute("PRAGMA foreign_key_check")
        ][:3]
        if wrong:
            raise self.damaged("; ".join(wrong))
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        if version == 0 and tables:
            raise self.damaged("it is not of a gateway")

    def _migrate(self, connection: sqlite3.Connection) -> None:
        version = _version(connection)
        if 0 < version < len(self._migrations):
            self._copy(connection, version)
        for number, script in enumerate(self._migrations[version:], start=version + 1):
            # Whole or not at all: the version is in the file's header, which is of the transaction.
            connection.executescript(f"BEGIN IMMEDIATE;\n{script};\nPRAGMA user_version = {number};\nCOMMIT;")

    def _copy(self, connection: sqlite3.Connection, version: int) -> None:
        """The file before its schema is changed, as ``state.sqlite.version-N``."""
        copy = self.path.with_name(f"{FILE}.version-{version}")
        unfinished = copy.with_name(copy.name + UNFINISHED)
        unfinished.unlink(missing_ok=True)
        with closing(sqlite3.connect(unfinished, isolation_level=None)) as target:
            connection.backup(target)
        with unfinished.open("rb") as file:
            os.fsync(file.fileno())
        unfinished.replace(copy)
        sync_directory(copy.parent)

    def damaged(self, why: str) -> DataError:
        """What to do with a file that is not as it was written."""
        # Rows of the log are understood by it: without it they would be taken for those of other queries.
        return DataError(
            f"{self.path}, with {FILE}-wal where that is there, is not as the gateway wrote it ({' '.join(why.split())}): put it back from "
            "a copy, or take another data directory"
        )

    # ---- reading and writing ----

    def load(self) -> dict[str, list[Row]] | None:
        """The rows of all tables, by their keys; None: nothing was saved yet. Raises DataError."""
        assert self._connection is not None
        try:
            found = {table: list(self._rows(self._connection, table).values()) for table in self._keys}
        except sqlite3.Error as error:
            raise self.damaged(str(error)) from None
        return found if found["gateway"] else None

    def save(self, changes: Changes) -> None:
        """Write changes, durably when this returns. StorageError: everything is as it was before."""
        known: dict[str, dict[Key, Row]] = {}
        try:
            connection = self._connection = self._connection or self._open()
            self._check_there()
            connection.execute("BEGIN IMMEDIATE")
            for kind, table, of, rows in changes.steps:
                if kind == "whole":
                    known[table] = self._write_whole(connection, table, rows)
                else:
                    if of is not None:
                        self._delete(connection, table, of)
                    self._write(connection, table, rows)
            connection.execute("COMMIT")
        except (sqlite3.Error, DataError, StorageError) as error:
            self._abandon(error)
            raise StorageError(_said(self.path, error)) from None
        if self.fresh:
            # Of tables that are given whole this once, what is there need not be known.
            self.fresh = False
        else:
            self._known.update(known)

    def _check_there(self) -> None:
        """Raises StorageError where a file is not the one that is open: SQLite would write on into what nobody finds again."""
        for file, known in self._files.items():
            try:
                there = file.stat().st_ino == known
            except OSError:
                there = False
            if not there:
                raise StorageError(
                    f"{file}: it was taken away while the gateway ran: everything is written anew"
                )

    def _abandon(self, error: Exception) -> None:
        """After an error: take back what was not committed; what may be the connection's fault, or the file's, is opened again."""
        connection = self._connection
        if connection is None:
            return
        full = isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode == sqlite3.SQLITE_FULL
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            full = False
        if not full:
            self._connection, self.fresh = None, True
            self._known.clear()
            with suppress(sqlite3.Error):
                connection.close()

    def size(self) -> int:
        """Bytes of the file and its write-ahead log."""
        found = 0
        for file in (self.path, self._log):
            with suppress(OSError):
                found += file.stat().st_size
        return found

    def close(self) -> None:
        """Bring everything into the one file."""
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    # ---- rows ----

    def _rows(self, connection: sqlite3.Connection, table: str) -> dict[Key, Row]:
        key = self._keys[table]
        order = "age" if table == "mote_queries" else ", ".join(f'"{name}"' for name in key)
        rows = map(dict, connection.execute(f'SELECT * FROM "{table}" ORDER BY {order}'))
        return {tuple(row[name] for name in key): row for row in rows}

    def _write_whole(self, connection: sqlite3.Connection, table: str, rows: Iterable[Row]) -> dict[Key, Row]:
        there = self._known.get(table)
        if there is None:
            there = self._rows(connection, table)
        key = self._keys[table]
        wanted = {tuple(row[name] for name in key): row for row in rows}
        for gone in there.keys() - wanted.keys():
            self._delete(connection, table, dict(zip(key, gone, strict=True)))
        self._write(connection, table, [row for at, row in wanted.items() if not _same(there.get(at), row)])
        return wanted

    def _write(self, connection: sqlite3.Connection, table: str, rows: Sequence[Row]) -> None:
        if not rows:
            return
        key, names = self._keys[table], list(rows[0])
        others = ", ".join(f'"{name}" = excluded."{name}"' for name in names if name not in key)
        connection.executemany(
            f'INSERT INTO "{table}" ({", ".join(map(_quoted, names))}) VALUES ({", ".join("?" * len(names))}) '
            f"ON CONFLICT ({', '.join(map(_quoted, key))}) DO {f'UPDATE SET {others}' if others else 'NOTHING'}",
            [tuple(row.values()) for row in rows],
        )

    def _delete(self, connection: sqlite3.Connection, table: str, of: Row) -> None:
        where = " AND ".join(f"{_quoted(name)} = ?" for name in of)
        connection.execute(f'DELETE FROM "{table}" WHERE {where}', tuple(of.values()))


def _same(there: Mapping[str, Any] | None, row: Row) -> bool:
    return there is row or (there is not None and all(there[name] == value for name, value in row.items()))


def _quoted(name: str) -> str:
    return f'"{name}"'


def _keys(connection: sqlite3.Connection) -> dict[str, list[str]]:
    """By table, the columns that tell its rows apart: the primary key, or where that is the order of coming, those that are UNIQUE."""
    found: dict[str, list[str]] = {}
    for table, column in connection.execute(
        "SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table' AND c.pk ORDER BY t.name, c.pk"
    ):
        found.setdefault(table, []).append(column)
    return {**found, "mote_queries": ["link", "query"]}


def _version(connection: sqlite3.Connection) -> int:
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return found


def _said(path: Path, error: Exception) -> str:
    if isinstance(error, sqlite3.Error):
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
            return f"{path}: {os.strerror(errno.ENOSPC)}"
        return f"{path}: {error}"
    return str(error)

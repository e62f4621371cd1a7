"""Tables of databases that have a JDBC driver, read through Spark again and again.

A file ``site.jdbc`` in the directory of tables says how (TOML):

    url = "jdbc:postgresql://db.example.org/site"
    user = "skerry"
    password_file = "site.password"         # or password = "…", in a file that only its owner can read
    driver = "org.postgresql.Driver"
    jar = "/usr/share/java/postgresql.jar"
    tables = ["places", "public.incidents"]
    every = 10                              # s between looks
    changed = "SELECT max(changed) AS at FROM places"   # optional: read again only when this says something new

The password is in no message. What is read is a table in memory, as those of files are.
"""

from __future__ import annotations

import logging
import threading
import time
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from skerry.tables.columns import TableError

log = logging.getLogger(__name__)

SUFFIX = ".jdbc"
#: Time between looks, in s: least, that of a file that does not say, longest.
EVERY_S = (1, 10, 86_400)
#: A database that takes longer than this to answer, in s, is not there.
SILENT_S = 60
#: Rows that come at a time.
_FETCHED = 10_000
_SECRET = "password"
_KEYS = ("url", "user", _SECRET, "password_file", "driver", "jar", "tables", "every", "changed")


@dataclass(frozen=True)
class Connection:
    """What a file says."""

    url: str
    user: str
    password: str = field(repr=False)
    driver: str
    jar: Path
    tables: tuple[str, ...]
    every_s: float
    changed: str | None

    def redacted(self, text: str) -> str:
        """A message without the password."""
        return text.replace(self.password, "…") if self.password else text


def connection_of(path: Path) -> Connection:
    """What a file says. Raises TableError, OSError."""
    try:
        said = tomllib.loads(path.read_text("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        # The line is not shown: it might be the password's.
        raise TableError(f"it is no TOML: {str(error).splitlines()[0].partition(chr(39))[0]}") from None
    unknown = [key for key in said if key not in _KEYS]
    if unknown:
        raise TableError(f"unknown entry {unknown[0]}: there are {', '.join(_KEYS)}")
    url = _text(said, "url", 'as in url = "jdbc:postgresql://host/database"')
    if not url.startswith("jdbc:"):
        raise TableError("url does not begin with jdbc:")
    if _SECRET in url.lower():
        raise TableError("the url holds a password, and urls are shown: write password_file = …")
    tables = said.get("tables")
    if not isinstance(tables, list) or not tables or not all(isinstance(name, str) for name in tables):
        raise TableError('name what is to be read, as in tables = ["places"]')
    by_name: dict[str, str] = {}
    for written in tables:
        other = by_name.setdefault(_called(written), written)
        if other is not written:
            raise TableError(
                f"tables has {other} and {written}, which queries would both call {_called(written)}: "
                "leave one out, or give it a view of another name"
            )
    every = said.get("every", EVERY_S[1])
    if not isinstance(every, int | float) or not EVERY_S[0] <= every <= EVERY_S[2]:
        raise TableError(f"every is {every!r}: write {EVERY_S[0]} to {EVERY_S[2]} s")
    jar = path.parent / _text(said, "jar", "the file of the driver, as in /usr/share/java/postgresql.jar")
    if not jar.is_file():
        raise TableError(f"there is no driver {jar}")
    driver = _text(said, "driver", "the driver's class, as in org.postgresql.Driver")
    changed = said.get("changed")
    if changed is not None and not isinstance(changed, str):
        raise TableError("changed is a SELECT that says something new when the tables have changed")
    password = _password(path, said)
    return Connection(
        url, str(said.get("user", "")), password, driver, jar, tuple(tables), float(every), changed
    )


def named_files(path: Path) -> list[Path]:
    """The files that such a file names, whether they are there or not."""
    try:
        said = tomllib.loads(path.read_text("utf-8-sig"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        return []
    names = [said.get("jar"), said.get("password_file")]
    return [path.parent / name for name in names if isinstance(name, str)]


def _called(table: str) -> str:
    """What queries call a table of the database."""
    return table.rpartition(".")[2].strip('"`').lower()


def _text(said: Mapping[str, Any], key: str, what: str) -> str:
    value = said.get(key)
    if not isinstance(value, str) or not value:
        raise TableError(f"{key} is missing: {what}")
    return value


def _password(path: Path, said: Mapping[str, Any]) -> str:
    """Of a file that nobody else can read."""
    if _SECRET in said and "password_file" in said:
        raise TableError("write password or password_file")
    holder = path
    if "password_file" in said:
        holder = path.parent / _text(said, "password_file", "the name of a file")
    elif _SECRET not in said:
        return ""
    if holder.stat().st_mode & 0o077:
        raise TableError(f"others can read the password: chmod 600 {holder.name}")
    if holder is path:
        return _text(said, _SECRET, "a text")
    try:
        return holder.read_text("utf-8").rstrip("\n")
    except UnicodeDecodeError:
        # Its own message would show a part of the password.
        raise TableError(f"the password in {holder.name} is not UTF-8: write it in UTF-8") from None


#: What was read last: tables by name, or what is the matter; and how many readings there were, negative where the last is too
#: long ago.
Reading = tuple[Mapping[str, pa.Table], str | None, int]
#: Reads a table, by its driver's file and Spark's options, of so many rows at most and one more; None: Spark is not there yet. Raises
#: DatabaseError.
Read = Callable[[Path, dict[str, str], int], pa.Table | None]


class DatabaseError(Exception):
    """What a database, its driver or Spark says, in a line."""


class Database:
    """One file's tables, read in the background from the first to the last look."""

    def __init__(
        self,
        connection: Connection,
        read: Read,
        most: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``most``: rows of a table."""
        self._connection, self._ask, self._most, self._clock = connection, read, most, clock
        self._reading: Reading = {}, "it has not answered yet", 0
        self._answered = clock()
        self._mark: object = None
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="jdbc", daemon=True)

    def start(self) -> None:
        """Read from now on."""
        self._thread.start()

    def close(self) -> None:
        """Read no more."""
        self._ending.set()

    def latest(self) -> Reading:
        """What was read last."""
        silent = self._clock() - self._answered - self._connection.every_s
        tables, trouble, number = self._reading
        if silent > SILENT_S and trouble is None:
            return {}, f"the database has not answered for {silent:.0f} s", -number
        return tables, trouble, number

    def _run(self) -> None:
        while not self._ending.is_set():
            self.look()
            waits = self._reading[1] is not None
            self._ending.wait(
                min(self._connection.every_s, EVERY_S[1]) if waits else self._connection.every_s
            )

    def look(self) -> None:
        """Read what has changed, once there is a session."""
        known, trouble, number = self._reading
        try:
            found = self._read(None if trouble is not None else known)
            if found is None:
                return
        except Exception as error:  # whatever it is, it is tried again
            text = self._connection.redacted(" ".join(_reason(error).split()))
            if text != trouble:
                log.warning("%s: %s", self._connection.url, text)
                self._reading = {}, text, number + 1
            self._mark = None
        else:
            if found is not known:
                self._reading = found, None, number + 1
        self._answered = self._clock()

    def _read(self, known: Mapping[str, pa.Table] | None) -> Mapping[str, pa.Table] | None:
        """The tables; ``known`` itself where nothing has changed; None: Spark is not there yet."""
        mark = None
        if self._connection.changed is not None:
            table = self._table(f"({self._connection.changed}) changed")
            if table is None:
                return None
            mark = table.to_pylist()
            if known is not None and mark == self._mark:
                return known
        found = {}
        for name in self._connection.tables:
            table = self._table(name)
            if table is None:
                return None
            if table.num_rows > self._most:
                raise TableError(f"{name} has more than {self._most} rows")
            found[_called(name)] = table
        self._mark = mark
        same = known is not None and all(
            name in known and known[name].equals(table) for name, table in found.items()
        )
        return known if same and known is not None else found

    def _table(self, what: str) -> pa.Table | None:
        connection = self._connection
        options = {
            "url": connection.url, "dbtable": what, "user": connection.user, "password": connection.password,
            "driver": connection.driver, "fetchsize": str(_FETCHED), "queryTimeout": str(SILENT_S), "preferTimestampNTZ": "true",
        }  # fmt: skip
        return self._ask(connection.jar, options, self._most)


def _reason(error: Exception) -> str:
    """What the database or its driver says, where one of them does."""
    said = next(iter(str(error).splitlines()), "")
    # Of what no database or table is to blame for, its kind tells more.
    expected = isinstance(error, TableError | DatabaseError | OSError | pa.ArrowException)
    return said if expected and said else f"{type(error).__name__}: {said}"

"""The tables and views of a SQLite file. Its columns hold values of any type: one that mixes them is no column of a table here.

SQLite has no type for times (https://www.sqlite.org/datatype3.html, section 2.2): texts that are all times in ISO 8601 are some, and
so are whole numbers in a column that is declared as one of dates or times, which are seconds since 1970.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from skerry.tables.columns import Reading, TableError
from skerry.tables.times import times_of

SUFFIXES = (".sqlite", ".sqlite3", ".db")
#: Who writes to it may keep others out for so long, in s: all queries wait for the look at it. It is looked at again.
_BUSY_S = 0.3
#: Characters of a value that are shown.
_SHOWN = 40
#: Types that are declared of columns of times.
_TIME = re.compile(r"date|timestamp", re.IGNORECASE)


def tables_of(path: Path, most: int) -> Iterator[tuple[str, Callable[[], Reading]]]:
    """The tables by name, each to be read before the next is asked for; so many rows at most. Raises sqlite3.Error."""
    # As a URI has it: in a plain path, # and ? would end the name of the file, and SQLite make another.
    uri = f"{path.absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, timeout=_BUSY_S, uri=True)) as connection:
        connection.text_factory = _text
        names = connection.execute(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'"
        ).fetchall()
        for (name,) in names:
            yield name, partial(_table, connection, name, most)


def is_busy(error: Exception) -> bool:
    """Whether a file could not be read because somebody writes to it: nothing of it tells when he is done."""
    # What Python itself says, as of text that is not UTF-8, has no code.
    code = getattr(error, "sqlite_errorcode", None)
    return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class _NotUtf8(bytes):
    """A text that is in some other encoding."""


def _text(value: bytes) -> str | _NotUtf8:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return _NotUtf8(value)


def _table(connection: sqlite3.Connection, name: str, most: int) -> Reading:
    quoted = name.replace('"', '""')
    cursor = connection.execute(f'SELECT * FROM "{quoted}" LIMIT {most}')
    columns = [place[0] for place in cursor.description]
    declared = connection.execute(f'PRAGMA table_xinfo("{quoted}")').fetchall()
    of_times = {column for _, column, kind, *_ in declared if _TIME.match(str(kind))}
    rows = cursor.fetchall()
    arrays: list[pa.Array] = []
    troubles: dict[str, str] = {}
    for i, column in enumerate(columns):
        try:
            arrays.append(_with_times(_array([row[i] for row in rows]), column in of_times))
        except TableError as error:
            troubles[column.lower()] = str(error)
            arrays.append(pa.nulls(len(rows)))
    return Reading(pa.table(arrays, names=columns), troubles)


def _with_times(array: pa.Array, declared: bool) -> pa.Array:
    """A column, as one of times where it is one; ``declared``: whether its type says so."""
    if pa.types.is_string(array.type) and array.null_count < len(array):
        times = times_of(array)
        return array if times is None else times
    if declared and pa.types.is_integer(array.type):
        return array.cast(pa.timestamp("s"))
    return array


def _array(values: Sequence[Any]) -> pa.Array:
    for value in values:
        if isinstance(value, _NotUtf8):
            raise TableError(f"it has a text that is not UTF-8, {bytes(value)[:_SHOWN]!r}: store it as UTF-8")
    try:
        return pa.array(values)
    except pa.ArrowException as error:
        first: dict[type, Any] = {}
        for value in values:
            if value is not None:
                first.setdefault(type(value), value)
        if len(first) < 2:
            raise TableError(str(error)) from None
        examples = " and ".join(repr(value)[:_SHOWN] for value in first.values())
        raise TableError(
            f"it has values of several types, as {examples}: store numbers or texts in it"
        ) from None

"""One SELECT over tables that are made for it: SQLite in memory, read only, within bounds."""

from __future__ import annotations

import math
import re
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from skerry.sql.errors import QueryError, did_you_mean

#: Longest time for a SELECT, in s, longest text, in bytes, and most rows of its answer.
SECONDS = 2.0
LENGTH_MAXIMUM = 10_000_000
ROWS_MAXIMUM = 100_000
#: Comments before it are none of it. What has been taken for one is not tried otherwise: there may be thousands.
_QUESTION = re.compile(r"(?:\s|--[^\n]*+|(?>/\*.*?\*/))*+(?:select|with|values)\b", re.IGNORECASE | re.DOTALL)
#: A width or precision that SQLite would count through, beyond any length it allows: from an argument, or of five digits.
_ENDLESS = re.compile(r"%[-+ #0,!]*(?:\*|\d{5}|\d*\.(?:\*|\d{5}))")
_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its columns and rows of plain values."""

    columns: Sequence[str]
    rows: Iterable[Sequence[Any]]


def select(sql: str, tables: Mapping[str, Table]) -> tuple[list[str], list[list[Any]]]:
    """Columns and rows of the answer. Raises QueryError."""
    if not _QUESTION.match(sql):
        raise QueryError("the catalog is read by SELECT", f"its tables are {', '.join(tables)}", text=sql)
    # The other one has SQLite's own functions still.
    database, plain = sqlite3.connect(":memory:"), sqlite3.connect(":memory:")
    plain.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LENGTH_MAXIMUM)
    try:
        for name, table in tables.items():
            columns = ", ".join(f'"{column}"' for column in table.columns)
            database.execute(f'CREATE TABLE "{name}" ({columns})')
            places = ", ".join("?" * len(table.columns))
            database.executemany(f'INSERT INTO "{name}" VALUES ({places})', table.rows)
        return _run(database, plain, sql)
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise _explained(error, sql, tables) from None
    finally:
        database.close()
        plain.close()


def _run(
    database: sqlite3.Connection, plain: sqlite3.Connection, sql: str
) -> tuple[list[str], list[list[Any]]]:
    deadline = time.monotonic() + SECONDS
    database.create_function("distance", 4, _distance, deterministic=True)
    for name in ("printf", "format"):
        database.create_function(name, -1, partial(_formatted, plain), deterministic=True)
    database.set_authorizer(
        lambda action, *_: sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY
    )
    database.set_progress_handler(lambda: time.monotonic() > deadline, 10_000)
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LENGTH_MAXIMUM)
    cursor = database.execute(sql)
    rows = [list(row) for row in cursor.fetchmany(ROWS_MAXIMUM + 1)]
    if len(rows) > ROWS_MAXIMUM:
        raise QueryError(
            f"the answer has more than {ROWS_MAXIMUM} rows", "add a condition or LIMIT", text=sql
        )
    for row in rows:
        for i, value in enumerate(row):
            if isinstance(value, bytes):
                row[i] = value.hex()
    return [column[0] for column in cursor.description], rows


def _distance(x1: float | None, y1: float | None, x2: float | None, y2: float | None) -> float | None:
    """Between two places, in m."""
    if x1 is None or y1 is None or x2 is None or y2 is None:
        return None
    return math.dist((x1, y1), (x2, y2))


def _formatted(plain: sqlite3.Connection, text: Any = None, *values: Any) -> str | None:
    """SQLite's ``printf``, without what takes it seconds that nothing can interrupt. Raises ValueError."""
    if isinstance(text, str) and _ENDLESS.search(text):
        raise ValueError(text)
    [[made]] = plain.execute(f"SELECT printf({', '.join('?' * (1 + len(values)))})", (text, *values))
    return None if made is None else str(made)


def _explained(error: Exception, sql: str, tables: Mapping[str, Table]) -> QueryError:
    text = str(error)
    if text == "interrupted":
        return QueryError(f"the catalog query takes longer than {SECONDS:g} s", "ask for less", text=sql)
    if text.startswith("not authorized"):
        return QueryError("the catalog is only read", "set tags by 'skerry tag'", text=sql)
    if text == "user-defined function raised exception":
        hint = "distance takes four numbers, printf and format widths and precisions below 10000 and no '*'"
        return QueryError("catalog: a function cannot take its arguments", hint, text=sql)
    missing = re.fullmatch(r"no such (table|column): (\S+)", text)
    if missing is None:
        return QueryError(f"catalog: {text}", f"tables are {', '.join(tables)}", text=sql)
    kind, name = missing[1], missing[2]
    used = [table for table in tables if re.search(rf"\b{table}\b", sql, re.IGNORECASE)]
    columns = {column for table in used for column in tables[table].columns}
    known = list(tables) if kind == "table" else sorted(columns)
    hint = did_you_mean(name.rpartition(".")[2], known)
    return QueryError(f"unknown {kind} '{name}'", f"{hint}{kind}s are {', '.join(known)}", text=sql)

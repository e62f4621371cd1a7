"""Drawn joins as users ask them: their SQL, and what the log of a real gateway has for DuckDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from gateway.tests.joins.drawn import Case, Row, expected, sql_of
from skerry.joins.join import Join
from skerry.storage.log import stream_log
from skerry.storage.log.source_batches import SourceFiles

CREATE = (
    "CREATE SENSORS drawn (id INT, reading STREAM "
    "(n INT, item INT, name TEXT, level DOUBLE, at TIMESTAMP FORMAT 'unix us' TIME))"
)
#: As of :data:`skerry.execution.join_sets.PLACES`.
PLACES = 20


def sql(join: Join) -> str:
    """A join of streams s0, s1, …, which are the tuples with id 0, 1, …: its answer's time, each row's own number, what was drawn."""
    selected = [f"{one}.n AS {one}_n" for one in join.aliases]
    selected += [f"{column.alias}.{column.name} AS {column.alias}_{column.name}" for column in join.select]
    windows = []
    for pair, window in join.windows.items():
        between = f"WINDOW({', '.join(sorted(pair))})"
        windows += [f"{between} = {window.us / 1000:f} ms"] if window.us is not None else []
        windows += [f"{between} = {window.rows} ROWS"] if window.rows is not None else []
    where = [f"{alias}.id = {stream[1:]}" for alias, stream in join.streams.items()]
    where += [sql_of(join.where)] if join.where is not None else []
    return (
        f"SELECT time, {', '.join(selected)} FROM {', '.join(f'drawn AS {one}' for one in join.aliases)} "
        f"WHERE {' AND '.join([*where, *windows])} LATENESS {join.lateness_us / 1000:f} ms"
    )


def logged(data: Path, since: int) -> tuple[dict[str, list[Row]], dict[int, int]]:
    """By stream the log's rows from a row on, and the own number of each row."""
    log = data / stream_log.DIRECTORY
    first, records = stream_log.read_there(log, since, stream_log.length(log))
    numbers = np.arange(first, first + len(records), dtype=np.int64)
    found: dict[str, list[Row]] = {}
    own: dict[int, int] = {}
    for number, _, table in SourceFiles(log).tables(numbers, records):
        if "reading.n" not in table.column_names:
            continue
        for place, row in enumerate(table.to_pylist()):
            at = round(row["_time"].timestamp() * 1e6)
            key = (number << PLACES) + place
            own[key] = row["reading.n"]
            values = row["reading.item"], row["reading.name"], row["reading.level"]
            found.setdefault(f"s{row['id']}", []).append((key, at, at, row["_source"], *values))
    return found, own


def answers(
    join: Join,
    streams: Mapping[str, list[Row]],
    own: Mapping[int, int],
    connection: duckdb.DuckDBPyConnection,
    since: int = 0,
) -> Counter[tuple[object, ...]]:
    """What DuckDB answers; of windows of rows, as far as progress has come. ``since``: records before it count for progress alone."""
    case = Case(join, {**{name: [] for name in join.streams.values()}, **streams})
    latest = max((row[1] for name in {*join.streams.values()} for row in case.streams[name]), default=0)
    count = len(join.aliases)
    found = [
        (row[0], *(own[int(number)] for number in row[1 : 1 + count]), *row[1 + count :])  # type: ignore[call-overload]
        for row in expected(case, connection)
        if min(row[1 : 1 + count]) >= since << PLACES  # type: ignore[type-var,operator]
        if not join.graph.has_rows or int(row[0]) <= latest - join.lateness_us  # type: ignore[call-overload]
    ]
    return Counter(found)


def given(row: Mapping[str, Any]) -> tuple[object, ...]:
    """A row of a feed as DuckDB has it."""
    time, *rest = row.values()
    return round(time.timestamp() * 1e6), *rest

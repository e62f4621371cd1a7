"""Drawn joins as users ask them: their SQL, and what the log of a real gateway has for DuckDB."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from gateway.tests.joins.drawn import (
    SITES,
    STATICS,
    Case,
    Row,
    decided,
    expected,
    prepare,
    sql_of,
    with_places,
)
from skerry.joins.conditions import Column, Condition, aliases_of, columns_of, conjuncts
from skerry.joins.join import Join
from skerry.joins.progress import AT_END
from skerry.joins.windows import Window
from skerry.storage.log import stream_log
from skerry.storage.log.source_batches import SourceFiles

CREATE = (
    "CREATE SENSORS drawn (id INT, kind INT, zone INT, xpos DOUBLE 'm', ypos DOUBLE 'm', reading STREAM "
    "(n INT, item INT, name TEXT, level DOUBLE, at TIMESTAMP FORMAT 'unix us' TIME))"
)
#: As of :data:`skerry.execution.join_sets.PLACES`.
PLACES = 20
#: The seconds between two times as DuckDB reads them of µs.
_BETWEEN = re.compile(r"\(\((\w\.time) - (\w\.time)\) / 1000000\)")


@dataclass(frozen=True)
class Aggregated:
    """Windows over the answers of a join whose selected columns are an item, a name and a level; ``length_s`` 0: since the start."""

    item: str
    name: str
    level: str
    grouped: bool
    length_s: int
    slide_s: int

    @classmethod
    def draw(cls, chance: random.Random, join: Join) -> tuple[Join, Aggregated]:
        """And the join that it is of."""
        item, name, level = (chance.choice(join.aliases) for _ in range(3))
        # All rows of two batches are within three hours, fewer than a thousand of the landmark's windows: the past may bring all at once.
        windows = chance.choice([(3, 3), (10, 5), (20, 4), (0, 16)])
        select = Column(item, "item"), Column(name, "name"), Column(level, "level")
        return replace(join, select=select), cls(item, name, level, chance.random() < 0.7, *windows)

    def columns(self, apart: str) -> str:
        """Behind SELECT, in skerry's words."""
        length = f"{self.length_s} s" if self.length_s else "start"
        named = {"c": "COUNT(*", "s": f"SUM({self.level}.level", "v": f"AVG({self.level}.level", "m": f"MIN({self.name}.name",
                 "d": f"COUNT(DISTINCT {self.name}.name", "t": f"MAX({self.item}.n", "p": f"MIN({apart}"}  # fmt: skip
        made = [f"{begun}, {length}, {self.slide_s} s) AS {name}" for name, begun in named.items()]
        return ", ".join([*([f"{self.item}.item AS g"] if self.grouped else []), *made])

    @property
    def groups(self) -> str:
        """GROUP BY, if there is any."""
        return f"GROUP BY {self.item}.item" if self.grouped else ""

    def expected(
        self, join: Join, found: Counter[tuple[object, ...]], connection: duckdb.DuckDBPyConnection
    ) -> Counter[tuple[object, ...]]:
        """What DuckDB makes of the answers: by time, own numbers and selected columns."""
        names = ["time", *(f"{alias}_n" for alias in join.aliases), "item", "name", "level", "apart"]
        kinds = [pa.int64()] * (len(names) - 3) + [pa.string(), pa.float64(), pa.float64()]
        rows = [dict(zip(names, row, strict=True)) for row in found.elements()]
        connection.register("found", pa.Table.from_pylist(rows, pa.schema(zip(names, kinds, strict=True))))
        length, slide = self.length_s * 1_000_000, self.slide_s * 1_000_000
        first = f"(SELECT min(time) // {slide} * {slide} FROM found)"
        last = f"(SELECT max(time) + {max(length, slide)} FROM found)"
        within = f"time < ends AND time >= ends - {length}" if length else "time < ends"
        group = ", item" if self.grouped else ""
        asked = (
            f"SELECT ends{group}, count(*), sum(level), avg(level), min(name), count(DISTINCT name), max({self.item}_n), min(apart) "
            f"FROM (SELECT unnest(range({first}, {last} + 1, {slide})) AS ends) JOIN found ON {within} GROUP BY ends{group}"
        )
        return Counter(connection.execute(asked).fetchall() if rows else [])


def insert(addresses: Sequence[str]) -> str:
    """Its tuples, as INSERT has them: two of each kind, at these addresses."""
    said = [
        ", ".join("NULL" if value is None else str(value) for value in (place, place // 2, *SITES[place]))
        for place in range(len(addresses))
    ]
    values = ", ".join(f"({one}, '{address}')" for one, address in zip(said, addresses, strict=True))
    return f"INSERT INTO drawn VALUES {values}"


def sql(join: Join, aggregated: Aggregated | None = None) -> str:
    """A join of streams s0, s1, …, which are the tuples of kind 0, 1, …: its answer's time, each row's own number, what was drawn, how far
    its first and its last row are apart; or aggregates of these."""
    apart = f"{join.aliases[0]}.time - {join.aliases[-1]}.time"
    if aggregated is not None:
        return f"SELECT time, {aggregated.columns(apart)} {_from(join)} {aggregated.groups}"
    selected = [f"{one}.n AS {one}_n" for one in join.aliases]
    selected += [f"{column.alias}.{column.name} AS {column.alias}_{column.name}" for column in join.select]
    return f"SELECT time, {', '.join(selected)}, {apart} AS apart {_from(join)}"


def _said(condition: Condition) -> str:
    """As users say it."""
    return _BETWEEN.sub(r"(\1 - \2)", sql_of(condition))


def _from(join: Join) -> str:
    """FROM and what stands behind it."""
    # Each part, with the aliases of which the last one is where it is asked.
    parts = [((alias,), f"{alias}.kind = {stream[1:]}") for alias, stream in join.streams.items()]
    parts += [(tuple(aliases_of(one)), _said(one)) for one in conjuncts(join.where)]
    for step, alias in zip(join.steps, join.aliases[1:], strict=False):
        parts += [((alias,), _said(one)) for one in conjuncts(step.on)]
    windows = [(tuple(pair), one) for pair, window in join.windows.items() for one in _windows(pair, window)]
    lateness = f"LATENESS {join.lateness_us / 1000:f} ms"
    if len(join.select) % 2 or join.is_outer:
        # JOIN … ON, each part as soon as its aliases are there.
        first, *others = join.aliases
        joins = []
        for place, alias in enumerate(others):
            on = " AND ".join(_of_last(parts, alias, join.aliases))
            within = " AND ".join(_of_last(windows, alias, join.aliases))
            kind = join.steps[place].kind.upper().replace("INNER", "") if join.is_outer else ""
            joins.append(f"{kind} JOIN drawn AS {alias} ON {on} {within}")
        where = " AND ".join(_of_last(parts, first, join.aliases))
        return f"FROM drawn AS {first} {' '.join(joins)} WHERE {where} {lateness}"
    where = " AND ".join(one for _, one in [*parts, *windows])
    of = ", ".join(f"drawn AS {one}" for one in join.aliases)
    return f"FROM {of} WHERE {where} {lateness}"


def _windows(pair: frozenset[str], window: Window) -> list[str]:
    between = f"WINDOW({', '.join(sorted(pair))})"
    found = [f"{between} = {window.us / 1000:f} ms"] if window.us is not None else []
    return found + ([f"{between} = {window.rows} ROWS"] if window.rows is not None else [])


def _of_last(parts: list[tuple[tuple[str, ...], str]], alias: str, aliases: tuple[str, ...]) -> list[str]:
    """The parts of which this alias is the last one."""
    return [one for of, one in parts if max(of, key=aliases.index, default=aliases[0]) == alias]


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
            site = row["zone"], row["xpos"], row["ypos"]
            found.setdefault(f"s{row['kind']}", []).append((key, at, at, row["_source"], *values, *site))
    return found, own


def answers(
    join: Join,
    streams: Mapping[str, list[Row]],
    own: Mapping[int, int],
    connection: duckdb.DuckDBPyConnection,
    since: int = 0,
    *,
    ended: bool = False,
) -> Counter[tuple[object, ...]]:
    """What DuckDB answers; of windows of rows, as far as progress has come, unless all sources have ``ended``. ``since``: records before it
    count for progress alone."""
    case = _of_sources(join, streams, connection)
    join = case.join
    times = {row[0]: row[1] for rows in case.streams.values() for row in rows}
    latest = max(times.values(), default=0)
    count = len(join.aliases)
    right = expected(case, connection)
    if join.is_outer and not ended:
        # A join like that shares with no other what it keeps, and its rows begin with itself.
        right = [row for row in right if decided(case, row[1 : 1 + count]) != AT_END]  # type: ignore[arg-type]
    found = [
        (
            row[0],
            *(None if number is None else own[int(number)] for number in row[1 : 1 + count]),
            *row[1 + count :],
            _apart(times, row[1], row[count]),
        )  # type: ignore[call-overload]
        for row in right
        if min(number for number in row[1 : 1 + count] if number is not None) >= since << PLACES  # type: ignore[type-var,operator]
        if ended or not join.graph.has_rows or int(row[0]) <= latest - join.lateness_us  # type: ignore[call-overload]
    ]
    return Counter(found)


def _apart(times: Mapping[int, int], first: object, last: object) -> float | None:
    """Seconds between two rows by their numbers; None: one is missing."""
    there = [times[number] for number in (first, last) if isinstance(number, int)]
    return (there[0] - there[1]) / 1_000_000 if len(there) > 1 else None


def _of_sources(join: Join, streams: Mapping[str, list[Row]], connection: duckdb.DuckDBPyConnection) -> Case:
    """The join with a stream for each alias: the rows of the sources that its conditions on static columns alone select."""
    prepare(connection)
    found = {}
    for alias, stream in join.streams.items():
        asked = [
            sql_of(one)
            for one in join.own_conditions(alias)
            if {column.name for column in columns_of(one)} <= {*STATICS}
        ]
        connection.register(f"rows_{alias}", with_places(streams.get(stream, [])))
        passing = connection.execute(
            f"SELECT number FROM rows_{alias} AS {alias} WHERE {' AND '.join(['TRUE', *asked])}"
        ).fetchall()
        numbers = {number for (number,) in passing}
        found[f"{stream}.{alias}"] = [row for row in streams.get(stream, []) if row[0] in numbers]
    return Case(
        replace(join, streams={alias: f"{stream}.{alias}" for alias, stream in join.streams.items()}), found
    )


def given(row: Mapping[str, Any]) -> tuple[object, ...]:
    """A row of a feed as DuckDB has it."""
    time, *rest = row.values()
    return round(time.timestamp() * 1e6), *rest

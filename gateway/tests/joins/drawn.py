"""Drawn joins: streams with silences, late rows and rows ahead of their clock, windows and conditions, and what DuckDB answers.

The oracle is the plain SQL join of what the semantics leave: which rows are late is reckoned row by row, windows of rows are ranks.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import duckdb
import numpy as np
import pyarrow as pa

from skerry.joins.conditions import (
    AllOf,
    AnyOf,
    Calculated,
    Column,
    Compared,
    Condition,
    Known,
    Not,
    Operand,
    Value,
)
from skerry.joins.join import Join
from skerry.joins.rows import Algorithm
from skerry.joins.single import SingleJoin
from skerry.joins.windows import Pair, Window

SECOND = 1_000_000
SCHEMA = pa.schema([("item", pa.int64()), ("name", pa.string()), ("level", pa.float64())])
TEXTS = ["a", "b", "c", "", "é", None]
Row = tuple[int, int, int, int, int | None, str | None, float | None]


@dataclass(frozen=True)
class Case:
    """A log, by stream its rows (number, time, clock, source, item, name, level), and a join over it."""

    join: Join
    streams: dict[str, list[Row]]

    def tables(self, first: int, end: int) -> dict[str, pa.Table]:
        """The rows with numbers from ``first`` on, before ``end``."""
        return {
            name: table([row for row in rows if first <= row[0] < end]) for name, rows in self.streams.items()
        }

    @property
    def length(self) -> int:
        """Of the log."""
        return sum(map(len, self.streams.values()))


def table(rows: Sequence[Row]) -> pa.Table:
    """Rows as the operator takes them."""
    own = [(name, pa.int64()) for name in ("number", "time", "clock", "source")]
    schema = pa.schema([*own, *SCHEMA])
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def draw(seed: int) -> Case:
    """A case."""
    chance = random.Random(seed)
    names = [f"s{place}" for place in range(chance.randint(1, 4))]
    aliases = "abcd"[: chance.choice([2, 2, 2, 3, 3, 4])]
    streams = {alias: chance.choice(names) for alias in aliases}
    lateness = chance.choice([0, 2, 10]) * SECOND
    length = {2: 120, 3: 70, 4: 40}[len(aliases)]
    windows = _windows(chance, aliases)
    if any(window.rows for window in windows.values()) and chance.random() < 0.5:
        lateness = 2 * SECOND
    where = _where(chance, aliases)
    select = tuple(
        Column(chance.choice(aliases), chance.choice(SCHEMA.names)) for _ in range(chance.randint(0, 3))
    )
    join = Join(streams, windows, where, tuple(dict.fromkeys(select)), lateness)
    return Case(join, _rows(chance, names, sorted(set(streams.values())), length))


def _rows(
    chance: random.Random, names: Sequence[str], used: Sequence[str], length: int
) -> dict[str, list[Row]]:
    """Rows of all streams; one of them may be silent for a while, as long as another is there."""
    found: dict[str, list[Row]] = {name: [] for name in names}
    time = chance.randrange(10**15)
    silent, until = chance.choice(used), chance.randrange(length)
    grain = chance.choice([1, SECOND // 2, SECOND])
    for number in range(length):
        stream = chance.choice(names)
        if stream == silent and number < until:
            stream = chance.choice(names)
        time += chance.choice([0, 0, 1, SECOND // 3, SECOND // 2, SECOND]) // grain * grain
        at = time - (chance.choice([0, 0, 0, 1, 3, 11]) * SECOND if chance.random() < 0.3 else 0)
        clock = time
        if chance.random() < 0.03:
            at = time + 60 * SECOND + chance.choice([0, 1, SECOND])
        item = chance.choice([None, 0, 1, 1, 2, -1])
        level = chance.choice([None, 0.0, -0.0, 0.5, 1.5, 2.0])
        found[stream].append((number, at, clock, chance.randrange(2), item, chance.choice(TEXTS), level))
    return found


def _windows(chance: random.Random, aliases: str) -> dict[Pair, Window]:
    def window() -> Window:
        kind = chance.random()
        us = chance.choice([0, 1, SECOND // 2, SECOND, 3 * SECOND, 20 * SECOND])
        rows = chance.randint(1, 4)
        if not of_rows or kind < 0.3:
            return Window(us)
        return Window(None, rows) if kind < 0.9 else Window(us, rows)

    of_rows = chance.random() < 0.3
    pairs = [frozenset((one, other)) for one in aliases for other in aliases if one < other]
    if chance.random() < 0.3:
        return dict.fromkeys(pairs, window())
    # A tree over the aliases, and some pairs more.
    tree = [frozenset((aliases[place], chance.choice(aliases[:place]))) for place in range(1, len(aliases))]
    return {pair: window() for pair in pairs if pair in tree or chance.random() < 0.5}


def _where(chance: random.Random, aliases: str) -> Condition | None:
    parts: list[Condition] = []
    kind = chance.random()
    if kind < 0.6:
        name = chance.choice(["item", "item", "name", "level"])
        parts += [
            Compared(
                "=",
                Column(one, name),
                Column(other, chance.choice([name, "level" if name == "item" else name])),
            )
            for one, other in pairwise(aliases)
        ]
    elif kind < 0.9:
        parts.append(_compared(chance, aliases[0], aliases[1]))
    parts += [
        _compared(chance, chance.choice(aliases), chance.choice(aliases)) for _ in range(chance.randint(0, 2))
    ]
    if chance.random() < 0.3:
        parts.append(_combined(chance, aliases))
    return AllOf(tuple(parts)) if len(parts) > 1 else parts[0] if parts else None


def _compared(chance: random.Random, one: str, other: str) -> Compared:
    sign = chance.choice(["=", "<>", "<", "<=", ">", ">="])
    if chance.random() < 0.3:
        right: Operand = Value(chance.choice(["b", "é"])) if chance.random() < 0.5 else Column(other, "name")
        return Compared(sign, Column(one, "name"), right)
    right = (
        Value(chance.choice([0, 1]))
        if chance.random() < 0.4
        else Column(other, chance.choice(["item", "level"]))
    )
    if chance.random() < 0.3:
        right = Calculated(chance.choice(["+", "-", "*"]), right, Value(1))
    return Compared(sign, Column(one, chance.choice(["item", "level"])), right)


def _combined(chance: random.Random, aliases: str) -> Condition:
    one, other, third = (chance.choice(aliases) for _ in range(3))
    either = AnyOf((_compared(chance, one, other), Known(Column(third, "item"))))
    return Not(either) if chance.random() < 0.3 else either


def sql_of(node: Condition | Operand) -> str:  # noqa: PLR0911 (a case for each kind)
    """As DuckDB reads it."""
    match node:
        case Column(alias, name):
            return f"{alias}.{name}"
        case Value(value):
            return f"'{value}'" if isinstance(value, str) else "NULL" if value is None else str(value)
        case Calculated(sign, left, right) | Compared(sign, left, right):
            return f"({sql_of(left)} {sign} {sql_of(right)})"
        case Known(operand):
            return f"({sql_of(operand)} IS NOT NULL)"
        case Not(condition):
            return f"(NOT {sql_of(condition)})"
        case AllOf(conditions):
            return f"({' AND '.join(map(sql_of, conditions))})"
        case AnyOf(conditions):
            return f"({' OR '.join(map(sql_of, conditions))})"


def admitted(case: Case) -> tuple[dict[str, list[Row]], int, int]:
    """By stream the rows that are neither late nor set aside, and how many are either, by the letter of the semantics."""
    of_join = {*case.join.streams.values()}
    log = sorted((row, name) for name, rows in case.streams.items() if name in of_join for row in rows)
    found: dict[str, list[Row]] = {name: [] for name in case.streams}
    greatest: int | None = None
    late = ahead = 0
    for row, name in log:
        if row[1] > row[2] + 60 * SECOND:
            ahead += 1
        elif greatest is not None and row[1] < greatest - case.join.lateness_us:
            late += 1
        else:
            found[name].append(row)
            greatest = max(row[1], greatest if greatest is not None else row[1])
    return found, late, ahead


def expected(case: Case, connection: duckdb.DuckDBPyConnection) -> list[tuple[object, ...]]:
    """What DuckDB answers: time, numbers by alias, selected columns; sorted."""
    join = case.join
    rows, _, _ = admitted(case)
    for alias, stream in join.streams.items():
        connection.register(f"rows_{alias}", table(rows[stream]))
    conditions = [sql_of(join.where)] if join.where is not None else []
    for pair, window in join.windows.items():
        one, other = sorted(pair)
        if window.us is not None:
            conditions.append(f"abs({one}.time - {other}.time) <= {window.us}")
        if window.rows is not None:
            conditions.append(
                f"CASE WHEN ({one}.time, {one}.number) <= ({other}.time, {other}.number) "
                f"THEN {_last(join, one, other, window.rows)} ELSE {_last(join, other, one, window.rows)} END"
            )
    numbers = [f"{alias}.number" for alias in join.aliases]
    times = ", ".join(f"{alias}.time" for alias in join.aliases)
    chosen = [f"{column.alias}.{column.name}" for column in join.select]
    question = (
        f"SELECT greatest({times}), {', '.join([*numbers, *chosen])} "
        f"FROM {', '.join(f'rows_{alias} AS {alias}' for alias in join.aliases)} "
        f"WHERE {' AND '.join(conditions)} ORDER BY {', '.join(numbers)}"
    )
    return connection.execute(question).fetchall()


def _last(join: Join, earlier: str, later: str, rows: int) -> str:
    """That the earlier row is among the last rows of its source, up to the later one, that pass its alias's own conditions."""
    own = [sql_of(one).replace(f"{earlier}.", "q.") for one in join.own_conditions(earlier)]
    return (
        f"(SELECT count(*) FROM rows_{earlier} AS q WHERE {' AND '.join(['q.source = ' + earlier + '.source', *own])} "
        f"AND (q.time, q.number) >= ({earlier}.time, {earlier}.number) AND (q.time, q.number) <= ({later}.time, {later}.number)) <= {rows}"
    )


def answered(case: Case, algorithm: Algorithm, cuts: Sequence[int]) -> tuple[pa.Table, SingleJoin]:
    """What the operator answers where the log is cut before these numbers."""
    running = SingleJoin(case.join, dict.fromkeys(case.streams, SCHEMA), algorithm)
    bounds = [0, *sorted(cuts), case.length]
    parts = [running.feed(case.tables(first, end)) for first, end in pairwise(bounds)]
    return pa.concat_tables([*parts, running.finish()], promote_options="permissive"), running


def listed(found: pa.Table) -> list[tuple[object, ...]]:
    """Answers as DuckDB has them."""
    columns = [found.column(place).to_pylist() for place in range(found.num_columns)]
    return sorted(zip(*columns, strict=True), key=lambda row: row[1:])


def cuts_of(seed: int, length: int) -> list[int]:
    """Where a log is cut."""
    chance = np.random.default_rng(seed)
    return sorted(int(cut) for cut in chance.integers(0, length, chance.integers(0, 8)))

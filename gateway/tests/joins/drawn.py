"""Drawn joins: streams with silences, late rows and rows ahead of their clock, windows and conditions, and what DuckDB answers.

The oracle is the plain SQL join of what the semantics leave: which rows are late is reckoned row by row, windows of rows are ranks.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import duckdb
import numpy as np
import pyarrow as pa

from gateway.tests.joins import outer_oracle
from skerry.joins.answers import DECIDED
from skerry.joins.conditions import (
    AllOf,
    AnyOf,
    Calculated,
    Called,
    Column,
    Compared,
    Condition,
    Known,
    Not,
    Operand,
    Value,
    aliases_of,
    conjuncts,
)
from skerry.joins.join import Join, Step, StepKind
from skerry.joins.rows import Algorithm
from skerry.joins.single import SingleJoin
from skerry.joins.windows import Pair, Window

SECOND = 1_000_000
SCHEMA = pa.schema(
    [
        ("item", pa.int64()), ("name", pa.string()), ("level", pa.float64()),
        ("zone", pa.int64()), ("xpos", pa.float64()), ("ypos", pa.float64()),
    ]
)  # fmt: skip
TEXTS = ["a", "b", "c", "", "é", None]
#: Static columns.
STATICS = ("zone", "xpos", "ypos")
#: What does not change of a source: zone, and position in m. A stream has two sources, those of stream 1 are the third and fourth here.
Site = tuple[int | None, float | None, float | None]
SITES: list[Site] = [
    (0, 0.0, 0.0), (1, 3.0, 4.0), (None, 0.5, 0.0), (1, 3.0, 0.0), (0, 0.0, 2.0), (2, None, 1.0), (1, 1.5, 1.5), (0, 6.0, 8.0),
]  # fmt: skip
Row = tuple[int, int, int, int, int | None, str | None, float | None, int | None, float | None, float | None]


@dataclass(frozen=True)
class Case:
    """A log, by stream its rows (number, time, clock, source, and what SCHEMA has), and a join over it."""

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


def with_places(rows: Sequence[Row]) -> pa.Table:
    """The same as DuckDB takes them, for ``loc``."""
    made = table(rows)
    axes = [made.column(axis).combine_chunks() for axis in ("xpos", "ypos")]
    return made.append_column("loc", pa.StructArray.from_arrays(axes, ["x", "y"]))


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


def draw_any(seed: int) -> Case:
    """A case, each third one LEFT or ASOF."""
    return draw(seed) if seed % 3 else draw_outer(seed)


def algorithms_of(join: Join) -> list[Algorithm]:
    """Those that may run it."""
    found: list[Algorithm] = ["MW"] if join.has_asof else ["NLW", "MW"]
    return [*found, "HW"] if join.key else found


def draw_outer(seed: int) -> Case:
    """LEFT and ASOF JOINs, of several streams or of one with itself, each second time of two."""
    chance = random.Random(seed)
    tried = (draw(seed * 1000 + attempt) for attempt in range(1000))
    more = bool(seed % 2)
    case = next(one for one in tried if (len(one.join.aliases) > 2) == more and not one.join.graph.has_rows)
    return replace(case, join=with_steps(case.join, chance))


def with_steps(join: Join, chance: random.Random) -> Join:
    """The same with steps that are drawn, at least one of which is no plain one; what an ON asks may be asked behind a later one, too."""
    kinds: list[StepKind] = ["inner", "left", "left", "asof", "asof left"]
    count = len(join.aliases)
    drawn = [chance.choice(kinds) for _ in range(count - 1)]
    if "inner" in drawn:
        drawn[drawn.index("inner")] = chance.choice(kinds[1:])
    asked: list[list[Condition]] = [[] for _ in range(count)]
    for part in conjuncts(join.where):
        at = max((join.aliases.index(alias) for alias in aliases_of(part)), default=0)
        later = [place for place in range(at + 1, count) if at and drawn[place - 1] != "inner"]
        if drawn[at - 1] != "inner" and later and chance.random() < 0.2:
            at = chance.choice(later)
        asked[at].append(part)
    where, *on = (AllOf(tuple(parts)) if parts else None for parts in asked)
    steps = tuple(Step(kind, condition) for kind, condition in zip(drawn, on, strict=True))
    return replace(join, where=where, steps=steps)


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
        source, name = chance.randrange(2), chance.choice(TEXTS)
        site = SITES[2 * int(stream[1:]) + source]
        found[stream].append((number, at, clock, source, item, name, level, *site))
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
        name = chance.choice(["item", "item", "item", "name", "level", "zone"])
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
    kind = chance.random()
    if kind < 0.04:
        return Compared(sign, seconds_between(one, other), Value(chance.choice([-1, 0, 0.5, 2.25])))
    if kind < 0.1:
        axes = tuple(Column(alias, axis) for alias in (one, other) for axis in ("xpos", "ypos"))
        return Compared(sign, Called("DIST", axes), Value(chance.choice([0.0, 2.0, 3.5, 5.0])))
    if kind < 0.2:
        hashed = Called("HASH", (Column(one, chance.choice(["item", "zone"])),))
        return Compared(
            sign, Calculated("%", hashed, Value(3)), Column(other, chance.choice(["item", "zone"]))
        )
    if kind < 0.3:
        return Compared(sign, Column(one, "zone"), chance.choice([Column(other, "zone"), Value(1)]))
    if chance.random() < 0.3:
        right: Operand = Value(chance.choice(["b", "é"])) if chance.random() < 0.5 else Column(other, "name")
        return Compared(sign, Column(one, "name"), right)
    right = (
        Value(chance.choice([0, 1]))
        if chance.random() < 0.4
        else Column(other, chance.choice(["item", "level"]))
    )
    if chance.random() < 0.3:
        by: Operand = Column(other, "item") if chance.random() < 0.5 else Value(2)
        right = Calculated(chance.choice(["+", "-", "*", "/", "%"]), right, by)
    if chance.random() < 0.15:
        right = Called("ABS", (right,))
    return Compared(sign, Column(one, chance.choice(["item", "level"])), right)


def seconds_between(one: str, other: str) -> Calculated:
    """``a.time - b.time``, of which rows here say µs."""
    return Calculated("/", Calculated("-", Column(one, "time"), Column(other, "time")), Value(SECOND))


def _combined(chance: random.Random, aliases: str) -> Condition:
    one, other, third = (chance.choice(aliases) for _ in range(3))
    either = AnyOf((_compared(chance, one, other), Known(Column(third, "item"))))
    return Not(either) if chance.random() < 0.3 else either


def sql_of(node: Condition | Operand) -> str:  # noqa: PLR0911 (a case for each kind)
    """As users say it, and as DuckDB reads it where :func:`prepare` has been."""
    match node:
        case Column(alias, name):
            return f"{alias}.{name}"
        case Value(value):
            return f"'{value}'" if isinstance(value, str) else "NULL" if value is None else str(value)
        case Calculated(sign, left, right) | Compared(sign, left, right):
            return f"({sql_of(left)} {sign} {sql_of(right)})"
        case Called("DIST", (Column(one), _, Column(other), _)):
            return f"dist({one}.loc, {other}.loc)"
        case Called(function, arguments):
            return f"{function}({', '.join(map(sql_of, arguments))})"
        case Known(operand):
            return f"({sql_of(operand)} IS NOT NULL)"
        case Not(condition):
            return f"(NOT {sql_of(condition)})"
        case AllOf(conditions):
            return f"({' AND '.join(map(sql_of, conditions))})"
        case AnyOf(conditions):
            return f"({' OR '.join(map(sql_of, conditions))})"


def prepare(connection: duckdb.DuckDBPyConnection) -> None:
    """Teach DuckDB what docs/queries.md says of ``hash`` and ``dist``, and that what is divided by 0 is NULL."""
    connection.execute("SET ieee_floating_point_ops = false")
    connection.execute("SET error_on_division_by_zero = false")
    low = "(({}) & 4294967295)::HUGEINT"
    x = low.format("a::HUGEINT")
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        x = low.format(f"xor({x}, {x} >> {shift}) * {factor}::HUGEINT")
    connection.execute(f"CREATE OR REPLACE MACRO hash(a) AS ({x} & 2147483647)::BIGINT")
    sides = " + ".join(f"round((p.{axis} - q.{axis}) * 100) ** 2" for axis in ("x", "y"))
    connection.execute(f"CREATE OR REPLACE MACRO dist(p, q) AS round(sqrt({sides})) / 100")


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
    prepare(connection)
    for alias, stream in join.streams.items():
        connection.register(f"rows_{alias}", with_places(rows[stream]))
    if join.is_outer:
        return outer_oracle.expected(join, sql_of, connection)
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


def decided(case: Case, numbers: Sequence[int | None]) -> int:
    """By the letter of the semantics, the number of the row with which an answer of LEFT and ASOF JOINs is there."""
    rows, _, _ = admitted(case)
    times = {row[0]: row[1] for of in rows.values() for row in of}
    return outer_oracle.decided(case.join, times, numbers)


def answered(case: Case, algorithm: Algorithm, cuts: Sequence[int]) -> tuple[pa.Table, SingleJoin]:
    """What the operator answers where the log is cut before these numbers."""
    running = SingleJoin(case.join, dict.fromkeys(case.streams, SCHEMA), algorithm)
    bounds = [0, *sorted(cuts), case.length]
    parts = [running.feed(case.tables(first, end)) for first, end in pairwise(bounds)]
    return pa.concat_tables([*parts, running.finish()], promote_options="permissive"), running


def listed(found: pa.Table) -> list[tuple[object, ...]]:
    """Answers as DuckDB has them."""
    columns = [found.column(name).to_pylist() for name in found.column_names if name != DECIDED]
    count = sum(name.endswith(".number") for name in found.column_names)
    return sorted(
        zip(*columns, strict=True), key=lambda row: [(one is None, one) for one in row[1 : 1 + count]]
    )


def cuts_of(seed: int, length: int) -> list[int]:
    """Where a log is cut."""
    chance = np.random.default_rng(seed)
    return sorted(int(cut) for cut in chance.integers(0, length, chance.integers(0, 8)))

"""What users of a busy day ask, drawn at random, and what DuckDB answers of the rows that were sent."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

from bench.measuring.day_of_rows import PERIOD_S, DayOfRows

#: A window's row comes with the first row sampled so long behind its end, in ms.
GRACE_MS = 12_000
_MINUTE_MS = 60_000

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Span:
    """What is a user's: rows (of an aggregate: states) from number ``begin`` up to before ``end`` in the order in which they were sent,
    of these the ones sampled since, and until, in ms of network time."""

    begin: int
    end: int
    since_ms: int
    until_ms: int | None

    @property
    def where(self) -> str:
        """For ``sensors``."""
        until = "TRUE" if self.until_ms is None else f"sample < {self.until_ms}"
        return f"number >= {self.begin} AND number < {self.end} AND sample >= {self.since_ms} AND {until}"


@dataclass(frozen=True)
class Question:
    """``sql``: what is asked; ``expected``: what a user is to get, in parts, of which each is in any order; ``aggregate``: whether it is
    of states, not of rows."""

    kind: str
    sql: str
    expected: Callable[[DayOfRows, Span], list[list[Row]]]
    aggregate: bool = False


def _rows(kind: str, where: str, period_s: int, length: str = "", table: str = "") -> Question:
    """Rows of motes, in the order in which they came."""
    if table:
        sql = f"SELECT s.nodeid, s.epoch, s.temp, p.name FROM sensors AS s, places AS p WHERE p.node = s.nodeid AND {where}"
    else:
        sql = f"SELECT nodeid, epoch, temp, light FROM sensors{_chosen(where)}"

    def expected(day: DayOfRows, span: Span) -> list[list[Row]]:
        last = "p.name" if table else "light"
        found = day.answered(
            f"SELECT number, nodeid, sample // {1000 * period_s}, temp, {last} FROM "
            f"(SELECT * REPLACE ((temp / 100)::DECIMAL(9, 2) AS temp) FROM sensors WHERE {span.where} "
            f"AND sample % {1000 * period_s} = 0) AS s {table} WHERE {where} ORDER BY ALL"
        )
        parts = itertools.groupby(found, key=lambda row: row[0])
        return [[(*row[1:3], float(row[3]), row[4]) for row in part] for _, part in parts]

    return Question(kind, f"{sql} SAMPLE PERIOD {period_s} s{length}", expected)


def _windows(kind: str, where: str, length_min: int | None, slide_min: int, group: str | None) -> Question:
    """Windows over all motes, ``length_min`` None: since the query began."""
    window = f"{'start' if length_min is None else f'{length_min} min'}, {slide_min} min"
    columns = ["epoch", *([f"{group} AS part"] if group else [])]
    columns += [f"COUNT(*, {window}) AS n", f"AVG(temp, {window}) AS mean", f"MAX(light, {window}) AS most"]
    grouped = f"GROUP BY {group}" if group else ""
    sql = f"SELECT {', '.join(columns)} FROM sensors{_chosen(where)} {grouped} SAMPLE PERIOD {PERIOD_S} s"
    slide_ms = slide_min * _MINUTE_MS

    def expected(day: DayOfRows, span: Span) -> list[list[Row]]:
        first = -(-span.since_ms // slide_ms) * slide_ms
        begins = "f" if length_min is None else f"e - {length_min * _MINUTE_MS}"
        found = day.answered(f"""
            WITH mine AS (SELECT * REPLACE ((temp / 100)::DECIMAL(9, 2) AS temp) FROM sensors WHERE {span.where}),
                ends AS (
                    SELECT e, {first} AS f FROM
                    (SELECT unnest(range({first + slide_ms}, (SELECT max(sample) FROM mine) - {GRACE_MS} + 1, {slide_ms})) AS e)
                )
            SELECT e // {1000 * PERIOD_S} - 1, {group or 0} AS part, COUNT(*), SUM(temp), MAX(light)
            FROM ends JOIN mine ON sample >= {begins} AND sample < e
            WHERE {begins} >= f AND ({where}) GROUP BY e, part ORDER BY ALL
        """)
        parts = itertools.groupby(found, key=lambda row: row[0])
        return [
            [
                (epoch, *([part] if group else []), n, mean(total, n), most)
                for epoch, part, n, total, most in rows
            ]
            for _, rows in parts
        ]

    return Question(kind, sql, expected)


def _chosen(where: str) -> str:
    return "" if where == "TRUE" else f" WHERE {where}"


def mean(total: Any, count: int) -> float:
    """A mean of values of two decimal places, rounded at its fifth, half away from zero."""
    return float((Decimal(total) / count).quantize(Decimal("0.00001"), ROUND_HALF_UP))


def _aggregates(having: int | None) -> Question:
    """One answer for each epoch, which motes have made."""
    chosen = "" if having is None else f" HAVING MAX(temp) > {having / 100}"
    sql = (
        f"SELECT epoch, motes, AVG(temp), MAX(temp), COUNT(*) FROM sensors{chosen} SAMPLE PERIOD {PERIOD_S} s"
    )

    def expected(day: DayOfRows, span: Span) -> list[list[Row]]:
        found = day.answered(
            f"SELECT epoch, motes, total, most FROM epochs WHERE number >= {span.begin} AND number < {span.end} "
            f"AND epoch * {1000 * PERIOD_S} >= {span.since_ms} AND most > {having or 0} ORDER BY number"
        )
        return [[(e, n, mean(Decimal(total) / 100, n), most / 100, n)] for e, n, total, most in found]

    return Question("aggregates of the network", sql, expected, aggregate=True)


#: For whom motes are asked: everybody's rows and states are among those of these two.
ALL_ROWS = _rows("all rows", "TRUE", PERIOD_S)
ALL_STATES = _aggregates(None)


def write_places(directory: Path, day: DayOfRows) -> None:
    """The table that rows are joined with, also for DuckDB: some motes have two places, some none."""
    motes = day.motes
    places = [(node, f"hall {node % 7}") for node in range(1, motes + 1) if node % 5]
    places += [(node, f"stairs {node % 3}") for node in range(1, motes + 1) if node % 4 == 0]
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "places.csv"
    file.write_text("node,name\n" + "".join(f"{node},{name}\n" for node, name in places))
    day.database.execute(f"CREATE TABLE places AS SELECT * FROM read_csv('{file}')")


def drawn(chance: random.Random, motes: int) -> Question:
    """What the next user asks."""
    low, node, part = chance.randrange(15, 34), chance.randint(1, motes), chance.randrange(4)
    places = "JOIN places AS p ON p.node = s.nodeid"
    makers: Sequence[Callable[[], Question]] = (
        lambda: _rows("range filter", f"temp BETWEEN {low} AND {low}.25", PERIOD_S),
        lambda: _rows("one mote", f"nodeid = {node}", PERIOD_S),
        lambda: _rows("each minute", f"nodeid % 4 = {part} AND light > {1000 * low}", 60),
        lambda: _rows("filter and expression", f"light < 2000 AND temp * 2 > {2 * low}", 20),
        lambda: _rows("for half an hour", f"temp > {low} AND nodeid = {node}", PERIOD_S, " FOR 30 min"),
        lambda: _rows("join with a table", f"s.temp > 33.5 AND s.nodeid % 4 = {part}", PERIOD_S, table=places),
        lambda: _rows("join with a table", f"p.name = 'hall {part}' AND s.light < 5000", 60, table=places),
        lambda: _windows("tumbling windows", f"nodeid > {node // 2}", 10, 10, None),
        lambda: _windows("sliding windows", f"temp > {low / 2}", 5, 1, None),
        lambda: _windows("sliding windows of groups", "TRUE", 20, 5, f"nodeid % {2 + part}"),
        lambda: _windows("windows since the beginning", f"light > {10 * node}", None, 5, None),
        lambda: _aggregates(chance.choice([3480, 3490, 3495])),
    )  # fmt: skip
    return chance.choice(makers)()

"""Drawn joins of motes' rows with each other, as skerry and DuckDB say them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

PERIOD_S = 10
#: The room of each mote.
ROOMS = (1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 2, 3)
#: Where motes and the gateway join them together; JOIN NAIVE is the gateway's alone.
STRATEGIES = ("AT BASE", "AT ANCESTOR", "THROUGH BASE", "BY HASH", "IN NETWORK")


@dataclass(frozen=True)
class Drawn:
    """A join as skerry and DuckDB say it."""

    pair: str
    s: str
    t: str
    both: str
    rows: int
    epochs: int
    strategy: str

    @property
    def sql(self) -> str:
        parts = [self.pair, self.s, self.t, self.both]
        window = f"{self.rows} ROWS" if self.rows else f"{self.epochs * PERIOD_S} s"
        where = " AND ".join(part for part in parts if part)
        return (
            "SELECT s.nodeid, t.nodeid, s.temp, t.light FROM sensors AS s, sensors AS t "
            f"WINDOW {window} WHERE {where} SAMPLE PERIOD {PERIOD_S} s JOIN {self.strategy}"
        )

    def by_duckdb(self, database: duckdb.DuckDBPyConnection) -> Counter[tuple[Any, ...]]:
        """Of the table ``readings``. What is not known takes its place in windows, as what passes, and is in no answer."""
        rank = "row_number() OVER (PARTITION BY nodeid ORDER BY epoch)"

        def those(role: str, condition: str) -> str:
            return f"{role} AS (SELECT *, {rank} AS rank FROM readings AS {role} WHERE NOT known OR ({condition or 'true'}))"

        def among(earlier: str, later: str) -> str:
            if not self.rows:
                return f"{later}.epoch - {earlier}.epoch <= {self.epochs}"
            upto = f"SELECT count(*) FROM {earlier} AS x WHERE x.nodeid = {earlier}.nodeid AND x.epoch <= {later}.epoch"
            return f"({upto}) - {earlier}.rank < {self.rows}"

        within = f"CASE WHEN s.epoch <= t.epoch THEN {among('s', 't')} ELSE {among('t', 's')} END"
        where = " AND ".join(part for part in (self.pair, self.both, within, "s.known", "t.known") if part)
        select = "SELECT s.nodeid, s.epoch, t.nodeid, t.epoch, s.temp, t.light FROM s, t"
        sql = f"WITH {those('s', self.s)}, {those('t', self.t)} {select} WHERE {where}"
        return Counter(database.execute(sql).fetchall())


def drawn(draw: random.Random, strategy: str) -> Drawn:
    in_rows = draw.random() < 0.6
    equal = ["s.room = t.room AND s.nodeid < t.nodeid", "s.room = t.room", "s.nodeid = t.nodeid + 1"]
    return Drawn(
        draw.choice(equal if strategy == "BY HASH" else [*equal, "t.room = 2 AND s.room < t.room"]),
        draw.choice(["", "s.light > 300", "s.temp > 10"]),
        draw.choice(["", "t.light > 300", "t.temp < 25"]),
        draw.choice(["", "s.temp - t.temp > 2", "s.light < t.light", "abs(s.temp - t.temp) < 8"]),
        draw.randint(1, 3) if in_rows else 0,
        0 if in_rows else draw.randint(0, 2),
        strategy,
    )


def by_duckdb(
    asked: Sequence[Drawn],
    readings: dict[tuple[int, int], dict[str, Any]],
    unknown: Collection[tuple[int, int]] = (),
) -> list[Counter[tuple[Any, ...]]]:
    """The answers to each, of what motes have read, in their integers: of doubles a difference of 8 may be a little less. Where readings
    are ``unknown``, by mote and epoch, those that hold whatever they were."""
    nothing = {"temp": None, "light": None}
    table = [
        {
            "nodeid": n,
            "epoch": e,
            "temp": None if row["temp"] is None else Decimal(f"{row['temp']:.2f}"),
            "light": row["light"],
            "room": ROOMS[n],
            "known": known,
        }
        for of, known in ((readings, True), (dict.fromkeys(unknown, nothing), False))
        for (n, e), row in of.items()
    ]
    with duckdb.connect(config={"threads": 1}) as database:
        database.register("readings", pa.Table.from_pylist(table))
        return [
            Counter(
                {
                    (*row[:4], round(row[4] * 100), round(row[5])): n
                    for row, n in one.by_duckdb(database).items()
                }
            )
            for one in asked
        ]

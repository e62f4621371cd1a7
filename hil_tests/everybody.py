"""Many users' lives on one network: who asks what when, drawn from a seed, and what each query alone would answer, by DuckDB.

What sensors see changes once a minute, a few seconds behind it, and all epochs begin at multiples of five seconds: so what a mote reads in
an epoch is known, whatever else is asked. The readings are taken in a run of their own, in which nobody asks anything else.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gateway.tests.generated import Row
from hil_tests.drawn_queries import Asked
from skerry_protocol.attributes import BY_NAME
from skerry_testbed.network import Environment, Mote, Network, check
from skerry_testbed.pytest import NetworkHandle, disc
from skerry_testbed.queries import ask, rows

NAMES = ["nodeid", "temp", "humidity", "light", "xpos", "ypos"]
SENSED = ["temp", "humidity", "light"]
MINUTE_S = 60
#: So late in each minute of network time sensors see something new, in s.
CHANGE_S = 3
PERIODS_S = (5, 10, 15, 20, 30, 60)


def describe(folder: Path, seed: int, minutes: int) -> Network:
    """Twelve motes over several hops, of both boards by turns, on links that lose nothing."""
    draw = random.Random(seed)
    motes = [
        Mote(id=4 * row + column, x=10.0 * column, y=10.0 * row, board="cc2538" if (row + column) % 2 else "iris",
             root=not row and not column, boot="0 s" if not row and not column else None)
        for row in range(3) for column in range(4)
    ]  # fmt: skip
    seen: dict[str, list[Any]] = {"at": [], "nodeid": [], "temp": [], "humidity": [], "light": []}
    for minute in range(-1, minutes + 30):
        for mote in motes:
            values = {
                "temp": draw.choice([20.0, 20.5, draw.uniform(-20, 50)]),
                "humidity": draw.uniform(5, 95),
                "light": draw.choice([0.0, 300.0, draw.uniform(0, 900)]),
            }
            if draw.random() < 0.05:
                values[draw.choice(SENSED)] = math.nan
            seen["at"].append(float(max(0, minute * MINUTE_S + CHANGE_S)))
            seen["nodeid"].append(mote.id)
            for name, value in values.items():
                seen[name].append(value)
    trace = folder / f"everybody-{seed}.parquet"
    pq.write_table(pa.table(seen), trace)
    environment = Environment(
        trace=str(trace), time="at", columns={name: name for name in SENSED},
        nodes={str(mote.id): mote.id for mote in motes},
    )  # fmt: skip
    return check(Network(name="everybody", seed=seed, mote=motes, radio=disc(15), environment=environment))


def readings(network: Network, minutes: int) -> list[list[Row]]:
    """What every mote reads in each minute, as scaled integers."""
    net = NetworkHandle(network)
    net.advance("40s")
    query = ask(net, 1, f"SELECT {', '.join(NAMES)} FROM sensors SAMPLE PERIOD 60 s")
    net.advance(f"{(minutes + 4) * MINUTE_S}s")
    by_minute: list[list[Row]] = [[] for _ in range(minutes + 4)]
    for row in {(row["nodeid"], row["epoch"]): row for row in rows(net.line, 1, query)}.values():
        minute = _minute(row["epoch"] * MINUTE_S)
        if minute < len(by_minute):
            by_minute[minute].append(
                {
                    name: None if row[name] is None else round(row[name] * 10 ** BY_NAME[name].digits)
                    for name in NAMES
                }
            )
    return by_minute


def _minute(at_s: float) -> int:
    """Since when sensors have seen what they see at a time."""
    return int((at_s - CHANGE_S) // MINUTE_S)


def read_at(by_minute: list[list[Row]], at_s: float) -> list[Row]:
    """What all motes read in an epoch that begins then."""
    found = by_minute[_minute(at_s)]
    assert found, f"nothing is known of {at_s} s"
    return [{**row, "epoch": 0} for row in found]


@dataclass
class Life:
    """A query of a user: asked and stopped at these virtual times, in s."""

    user: str
    asked_s: int
    until_s: int
    asked: Asked
    period_s: int
    #: Whether each epoch has an answer, so that its end can be waited for.
    always: bool
    got: list[dict[str, Any]] = field(default_factory=list)

    @property
    def sql(self) -> str:
        """Its epochs are told apart by its last column."""
        select, _, rest = self.asked.sql.partition(" FROM ")
        ending = "" if self.always else f" FOR {self.until_s - self.asked_s} s"
        return f"{select}, epoch FROM {rest} SAMPLE PERIOD {self.period_s} s{ending}"


def lives(seed: int, users: int, minutes: int, quiet: list[tuple[int, int]]) -> list[Life]:
    """What so many users ask, each one query after the other. ``quiet``: times at whose edges nobody asks, in s."""
    draw, found = random.Random(seed), list[Life]()
    for number in range(users):
        at = draw.randrange(60, 240)
        while at < minutes * MINUTE_S - 180:
            until = min(at + draw.randrange(100, 900), minutes * MINUTE_S - 30)
            if not any(since <= at <= end for since, end in quiet) and until - at >= 100:
                found.append(_life(draw, f"user{number}", at, until))
            at = until + draw.randrange(20, 200)
    return sorted(found, key=lambda life: life.asked_s)


def _life(draw: random.Random, user: str, at: int, until: int) -> Life:
    where = draw.choice(["", "", f"WHERE {_condition(draw)}"])
    # Four epochs at least, once all motes have heard of it.
    period = draw.choice([period for period in PERIODS_S if 4 * period + 60 <= until - at])
    if draw.random() < 0.4:
        text = f"SELECT nodeid AS id, {_named([_term(draw) for _ in range(draw.randrange(1, 5))])} FROM sensors {where}"
        return Life(user, at, until, Asked(text, text), period, not where)
    wanted = ["COUNT(*)"] + [
        f"{draw.choice(['COUNT', 'SUM', 'MIN', 'MAX', 'AVG'])}({_term(draw)})"
        for _ in range(draw.randrange(1, 5))
    ]
    rest, grouped, having = f"FROM sensors {where}", draw.random() < 0.3, draw.random() < 0.2
    if grouped:
        key = draw.choice(["nodeid % 3", "light > 300", "nodeid"])
        wanted, rest = [key, *wanted], f"{rest} GROUP BY {key}"
    if having:
        rest += f" HAVING COUNT(*) {draw.choice(['<', '>'])} {draw.randrange(1, 13)}"
    text = f"SELECT {_named(wanted)} {rest}"
    return Life(user, at, until, Asked(text, text), period, not (where and grouped) and not having)


def _term(draw: random.Random) -> str:
    name = draw.choice([*SENSED, "nodeid"])
    return draw.choice([name, name, f"{name} + {draw.randrange(1, 20)}", f"{name} % {draw.randrange(2, 7)}"])


def _condition(draw: random.Random) -> str:
    simple = [
        f"light > {draw.randrange(900)}", f"temp < {draw.randrange(-10, 45)}", f"nodeid % {draw.randrange(2, 4)} = 0",
        f"humidity BETWEEN 20 AND {draw.randrange(40, 90)}", "light IS NOT NULL", f"nodeid < {draw.randrange(3, 12)}",
    ]  # fmt: skip
    return draw.choice(
        [
            draw.choice(simple),
            " AND ".join(draw.sample(simple, 2)),
            f"NOT ({' OR '.join(draw.sample(simple, 2))})",
        ]
    )


def _named(texts: list[str]) -> str:
    return ", ".join(f"{text} AS c{i}" for i, text in enumerate(texts))

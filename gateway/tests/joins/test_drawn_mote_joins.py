"""Drawn joins of motes, with themselves and with a source, many beside each other on one gateway: what DuckDB answers, without Spark."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from gateway.tests.joins import mote_oracle
from gateway.tests.joins.drawn import prepare
from gateway.tests.joins.mote_oracle import Question
from gateway.tests.joins.test_joins_of_log import Running
from gateway.tests.joins.test_joins_with_motes import (
    SECOND,
    ask,
    ask_of_weather,
    bring,
    given,
    go_on,
    now_running,
    questions_of,
)
from gateway.tests.opened import opened
from gateway.tests.peer import RootPeer
from gateway.tests.process import wait_for
from skerry.service.gateway import Gateway
from skerry.service.queries import UserQuery
from skerry_protocol import codec

#: Joins in `make test`, and epochs of rows.
JOINS, EPOCHS = 16, 25
#: What motes alone decide.
OWN = ["", "light > 100", "nodeid < 3", "light IS NULL OR light > 50", "temp > 22", "room = 1 AND light > 50"]
#: What two motes decide, as users say it, and as DuckDB reads it where that is otherwise.
BETWEEN = {
    "s.room = t.room": "",
    "s.nodeid < t.nodeid": "",
    "s.epoch = t.epoch": "",
    "s.temp - t.temp > 2": "",
    "abs(s.temp - t.temp) > 1": "",
    "s.light <> t.light": "",
    "hash(s.nodeid) % 2 = t.room": "",
    "dist(s.loc, t.loc) < 2.5 m": "dist({'x': s.xpos, 'y': s.ypos}, {'x': t.xpos, 'y': t.ypos}) < 2.5",
    "s.temp > t.temp + 1 degC": "s.temp > t.temp + 1",
}
#: What a mote and a row of the source decide.
BESIDE = [
    "s.temp > w.rain",
    "s.temp <= w.rain",
    "abs(s.temp - w.rain) < 2 OR s.light IS NULL",
    "s.nodeid % 3 = w.n % 3",
]


@dataclass(frozen=True)
class Drawn:
    """A join as it is asked; by alias of motes what they alone decide; and what is left, as DuckDB is asked."""

    sql: str
    own: Mapping[str, str]
    asked: Question

    @classmethod
    def draw(cls, chance: random.Random) -> Drawn:
        """Of motes with motes, with the source, or with both."""
        aliases = chance.choice(["st", "st", "sw", "stw"])
        own = {alias: chance.choice(OWN) for alias in aliases if alias != "w"}
        said, parts = [f"({condition})" for condition in _named(own)], list[str]()
        if "t" in aliases:
            for text in chance.sample(list(BETWEEN), chance.randint(1, 2)):
                said.append(f"({text})")
                parts.append(f"({BETWEEN[text] or text})")
        if "w" in aliases:
            beside = chance.choice(BESIDE)
            said += [f"({beside})", "w.id = 1"]
            parts.append(f"({beside})")
        lateness, rows = chance.choice([1, 3]), chance.random() < 0.3
        size = chance.randint(1, 3) if rows else chance.choice([0, 500, 1000, 2000])
        columns = [f"{alias}.{'n' if alias == 'w' else 'nodeid'}" for alias in aliases]
        columns += [f"{alias}.epoch" for alias in own]
        named = ", ".join(f"{column} AS {column.replace('.', '_')}" for column in columns)
        tables = ", ".join(f"{'weather' if alias == 'w' else 'sensors'} AS {alias}" for alias in aliases)
        sql = (
            f"SELECT time, {named} FROM {tables} WINDOW {size} {'ROWS' if rows else 'ms'} WHERE {' AND '.join(said)} "
            f"LATENESS {lateness} s SAMPLE PERIOD 1 s"
        )
        # Aliases of one question have the same rows.
        streams = {alias: f"motes_{OWN.index(own[alias])}" if alias in own else "w" for alias in aliases}
        window = {"rows": size} if rows else {"window_us": 1000 * size}
        return cls(sql, own, Question(streams, columns, " AND ".join(parts), lateness * SECOND, **window))


def _named(own: Mapping[str, str]) -> list[str]:
    """With the alias before each attribute."""
    found = []
    for alias, condition in own.items():
        words = [
            f"{alias}.{word}" if word in ("light", "nodeid", "temp", "room") else word
            for word in condition.split()
        ]
        found += [" ".join(words)] if words else []
    return found


def test_drawn_joins_of_motes_answer_what_duckdb_does(
    peer: RootPeer, tmp_path: Path, drawn_seed: int
) -> None:
    chance, connection = random.Random(drawn_seed), duckdb.connect()
    prepare(connection)
    with opened(peer, tmp_path) as gateway:
        ask_of_weather(gateway)
        drawn = [Drawn.draw(chance) for _ in range(JOINS)]
        queries = [ask(gateway, one.sql) for one in drawn]
        wait_for(lambda: peer.programs().keys() >= {stream.query for stream in now_running(gateway)})
        running = Running(tmp_path)
        start = max(codec.decode_program(program).start for program in peer.programs().values())
        number = gateway.sensors.store.tables()["weather"].number
        for epoch in range(start, start + EPOCHS):
            bring(peer, gateway, chance, epoch, number)
            if chance.random() < 0.4:
                go_on(running, gateway)
        while go_on(running, gateway):
            pass
        total = 0
        for one, query in zip(drawn, queries, strict=True):
            expected = answers(gateway, one, query, connection)
            assert given(gateway.log.path, query) == expected, f"seed {drawn_seed}: {one.sql}"
            total += expected.total()
        assert total > 10 * JOINS


def answers(
    gateway: Gateway, one: Drawn, query: UserQuery, connection: duckdb.DuckDBPyConnection
) -> Counter[tuple[object, ...]]:
    """What DuckDB answers; of windows of rows, as far as progress has come."""
    assert query.plan.sources is not None
    assert query.plan.sources.join is not None
    questions = {table.alias: table.motes for table in query.plan.sources.join.tables}
    tables: dict[str, pa.Table] = {}
    for alias, condition in one.own.items():
        [question] = [asked for asked in questions_of(gateway, query) if asked.sql == questions[alias]]
        connection.register(
            "sampled", mote_oracle.rows_of_motes(gateway.log.path, question.feeds, gateway._network.streams)
        )
        tables[one.asked.streams[alias]] = connection.sql(
            f"SELECT * FROM sampled WHERE {condition or 'TRUE'}"
        ).to_arrow_table()
    if "w" in one.asked.streams:
        tables["w"] = mote_oracle.rows_of_source(gateway.log.path, "sky.n", "sky.rain")
    found = mote_oracle.answers(one.asked, tables, connection)
    if one.asked.rows is None:
        return found
    latest = max(time for table in tables.values() for time in table["time"].to_pylist())
    return Counter(
        {row: count for row, count in found.items() if int(str(row[0])) <= latest - one.asked.lateness_us}
    )

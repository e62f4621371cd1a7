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
from gateway.tests.sources.one_source import rows
from skerry.joins.join import StepKind
from skerry.service.gateway import Gateway
from skerry.service.queries import UserQuery
from skerry_protocol import codec

#: Joins in `make test`, and epochs of rows.
JOINS, EPOCHS = 16, 25
#: How they are joined, one after the other.
KINDS: tuple[StepKind, ...] = ("inner", "left", "inner", "asof left", "left", "inner", "asof", "inner")
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
    def draw(cls, chance: random.Random, kind: StepKind) -> Drawn:
        """Of motes with motes, with the source, or with both; unless it is a plain one, of two."""
        inner = kind == "inner"
        aliases = chance.choice(["st", "st", "sw", "stw"] if inner else ["st", "sw", "sw", "ws"])
        own = {alias: chance.choice(OWN) for alias in aliases if alias != "w"}
        alone = {alias: [f"({one})" for one in _named({alias: own[alias]})] for alias in own} | (
            {"w": ["w.id = 1"]} if "w" in aliases else {}
        )
        said, parts = list[str](), list[str]()
        if "t" in aliases:
            for text in chance.sample(list(BETWEEN), chance.randint(1, 2)):
                said.append(f"({text})")
                parts.append(f"({BETWEEN[text] or text})")
        if "w" in aliases:
            beside = chance.choice(BESIDE)
            said.append(f"({beside})")
            parts.append(f"({beside})")
        lateness, rows = chance.choice([1, 3]), inner and chance.random() < 0.3
        size = chance.randint(1, 3) if rows else chance.choice([0, 500, 1000, 2000])
        columns = [f"{alias}.{'n' if alias == 'w' else 'nodeid'}" for alias in aliases]
        columns += [f"{alias}.epoch" for alias in own]
        named = ", ".join(f"{column} AS {column.replace('.', '_')}" for column in columns)
        tables = [f"{'weather' if alias == 'w' else 'sensors'} AS {alias}" for alias in aliases]
        window = f"WINDOW {size} {'ROWS' if rows else 'ms'}"
        if inner:
            where = [*(one for of in alone.values() for one in of), *said]
            joined = f"{', '.join(tables)} {window}"
        else:
            where = alone[aliases[0]]
            on = " AND ".join([*alone[aliases[1]], *said])
            joined = f"{tables[0]} {kind.upper()} JOIN {tables[1]} ON {on} {window}"
        chosen = f"WHERE {' AND '.join(where)} " if where else ""
        sql = f"SELECT time, {named} FROM {joined} {chosen}LATENESS {lateness} s SAMPLE PERIOD 1 s"
        # Aliases of one question have the same rows.
        streams = {alias: f"motes_{OWN.index(own[alias])}" if alias in own else "w" for alias in aliases}
        asked = Question(
            streams,
            columns,
            " AND ".join(parts),
            lateness * SECOND,
            window_us=None if rows else 1000 * size,
            rows=size if rows else None,
            kind=kind,
        )
        return cls(sql, own, asked)


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
        drawn = [Drawn.draw(chance, KINDS[place % len(KINDS)]) for place in range(JOINS)]
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


#: Rows of motes, and answers of two, joined with tables; and what DuckDB is asked of the same rows.
WITH_TABLES = {
    "SELECT time, s.nodeid, s.epoch, r.name FROM sensors s LEFT JOIN rooms r ON r.node = s.nodeid AND s.light > 50 SAMPLE PERIOD 1 s":
        "SELECT s.time, s.nodeid, s.epoch, r.name FROM sampled s LEFT JOIN rooms r ON r.node = s.nodeid AND s.light > 50",
    "SELECT time, s.nodeid AS one, t.nodeid AS other, s.epoch, l.label, r.name FROM sensors s, sensors t, limits l, rooms r WINDOW 500 ms "
    "WHERE s.epoch = t.epoch AND s.nodeid < t.nodeid AND l.node = t.nodeid AND r.node >= s.nodeid LATENESS 3 s SAMPLE PERIOD 1 s":
        "SELECT greatest(s.time, t.time), s.nodeid, t.nodeid, s.epoch, l.label, r.name FROM sampled s, sampled t, limits l, rooms r "
        "WHERE s.epoch = t.epoch AND s.nodeid < t.nodeid AND l.node = t.nodeid AND r.node >= s.nodeid",
}  # fmt: skip


def test_rows_of_motes_and_answers_of_two_are_joined_with_tables(
    peer: RootPeer, tmp_path: Path, drawn_seed: int
) -> None:
    chance, connection = random.Random(drawn_seed), duckdb.connect()
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "limits.csv").write_text("node,label\n2,two\n3,three\n3,again\n")
    connection.execute(f"CREATE TABLE limits AS FROM '{tmp_path}/tables/limits.csv'")
    values = "(1, 'hall'), (3, 'roof'), (3, 'cellar'), (NULL, 'none')"
    connection.execute(f"CREATE TABLE rooms AS FROM (VALUES {values}) AS v(node, name)")
    with opened(peer, tmp_path) as gateway:
        ask_of_weather(gateway)
        gateway.queries.ask("CREATE SENSORS rooms (node INT, name TEXT)", "ada")
        gateway.queries.ask(f"INSERT INTO rooms VALUES {values}", "ada")
        queries = [ask(gateway, sql) for sql in WITH_TABLES]
        wait_for(lambda: peer.programs().keys() >= {stream.query for stream in now_running(gateway)})
        running = Running(tmp_path)
        start = max(codec.decode_program(program).start for program in peer.programs().values())
        for epoch in range(start, start + EPOCHS):
            bring(peer, gateway, chance, epoch, gateway.sensors.store.tables()["weather"].number)
        while go_on(running, gateway):
            pass
        for query, sql in zip(queries, WITH_TABLES.values(), strict=True):
            question = questions_of(gateway, query)[0]
            sampled = mote_oracle.rows_of_motes(gateway.log.path, question.feeds, gateway._network.streams)
            connection.register("sampled", sampled)
            expected = Counter(connection.sql(sql).fetchall())
            found = Counter(
                (round(time.timestamp() * 1e6), *others) for time, *others in rows(gateway, query)
            )
            assert found == expected, f"seed {drawn_seed}: {query.sql}"
            assert expected.total() > EPOCHS

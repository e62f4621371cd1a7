"""Twenty sources at once, and users who come with drawn conditions, over restarts: each has what DuckDB answers."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import duckdb
import pytest

from gateway.tests.opened import opened
from gateway.tests.peer import RootPeer
from gateway.tests.process import Daemon, wait_for
from gateway.tests.sources.line_server import LineServer, Reader
from skerry.service.gateway import Gateway
from skerry.service.queries import UserQuery

SOURCES = 20
CREATE = (
    "CREATE SENSORS detectors (id INT, place TEXT, height DOUBLE, reading STREAM "
    "(gas TEXT, level DECIMAL 'ppm', counted INT, ok BOOLEAN, heat DOUBLE, at TIMESTAMP FORMAT 'unix ms' TIME))"
)
COLUMNS = "id", "place", "gas", "level", "counted", "ok", "heat"
#: What DuckDB has of it.
TYPES = "id BIGINT, place VARCHAR, height DOUBLE, gas VARCHAR, level DECIMAL(38, 9), counted BIGINT, ok BOOLEAN, heat DOUBLE"
GASES = ["CO", "CH4", "Cl_2", "c%o", "", "naïve 'gas'"]


class Drawn:
    """Rows and conditions."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def reading(self) -> dict[str, Any]:
        """What a detector sends; a third of its fields are NULL, or not there."""
        chance = self.chance
        fields = {
            "gas": chance.choice(GASES),
            "level": chance.choice([0, chance.randrange(-300, 300) / 100, chance.randrange(10**6) / 10**6]),
            "counted": chance.randrange(-5, 6),
            "ok": chance.random() < 0.5,
            "heat": chance.choice([chance.uniform(-2, 2), float(chance.randrange(-2, 3))]),
            "at": 1_000_000_000_000 + chance.randrange(10**9),
        }
        return {
            name: value if chance.random() < 0.8 else None
            for name, value in fields.items()
            if chance.random() < 0.9
        }

    def condition(self, depth: int = 2) -> str:
        """Of WHERE, as both read it."""
        chance = self.chance
        if depth and chance.random() < 0.6:
            left, right = self.condition(depth - 1), self.condition(depth - 1)
            return chance.choice([f"({left} AND {right})", f"({left} OR {right})", f"NOT ({left})"])
        text, number = (
            chance.choice(["gas", "place"]),
            chance.choice(["level", "counted", "heat", "id", "height"]),
        )
        value = (
            f"{chance.randrange(-300, 300) / 100}" if chance.random() < 0.5 else str(chance.randrange(-5, 15))
        )
        gas = chance.choice([*GASES, "gate 1", "gate 7"]).replace("'", "''")
        compare = chance.choice(["=", "<>", "<", "<=", ">", ">="])
        return chance.choice([
            f"{number} {compare} {value}",
            f"{number} {compare} {chance.choice(['level', 'counted', 'heat'])}",
            f"{text} {compare} '{gas}'",
            f"{text} LIKE '{chance.choice(['%', 'C%', '%a_e %', 'gate 1%', 'C_4', ''])}'",
            f"{text} NOT IN ('{gas}', 'CO', 'gate 3')",
            f"{number} IN ({value}, 1, 2)",
            f"{number} BETWEEN -1 AND {value}",
            f"{chance.choice(COLUMNS)} IS {chance.choice(['', 'NOT '])}NULL",
            f"counted * 2 - id < {chance.randrange(-9, 9)}",
            f"ok = {chance.choice(['(1 = 1)', '(1 = 2)'])}",
            "ok",
        ])  # fmt: skip


class Sent:
    """What detectors have sent, for DuckDB."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self._database = duckdb.connect()
        self._database.execute(f"CREATE TABLE detectors (place_in_order BIGINT, {TYPES})")
        self._there = 0

    def note(self, number: int, row: dict[str, Any]) -> None:
        """``number``: of the detector."""
        fields = (row.get(name) for name in ("gas", "level", "counted", "ok", "heat"))
        self.rows.append((number, f"gate {number}", height(number), *fields))

    def expected(self, where: str, since: int) -> list[tuple[Any, ...]]:
        """Of what was sent after so many rows."""
        # As numbers are in JSON: exactly.
        rows = [
            [place, *(json.dumps(value) if isinstance(value, float) else value for value in self.rows[place])]
            for place in range(self._there, len(self.rows))
        ]
        if rows:
            self._database.executemany(f"INSERT INTO detectors VALUES ({', '.join('?' * 9)})", rows)
        self._there = len(self.rows)
        columns = ", ".join(f"CAST({name} AS DOUBLE)" if name == "level" else name for name in COLUMNS)
        asked = f"SELECT {columns} FROM detectors WHERE place_in_order >= {since} AND ({where})"
        return sorted(self._database.execute(asked).fetchall(), key=repr)


def height(number: int) -> float | None:
    return None if number % 5 == 0 else number / 4


def insert(servers: list[LineServer]) -> str:
    rows = (
        f"({i}, 'gate {i}', {'NULL' if height(i) is None else height(i)}, '{server.address}')"
        for i, server in enumerate(servers, 1)
    )
    return f"INSERT INTO detectors VALUES {', '.join(rows)}"


def test_drawn_conditions_give_what_duckdb_answers(peer: RootPeer, tmp_path: Path, drawn_seed: int) -> None:
    """The work of executors, in this process: 90 users' conditions over the rows of twenty sources."""
    drawn, sent = Drawn(drawn_seed), Sent()
    servers = [LineServer() for _ in range(SOURCES)]
    with opened(peer, tmp_path) as gateway:
        gateway.queries.ask(CREATE, "ada")
        gateway.queries.ask(insert(servers), "ada")
        users = [(drawn.condition(), 0) for _ in range(60)]
        asked = [ask(gateway, where) for where, _ in users]
        everything = ask(gateway, "(1 = 1)")
        gateway.sources.start()
        for part in range(4):
            for number, server in enumerate(servers, 1):
                rows = [drawn.reading() for _ in range(drawn.chance.randrange(1, 40))]
                for row in rows:
                    sent.note(number, row)
                server.send(*rows)
            wait_for(lambda: sum(source["rows"] for source in gateway.sources.status()) == len(sent.rows))
            wait_for(lambda: delivered(gateway, everything) == len(sent.rows))
            if part < 3:
                more = [(drawn.condition(), len(sent.rows)) for _ in range(10)]
                users += more
                asked += [ask(gateway, where) for where, _ in more]
        for query, (where, since) in zip(asked, users, strict=True):
            assert rows_of(gateway, query) == sent.expected(where, since), where
    for server in servers:
        server.close()


def ask(gateway: Gateway, where: str) -> UserQuery:
    query = gateway.queries.ask(f"SELECT {', '.join(COLUMNS)} FROM detectors WHERE {where}", "ada")
    assert isinstance(query, UserQuery)
    return query


def delivered(gateway: Gateway, query: UserQuery) -> int:
    gateway.delivery.deliver()
    return len(rows_of(gateway, query))


def rows_of(gateway: Gateway, query: UserQuery) -> list[tuple[Any, ...]]:
    """All that a reader from the first row on gets."""
    reader, found, more = gateway.delivery.reader(query, None), list[tuple[Any, ...]](), True
    while more:
        portion = reader.read()
        found += [tuple(row.values()) for part in portion.deliveries for _, row in part.values()]
        more = portion.more
    return sorted(found, key=repr)


@pytest.mark.spark
@pytest.mark.slow
def test_users_come_and_go_while_the_gateway_is_killed(daemon: Daemon, drawn_seed: int) -> None:
    drawn, sent = Drawn(drawn_seed), Sent()
    servers = [LineServer() for _ in range(SOURCES)]
    daemon.start()
    ada = daemon.client("ada")
    ada.execute(CREATE)
    ada.execute(insert(servers))
    select = f"SELECT {', '.join(COLUMNS)} FROM detectors"
    users = [("(1 = 1)", 0, Reader(ada.query(select, linger_s=None)))]
    for part in range(3):
        wait_for(lambda: all(server.listeners == 1 for server in servers))
        for number, server in enumerate(servers, 1):
            rows = [drawn.reading() for _ in range(drawn.chance.randrange(1, 200))]
            for row in rows:
                sent.note(number, row)
            server.send(*rows)
        # What nobody holds any more when the gateway is killed is lost: that is what TCP gives.
        wait_for(lambda: len(users[0][2].got) == len(sent.rows))
        for _ in range(5):
            where = drawn.condition()
            users.append((where, len(sent.rows), Reader(ada.query(f"{select} WHERE {where}", linger_s=None))))
        if part < 2:
            daemon.kill()
            wait_for(lambda: not any(server.listeners for server in servers))
            daemon.start()
            ada = daemon.client("ada")
    for where, since, reader in users:
        expected = sent.expected(where, since)
        wait_for(lambda reader=reader, expected=expected: len(reader.got) >= len(expected))
        assert sorted((tuple(row.values()) for row in reader.got), key=repr) == expected, where
    for _, _, reader in users:
        reader.rows.stop()
    for server in servers:
        server.close()

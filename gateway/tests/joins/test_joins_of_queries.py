"""Joins as users ask them, over real TCP sources, through a real gateway, its log and Spark."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from gateway.tests.joins import users_joins
from gateway.tests.joins.drawn import SECOND, TEXTS, draw
from gateway.tests.process import Daemon, wait_for
from gateway.tests.sources.line_server import LineServer, Reader, eventually

CREATE = "CREATE SENSORS detectors (id INT, place TEXT, reading STREAM (gas TEXT, level DECIMAL 'ppm', at TIMESTAMP TIME))"
SELECT = (
    "SELECT a.reading.gas, c.level FROM detectors AS a, detectors AS b, detectors AS c WINDOW = 1 h "
    "WHERE a.id = 1 AND b.id = 2 AND c.id = 3 AND a.reading.gas = b.reading.gas AND b.reading.gas = c.reading.gas"
)
ENDING = (
    "SELECT a.level AS one, b.level AS other FROM detectors a, b WINDOW 1 ROWS WHERE a.id = 11 AND b.id = 12"
)


@pytest.fixture
def servers() -> Iterator[list[LineServer]]:
    made = [LineServer() for _ in range(4)]
    yield made
    for server in made:
        server.close()


def at(minute: int) -> str:
    return f"2002-11-06T12:{minute:02}:00Z"


@pytest.mark.spark
@pytest.mark.slow
def test_a_join_of_three_detectors_streams_back_also_after_kill_9(
    daemon: Daemon, servers: list[LineServer]
) -> None:
    daemon.start()
    ada = daemon.client("ada")
    ada.execute(CREATE)
    values = ", ".join(f"({i}, 'gate {i}', '{server.address}')" for i, server in enumerate(servers, 1))
    ada.execute(f"INSERT INTO detectors VALUES {values}")
    reader = Reader(ada.query(SELECT, linger_s=None))
    folder = daemon.data / "streams"
    folder.mkdir(exist_ok=True)
    for number, rows in ((11, ((0, 1), (2, 2))), (12, ((1, 10), (3, 20)))):
        lines = [f"CO,{level},{at(minute)}" for minute, level in rows]
        (folder / f"{number}.csv").write_text("\n".join(["gas,level,at", *lines, ""]))
        ada.execute(f"INSERT INTO detectors VALUES ({number}, 'file', 'replay:{number}.csv?speed=max')")
    ending = Reader(ada.query(ENDING, linger_s=None))
    one, two, three, _ = servers
    one.send({"gas": "CO", "level": 1, "at": at(0)}, {"gas": "CH4", "level": 1, "at": at(1)})
    two.send({"gas": "CO", "level": 2, "at": at(2)}, {"gas": None, "level": 2, "at": at(3)})
    three.send({"gas": "CO", "level": 3.5, "at": at(4)})
    eventually(lambda: [tuple(row.values()) for row in reader.got], [("CO", 3.5)])
    wait_for(lambda: not ending.thread.is_alive())
    levels = sorted(tuple(row.values()) for row in ending.got)
    assert levels == [(1, 10), (2, 10), (2, 20)], "the last answers come once all sources have ended"
    assert servers[3].calls == 0, "what no alias follows is not opened"
    daemon.kill()
    wait_for(lambda: one.listeners == 0)
    daemon.start()
    wait_for(lambda: all(server.listeners == 1 for server in servers[:3]))
    three.send({"gas": "CH4", "level": 4, "at": at(5)}, {"gas": "CO", "level": 5, "at": at(6)})
    two.send({"gas": "CH4", "level": 6, "at": at(7)})
    eventually(
        lambda: sorted(tuple(row.values()) for row in reader.got), [("CH4", 4), ("CO", 3.5), ("CO", 5)]
    )
    again = Reader(daemon.client("ada").resume(reader.rows.id))
    eventually(lambda: again.got, reader.got)
    status: list[dict[str, Any]] = daemon.client().status()["joins"]
    assert [(one["query"], one["algorithm"], one["late"]) for one in status] == [(reader.rows.id, "HW", 0)]
    reader.rows.stop()
    wait_for(lambda: sum(server.listeners for server in servers) == 0)


@pytest.mark.spark
@pytest.mark.slow
def test_drawn_joins_of_one_gateway_answer_what_duckdb_does(
    daemon: Daemon, servers: list[LineServer]
) -> None:
    seed = random.SystemRandom().randrange(2**31)
    print(f"seed {seed}")
    chance, connection = random.Random(seed), duckdb.connect()
    daemon.start()
    ada = daemon.client("ada")
    ada.execute(users_joins.CREATE)
    values = ", ".join(f"({i}, '{server.address}')" for i, server in enumerate(servers))
    ada.execute(f"INSERT INTO drawn VALUES {values}")
    for batch in range(2):
        since = daemon.client().status()["rows"]
        joins = [draw(seed + 30 * batch + place).join for place in range(30)]
        readers = [Reader(ada.query(users_joins.sql(join), linger_s=None)) for join in joins]
        used = {int(stream[1:]) for join in joins for stream in join.streams.values()}
        wait_for(lambda used=used: all(servers[place].listeners == 1 for place in used))
        sent = _send(chance, servers, used, 0, 60)
        if batch == 0:
            wait_for(lambda sent=sent, since=since: len(users_joins.logged(daemon.data, since)[1]) == sent)
            daemon.kill()
            wait_for(lambda: sum(server.listeners for server in servers) == 0)
            daemon.start()
            wait_for(lambda used=used: all(servers[place].listeners == 1 for place in used))
        sent += _send(chance, servers, used, 60, 120)
        wait_for(lambda sent=sent, since=since: len(users_joins.logged(daemon.data, since)[1]) == sent)
        streams, own = users_joins.logged(daemon.data, since)
        total = 0
        for place, (join, reader) in enumerate(zip(joins, readers, strict=True)):
            expected = users_joins.answers(join, streams, own, connection)
            count = expected.total()
            wait_for(lambda reader=reader, count=count: len(reader.got) >= count)
            found = Counter(map(users_joins.given, reader.got))
            assert found == expected, f"seed {seed + 30 * batch + place}: {users_joins.sql(join)}"
            total += expected.total()
        assert total > 300
        for reader in readers:
            reader.rows.stop()


def _send(chance: random.Random, servers: list[LineServer], used: set[int], first: int, end: int) -> int:
    """Rows of four streams, one of which is silent; how many were sent, at least one a stream."""
    silent, sent = chance.choice(sorted(used)), 0
    for n in range(first, end):
        place = chance.choice(sorted(used))
        if (place == silent or chance.random() < 0.3) and n < end - 1:
            # Another one's turn.
            place = next(one for one in sorted(used) if one != silent or len(used) == 1)
        late = chance.choice([0, 0, 0, 1, 3, 11]) * SECOND if chance.random() < 0.3 else 0
        row = {
            "n": n, "item": chance.choice([None, 0, 1, 1, 2, -1]), "name": chance.choice(TEXTS),
            "level": chance.choice([None, 0.0, -0.0, 0.5, 1.5, 2.0]), "at": 10**15 + n * SECOND // 3 - late + n,
        }  # fmt: skip
        servers[place].send(row)
        sent += 1
    return sent

"""Joins as users ask them, over real TCP sources, through a real gateway, its log and Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gateway.tests.process import Daemon, wait_for
from gateway.tests.sources.line_server import LineServer, Reader, eventually

CREATE = "CREATE SENSORS detectors (id INT, place TEXT, reading STREAM (gas TEXT, level DECIMAL 'ppm', at TIMESTAMP TIME))"
SELECT = (
    "SELECT a.reading.gas, c.level FROM detectors AS a, detectors AS b, detectors AS c WINDOW = 1 h "
    "WHERE a.id = 1 AND b.id = 2 AND c.id = 3 AND a.reading.gas = b.reading.gas AND b.reading.gas = c.reading.gas"
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
    one, two, three, _ = servers
    one.send({"gas": "CO", "level": 1, "at": at(0)}, {"gas": "CH4", "level": 1, "at": at(1)})
    two.send({"gas": "CO", "level": 2, "at": at(2)}, {"gas": None, "level": 2, "at": at(3)})
    three.send({"gas": "CO", "level": 3.5, "at": at(4)})
    eventually(lambda: [tuple(row.values()) for row in reader.got], [("CO", 3.5)])
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

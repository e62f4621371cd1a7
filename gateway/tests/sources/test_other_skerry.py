"""A query of one gateway as a stream of another: each row once, over restarts of both."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.tests.peer import RootPeer
from gateway.tests.process import Daemon, wait_for
from gateway.tests.sources.line_server import LineServer
from gateway.tests.sources.one_source import again, come, one_source, state

THERE = "CREATE SENSORS gauges (id INT, feed STREAM (rain DOUBLE, place TEXT))"
HERE = "CREATE SENSORS weather (id INT, feed STREAM (rain DOUBLE, place TEXT))"


@pytest.mark.spark
@pytest.mark.slow
def test_rows_of_another_skerry_come_once_over_restarts_of_both(daemon: Daemon, tmp_path: Path) -> None:
    server, peer, data = LineServer(), RootPeer(), tmp_path / "other"
    daemon.start()
    daemon.client("ada").execute(THERE)
    daemon.client("ada").execute(f"INSERT INTO gauges VALUES (1, '{server.address}')")
    address = f"skerry+http://ada@127.0.0.1:{daemon.port}?sql=SELECT rain, place FROM gauges WHERE rain >= 0"

    def send(numbers: range) -> None:
        server.send(*({"rain": i, "place": f"gauge {i}"} for i in (-1, *numbers)))

    with one_source(peer, data, address, HERE) as (gateway, query):
        wait_for(lambda: server.listeners == 1)
        send(range(100))
        assert come(gateway, query, 100) == [(1, i, f"gauge {i}") for i in range(100)]
        daemon.kill()
        daemon.start()
        wait_for(lambda: server.listeners == 1)
        send(range(100, 150))
        assert [row[1] for row in come(gateway, query, 150)] == list(range(150))
    send(range(150, 200))
    with again(peer, data) as (gateway, query):
        assert [row[1] for row in come(gateway, query, 200)] == list(range(200))
        # The query there is the one that was asked first; stopped there, it is told.
        [there] = daemon.client("ada").queries()
        assert there["sql"] == "SELECT rain, place FROM gauges WHERE rain >= 0"
        wait_for(lambda: state(gateway)["state"] == "open")
    server.close()
    daemon.client("ada").stop(there["id"])

"""From a line over TCP to a user's feed, through a real gateway, its log and Spark."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

import skerry
from gateway.tests.process import Daemon, wait_for
from gateway.tests.sources.line_server import LineServer, Reader, eventually

CREATE = "CREATE SENSORS detectors (id INT, place TEXT, reading STREAM (gas TEXT, level DECIMAL 'ppm', at TIMESTAMP TIME))"
SELECT = "SELECT d.place, d.reading.level FROM detectors AS d WHERE d.id IN (1, 2) AND d.reading.level > 0.5"


@pytest.fixture
def servers() -> Iterator[list[LineServer]]:
    made = [LineServer() for _ in range(3)]
    yield made
    for server in made:
        server.close()


def sources(daemon: Daemon) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = daemon.client().status()["sources"]
    return found


def check_arrays(ada: skerry.Client) -> None:
    """Executors say which known shape an array is nearest to, and where its peaks are."""
    server = LineServer()
    ada.execute("CREATE SENSORS shapes (name TEXT, points DOUBLE[])")
    ada.execute("INSERT INTO shapes VALUES ('rise', '[1, 2, 3, 4]'), ('bump', '[0, 9, 0, 0]')")
    ada.execute("CREATE SENSORS counters (id INT, reading STREAM (counts INT[], times DOUBLE))")
    ada.execute(f"INSERT INTO counters VALUES (1, '{server.address}')")
    sql = (
        "SELECT NEAREST(counts, 'shapes') AS shape, PEAKS(counts, 5) AS peaks, WITHOUT(counts, 'shapes', 'rise', times) AS rest "
        "FROM counters WHERE NEAREST(counts, 'shapes') IS NOT NULL"
    )
    reader = Reader(ada.query(sql))
    server.send(
        {"counts": [5, 6, 8, 9], "times": 2}, {"counts": [1, 2]}, {"counts": [1, 8, 1, 1], "times": 0}
    )
    eventually(
        lambda: reader.got,
        [
            {"shape": "rise", "peaks": [], "rest": [3.0, 2.0, 2.0, 1.0]},
            {"shape": "bump", "peaks": [1], "rest": [1.0, 8.0, 1.0, 1.0]},
        ],
    )
    reader.rows.stop()
    server.close()


@pytest.mark.spark
@pytest.mark.slow
def test_lines_over_tcp_stream_back_also_after_kill_9(daemon: Daemon, servers: list[LineServer]) -> None:
    daemon.start()
    ada = daemon.client("ada")
    ada.execute(CREATE)
    values = ", ".join(f"({i}, 'gate {i}', '{server.address}')" for i, server in enumerate(servers, 1))
    ada.execute(f"INSERT INTO detectors VALUES {values}")
    assert [server.calls for server in servers] == [0, 0, 0], "nothing is opened before a query selects it"
    first = Reader(ada.query(SELECT, linger_s=None))
    for i, server in enumerate(servers[:2], 1):
        server.send(
            {"gas": "CO", "level": 0.4 + i / 10, "at": "2002-11-06T12:00:00Z"}, {"level": i, "gas": None}
        )
    eventually(lambda: sorted((r["d.place"], r["d.reading.level"]) for r in first.got),
               [("gate 1", 1.0), ("gate 2", 0.6), ("gate 2", 2.0)])  # fmt: skip
    assert servers[2].calls == 0, "what no query selects is not opened"
    # A second query reads the same source, which is called but once.
    second = Reader(
        daemon.client("eve").query(
            "SELECT place, gas, level, at, time FROM detectors WHERE id < 3 AND gas LIKE 'C%'", linger_s=None
        )
    )
    wait_for(lambda: {(s["tuple"], s["state"]) for s in sources(daemon)} == {(1, "open"), (2, "open")})
    servers[0].send(
        b'{"gas": "CH4", "level": 0.1, "at": "2002-11-06T13:00:00+01:00"}\n',
        b"no json\n",
        {"level": "much"},
        {"at": "3002-01-01"},
    )
    noon = datetime(2002, 11, 6, 12, tzinfo=UTC)
    eventually(
        lambda: second.got, [{"place": "gate 1", "gas": "CH4", "level": 0.1, "at": noon, "time": noon}]
    )
    assert [server.calls for server in servers] == [1, 1, 0]
    wait_for(lambda: sources(daemon)[0]["misfits"] == 2 and sources(daemon)[0]["ahead"] == 1)
    assert "it is no JSON" in sources(daemon)[0]["sample"][0]
    assert "field level is DECIMAL, which 'much' is not" in sources(daemon)[0]["sample"][1]
    check_arrays(ada)
    # Killed: readers go on where they were, and neither lose nor repeat a row of the log.
    daemon.kill()
    wait_for(lambda: servers[0].listeners == 0)
    daemon.start()
    wait_for(lambda: all(server.listeners == 1 for server in servers[:2]))
    servers[1].send({"gas": "C", "level": 7})
    eventually(lambda: sorted(r["d.reading.level"] for r in first.got), [0.6, 1.0, 2.0, 7.0])
    eventually(lambda: [(r["gas"], r["level"]) for r in second.got], [("CH4", 0.1), ("C", 7.0)])
    again = Reader(daemon.client("ada").resume(first.rows.id))
    eventually(lambda: again.got, first.got)
    # An address that is changed is followed while the queries run; who has stopped is not read for.
    daemon.client("ada").execute(
        f"UPDATE detectors SET reading = '{servers[2].address}', place = 'gate 9' WHERE id = 2"
    )
    wait_for(lambda: servers[2].listeners == 1 and servers[1].listeners == 0)
    servers[2].send({"gas": "Cl", "level": 8})
    eventually(lambda: [row["place"] for row in second.got], ["gate 1", "gate 2", "gate 9"])
    first.rows.stop()
    second.rows.stop()
    wait_for(lambda: sum(server.listeners for server in servers) == 0)


@pytest.mark.spark
@pytest.mark.slow
def test_what_cannot_be_opened_is_named_and_others_go_on(daemon: Daemon, servers: list[LineServer]) -> None:
    daemon.start()
    ada = daemon.client("ada")
    ada.execute(CREATE)
    gone = LineServer()
    gone.close()
    addresses = [gone.address, "gopher://127.0.0.1:1", "tcp://192.0.2.1:5001", "tcp://127.0.0.1", f"tcp://127.0.0.1:{servers[1].port}?fomat=csv",
                 servers[0].address]  # fmt: skip
    for i, address in enumerate(addresses, 1):
        ada.execute(f"INSERT INTO detectors VALUES ({i}, 'gate {i}', '{address}')")
    reader = Reader(ada.query("SELECT id, level FROM detectors"))
    servers[0].send({"level": 1})
    eventually(lambda: reader.got, [{"id": 6, "level": 1.0}])
    wait_for(
        lambda: (
            [s["state"] for s in sources(daemon)]
            == ["away", "refused", "refused", "refused", "refused", "open"]
        )
    )
    whys = [source["why"] for source in sources(daemon)]
    for why, part in zip(
        whys, ["nobody listens there; tried again in", "no type of streams 'gopher': there are", "the operator allows no tcp://192.0.2.1",
               "names no host and port", "option 'fomat' is none of tcp's: did you mean 'format'? there are format", ""], strict=True,
    ):  # fmt: skip
        assert part in why, whys
    assert "5 of 6 sources bring nothing: tcp://127.0.0.1:" in str(reader.rows.status()["paused"])
    reader.rows.stop()

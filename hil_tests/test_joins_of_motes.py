"""Joins of emulated motes with each other and with a stream over TCP, several on one small network at once, over kill -9 of the gateway:
each user has what DuckDB answers over the readings and rows that the log has."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

import skerry
from gateway.tests.joins import mote_oracle
from gateway.tests.joins.mote_oracle import Question
from gateway.tests.process import Daemon, wait_for
from gateway.tests.sources.line_server import LineServer, Reader
from skerry.planner.model.plans import Feed
from skerry.storage.log import stream_log
from skerry.storage.state import published
from skerry.streams.stream import Stream
from skerry_testbed.network import Environment, Field, Mote
from skerry_testbed.pytest import MakeNetwork, disc
from skerry_testbed.runner import Testbed
from skerry_testbed.serial_port import SerialPort

#: Seconds of the motes' time in one of this machine's; windows are of this machine's.
SPEED = 4.0
SECOND = 1_000_000
CREATE = "CREATE SENSORS weather (id INT, sky STREAM (n INT, warm DOUBLE))"
PAIRS = (
    "SELECT time, s.nodeid AS one, t.nodeid AS other, s.epoch AS e, t.epoch AS f FROM sensors AS s, sensors AS t WINDOW 3 ROWS "
    "WHERE s.room = t.room AND s.nodeid < t.nodeid AND s.light > 100 AND t.temp - s.temp > 0.5 LATENESS 3 s SAMPLE PERIOD 2 s"
)
WARM = (
    "SELECT time, s.nodeid AS one, s.epoch AS e, w.n AS n FROM sensors AS s, weather AS w WINDOW 1 s "
    "WHERE s.temp > w.warm AND s.light > 100 AND w.id = 1 LATENESS 1 min SAMPLE PERIOD 2 s"
)
ALL = (
    "SELECT time, a.nodeid AS one, b.nodeid AS other, a.epoch AS e, w.n AS n FROM sensors AS a, weather AS w, sensors AS b "
    "WINDOW 600 ms WHERE a.epoch = b.epoch AND a.nodeid < b.nodeid AND a.temp < w.warm LATENESS 1 min SAMPLE PERIOD 2 s"
)
ASKED = {
    PAIRS: Question(
        {"s": "s", "t": "t"},
        ("s.nodeid", "t.nodeid", "s.epoch", "t.epoch"),
        "s.room = t.room AND s.nodeid < t.nodeid AND t.temp - s.temp > 0.5",
        3 * SECOND,
        rows=3,
    ),
    WARM: Question(
        {"s": "s", "w": "w"}, ("s.nodeid", "s.epoch", "w.n"), "s.temp > w.warm", 60 * SECOND, SECOND
    ),
    ALL: Question(
        {"a": "a", "w": "w", "b": "a"},
        ("a.nodeid", "b.nodeid", "a.epoch", "w.n"),
        "a.epoch = b.epoch AND a.nodeid < b.nodeid AND a.temp < w.warm",
        60 * SECOND,
        600_000,
    ),
}


@contextmanager
def going_on(bed: Testbed) -> Iterator[str]:
    """Motes that run in a thread; the address of their root's line."""
    bed.line_listeners.clear()
    line, stop = SerialPort(bed, 0, SPEED), threading.Event()
    run = threading.Thread(target=lambda: bed.run(None, SPEED, stop.is_set, line.poll), daemon=True)
    run.start()
    try:
        yield f"socket://127.0.0.1:{line.port}"
    finally:
        stop.set()
        run.join()
        line.close()


@pytest.mark.spark
@pytest.mark.slow
def test_motes_join_each_other_and_a_stream_over_tcp(
    network: MakeNetwork, tmp_path: Path, drawn_seed: int
) -> None:
    fields = {
        "temp": Field(base=20.0, gradient=(0.03, 0.0), amplitude=1.5, period="50 s", noise=0.4),
        "light": Field(base=110.0, amplitude=60.0, period="35 s", noise=20.0),
    }
    motes = [Mote(id=node, x=10.0 * node, y=0.0, root=node == 0, room=node % 2) for node in range(5)]
    bed = network(motes, radio=disc(25), environment=Environment(fields=fields)).bed
    bed.advance(15)
    server = LineServer()
    with going_on(bed) as link:
        daemon = Daemon(link, tmp_path / "data")
        try:
            chance = random.Random(drawn_seed)
            daemon.start("--speed", f"{SPEED:g}")
            readers = _asked(daemon, server)
            _let_come(daemon, server, chance, readers, 12)
            daemon.kill()
            daemon.start("--speed", f"{SPEED:g}")
            wait_for(lambda: server.listeners == 1)
            _let_come(daemon, server, chance, readers, 24)
        except BaseException:
            daemon.kill()
            raise
    # No more rows come.
    try:
        _check(daemon, readers, drawn_seed)
    finally:
        daemon.kill()
        server.close()


def _asked(daemon: Daemon, server: LineServer) -> dict[str, Reader]:
    ada = daemon.client("ada")
    ada.execute(CREATE)
    ada.execute(f"INSERT INTO weather VALUES (1, '{server.address}')")
    with pytest.raises(skerry.GatewayError, match="SIGNAL is for queries over motes alone"):
        ada.query(f"{PAIRS} SIGNAL hot")
    told = ada.explain(PAIRS)["text"]
    assert "s: motes are asked SELECT nodeid, epoch, temp, room FROM sensors WHERE (light > 100)" in told
    return {sql: Reader(ada.query(sql, linger_s=None)) for sql in ASKED}


def _let_come(
    daemon: Daemon, server: LineServer, chance: random.Random, readers: dict[str, Reader], least: int
) -> None:
    """Weather while motes sample, until each join has had some answers."""
    n = 100 * least
    while min(len(reader.got) for reader in readers.values()) < least:
        wait_for(lambda: server.listeners == 1)
        server.send({"n": n, "warm": chance.choice([None, 19.5, 20.5, 21.5])})
        n += 1
        time.sleep(chance.uniform(0.05, 0.4))
        assert daemon.process is not None
        assert daemon.process.poll() is None


def _check(daemon: Daemon, readers: dict[str, Reader], seed: int) -> None:
    client, connection = daemon.client(), duckdb.connect()
    wait_for(lambda: _is_quiet(client))
    log = daemon.data / stream_log.DIRECTORY
    streams = {entry["number"]: Stream.from_dict(entry) for entry in published.streams(daemon.data)}
    weather = mote_oracle.rows_of_source(log, "sky.n", "sky.warm")
    for sql, reader in readers.items():
        asked = ASKED[sql]
        questions = [one for one in client.queries() if one["started_by"] == reader.rows.id]
        assert len(questions) == len({*asked.streams.values()} - {"w"})
        tables = {"w": weather} if "w" in asked.streams else {}
        for question, alias in zip(questions, sorted({*asked.streams.values()} - {"w"}), strict=True):
            known = published.query(daemon.data, question["id"])
            assert known is not None
            feeds = {int(number): Feed(*feed) for number, feed in known["feeds"].items()}
            connection.register("readings", mote_oracle.rows_of_motes(log, feeds, streams))
            condition = "light > 100" if "light > 100" in question["sql"] else "TRUE"
            tables[alias] = connection.sql(f"SELECT * FROM readings WHERE {condition}").to_arrow_table()
        expected = mote_oracle.answers(asked, tables, connection)
        if asked.rows is not None:
            latest = max(max(table["time"].to_pylist()) for table in tables.values()) - asked.lateness_us
            expected = Counter({row: n for row, n in expected.items() if int(row[0]) <= latest})  # type: ignore[call-overload]
        count = expected.total()
        wait_for(lambda reader=reader, count=count: len(reader.got) >= count)
        assert Counter(map(_given, reader.got)) == expected, f"seed {seed}: {sql}"
    told = {one["query"]: one for one in client.status()["joins"]}
    assert {len(told[reader.rows.id]["motes"]) for reader in readers.values()} == {1, 2}


def _is_quiet(client: skerry.Client) -> bool:
    """Whether all that has come has been through."""
    status = client.status()
    return bool(status["processed"] == status["rows"])


def _given(row: dict[str, Any]) -> tuple[object, ...]:
    time_, *rest = row.values()
    return round(time_.timestamp() * 1e6), *rest

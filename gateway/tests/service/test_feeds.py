"""Feeds of a running gateway: both kinds, the Python client's ways to read them, positions, slow readers, readers that vanish."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pyarrow as pa
import pytest

import skerry
from gateway.tests.peer import RootPeer
from gateway.tests.process import Daemon, queue_rows, wait_for
from skerry_protocol import codec
from skerry_protocol.codes import PacketType, RefusalReason

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SQL = "SELECT nodeid, temp FROM sensors SAMPLE PERIOD 1 s"
ARROW = "application/vnd.apache.arrow.stream"


class Station:
    """A gateway, its root, and rows that come when they are asked for. What else the tests ask is to be served by the same query of the
    motes: the root's clock is not that of the rows, and a query that takes its place begins by the clock."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.peer = RootPeer()
        self.daemon = Daemon(self.peer.url, directory / "data")
        self.daemon.start(*options)
        self.client = self.daemon.client("ada")
        self.asked = self.client.query(SQL)
        wait_for(self.peer.programs)
        [(self.query, self.program)] = self.peer.programs().items()
        self.epoch = 60

    def rows(self, epochs: int) -> list[dict[str, Any]]:
        """Let three motes report for so many epochs; returns when everybody could have read it, with what each reader is to get."""
        begin, self.epoch = self.epoch, self.epoch + epochs
        queue_rows(self.peer, self.query, range(begin, self.epoch), self.program)
        self.settle()
        return [
            {"nodeid": node, "temp": (2000 + epoch * 10 + node) / 100}
            for epoch in range(begin, self.epoch)
            for node in range(1, 4)
        ]

    def settle(self) -> None:
        wait_for(lambda: not self.peer.waiting)
        wait_for(lambda: self.status()["processed"] == self.status()["rows"] > 0)

    def status(self) -> dict[str, Any]:
        return self.client.status()

    def close(self) -> None:
        self.daemon.kill()
        self.peer.close()


@pytest.fixture(scope="module")
def station(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Station]:
    made = Station(tmp_path_factory.mktemp("feeds"))
    yield made
    assert set(made.peer.programs()) == {made.query}
    made.close()


def test_every_way_of_reading_goes_on_where_another_left_off(station: Station) -> None:
    reader = station.client.resume(
        station.asked.id, after=station.status()["rows"] - 1 if station.epoch > 60 else None
    )
    expected = station.rows(20)
    got = [row for _, row in zip(range(7), reader, strict=False)]
    table = reader.to_arrow(rows=8)
    got += table.to_pylist()
    assert table.schema.field("temp").metadata == {b"unit": b"degC"}
    frame = reader.to_pandas(rows=5)
    assert isinstance(frame, pd.DataFrame)
    got += frame.to_dict("records")

    async def some(count: int) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        async for row in reader:
            rows.append(row)
            if len(rows) == count:
                break
        return rows

    got += asyncio.run(some(9))
    again = station.client.resume(station.asked.id, after=reader.position)
    for batch in again.batches():
        got += batch.to_pylist()
        if len(got) >= 50:
            break
    rest = station.client.resume(station.asked.id, after=again.position)
    last = rest.to_arrow(seconds=1.0)
    # Of a batch whose successor was not asked for, the position is the one before it.
    assert last.to_pylist()[-3:] == expected[-3:]
    assert got == expected[: len(got)]
    assert rest.to_arrow(seconds=0.5).num_rows == 0
    assert rest.to_arrow(rows=0).schema.names == ["nodeid", "temp"]


def test_reading_for_some_time_ends_then_also_while_rows_come(station: Station) -> None:
    station.rows(1)
    reader = station.client.resume(station.asked.id, after=station.status()["rows"] - 1)
    rows, over = station.rows(0), threading.Event()

    def report() -> None:
        while not over.wait(0.3):
            rows.extend(station.rows(1))

    reporting = threading.Thread(target=report)
    reporting.start()
    began = time.monotonic()
    table = reader.to_arrow(seconds=2.5)
    assert time.monotonic() - began >= 2.5
    assert reporting.is_alive(), "it ends while rows come"
    over.set()
    reporting.join()
    rows.extend(station.rows(1))
    assert table.to_pylist() == rows[: table.num_rows]
    assert reader.to_arrow(rows=3).to_pylist() == rows[table.num_rows : table.num_rows + 3]


def test_the_kind_of_feed_is_negotiated(station: Station) -> None:
    station.rows(2)
    path = f"{station.daemon.url}/queries/{station.asked.id}/rows"
    for accept, kind in {
        None: "text/event-stream",
        "*/*": "text/event-stream",
        "text/event-stream": "text/event-stream",
        ARROW: ARROW,
        f"{ARROW}, text/event-stream;q=0.5": ARROW,
        f"{ARROW};q=0.1, text/*": "text/event-stream",
    }.items():
        with httpx.stream("GET", path, headers={"Accept": accept} if accept else {}) as answer:
            assert answer.status_code == 200
            assert answer.headers["Content-Type"].partition(";")[0] == kind
    refused = httpx.get(path, headers={"Accept": "text/html"})
    assert refused.status_code == 406
    assert ARROW in refused.json()["message"]
    for position in ("x", "-2", "99999999", "1.5", "9" * 5000):
        refused = httpx.get(path, headers={"Last-Event-ID": position})
        assert refused.status_code == 400
        assert repr(position) in refused.json()["message"]


def test_any_reader_of_arrow_can_resume(station: Station) -> None:
    station.rows(1)
    begin = station.status()["rows"] - 1
    expected = station.rows(4)
    path = f"{station.daemon.url}/queries/{station.asked.id}/rows"
    got: list[dict[str, Any]] = []
    while len(got) < len(expected):
        with httpx.stream("GET", f"{path}?after={begin}", headers={"Accept": ARROW}) as answer:
            assert answer.status_code == 200
            chunks = answer.iter_raw()
            received = b""
            while True:
                received += next(chunks)
                with (
                    contextlib.suppress(pa.ArrowInvalid, OSError, StopIteration),
                    pa.ipc.open_stream(received) as stream,
                ):
                    batch = stream.read_next_batch()
                    while not batch.num_rows:
                        batch = stream.read_next_batch()
                    row = batch.to_pylist()[0]
                    break
        begin = row.pop("_row")
        got.append(row)
    assert got == expected


def test_the_end_of_a_query_ends_its_feeds(station: Station) -> None:
    asked = station.client.query("SELECT nodeid, -temp AS t FROM sensors SAMPLE PERIOD 1 s")
    events = httpx.stream("GET", f"{station.daemon.url}/queries/{asked.id}/rows", timeout=600)
    with events as answer:
        asked.stop()
        assert answer.read().decode().endswith("event: end\ndata: stopped\n\n")
    with pytest.raises(skerry.GatewayError, match=f"no query {asked.id}"):
        asked.to_arrow()
    assert {entry["id"] for entry in station.client.queries()} == {station.asked.id}


def raw_feed(station: Station, query: str, accept: str, buffer: int | None = None) -> socket.socket:
    """A connection that has asked for a feed and not read anything."""
    connection = socket.socket()
    if buffer is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    connection.connect(("127.0.0.1", station.daemon.port))
    request = f"GET /queries/{query}/rows HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: {accept}\r\n\r\n"
    connection.sendall(request.encode())
    return connection


def descriptors(station: Station) -> int:
    assert station.daemon.process is not None
    return len(os.listdir(f"/proc/{station.daemon.process.pid}/fd"))


def test_readers_that_vanish_in_the_middle_of_a_row_leave_nothing(station: Station) -> None:
    station.rows(2)
    wait_for(lambda: station.status()["feeds"] == 0)
    before, logged = descriptors(station), station.daemon.log.stat().st_size
    steady = station.client.resume(station.asked.id, after=station.status()["rows"] - 1)
    connections = [
        raw_feed(station, station.asked.id, kind) for kind in ("text/event-stream", ARROW) for _ in range(10)
    ]
    wait_for(lambda: station.status()["feeds"] == len(connections))
    for i, connection in enumerate(connections):
        assert connection.recv(40 + i), "part of the answer"
        if i % 2:
            # A reset, as of a process that was killed with unread data.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
    expected = station.rows(3)
    wait_for(lambda: station.status()["feeds"] == 0)
    # The client's own connection and the status's may be one more or less.
    wait_for(lambda: descriptors(station) <= before + 1)
    assert steady.to_arrow(rows=len(expected)).to_pylist() == expected
    assert b"Traceback" not in station.daemon.log.read_bytes()[logged:]


def test_more_may_read_than_a_shell_lets_a_process_have_files(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    readers = 600
    peer, feeds = RootPeer(), []
    daemon = Daemon(peer.url, tmp_path / "data")
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (400, before[1]))
        daemon.start()
        resource.setrlimit(resource.RLIMIT_NOFILE, (3 * readers, before[1]))
        asked = daemon.client("ada").query(SQL)
        for _ in range(readers):
            feed = socket.create_connection(("127.0.0.1", daemon.port))
            feed.sendall(f"GET /queries/{asked.id}/rows HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            feeds.append(feed)
        for feed in feeds:
            feed.settimeout(60)
            assert feed.recv(1000).startswith(b"HTTP/1.1 200 OK")
        [entry] = daemon.client("ada").queries()
        assert entry["readers"] == readers
    finally:
        for feed in feeds:
            feed.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        daemon.kill()
        peer.close()


def test_a_query_that_nobody_reads_any_more_is_stopped(station: Station) -> None:
    asked = station.client.query("SELECT nodeid, temp FROM sensors SAMPLE PERIOD 2 s", linger_s=1.5)
    kept = station.client.query("SELECT nodeid, temp FROM sensors SAMPLE PERIOD 4 s")
    connection = raw_feed(station, asked.id, "text/event-stream")
    wait_for(lambda: station.status()["feeds"] == 1)
    time.sleep(3.5)
    assert asked.id in {entry["id"] for entry in station.client.queries()}, "somebody reads it"
    connection.close()
    wait_for(lambda: asked.id not in {entry["id"] for entry in station.client.queries()})
    assert kept.id in {entry["id"] for entry in station.client.queries()}
    kept.stop()


def test_what_a_script_asks_ends_with_the_script(station: Station) -> None:
    script = f"""
import skerry, sys
client = skerry.connect({station.client.url!r}, user="ada")
sql = "SELECT nodeid, temp FROM sensors SAMPLE PERIOD {{}} s"
left, stays = client.query(sql.format(2)), client.query(sql.format(4), linger_s=None)
with client.query(sql.format(8)) as within:
    print(left.id, stays.id, within.id, len(client.queries()))
print(within.id in [query["id"] for query in client.queries()])
sys.exit("as by an error")
"""
    before = {entry["id"] for entry in station.client.queries()}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (1, "as by an error\n")
    _, stays, _, count, there = done.stdout.split()
    assert (int(count), there) == (len(before) + 3, "False")
    now = {entry["id"]: entry for entry in station.client.queries()}
    assert now.keys() - before == {stays}
    assert now[stays]["linger_s"] is None
    station.client.stop(stays)


def test_whoever_waits_for_rows_is_told_why_none_come(station: Station) -> None:
    station.rows(1)
    refusal = codec.encode(
        PacketType.REFUSAL, query=station.query, node=9, reason=RefusalReason.MALFORMED, missing=0
    )
    station.peer.waiting.append(refusal)
    with station.client.query("SELECT nodeid, temp FROM sensors SAMPLE PERIOD 2 s") as asked:
        why = "takes its program for none: is its firmware older than the gateway?"
        wait_for(lambda: asked.status()["refused"] == [f"mote 9 {why}"])
        status = asked.status()
        assert (status["answered"], status["waits_for"], status["paused"]) == (3, [], None)
        assert status["begins"] == pytest.approx(asked.begins, abs=2)
    command = [
        sys.executable,
        "-m",
        "skerry.cli.main",
        "query",
        SQL,
        "--for",
        "6s",
        "--url",
        station.client.url,
    ]
    told = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=True
    ).stderr.splitlines()
    assert f"refused by mote 9, which {why}" in told
    assert next(line for line in told if "answered" in line).startswith("3 ")
    assert told[-1].startswith("0 rows in ")


def test_a_slow_reader_is_told_what_was_dropped_and_nobody_else_notices(tmp_path: Path) -> None:
    backlog = 400
    station = Station(tmp_path, "--backlog", str(backlog))
    try:
        columns = ", ".join(f"temp + {i} AS column_with_a_rather_long_name_{i}" for i in range(40))
        wide = station.client.query(f"SELECT {columns} FROM sensors SAMPLE PERIOD 1 s")
        steady = iter(station.asked)
        expected = station.rows(10)
        begin = station.status()["rows"]
        assert [next(steady) for _ in expected] == expected
        slow = raw_feed(station, wide.id, "text/event-stream", buffer=1 << 16)
        wait_for(lambda: station.status()["feeds"] == 2)
        # What kernel and server hold for him is full some time, and then he falls behind more than he may.
        for _ in range(24):
            more = station.rows(50)
            assert [next(steady) for _ in more] == more, "each row, once, in order"
        got, dropped = read_events(slow, station)
        assert dropped, "he was told"
        told = {row for entry in dropped for row in range(entry["first"], entry["last"] + 1)}
        end = station.status()["rows"]
        assert set(got).isdisjoint(told)
        assert set(got) | told >= set(range(begin, end)), "each row was given or named"
        assert sorted(got) == got
        assert all(entry["since"] <= entry["until"] for entry in dropped)
        assert f"more than {backlog} rows behind" in dropped[0]["reason"]
        slow.close()
        late = station.client.resume(wide.id, after=begin)
        with pytest.warns(skerry.RowsDroppedWarning, match="were dropped"):
            table = late.to_arrow(seconds=3)
        [skipped] = late.dropped
        assert skipped.first == begin + 1
        assert skipped.last + table.num_rows + 1 == end
    finally:
        station.close()


def read_events(connection: socket.socket, station: Station) -> tuple[list[int], list[dict[str, Any]]]:
    """Row numbers and notices, up to the end of the log."""
    end = station.status()["rows"] - 1
    received = bytearray()
    connection.settimeout(20)
    while f"id: {end}\n".encode() not in received[-(1 << 17) :]:
        received += connection.recv(1 << 16)
    got, dropped = [], []
    # The chunks' sizes, on lines of their own, are no events.
    lines = [line for line in received.decode().replace("\r\n", "\n").split("\n") if line]
    for number, kind, data in zip(lines, lines[1:], lines[2:], strict=False):
        if number.startswith("id: ") and kind == "event: row":
            got.append(int(number[4:]))
        elif number.startswith("id: ") and kind == "event: dropped":
            dropped.append(json.loads(data[6:]))
    return got, dropped

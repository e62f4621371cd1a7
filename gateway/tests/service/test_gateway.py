"""The daemon as a process, with real Spark, on a real TCP port; the root is a byte-level peer."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import skerry
from gateway.tests.peer import RootPeer
from gateway.tests.ports import free_port
from gateway.tests.process import COMMAND, SQL, Daemon, ask, queue_rows, wait_for
from skerry.storage.log.stream_log import read
from skerry_protocol import codec, programs
from skerry_protocol.codes import Aggregate, CommandOp, PacketType, RefusalReason
from skerry_protocol.limits import PROTOCOL_VERSION

pytestmark = [pytest.mark.spark, pytest.mark.slow]


class Station(NamedTuple):
    """A gateway and its root that several tests use, one after the other: nothing is asked, and the root has heard nothing."""

    peer: RootPeer
    daemon: Daemon


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Station]:
    peer = RootPeer()
    daemon = Daemon(peer.url, tmp_path_factory.mktemp("station") / "data")
    daemon.options = ("--alarm-after", "5")
    daemon.start()
    yield Station(peer, daemon)
    daemon.kill()
    peer.close()


@pytest.fixture
def station(started: Station) -> Iterator[Station]:
    peer, client = started.peer, started.daemon.client()
    peer.received.clear()
    yield started
    for query in client.queries():
        client.stop(query["id"])
    # Motes are told a little later than nobody asks any more.
    wait_for(lambda: {stop.query for stop in stops(peer)} >= peer.programs().keys())


def stops(peer: RootPeer) -> list[Any]:
    return [packet.body for packet in list(peer.received) if packet.type is PacketType.QUERY_STOP]


def first_epoch(program: bytes) -> int:
    """Which a program runs from its beginning to its end, and even."""
    return (codec.decode_program(program).start + 2) // 2 * 2


def test_kill_9_while_rows_flow_loses_and_doubles_nothing(
    peer: RootPeer, daemon: Daemon, tmp_path: Path
) -> None:
    daemon.start()
    asked = skerry.connect(daemon.url, user="ada").query(
        "SELECT nodeid, temp FROM sensors WHERE temp > 21 SAMPLE PERIOD 1 s"
    )
    assert asked.to_arrow(seconds=0.5).num_rows == asked.to_arrow(seconds=0.5).num_rows == 0, "twice in vain"
    wait_for(peer.programs)
    [(query, program)] = peer.programs().items()
    period_epochs = range(60, 160)
    queue_rows(peer, query, period_epochs, program)
    wait_for(lambda: peer.acknowledged > 60)
    daemon.kill()
    acknowledged = peer.acknowledged
    stored = read(tmp_path / "data" / "log", 0, 10_000)
    keys = {(int(r["node"]), int(r["epoch"])) for r in stored}
    assert len(keys) >= acknowledged, "every row that was acknowledged is in the log"
    daemon.start()
    wait_for(lambda: not peer.waiting)
    stored = read(tmp_path / "data" / "log", 0, 10_000)
    assert sorted((int(r["epoch"]), int(r["node"])) for r in stored) == [
        (e, n) for e in period_epochs for n in range(1, 4)
    ]
    assert skerry.connect(daemon.url).status()["rows"] == 300, "the log's, not those since the start"
    # The query goes on, and its user, who reconnects, gets each row once.
    got = []
    for row in skerry.connect(daemon.url, user="ada").resume(asked.id):
        got.append((row["nodeid"], row["temp"]))
        if len(got) == 299:
            break
    expected = [
        (n, (2000 + e * 10 + n) / 100) for e in period_epochs for n in range(1, 4) if 2000 + e * 10 + n > 2100
    ]
    assert got == expected[:299]
    assert len(expected) == 300 - sum(2000 + e * 10 + n <= 2100 for e in period_epochs for n in range(1, 4))


@pytest.mark.parametrize("away", ["root", "gateway"])
def test_a_query_that_ends_while_the_line_is_down_has_the_rows_that_waited(
    peer: RootPeer, daemon: Daemon, away: str
) -> None:
    daemon.start()
    asked = daemon.client("ada").query(f"{SQL} FOR 2 s")
    wait_for(peer.programs)
    [(query, program)] = peer.programs().items()
    first, end = codec.decode_program(program).start, codec.decode_program(program).end
    peer.close() if away == "root" else daemon.kill()
    wait_for(lambda: time.monotonic() - peer.began > end + 13)
    peer.open() if away == "root" else daemon.start()
    wait_for(lambda: daemon.client().status()["link"]["state"] == "connected")
    time.sleep(2)
    queue_rows(peer, query, range(first, end), program)
    assert len(list(asked)) == 6


def test_two_users_share_one_mote_query(station: Station) -> None:
    peer, daemon = station
    fast = skerry.connect(daemon.url, user="ada").query(
        "SELECT temp FROM sensors WHERE nodeid = 1 SAMPLE PERIOD 1 s"
    )
    slow = skerry.connect(daemon.url, user="grace").query(
        "SELECT temp FROM sensors WHERE nodeid = 2 SAMPLE PERIOD 2 s"
    )
    wait_for(lambda: len(skerry.connect(daemon.url).status()["streams"]) >= 1)
    time.sleep(1)
    programs = peer.programs()
    query, program = max(programs.items())
    assert codec.decode_program(program).period == 1000
    first = first_epoch(program)
    queue_rows(peer, query, range(first, first + 20), program)
    rows: dict[str, list[float]] = {"ada": [], "grace": []}
    for user, answer, count in (("ada", fast, 15), ("grace", slow, 8)):
        for row in answer:
            rows[user].append(row["temp"])
            if len(rows[user]) == count:
                break
    assert all(round(value * 100) % 10 == 1 for value in rows["ada"])
    assert all(round(value * 100) % 20 == 2 for value in rows["grace"]), "every other epoch, of mote 2 alone"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, timeout=600, check=False)


def test_expected_failures_are_one_line(station: Station, tmp_path: Path) -> None:
    peer, daemon = station
    blocked = tmp_path / "file"
    blocked.write_text("")
    busy = f"127.0.0.1:{daemon.port}"
    cases = {
        "in use": ("gateway", "--link", peer.url, "--data", str(tmp_path / "a"), "--listen", busy),
        "No such file": (
            "gateway",
            "--link",
            "/dev/ttyNONE",
            "--data",
            str(tmp_path / "b"),
            "--listen",
            f"127.0.0.1:{free_port()}",
        ),
        "directory": (
            "gateway",
            "--link",
            peer.url,
            "--data",
            str(blocked / "sub"),
            "--listen",
            f"127.0.0.1:{free_port()}",
        ),
        "another gateway": (
            "gateway",
            "--link",
            peer.url,
            "--data",
            str(daemon.data),
            "--listen",
            f"127.0.0.1:{free_port()}",
        ),
        "no gateway at": (
            "query",
            "SELECT temp FROM sensors ONCE",
            "--url",
            f"http://127.0.0.1:{free_port()}",
        ),
        "did you mean 'temp'": ("query", "SELECT tmep FROM sensors ONCE", "--url", daemon.url),
    }
    for text, arguments in cases.items():
        done = run(*arguments)
        assert done.returncode == 1, (text, done.stderr)
        assert text in done.stderr, done.stderr
        assert done.stdout == ""
        assert len(done.stderr.strip().splitlines()) <= 3
    assert run("gateway", "--links").returncode == 2
    for option in ("--keep-days", "--keep-gb", "--keep-log-days", "--keep-log-gb"):
        endless = run("gateway", "--link", peer.url, option, "inf")
        assert (endless.returncode, "Traceback" in endless.stderr) == (2, False), endless.stderr
        assert f"Invalid value for '{option}'" in endless.stderr


def test_csv_and_json_write_only_data(station: Station) -> None:
    peer, daemon = station
    process = subprocess.Popen(
        [COMMAND, "query", "SELECT nodeid, temp FROM sensors SAMPLE PERIOD 1 s", "--format", "json", "--rows", "3", "--url", daemon.url],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ,
    )  # fmt: skip
    wait_for(peer.programs)
    [(query, program)] = peer.programs().items()
    first = first_epoch(program)
    queue_rows(peer, query, range(first, first + 2), program)
    out, _ = process.communicate(timeout=600)
    assert [json.loads(line) for line in out.splitlines()] == [
        {"nodeid": n, "temp": (2000 + first * 10 + n) / 100} for n in (1, 2, 3)
    ]
    assert process.returncode == 0
    for form, expected in (("csv", "nodeid,xpos\n"), ("json", ""), ("table", "nodeid  xpos\n")):
        none = run("catalog", "SELECT nodeid, xpos FROM motes WHERE 0", "--format", form, "--url", daemon.url)
        assert none.stdout == expected, "the heading without rows, too"


@pytest.mark.parametrize("end", ["the reader leaves", "Ctrl-C"])
def test_a_query_that_ends_early_says_how_many_rows_there_were(station: Station, end: str) -> None:
    peer, daemon = station
    process = subprocess.Popen(
        [COMMAND, "query", SQL, "--format", "csv", "--url", daemon.url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(peer.programs)
    [(query, program)] = peer.programs().items()
    first = first_epoch(program)
    queue_rows(peer, query, range(first, first + 1), program)
    assert process.stdout is not None
    assert process.stderr is not None
    assert [process.stdout.readline().split(",")[0] for _ in range(4)] == ["nodeid", "1", "2", "3"]
    if end == "Ctrl-C":
        process.send_signal(signal.SIGINT)
    else:
        process.stdout.close()
        queue_rows(peer, query, range(first + 1, first + 2), program)
    assert process.wait(60) == 0
    started, *begins, told = process.stderr.read().splitlines()
    assert started.startswith("query ")
    # Told where it is a second or more until then, and how many motes have answered while no row has come.
    assert all(line.startswith("begins at ") or line.endswith("answered") for line in begins)
    assert sum(line.startswith("begins at ") for line in begins) <= 1
    assert told.startswith("3 rows in ")
    assert daemon.client().queries() == []


@pytest.mark.parametrize("told", [700, 0xFFFF])
def test_motes_that_another_gateway_told_queries_take_those_of_a_new_one(
    peer: RootPeer, daemon: Daemon, told: int
) -> None:
    """They pass over what is not newer than what they have."""
    peer.query_version = told
    daemon.start()
    daemon.client("ada").query(SQL)
    wait_for(peer.programs)
    [version] = {p.body.query_version for p in list(peer.received) if p.type is PacketType.QUERY_INSTALL}
    assert version == ((told + 1) & 0xFFFF or 1)


def test_another_protocol_version_is_refused_by_name(tmp_path: Path) -> None:
    root = RootPeer(version=7)
    gateway = Daemon(root.url, tmp_path / "data")
    arguments = [
        "gateway",
        "--link",
        root.url,
        "--data",
        str(gateway.data),
        "--listen",
        f"127.0.0.1:{gateway.port}",
    ]
    gateway.process = subprocess.Popen([COMMAND, *arguments], stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: socket.socket().connect_ex(("127.0.0.1", gateway.port)) == 0)
        wait_for(lambda: "version 7" in skerry.connect(gateway.url).status()["link"]["state"])
        assert f"version {PROTOCOL_VERSION}" in skerry.connect(gateway.url).status()["link"]["state"]
    finally:
        gateway.kill(signal.SIGTERM)
        root.close()


def test_drop_all_stops_the_users_own_queries_and_nobody_elses(station: Station) -> None:
    peer, daemon = station
    ada, grace = skerry.connect(daemon.url, user="ada"), skerry.connect(daemon.url, user="grace")
    own = [ada.query(f"SELECT temp SAMPLE PERIOD {period} s").id for period in (2, 4)]
    kept = grace.query("SELECT AVG(temp) HAVING COUNT(*) > 1 EPOCH DURATION 3000")
    wait_for(lambda: len(peer.programs()) == 2)
    command = [
        str(Path(sys.executable).parent / "skerry"),
        "query",
        "drop all",
        "--url",
        daemon.url,
        "--user",
        "ada",
    ]
    stopped = subprocess.run(command, capture_output=True, text=True, check=True)
    assert stopped.stderr.splitlines() == [f"query {query} stopped" for query in own]
    assert ada.queries() == []
    assert [entry["id"] for entry in grace.queries()] == [kept.id]
    wait_for(lambda: PacketType.QUERY_STOP in [packet.type for packet in list(peer.received)])
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert again.stderr == "no query of yours runs\n"


def test_a_storage_point_outlives_the_gateway_and_is_dropped_last(peer: RootPeer, daemon: Daemon) -> None:
    daemon.start()
    ada = skerry.connect(daemon.url, user="ada")
    ada.query("CREATE STORAGE POINT recent SIZE 4 AS SELECT temp FROM sensors SAMPLE PERIOD 2 s")
    reader = ada.query(
        "SELECT r.temp, r.network_time, s.time, r.time, s.time - r.time AS ago FROM sensors s, recent r WHERE s.temp > r.temp "
        "SAMPLE PERIOD 2 s"
    )
    wait_for(lambda: len(peer.programs()) == 2)
    before = dict(peer.programs())
    daemon.kill()
    daemon.start()
    (point,) = ada.points()
    assert (point["name"], point["rows"], point["memory"], point["used_by"]) == (
        "recent",
        4,
        "RAM",
        [reader.id],
    )
    with pytest.raises(skerry.GatewayError, match="query 2 uses storage point recent: stop that first"):
        ada.stop_by("DROP STORAGE POINT recent")
    with pytest.raises(skerry.GatewayError, match="there is a table 'Recent' already"):
        ada.query("CREATE STORAGE POINT Recent SIZE 4 (temp int16)")
    # Two rows of an epoch, made from two stored rows; the second comes twice.
    rows = [
        codec.encode(
            PacketType.RESULT,
            query=2,
            node=7,
            epoch=20,
            nulls=0,
            values=struct.pack("<Hhih", number, 2000 + number, 38, 250),
        )
        for number in (3, 4, 4)
    ]
    peer.waiting.extend(rows)
    seen = [row for _, row in zip(range(2), reader, strict=False)]
    assert [(row["r.temp"], row["r.network_time"]) for row in seen] == [(20.03, 38.25), (20.04, 38.25)]
    # Epoch 20 begins 40 s behind the root's boot.
    assert [(row["s.time"] - row["r.time"], row["ago"]) for row in seen] == [
        (timedelta(seconds=1.75), 1.75)
    ] * 2
    wait_for(lambda: ada.status()["duplicates"] == 1)
    assert peer.programs() == before
    ada.stop(reader.id)
    assert ada.stop_by("DROP STORAGE POINT recent") == ["1"]
    assert ada.points() == []


def test_what_a_finished_query_read_may_be_dropped(daemon: Daemon) -> None:
    """The gateway starts again all the same: nobody asks for that query any more."""
    daemon.start()
    ada = skerry.connect(daemon.url, user="ada")
    ada.query("CREATE STORAGE POINT recent SIZE 4 AS SELECT temp FROM sensors SAMPLE PERIOD 2 s")
    reader = ada.query("SELECT r.temp FROM sensors s, recent r SAMPLE PERIOD 2 s FOR 2 s")
    kept = ada.query("SELECT nodeid FROM sensors SAMPLE PERIOD 60 s")
    wait_for(lambda: any(query["id"] == reader.id and query["finished"] for query in ada.queries()))
    assert ada.stop_by("DROP STORAGE POINT recent") == ["1"]
    daemon.kill()
    daemon.start()
    assert [query["id"] for query in ada.queries()] == [kept.id]


def test_a_semantic_routing_tree_outlives_the_gateway(station: Station) -> None:
    peer, daemon = station
    ada = skerry.connect(daemon.url, user="ada")
    made = ada.query("CREATE SRT rooms ON sensors (room)")
    assert made.srt == "rooms"
    ada.query("SELECT temp FROM sensors WHERE room = 3 SAMPLE PERIOD 2 s")
    wait_for(lambda: len(peer.programs()) == 2)
    before = dict(peer.programs())
    [tree], [route] = _codes(before, Aggregate.SRT), _codes(before, Aggregate.ROUTE)
    assert programs.Route.parse(route).srt == programs.Srt.parse(tree).srt
    daemon.kill()
    daemon.start()
    assert [(tree["name"], tree["query"]) for tree in ada.status()["srts"]] == [("rooms", made.id)]
    with pytest.raises(skerry.GatewayError, match="there is a semantic routing tree 'Rooms' already"):
        ada.query("CREATE SRT Rooms ON sensors (room)")
    with pytest.raises(skerry.GatewayError, match="semantic routing tree 'rooms' is another user's"):
        skerry.connect(daemon.url, user="bob").stop_by("DROP SRT rooms")
    assert peer.programs() == before
    assert ada.stop_by("DROP SRT rooms") == [made.id]
    assert ada.status()["srts"] == []


def _codes(programs: dict[int, bytes], kind: Aggregate) -> list[bytes]:
    fields = (field for program in programs.values() for field in codec.decode_program(program).fields)
    return [field.code for field in fields if field.aggregate == kind]


def test_a_query_that_rows_start_comes_and_goes_with_theirs(station: Station) -> None:
    peer, daemon = station
    ada = skerry.connect(daemon.url, user="ada")
    outer = ada.query(
        "SELECT nodeid WHERE temp > 50 OUTPUT ACTION (SELECT AVG(light) FROM sensors SAMPLE PERIOD 2 s FOR 10 s) SAMPLE PERIOD 10 s"
    )
    (inner,) = [entry for entry in ada.queries() if entry["started_by"] == outer.id]
    assert [column["name"] for column in inner["columns"]] == ["AVG(light)"]
    listed = run("list", "--url", daemon.url)
    assert f" started by {outer.id}: SELECT AVG(light) FROM sensors SAMPLE" in listed.stdout
    wait_for(lambda: len(peer.programs()) == 2)
    clauses = [
        {
            field.aggregate: bytes(field.code)
            for field in codec.decode_program(program).fields
            if field.aggregate >= 64
        }
        for program in peer.programs().values()
    ]
    raised = next(c[Aggregate.SIGNAL] for c in clauses if Aggregate.SIGNAL in c)
    awaited = next(c[Aggregate.ON_EVENT] for c in clauses if Aggregate.ON_EVENT in c)
    assert raised[:2] == awaited[:2], "the one raises what the other waits for"
    daemon.kill()
    daemon.start()
    assert [entry["started_by"] for entry in ada.queries()] == [None, outer.id]
    ada.stop(outer.id)
    assert ada.queries() == []
    ada.query(
        "SELECT nodeid OUTPUT ACTION (SELECT temp OUTPUT ACTION (SELECT light ONCE) ONCE) SAMPLE PERIOD 10 s"
    )
    third, fourth, fifth = (str(int(outer.id) + later) for later in (2, 3, 4))
    assert [(entry["id"], entry["started_by"]) for entry in ada.queries()] == [
        (third, None),
        (fourth, third),
        (fifth, fourth),
    ]
    with pytest.raises(skerry.GatewayError, match="needs to know how long"):
        ada.query("SELECT nodeid OUTPUT ACTION (SELECT temp SAMPLE PERIOD 2 s) SAMPLE PERIOD 10 s")
    assert ada.stop_by("DROP ALL") == [third, fourth, fifth]
    assert ada.queries() == []


def test_commands_go_out_and_answers_come_back(station: Station) -> None:
    peer, daemon = station
    command = subprocess.Popen(
        [COMMAND, "run", "set-room", "214", "--mote", "3", "--url", daemon.url],
        stdout=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: PacketType.COMMAND in [packet.type for packet in list(peer.received)])
    (sent,) = [packet.body for packet in list(peer.received) if packet.type is PacketType.COMMAND]
    assert (sent.target, sent.op, bytes(sent.arguments)) == (3, CommandOp.RUN, b"\4\xd6\0\0\0")
    peer.waiting.append(codec.encode(PacketType.COMMAND_ACK, node=3, token=sent.token, status=0))
    assert command.communicate(timeout=600)[0] == "mote 3: done\n"
    assert command.returncode == 0
    for arguments, message in (
        (("set_room",), "set_room needs an argument: it is 0 to 65535: the attribute room, kept"),
        (("leds", "8"), "leds(8) is out of range: it is 0 to 7: 1 red, 2 green and 4 yellow, added up"),
        (("lods", "1"), "unknown command 'lods': did you mean 'leds'? commands are leds,"),
        (("power_on", "1"), "power_on takes no argument: leave 1 out"),
    ):
        refused = run("run", *arguments, "--url", daemon.url)
        assert refused.returncode == 1
        assert message in refused.stderr
    silent = run("run", "leds", "1", "--mote", "9", "--wait", "0", "--url", daemon.url)
    assert (silent.returncode, silent.stderr) == (1, "no answer from mote 9 in 0 s; it may still come\n")


def test_what_motes_refused_is_listed(station: Station) -> None:
    peer, daemon = station
    _, query, _ = ask(peer, daemon)
    assert "refused" in run("list", "--url", daemon.url).stdout.splitlines()[0].split()
    for node in (3, 4):
        refusal = codec.encode(
            PacketType.REFUSAL, node=node, query=query, reason=RefusalReason.MEMORY, missing=28
        )
        peer.waiting.append(refusal)
        wait_for(lambda: not peer.waiting)
    (listed,) = run("list", "--url", daemon.url).stdout.splitlines()[1:]
    assert "mote 3 has 28 bytes too few for its program and windows; 1 more in 'skerry status'" in listed


def test_rows_that_wait_for_spark_are_an_alarm(station: Station) -> None:
    peer, daemon = station
    ada = daemon.client("ada")
    asked, query, program = ask(peer, daemon)
    rows, first = iter(asked), first_epoch(program)
    queue_rows(peer, query, range(first, first + 2), program)
    assert [next(rows)["nodeid"] for _ in range(6)] == [1, 2, 3, 1, 2, 3]
    # A machine that is slow to give the first rows on has raised it already.
    wait_for(lambda: ada.status()["alarms"] == [])
    java = daemon.child("java")
    os.kill(java, signal.SIGSTOP)
    try:
        queue_rows(peer, query, range(first + 2, first + 4), program)
        wait_for(lambda: [alarm["name"] for alarm in ada.status()["alarms"]] == ["delivery"])
    finally:
        os.kill(java, signal.SIGCONT)
    assert [next(rows)["nodeid"] for _ in range(6)] == [1, 2, 3, 1, 2, 3]
    wait_for(lambda: ada.status()["alarms"] == [])


def test_spark_is_started_again_when_its_jvm_or_its_driver_is_gone(peer: RootPeer, daemon: Daemon) -> None:
    """As one is that the system takes the memory of."""
    daemon.start()
    asked, query, program = ask(peer, daemon)
    rows = iter(asked)
    for times, epoch in enumerate(range(60, 66, 2)):
        queue_rows(peer, query, range(epoch, epoch + 2), program)
        got = [next(rows) for _ in range(6)]
        assert [(row["nodeid"], row["temp"]) for row in got] == [
            (node, (2000 + at * 10 + node) / 100) for at in (epoch, epoch + 1) for node in (1, 2, 3)
        ]
        if times == 0:
            os.kill(daemon.child("java"), signal.SIGKILL)
        if times == 1:
            os.kill(daemon.driver, signal.SIGKILL)
    daemon.kill(signal.SIGTERM)


@pytest.mark.spark
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_who_is_told_to_end_ends_in_order(peer: RootPeer, daemon: Daemon, number: int) -> None:
    """Whoever stops a service sends SIGTERM, which ended the process alone: its JVM was left to find out."""
    daemon.start()
    asked, query, program = ask(peer, daemon)
    rows = iter(asked)
    queue_rows(peer, query, range(60, 62), program)
    next(rows)
    said = [line for line in daemon.log.read_text().splitlines() if not line.startswith("skerry: ")]
    assert said == []
    started = daemon.started()
    assert daemon.child("java") in started
    daemon.kill(number)
    assert daemon.process is not None
    assert daemon.process.returncode == 0
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in started), 60)


def test_drop_all_stops_what_it_can_and_names_what_others_use(station: Station) -> None:
    daemon = station.daemon
    ada, grace = daemon.client("ada"), daemon.client("grace")
    ada.query("SELECT temp FROM sensors SAMPLE PERIOD 2 s")
    point = ada.query("CREATE STORAGE POINT recent SIZE 4 AS SELECT temp FROM sensors SAMPLE PERIOD 2 s")
    ada.query("SELECT light FROM sensors SAMPLE PERIOD 2 s")
    reads = grace.query("SELECT r.temp FROM sensors s, recent r WHERE s.temp > r.temp SAMPLE PERIOD 2 s")
    with pytest.raises(skerry.GatewayError, match=f"query {reads.id} uses .* all other queries of yours"):
        ada.stop_by("DROP ALL")
    assert [entry["id"] for entry in ada.queries()] == [point.id]
    reads.stop()
    assert ada.stop_by("DROP ALL") == [point.id]
    with pytest.raises(skerry.GatewayError, match="no query 0: 'skerry list'"):
        ada.resume("0")
    with pytest.raises(skerry.GatewayError, match="no query 0"):
        ada.stop_by("STOP QUERY 0")

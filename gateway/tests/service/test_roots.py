"""One gateway, two roots: one stream, and what befalls one of them is not the other's concern."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from gateway.tests.peer import RootPeer
from gateway.tests.process import Daemon, queue_rows, wait_for
from skerry.storage.log.stream_log import read
from skerry_protocol import codec
from skerry_protocol.codes import CommandOp, PacketType
from skerry_protocol.limits import BROADCAST

pytestmark = [pytest.mark.spark, pytest.mark.slow]

#: The motes behind the one root, and behind the other.
HERE, THERE = range(1, 4), range(101, 104)


@pytest.fixture
def roots() -> Iterator[list[RootPeer]]:
    made = [RootPeer(), RootPeer(node=100)]
    yield made
    for peer in made:
        peer.close()


@pytest.fixture
def both(roots: list[RootPeer], tmp_path: Path) -> Iterator[Daemon]:
    gateway = Daemon(roots[0].url, tmp_path / "data", roots[1].url)
    yield gateway
    if gateway.process is not None and gateway.process.poll() is None:
        gateway.kill()


def alarms(gateway: Daemon) -> list[str]:
    return [alarm["text"] for alarm in gateway.client().status()["alarms"]]


def heard(gateway: Daemon) -> list[int | None]:
    return [root["root"] for root in gateway.client().status()["roots"]]


def rows_of(rows: Any, count: int) -> Counter[tuple[int, float]]:
    taken = list(islice(rows, count))
    assert all(row["via"] == (0 if row["nodeid"] in HERE else 100) for row in taken if "via" in row)
    return Counter((row["nodeid"], row["temp"]) for row in taken)


def sampled(motes: range, epochs: range) -> list[tuple[int, float]]:
    return [(node, (2000 + epoch * 10 + node) / 100) for node in motes for epoch in epochs]


def test_rows_come_once_whichever_root_and_gateway_are_lost(both: Daemon, roots: list[RootPeer]) -> None:
    here, there = roots
    both.start()
    wait_for(lambda: heard(both) == [0, 100])
    asked = both.client("ada").query("SELECT nodeid, via, temp FROM sensors SAMPLE PERIOD 1 s")
    wait_for(lambda: here.programs() and there.programs())
    [(query, program)] = here.programs().items()
    [(other_query, other_program)] = there.programs().items()
    queue_rows(here, query, range(60, 90), program, HERE)
    queue_rows(there, other_query, range(60, 90), other_program, THERE)
    got = rows_of(asked, 180)
    assert got == Counter(sampled(HERE, range(60, 90)) + sampled(THERE, range(60, 90)))
    # One root is cut off: the other one's rows go on.
    there.close()
    queue_rows(there, other_query, range(90, 110), other_program, THERE)
    queue_rows(here, query, range(90, 110), program, HERE)
    assert rows_of(asked, 60) == Counter(sampled(HERE, range(90, 110)))
    wait_for(lambda: alarms(both))
    [alarm] = alarms(both)
    assert alarm.startswith(f"nothing comes from root 100, link {there.url}: reconnecting")
    # A gateway that starts again meanwhile goes on with the one, and with the other when it is back.
    queue_rows(here, query, range(110, 140), program, HERE)
    wait_for(lambda: here.acknowledged > 170)
    both.kill()
    both.start()
    there.open()
    wait_for(lambda: not here.waiting and not there.waiting)
    rest = rows_of(both.client("ada").resume(asked.id, after=asked.position), 150)
    assert rest == Counter(sampled(HERE, range(110, 140)) + sampled(THERE, range(90, 110)))
    stored = read(both.data / "log", 0, 10_000)
    keys = Counter((int(row["stream"]), int(row["node"]), int(row["epoch"])) for row in stored)
    assert set(keys.values()) == {1}
    assert len(keys) == 390
    for motes, rows in ((HERE, 240), (THERE, 150)):
        assert np.isin(stored["node"], motes).sum() == rows
    # Epochs of the past are of both.
    ada = both.client("ada")
    ada.compact()
    files = both.data / "history" / "sensors" / "*.parquet"
    # (epoch_ms would round.)
    seconds = duckdb.sql(f"SELECT count(*) FROM '{files}' GROUP BY epoch_us(time) // 1_000_000").fetchall()
    counted = ada.query("SELECT COUNT(*) AS n FROM sensors HISTORY 1 day ONLY SAMPLE PERIOD 1 s")
    assert sorted(row["n"] for row in counted) == sorted(count for (count,) in seconds)
    wait_for(lambda: not alarms(both))
    assert here.programs() == {query: program}, "it went on with what it had"
    assert there.programs() == {other_query: other_program}


def status(node: int, seconds: int, factory: int = 9) -> bytes:
    return codec.encode(
        PacketType.STATUS, node=node, uptime=seconds, x=node * 100, y=0, boots=1, reset_cause=1, invariant=0, board=1, attributes=0x3FFF,
        parent=0, level=1, link=255, neighbours=2, query_version=0, voltage=2950, free_ram=900, queue_length=0, seconds=seconds,
        radio_on=1000, rows=5, dropped=0, sent=9, repeated=0, malformed=0, loops=0, factory=factory,
    )  # fmt: skip


def commands(peer: RootPeer, op: CommandOp) -> list[int]:
    return [
        packet.body.target
        for packet in list(peer.received)
        if packet.type is PacketType.COMMAND and packet.body.op == op
    ]


def test_motes_and_commands_of_all_networks(both: Daemon, roots: list[RootPeer]) -> None:
    here, there = roots
    both.start()
    wait_for(lambda: heard(both) == [0, 100])
    ada = both.client("ada")
    here.waiting.append(status(1, 20))
    there.waiting.append(status(101, 20))
    wait_for(lambda: len(ada.motes()) == 2)
    assert [(mote["nodeid"], mote["root"]) for mote in ada.motes()] == [(1, 0), (101, 100)]
    token = ada.run("leds", 5, mote=101)["token"]
    wait_for(lambda: commands(there, CommandOp.RUN))
    assert (commands(here, CommandOp.RUN), commands(there, CommandOp.RUN)) == ([], [101])
    ada.run("leds", 5)
    wait_for(lambda: all(BROADCAST in commands(peer, CommandOp.RUN) for peer in roots))
    there.waiting.append(codec.encode(PacketType.COMMAND_ACK, node=101, token=token, status=0))
    wait_for(lambda: ada.command(token)["answers"])
    ada.query("SELECT nodeid FROM sensors SAMPLE PERIOD 1 s STOP ON EVENT fire")
    ada.signal("fire")
    wait_for(lambda: all(commands(peer, CommandOp.EVENT) for peer in roots))
    # A mote that has gone to the other network is one mote still.
    there.waiting.append(status(1, 60))
    wait_for(lambda: [mote["root"] for mote in ada.motes()] == [100, 100])
    assert alarms(both) == []
    # Two that answer to one number are told.
    for seconds in range(70, 130, 10):
        here.waiting.append(status(1, seconds))
        wait_for(lambda: not here.waiting)
        there.waiting.append(status(1, seconds))
        wait_for(lambda: not there.waiting)
    wait_for(lambda: alarms(both))
    assert "mote 1 reports through roots 0 and 100 in turn" in alarms(both)[0]


def test_motes_of_one_number_in_a_network_are_named(both: Daemon, roots: list[RootPeer]) -> None:
    here, _ = roots
    both.start()
    here.waiting += [status(0, 20, 1), status(7, 20, 0xA1)]
    wait_for(lambda: len(both.client().motes()) == 2)
    assert alarms(both) == []
    here.waiting.append(codec.encode(PacketType.NAMESAKE, node=7, factory=0xB2, other=0xA1))
    wait_for(lambda: alarms(both))
    [alarm] = alarms(both)
    assert alarm.startswith("mote 7 is two, of factory numbers 000000a1 and 000000b2: ")
    assert alarm.endswith("; give one of them another number")
    here.waiting.append(codec.encode(PacketType.NAMESAKE, node=0, factory=0xC3, other=0))
    wait_for(lambda: "000000c3" in alarms(both)[0])
    assert "mote 0 of factory number 000000c3 has the root's number: it is in no network" in alarms(both)[0]


def test_two_roots_of_one_number_are_refused(both: Daemon, roots: list[RootPeer]) -> None:
    roots[1].node = 0
    both.start()
    wait_for(lambda: alarms(both))
    [alarm] = alarms(both)
    assert "is mote 0, as is that at link" in alarm
    assert "numbers of their own" in alarm
    asked = both.client("ada").query("SELECT nodeid, temp FROM sensors SAMPLE PERIOD 1 s")
    served = next(peer for peer in roots if peer.url not in alarm.split(", as is")[0])
    wait_for(served.programs)
    [(query, program)] = served.programs().items()
    queue_rows(served, query, range(60, 70), program, HERE)
    assert rows_of(asked, 30) == Counter(sampled(HERE, range(60, 70)))


def test_a_root_flashed_again_begins_a_session_of_another_name(both: Daemon, roots: list[RootPeer]) -> None:
    """With a gateway of some seconds: by neither its name nor its time is its first epoch another one."""
    here, _ = roots
    both.start()
    asked = both.client("ada").query("SELECT nodeid, temp FROM sensors SAMPLE PERIOD 1 s")

    def rows_come(epochs: range) -> None:
        wait_for(here.programs)
        [(query, program)] = here.programs().items()
        queue_rows(here, query, epochs, program, HERE)
        assert rows_of(asked, 3 * len(epochs)) == Counter(sampled(HERE, epochs))

    rows_come(range(60, 63))
    # Its time goes back, with the same name and with an earlier one.
    for session in (1, 0xFFF0):
        wait_for(lambda: time.monotonic() - here.began > 3)
        before = here.session
        here.close()
        here.begin(session)
        here.open()
        wait_for(lambda before=before: here.session == before + 1)
        rows_come(range(60, 63))
        wait_for(lambda: alarms(both) == [])
    assert "its settings were lost, as when it is flashed again" in both.log.read_text()
    assert both.client().status()["duplicates"] == 0

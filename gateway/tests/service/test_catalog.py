"""The catalog of a running gateway: asked in SQL, tagged, and still there after kill -9."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

import skerry
from gateway.tests.peer import RootPeer
from gateway.tests.process import COMMAND, Daemon, wait_for
from skerry_protocol.codec import encode
from skerry_protocol.codes import PacketType

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def report(peer: RootPeer, **fields: Any) -> None:
    """A mote's STATUS."""
    everything = {
        "boots": 1, "reset_cause": 1, "invariant": 0, "board": 1, "attributes": 0x3FFF, "parent": 0, "level": 1, "link": 255,
        "neighbours": 2, "query_version": 0, "y": 0, "voltage": 2950, "free_ram": 900, "queue_length": 0, "seconds": 5,
        "radio_on": 40, "uptime": 40, "rows": 0, "dropped": 0, "sent": 0, "repeated": 0, "malformed": 0, "loops": 0, "factory": 9,
    }  # fmt: skip
    peer.waiting.append(encode(PacketType.STATUS, **(everything | fields)))


def run(daemon: Daemon, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [COMMAND, *arguments, "--url", daemon.url]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_the_catalog_outlives_the_gateway(peer: RootPeer, daemon: Daemon) -> None:
    daemon.start()
    for node in (1, 2, 3):
        report(peer, node=node, x=node * 500)
    client = daemon.client("ada")
    wait_for(lambda: len(client.motes()) == 3)
    tagged = run(daemon, "tag", "1,3", "room=12", "by=door", "--user", "ada")
    assert tagged.stdout.splitlines() == ["mote 1: by=door, room=12", "mote 3: by=door, room=12"], (
        tagged.stderr
    )
    assert run(daemon, "tag", "3", "by=").stdout == "mote 3: room=12\n"
    asked = client.query("SELECT temp FROM sensors SAMPLE PERIOD 2 s")
    daemon.kill()
    daemon.start()
    assert [mote["nodeid"] for mote in client.motes(near=(14, 0), tags={"room": "12"})] == [3, 1]
    assert [mote["nodeid"] for mote in client.motes(near=(14, 0), within=5)] == [3, 2]
    assert [one["nodeid"] for one in client.substitutes(3, has=["temp"])] == [2, 1]
    found = run(daemon, "catalog", "SELECT nodeid, value FROM tags WHERE key = 'room'", "--format", "csv")
    assert found.stdout == "nodeid,value\n1,12\n3,12\n"
    assert client.select("SELECT sql, user FROM queries JOIN query_streams USING (query)") == [
        {"sql": "SELECT temp FROM sensors SAMPLE PERIOD 2 s", "user": "ada"}
    ]
    assert daemon.client("grace").select("SELECT * FROM queries") == []
    shown = run(daemon, "motes", "--near", "0,0", "--has", "light", "--tag", "by=door")
    assert shown.stdout.splitlines()[1].split()[0] == "1"
    assert "mote" in run(daemon, "substitutes", "9").stderr
    asked.stop()


def test_wrong_questions_are_one_line(peer: RootPeer, daemon: Daemon) -> None:
    daemon.start()
    report(peer, node=1, x=500)
    wait_for(lambda: len(daemon.client().motes()) == 1)
    cases = {
        ("catalog", "SELECT nodid FROM motes"): "unknown column 'nodid': did you mean 'nodeid'?",
        ("catalog", "DELETE FROM tags"): "the catalog is read by SELECT",
        ("tag", "7", "room=1"): "mote 7 has never reported: known are 1",
        ("tag", "1", "9=1"): "tag '9': a key is a word",
        ("motes", "--within", "5"): "'within' needs 'near'",
        ("motes", "--near", "0,0", "--within", "inf"): "within inf m is no distance",
        ("motes", "--has", "tmep"): "unknown attribute 'tmep'",
    }
    for arguments, message in cases.items():
        done = run(daemon, *arguments)
        assert (done.returncode, done.stdout) == (1, ""), arguments
        assert message in done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr
    assert run(daemon, "tag", "one", "room=1").returncode == 2
    for place in ("here", "nan,0", "0,-inf", "1,2,3"):
        done = run(daemon, "motes", "--near", place, "--within", "5")
        assert (done.returncode, done.stdout) == (2, "")
        assert "expected X,Y in m, as in 10,20.5" in done.stderr
    assert run(daemon, "motes", "--near", "0,0", "--within", "nan").returncode == 2
    for params in ({"x": "nan", "y": 1}, {"x": 1, "y": "inf", "within": 3}, {"x": 1}, {"y": 2, "within": 3}):
        answer = daemon.client().http.get("/motes", params=params)
        assert answer.status_code == 400
        assert "two numbers of m" in answer.json()["message"]
    with pytest.raises(skerry.GatewayError, match="expected key=value"):
        daemon.client()._request("GET", "/motes", params={"tag": "room"})

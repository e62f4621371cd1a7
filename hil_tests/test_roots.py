"""Two emulated networks, a root each, one gateway: one of them is switched off while rows flow, and comes back."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest

import skerry
from gateway.tests.ports import free_port
from skerry.storage.log.stream_log import read

pytestmark = pytest.mark.usefixtures("skerry_built")

COMMAND = str(Path(sys.executable).parent / "skerry")
#: Mean temperatures of the two, far from each other: °C.
HERE, THERE = 20.0, 30.0


def description(first: int, temp: float, channel: int) -> str:
    """A root and two motes in a line."""
    motes = "".join(
        f"[[mote]]\nid = {first + i}\nx = {10.0 * i}\ny = 0.0\n{'root = true' if i == 0 else ''}\n"
        for i in range(3)
    )
    return (
        f"seed = {first + 1}\n[radio]\nmodel = 'disc'\nrange_m = 12\nchannel = {channel}\n"
        f"[environment.fields]\ntemp = {{ base = {temp} }}\n{motes}"
    )


def wait_for(condition: Callable[[], object], limit_s: float = 120) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)


class Site:
    """A testbed process, and the gateway's link to it."""

    def __init__(self, file: Path, text: str) -> None:
        file.write_text(text)
        self._file, self._port = file, free_port()
        self.link = f"socket://127.0.0.1:{self._port}"
        self.start()

    def start(self) -> None:
        command = [COMMAND, "testbed", str(self._file), "--port", str(self._port)]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        wait_for(lambda: socket.socket().connect_ex(("127.0.0.1", self._port)) == 0)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(30)


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[list[Site]]:
    made = [
        Site(tmp_path / "here.toml", description(0, HERE, 15)),
        Site(tmp_path / "there.toml", description(100, THERE, 20)),
    ]
    yield made
    for site in made:
        site.kill()


def assert_told_apart(client: skerry.Client) -> None:
    """Each network's mean for itself, and that of one alone."""
    apart = client.query(
        "SELECT via, COUNT(*) AS n, AVG(temp) AS mean FROM sensors GROUP BY via SAMPLE PERIOD 2 s"
    )
    whole = {row["via"]: row["mean"] for row in islice((row for row in apart if row["n"] == 3), 4)}
    assert whole == {0: pytest.approx(HERE, abs=0.011), 100: pytest.approx(THERE, abs=0.011)}
    apart.stop()
    only = client.query(
        "SELECT AVG(temp) AS mean, COUNT(*) AS n FROM sensors WHERE via = 100 SAMPLE PERIOD 2 s"
    )
    assert next(row["mean"] for row in only if row["n"] == 3) == pytest.approx(THERE, abs=0.011)
    only.stop()


@pytest.mark.spark
@pytest.mark.slow
def test_a_network_is_killed_while_rows_flow_and_comes_back(sites: list[Site], tmp_path: Path) -> None:
    port, data = free_port(), tmp_path / "data"
    links = [part for site in sites for part in ("--link", site.link)]
    command = [COMMAND, "gateway", *links, "--data", str(data), "--listen", f"127.0.0.1:{port}"]
    gateway = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0)
        client = skerry.connect(f"http://127.0.0.1:{port}", user="ada")
        wait_for(lambda: [root["root"] for root in client.status()["roots"]] == [0, 100])
        rows = client.query("SELECT nodeid, temp FROM sensors SAMPLE PERIOD 2 s")
        means = client.query("SELECT AVG(temp), COUNT(*) FROM sensors SAMPLE PERIOD 2 s")

        def until(wanted: set[int], since: int = 0) -> None:
            """Rows have come from these motes, as rows of the log since this one."""
            for row in rows:
                assert row["temp"] == pytest.approx(HERE if row["nodeid"] < 100 else THERE, abs=0.011)
                if rows.position >= since:
                    wanted = wanted - {row["nodeid"]}
                if not wanted:
                    return

        def counted(motes: int, mean: float, since: int = 0) -> None:
            """An epoch has come that so many took part in."""
            row = next(row for row in means if row["COUNT(*)"] == motes and means.position >= since)
            assert row["AVG(temp)"] == pytest.approx(mean, abs=0.011)

        until({0, 1, 2, 100, 101, 102})
        counted(6, (HERE + THERE) / 2)
        assert_told_apart(client)
        # It will say the session that it said here: the gateway tells it from this one by its time, which must go back.
        wait_for(lambda: client.status()["roots"][1]["network_time_s"] > 60)
        sites[1].kill()
        wait_for(lambda: [alarm["name"] for alarm in client.status()["alarms"]] == [f"link {sites[1].link}"])
        lost = client.status()["rows"]
        counted(3, HERE, lost)
        until({0, 1, 2}, lost)
        back = client.status()["rows"]
        sites[1].start()
        until({100, 101, 102}, back)
        counted(6, (HERE + THERE) / 2, back)
        wait_for(lambda: client.status()["alarms"] == [])
        streams = {stream["stream"]: stream for stream in client.select("SELECT * FROM streams")}
    finally:
        gateway.send_signal(signal.SIGTERM)
        gateway.wait(30)
    epochs: dict[tuple[int, int], list[int]] = defaultdict(list)
    for record in read(data / "log", 0, 1_000_000):
        if not streams[int(record["stream"])]["aggregate"]:
            epochs[int(record["stream"]), int(record["node"])].append(int(record["epoch"]))
    assert len(epochs) >= 9, "the network that came back has a new stream"
    for (stream, mote), seen in epochs.items():
        assert len(set(seen)) == len(seen), "no row comes twice"
        if streams[stream]["root"] == 0:
            assert sorted(seen) == list(range(min(seen), max(seen) + 1)), f"mote {mote} went on all the time"

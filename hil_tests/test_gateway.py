"""From SQL to a user's row through every real part: emulated motes, serial line, gateway process, Spark, HTTP."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import skerry
from skerry_testbed.network import Environment, Field
from skerry_testbed.pytest import MakeNetwork, disc, line_of
from skerry_testbed.serial_port import SerialPort

COMMAND = str(Path(sys.executable).parent / "skerry")


def wait_for(condition: Callable[[], bool], limit_s: float = 90) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)


def each_event_has_its_rows(client: skerry.Client, pressed: deque[int]) -> None:
    """Of two buttons that are held down together."""
    beside = client.query("ON EVENT button SELECT nodeid, event.nodeid, temp SAMPLE PERIOD 2 s FOR 40 s")
    time.sleep(12)
    pressed.extend([1, 3])
    found = Counter[tuple[int, int]]()
    # Long after its 40 s: who waits for rows of an event that a mote has not heard of waits for ever.
    over = threading.Timer(120, client.stop, [beside.id])
    over.start()
    for row in beside:
        found[row["nodeid"], row["event.nodeid"]] += 1
        if len(found) == 8 and min(found.values()) > 2:
            break
    over.cancel()
    assert set(found) == {(node, raised) for node in range(4) for raised in (1, 3)}, "for each event its rows"


def check_times(rows: list[dict[str, Any]]) -> None:
    """What was sampled together was sampled at one time, and UTC goes as network time does."""
    times = {row["network_time"]: row["time"] for row in rows}
    assert all(row["time"] == times[row["network_time"]] for row in rows)
    first, at = next(iter(times.items()))
    assert all(time % 2 == 0 for time in times)
    assert all(abs((moment - at).total_seconds() - (time - first)) < 0.5 for time, moment in times.items())


@pytest.mark.spark
@pytest.mark.slow
def test_two_users_ask_emulated_motes(network: MakeNetwork, tmp_path: Path) -> None:
    field = Environment(fields={"temp": Field(base=20.0, gradient=(0.1, 0.0))})
    bed = network(line_of(4, spacing=10), radio=disc(12), environment=field).bed
    bed.line_listeners.clear()
    bed.advance(15)
    line = SerialPort(bed, 0)
    stop = threading.Event()
    pressed = deque[int]()

    def poll() -> None:
        line.poll()
        while pressed:
            bed.world.button(pressed.popleft(), True)

    run = threading.Thread(target=lambda: bed.run(None, 1.0, stop.is_set, poll), daemon=True)
    run.start()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    arguments = [
        "--link",
        f"socket://127.0.0.1:{line.port}",
        "--data",
        str(tmp_path / "data"),
        "--listen",
        f"127.0.0.1:{port}",
    ]
    gateway = subprocess.Popen([COMMAND, "gateway", *arguments], stderr=subprocess.DEVNULL)
    began = datetime.now(UTC) - timedelta(seconds=30)
    try:
        wait_for(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0)
        url = f"http://127.0.0.1:{port}"
        wait_for(lambda: skerry.connect(url).status()["link"]["state"] == "connected")
        warm = skerry.connect(url, user="ada").query(
            "SELECT nodeid, temp, time, network_time FROM sensors WHERE temp > 21.5 SAMPLE PERIOD 2 s"
        )
        mean = skerry.connect(url, user="grace").query(
            "SELECT time, AVG(temp), COUNT(*) FROM sensors SAMPLE PERIOD 2 s"
        )
        rows = [row for row, _ in zip(warm, range(6), strict=False)]
        assert {row["nodeid"] for row in rows} == {2, 3}
        assert all(row["temp"] == pytest.approx(20 + row["nodeid"], abs=0.011) for row in rows)
        check_times(rows)
        whole = next(row for row in mean if row["COUNT(*)"] == 4)
        assert began <= whole["time"] <= datetime.now(UTC) + timedelta(seconds=5)
        assert whole["AVG(temp)"] == pytest.approx(21.5, abs=0.011)
        client = skerry.connect(url, user="ada")
        waiting = client.query("ON EVENT look SELECT nodeid, event.nodeid ONCE")
        with pytest.raises(skerry.GatewayError, match="events waited for are look"):
            client.signal("loook")
        # Not before the query has reached the motes, within two control windows.
        time.sleep(12)
        assert client.signal("Look") == [waiting.id]
        # The count first: there is no fifth row to wait for.
        seen = [row for _, row in zip(range(4), waiting, strict=False)]
        assert {(row["nodeid"], row["event.nodeid"]) for row in seen} == {(node, 0) for node in range(4)}
        each_event_has_its_rows(client, pressed)
    finally:
        gateway.send_signal(signal.SIGTERM)
        gateway.wait(30)
        stop.set()
        run.join()
        line.close()

"""Emulated motes whose time goes faster than the gateway's machine's: what the gateway reckons with is theirs."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from hil_tests.test_gateway import wait_for
from skerry.service.gateway import Gateway
from skerry.service.queries import UserQuery
from skerry.storage.log import stream_log
from skerry_testbed.pytest import MakeNetwork, disc, line_of
from skerry_testbed.serial_port import SerialPort

#: Seconds of theirs in one of the machine's.
SPEED = 8.0


@pytest.mark.slow
def test_what_is_asked_begins_and_ends_by_the_motes_time(network: MakeNetwork, tmp_path: Path) -> None:
    bed = network(line_of(3, spacing=10), radio=disc(12)).bed
    bed.line_listeners.clear()
    # At rest motes say for minutes nothing by which the gateway could set its clock.
    bed.advance(260)
    line, stop = SerialPort(bed, 0), threading.Event()
    run = threading.Thread(target=lambda: bed.run(None, SPEED, stop.is_set, line.poll), daemon=True)
    run.start()
    gateway = Gateway([f"socket://127.0.0.1:{line.port}"], tmp_path, speed=SPEED)
    try:
        gateway.links.open()
        gateway.links.start()
        wait_for(lambda: gateway.site.status()["link"]["state"] == "connected")
        began_s, began = bed.now_s, time.monotonic()
        time.sleep(6)
        # What the gateway takes for a second is as many here, but for what this machine is behind.
        behind = (time.monotonic() - began) * SPEED - (bed.now_s - began_s)
        assert gateway.site.status()["network_time_s"] == pytest.approx(bed.now_s, abs=2 * SPEED + behind)
        asked_s, asked = bed.now_s, time.time()
        query = gateway.queries.ask("SELECT nodeid, temp FROM sensors SAMPLE PERIOD 16 s FOR 48 s", "ada")
        assert isinstance(query, UserQuery)
        wait_for(lambda: query.finished)
        # By the machine's seconds it were 384 of theirs, and its lead as many more.
        assert bed.now_s - asked_s < 300
        wait_for(lambda: gateway.delivery.rows == 9)
        rows = stream_log.read(tmp_path / "log", 0, gateway.delivery.rows)
        assert sorted(rows["node"].tolist()) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
        sampled = rows["sample"] / 1e6
        assert asked < sampled.min()
        assert sampled.max() < time.time()
        assert sampled.max() - sampled.min() == pytest.approx(32 / SPEED, abs=1)
    finally:
        gateway.close()
        stop.set()
        run.join()
        line.close()

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
        time.sleep(6)
        # What the gateway takes for a second is as many here.
        assert gateway.site.status()["network_time_s"] == pytest.approx(bed.now_s, abs=2 * SPEED)
        asked_s, began = bed.now_s, time.time()
        query = gateway.queries.ask("SELECT nodeid, temp FROM sensors SAMPLE PERIOD 4 s FOR 12 s", "ada")
        assert isinstance(query, UserQuery)
        wait_for(lambda: query.finished)
        assert bed.now_s - asked_s < 75
        rows = stream_log.read(tmp_path / "log", 0, gateway.delivery.rows)
        assert sorted(rows["node"].tolist()) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
        sampled = rows["sample"] / 1e6
        assert began < sampled.min()
        assert sampled.max() < time.time()
        assert sampled.max() - sampled.min() == pytest.approx(8 / SPEED, abs=0.5)
    finally:
        gateway.close()
        stop.set()
        run.join()
        line.close()

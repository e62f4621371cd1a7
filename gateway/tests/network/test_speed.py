"""Emulated motes whose time goes faster or slower than this machine's: what is reckoned by which clock."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gateway.tests.catalog.test_motes import status
from gateway.tests.network.test_alignment import ASKED, said, two_networks
from gateway.tests.pasts import plan_of
from skerry.catalog import Catalog
from skerry.catalog.substitutes import SILENT_S, silent
from skerry.ingest.ingest import Ingest
from skerry.network.clock import NetworkClock
from skerry.network.network import Common, Network
from skerry.sharing.demand import Demand
from skerry.storage.history.history_service import HistoryService
from skerry.storage.log.stream_log import StreamLog


@pytest.mark.parametrize("speed", [0.1, 1.0, 20.0])
def test_a_clock_goes_at_the_networks_pace(monkeypatch: pytest.MonkeyPatch, speed: float) -> None:
    now = [1e9]
    monkeypatch.setattr("time.time", lambda: now[0])
    monkeypatch.setattr("time.clock_gettime", lambda _: now[0])
    clock = NetworkClock(speed)
    clock.restart(300, 16384, 1e9)
    assert clock.now() == pytest.approx(300.5)
    now[0] += 60
    assert clock.now() == pytest.approx(300.5 + 60 * speed)
    assert clock.utc(300_500) == pytest.approx(1e9)
    assert clock.utc(round(300_500 + 60_000 * speed)) == pytest.approx(now[0])
    # One that waited, and one that had hardly any way.
    clock.sighting(300.5 + 50 * speed, now[0])
    assert clock.now() == pytest.approx(300.5 + 60 * speed)
    clock.sighting(300.5 + 61 * speed, now[0])
    assert clock.now() == pytest.approx(300.5 + 61 * speed)


def test_what_takes_this_machines_time_takes_more_of_a_fast_networks() -> None:
    starts = []
    for speed in (0.1, 1.0, 8.0):
        demand = Demand(speed)
        (made,) = demand.add_user("u", plan_of("SELECT temp FROM sensors ONCE"), 100).install
        starts.append(made.start)
    assert starts == [108, 108, 115]


def test_a_roots_silence_is_of_network_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    network = Network(lambda _: None, Common(speed=8.0))
    now[0] += 2
    assert network.heard() == 16


def test_a_mote_is_silent_by_its_own_time() -> None:
    for speed, late_s in ((1.0, SILENT_S), (10.0, SILENT_S / 10), (0.1, SILENT_S * 10)):
        catalog = Common(Catalog(), speed=speed).catalog
        mote = catalog.update(status(), 1e9)
        assert not silent(mote, catalog, 1e9 + late_s * 0.99)
        assert silent(mote, catalog, 1e9 + late_s * 1.01)
        assert Catalog.from_dict(catalog.to_dict(), speed).speed == speed


def test_a_root_that_has_not_said_its_part_is_waited_for_by_its_time(tmp_path: Path) -> None:
    for speed, waits_s in ((1.0, 10), (0.1, 55)):
        networks, _ = two_networks(0)
        networks.add_user("u", plan_of(f"{ASKED} 5 s"))
        first = networks.all[0]
        log, ingest = StreamLog(tmp_path / str(speed)), Ingest(speed=speed)
        ingest.store([said(first, 800, [(1, 20)])], networks.source(first), log)
        before, now = log.rows, time.monotonic()
        ingest.release(log, 0, now + waits_s - 1)
        held = log.rows - before
        ingest.release(log, 0, now + waits_s + 1)
        assert (held, log.rows - before) == (0, 1)


def test_history_goes_back_by_network_time(tmp_path: Path) -> None:
    plan = plan_of("SELECT temp FROM sensors HISTORY 1 h ONLY")
    for speed, seconds in ((1.0, 3600), (10.0, 360), (0.5, 7200)):
        data = tmp_path / str(speed)
        service = HistoryService(data, StreamLog(data), lambda: [], lambda: 0, speed=speed)
        assert service.rows(plan, 1e9).since_ms == 1e12 - seconds * 1000

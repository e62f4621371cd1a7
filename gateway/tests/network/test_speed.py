"""Emulated motes whose time goes faster or slower than this machine's: what is reckoned by which clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.tests.catalog.test_motes import status
from gateway.tests.pasts import plan_of
from skerry.catalog import Catalog
from skerry.catalog.substitutes import SILENT_S, silent
from skerry.network.clock import NetworkClock
from skerry.network.network import Common, Network
from skerry.network.networks import Networks
from skerry.sharing.demand import Demand
from skerry.storage.history.history_service import HistoryService
from skerry.storage.log.stream_log import StreamLog


class Machine:
    """This machine's clock, which stands still unless it is moved."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1e9
        monkeypatch.setattr("time.time", lambda: self.now)
        monkeypatch.setattr("time.clock_gettime", lambda _: self.now)

    def run(self, clock: NetworkClock, seconds: float, speed: float) -> None:
        """A root tells its time once in each of its seconds, as emulated motes at this speed."""
        end, network = self.now + seconds, clock.stamped
        while self.now + 1 / speed <= end + 1e-6:
            self.now += 1 / speed
            network += 1
            clock.stamp(network, self.now)
        self.now = max(self.now, end)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


@pytest.mark.parametrize("speed", [0.1, 1.0, 20.0])
def test_a_clock_goes_at_the_networks_pace(machine: Machine, speed: float) -> None:
    clock = NetworkClock(speed)
    clock.restart(300, 16384, 1e9)
    assert clock.now() == pytest.approx(300.5)
    machine.run(clock, 60, speed)
    assert clock.now() == pytest.approx(300.5 + 60 * speed)
    assert clock.utc(300_500) == pytest.approx(1e9)
    assert clock.utc(round(300_500 + 60_000 * speed)) == pytest.approx(machine.now)
    assert clock.network(1e9 + 30) == pytest.approx(300.5 + 30 * speed)
    assert clock.speed == pytest.approx(speed)


def test_network_time_is_never_ahead_of_what_the_root_can_have_come_to(machine: Machine) -> None:
    clock = NetworkClock(100.0)
    clock.restart(100, 0, machine.now)
    # It was to run a hundred times as fast, and runs at three.
    for _ in range(60):
        machine.run(clock, 1, 3.0)
        assert clock.stamped <= clock.now() <= clock.stamped + 1
    assert clock.speed == pytest.approx(3.0)
    assert clock.stamped == 280
    # It is paused.
    machine.now += 3600
    assert clock.now() <= clock.stamped + 1
    assert clock.speed < 0.001
    assert clock.silent() == pytest.approx(3600, abs=1)
    # A line that is down says nothing of the root, which may have gone on.
    clock.connected = False
    assert clock.now() > clock.stamped + 3600


@pytest.mark.parametrize("reached", [0.05, 7.0, 400.0])
def test_the_pace_is_what_is_reached_and_utc_follows_it(machine: Machine, reached: float) -> None:
    clock = NetworkClock()
    clock.restart(0, 0, machine.now)
    machine.run(clock, 100, reached)
    assert clock.speed == pytest.approx(reached, rel=0.05)
    before = machine.now
    machine.run(clock, 100, 2 * reached)
    assert clock.speed == pytest.approx(2 * reached, rel=0.05)
    # What was is as it was.
    assert clock.utc(round(50_000 * reached)) == pytest.approx(before - 50, abs=1 + 1 / reached)
    assert clock.utc(round(200_000 * reached)) == pytest.approx(before + 50, abs=1 + 1 / reached)
    assert clock.pace >= clock.speed


def test_a_stamp_that_has_waited_bends_no_time_of_real_motes(machine: Machine) -> None:
    clock = NetworkClock()
    clock.restart(0, 0, machine.now)
    machine.run(clock, 60, 1.0)
    # Nobody reads the line for five seconds.
    machine.now += 5.4
    for second in range(61, 66):
        clock.stamp(second, machine.now)
    machine.now += 0.6
    clock.stamp(66, machine.now)
    machine.run(clock, 60, 1.0)
    for second in (30, 60, 66, 70, 126):
        assert clock.utc(second * 1000) == pytest.approx(1e9 + second, abs=0.05)


def test_what_takes_this_machines_time_takes_more_of_a_fast_networks() -> None:
    starts = []
    for speed in (0.1, 1.0, 8.0):
        demand = Demand(speed)
        (made,) = demand.add_user("u", plan_of("SELECT temp FROM sensors ONCE"), 100).install
        starts.append(made.start)
    assert starts == [108, 108, 115]


def test_for_how_long_a_root_is_heard_is_of_network_time(machine: Machine) -> None:
    network = Network(lambda _: None, Common(speed=8.0))
    network.clock.restart(100, 0, machine.now)
    network.missed()
    machine.run(network.clock, 2, 8.0)
    assert network.heard() == 16
    network.reachable = False
    assert network.heard() == 0


def test_a_mote_is_silent_by_its_own_time() -> None:
    for speed, late_s in ((1.0, SILENT_S), (10.0, SILENT_S / 10), (0.1, SILENT_S * 10)):
        catalog = Common(Catalog(), speed=speed).catalog
        mote = catalog.update(status(), 1e9)
        assert not silent(mote, catalog, 1e9 + late_s * 0.99)
        assert silent(mote, catalog, 1e9 + late_s * 1.01)
        assert Catalog.from_rows(catalog.mote_rows(), catalog.events.rows(), speed).speed == speed


def test_history_goes_back_by_network_time(tmp_path: Path) -> None:
    plan = plan_of("SELECT temp FROM sensors HISTORY 1 h ONLY")
    for speed, seconds in ((1.0, 3600), (10.0, 360), (0.5, 7200)):
        data = tmp_path / str(speed)
        common = Common(speed=speed)
        networks = Networks([Network(lambda _: None, common)], common)
        service = HistoryService(data, StreamLog(data), lambda: [], lambda: 0, earlier=networks.earlier)
        assert service.rows(plan, 1e9, 0).since_ms == 1e12 - seconds * 1000


def test_the_past_begins_by_the_pace_that_is_reached(machine: Machine) -> None:
    clock = NetworkClock(1.0)
    clock.restart(300, 0, 1e9)
    machine.run(clock, 60, 20)
    assert clock.earlier(machine.now, 600_000) == pytest.approx(machine.now - 30, abs=0.1)
    stopped = machine.now
    machine.now += 100
    assert clock.earlier(machine.now, 600_000) == pytest.approx(stopped - 30, abs=0.1)

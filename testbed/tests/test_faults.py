"""Faults of a description happen at their time, to whom they name."""

import pytest

from skerry_testbed.faults import NO_GAIN
from skerry_testbed.network import Fault, Radio
from skerry_testbed.pytest import MakeNetwork, disc, grid, line_of
from skerry_testbed.runner import SLICE_NS


def test_kill_and_reboot_happen_at_their_virtual_time(network: MakeNetwork) -> None:
    faults = [Fault(at="6 s", kind="reboot", mote=1), Fault(at="4s", kind="kill", mote=1)]
    net = network(line_of(2, spacing=10), faults=faults)
    net.advance(1.4)
    assert net.motes[1].alive
    net.advance(0.1 + SLICE_NS / 1e9)
    assert not net.motes[1].alive
    net.advance(2)
    assert net.motes[1].alive
    assert net.motes[1].settings.boots == 2


def test_a_drained_battery_ends_a_mote(network: MakeNetwork) -> None:
    net = network(line_of(2, spacing=10))
    net.inject(kind="battery_drained", mote=1)
    net.advance(1)
    assert not net.motes[1].alive


def test_a_link_goes_down_and_up_in_both_directions(network: MakeNetwork) -> None:
    net = network(line_of(2, spacing=10), radio=disc(12))
    links = net.bed.links
    gain = links.gain(0, 1)
    net.inject(kind="link_down", mote=0, to=1)
    assert links.gain(0, 1) == links.gain(1, 0) == NO_GAIN
    net.advance(10)
    assert net.motes[1].counters["received"] == 0
    net.inject(kind="link_up", mote=1, to=0)
    assert links.gain(0, 1) == links.gain(1, 0) == gain
    net.advance(10)
    assert net.motes[1].counters["received"] > 0


def test_a_partition_cuts_only_what_crosses_it(network: MakeNetwork) -> None:
    net = network(grid(4, 1, spacing=10), radio=disc(25))
    net.inject(kind="partition", motes=[2, 3])
    links = net.bed.links
    assert {(a, b) for a in range(4) for b in range(4) if a != b and links.gain(a, b) > NO_GAIN} == {
        (0, 1), (1, 0), (2, 3), (3, 2),
    }  # fmt: skip


def test_a_mote_that_moves_changes_its_neighbours_and_cut_links_stay_cut(network: MakeNetwork) -> None:
    net = network(grid(4, 1, spacing=10), radio=disc(12))
    links = net.bed.links
    net.inject(kind="link_down", mote=0, to=3)
    net.inject(kind="move", mote=3, x=5.0, y=0.0)
    assert links.gain(3, 2) == NO_GAIN
    assert links.gain(3, 1) > NO_GAIN
    assert links.gain(3, 0) == NO_GAIN
    assert net.motes[3].position == (5.0, 0.0)


def test_shadowing_of_others_stays_when_a_mote_moves(network: MakeNetwork) -> None:
    net = network(grid(3, 1, spacing=5), radio=Radio(shadowing_db=5))
    links = net.bed.links
    before = links.gain(0, 1)
    net.inject(kind="move", mote=2, x=2.0, y=2.0)
    assert links.gain(0, 1) == before


def test_a_clock_drifts(network: MakeNetwork) -> None:
    """The root's clock is the network's: its crystal runs 400 ppm fast, and so does network time."""
    net = network(line_of(2, spacing=10), radio=disc(12), clock_ppm=0)
    net.advance(10)
    net.inject(kind="clock_drift", mote=0, ppm=400)
    before = net.line.network_time()
    net.line.connect()
    net.advance(1)
    first = net.line.network_time() - net.now
    net.advance(50)
    net.line.connect()
    net.advance(1)
    drift = net.line.network_time() - net.now - first
    assert before > 0
    assert drift == pytest.approx(50 * 400e-6, abs=0.005)


def test_noise_on_the_line_reaches_both_ends(network: MakeNetwork) -> None:
    net = network(line_of(1, spacing=10))
    seen = bytearray()
    net.bed.line_listeners.append(seen.extend)
    net.inject(kind="serial_noise", bytes=200)
    assert len(seen) == 200
    net.advance(1)
    assert net.report()["line_errors"] > 0

"""Slots follow the network: what the root hears of levels and traffic, all motes at once."""

from __future__ import annotations

import math
from collections import defaultdict

import pytest

from hil_tests.slots import agree, slots, until_switched
from hil_tests.soaked import soaked
from skerry.planner.model.plans import MoteQuery
from skerry_protocol.codes import PacketType
from skerry_testbed.network import Mote
from skerry_testbed.pytest import MakeNetwork, NetworkHandle, disc, grid, line_of
from skerry_testbed.queries import ask, rows

#: The root decides when a network is so old, s; what it said holds a few control windows later.
DECIDES_S = 128


def delays(net: NetworkHandle, query: MoteQuery, period_s: int) -> dict[int, list[float]]:
    """Seconds from the epoch to the row's arrival by mote, in the order of epochs."""
    offset = net.now - net.line.network_time()
    found: dict[int, list[float]] = defaultdict(list)
    for row in sorted(rows(net.line, 1, query), key=lambda row: row["epoch"]):
        found[row["nodeid"]].append(row["at"] - row["epoch"] * period_s - offset)
    return found


@pytest.mark.slow
def test_in_a_star_one_slot_is_as_wide_as_there_is_room_for(network: MakeNetwork) -> None:
    """No two numbers share a cell any more: fewer frames, on the mean of four seeds, and the same rows."""
    numbers = list(range(2, 90, 3))
    motes = [Mote(id=0, x=0, y=0, root=True), *(Mote(id=n, x=1, y=n / 50) for n in numbers)]
    before = after = 0.0
    for seed in (1, 2, 3, 4):
        net = network(motes, radio=disc(10), seed=seed)
        net.advance("40s")
        query = ask(net, 1, "SELECT nodeid FROM sensors SAMPLE PERIOD 5 s")
        net.advance("60s")
        before += frames_per_row(net, query)
        until_switched(net, 600)
        assert slots(net)[0][0] > 60
        after += frames_per_row(net, query)
        found = {(row["nodeid"], row["epoch"]) for row in rows(net.line, 1, query)}
        first, last = min(epoch for _, epoch in found) + 1, max(epoch for _, epoch in found) - 1
        assert found >= {(node, epoch) for node in net.motes for epoch in range(first, last)}
    assert after < before


def test_motes_that_meet_in_a_cell_number_their_frames_apart(network: MakeNetwork) -> None:
    """An acknowledgement carries nothing but a number: none may be taken for that of another's frame."""
    cells = 36  # of level 1 in a young network
    numbers = [1, 1 + cells, 1 + 2 * cells, 1 + 3 * cells]
    motes = [Mote(id=0, x=0, y=0, root=True), *(Mote(id=n, x=1, y=n / 100) for n in numbers)]
    net = network(motes, radio=disc(10))
    net.advance("30s")
    ask(net, 1, "SELECT nodeid FROM sensors SAMPLE PERIOD 2 s")
    net.frames.clear()
    net.advance("80s")
    used = defaultdict(set)
    for _, mac, packet in net.packets():
        if packet.type is PacketType.BUNDLE:
            used[mac.source].add(mac.sequence)
    assert sorted(used) == numbers
    assert all(len(found) > 20 for found in used.values())
    assert sum(map(len, used.values())) == len(set().union(*used.values()))


def frames_per_row(net: NetworkHandle, query: MoteQuery) -> float:
    """Of all motes but the root, in the next 60 s: whole epochs, and of everybody's beacons as many, one each 12 s."""
    sent = sum(mote.counters["sent"] for n, mote in net.motes.items() if n)
    arrived = len(rows(net.line, 1, query))
    net.advance("60s")
    more = len(rows(net.line, 1, query)) - arrived
    return (sum(mote.counters["sent"] for n, mote in net.motes.items() if n) - sent) / more


def test_who_carries_everybody_s_rows_does_not_wait_for_the_last_cell(network: MakeNetwork) -> None:
    """There is no time for a second frame in it: of 12, 18 or 36 it would be number 5's in all rounds, 187 s behind with this seed."""
    behind = [Mote(id=20 + i, x=19, y=(i - 9) / 20) for i in range(18)]
    net = network(
        [Mote(id=0, x=0, y=0, root=True), Mote(id=5, x=10, y=0), *behind], radio=disc(12, 0.95), seed=2
    )
    net.advance("20s")
    query = ask(net, 1, "SELECT nodeid, temp, light, parent FROM sensors SAMPLE PERIOD 5 s")
    net.advance("500s")
    found = delays(net, query, 5)
    assert found.keys() == net.motes.keys()
    assert max(max(late[-20:]) for late in found.values()) < 10


@pytest.mark.slow
def test_a_relay_may_have_more_children_than_places(network: MakeNetwork) -> None:
    """Forty leaves that hear each other and one relay, which alone hears the root: between their beacons it has to hear the root's, and to
    listen for rows of children that it has no place for."""
    leaves = [Mote(id=2 + i, x=20 + math.cos(i), y=math.sin(i), board="iris", root=False) for i in range(40)]
    root, relay = line_of(2, spacing=10)
    net = network([root, relay, *leaves], radio=disc(13, reception=0.97))
    net.advance("300s")
    query = ask(net, 1, "SELECT nodeid, temp FROM sensors SAMPLE PERIOD 10 s")
    net.advance("200s")
    newest = max(row["epoch"] for row in rows(net.line, 1, query))
    counted = range(newest - 12, newest - 2)
    assert (
        len({(r["nodeid"], r["epoch"]) for r in rows(net.line, 1, query) if r["epoch"] in counted})
        >= 0.995 * 10 * 42
    )
    waits = sorted(wait for waits in delays(net, query, 10).values() for wait in waits[-13:-3])
    assert waits[len(waits) * 95 // 100] < 10


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, *soaked([4, 5])])
def test_in_a_deep_line_readings_climb_all_levels_in_one_round(network: MakeNetwork, seed: int) -> None:
    """With these seeds they did not while health reports that had come first went before rows, queued or under way."""
    net = network(line_of(22, spacing=10), radio=disc(12), seed=seed)
    net.advance("90s")
    ask(net, 1, "SELECT AVG(temp) FROM sensors SAMPLE PERIOD 9 s")

    def at_once() -> float:
        """The share of motes whose readings arrive in the epoch's own round."""
        offset, began = net.now - net.line.network_time(), net.line.network_time() // 9 + 1
        net.advance("90s")
        found = [(r.at - offset - 9 * r.body.epoch, r.body) for r in net.line.of(PacketType.PARTIAL, 1)]
        early = [body.motes for delay, body in found if delay < 2.1 and began <= body.epoch < began + 8]
        return float(sum(early)) / (8 * len(net.motes))

    net.advance("30s")
    assert at_once() < 0.5
    until_switched(net, 600)
    assert len(slots(net)[0]) == 22
    assert at_once() > 0.98


def test_a_small_network_answers_early(network: MakeNetwork) -> None:
    net = network(grid(2, 2, spacing=10), radio=disc(12))
    net.advance("40s")
    query = ask(net, 1, "SELECT nodeid FROM sensors SAMPLE PERIOD 4 s")
    net.advance("40s")
    until_switched(net, 600)
    net.advance("40s")
    by_mote = delays(net, query, 4)
    for node in (1, 2, 3):
        assert min(by_mote[node][:5]) > 1.6
        assert max(by_mote[node][-10:]) < 1.5


def test_a_mote_that_was_off_during_the_change_is_back_within_a_minute(network: MakeNetwork) -> None:
    net = network(grid(3, 2, spacing=10), radio=disc(12))
    net.advance("40s")
    query = ask(net, 1, "SELECT nodeid FROM sensors SAMPLE PERIOD 4 s")
    net.advance(DECIDES_S - 8 - net.now)
    net.motes[4].kill()
    until_switched(net, 600)
    assert 4 not in slots(net)
    net.motes[4].reboot()
    net.advance("60s")
    since = net.now
    net.advance("40s")
    late = [row["nodeid"] for row in rows(net.line, 1, query) if row["at"] > since]
    assert all(late.count(node) >= 9 for node in net.motes), late
    agree(net)
    assert len(slots(net)) == len(net.motes)


def test_a_mote_that_hears_nothing_of_the_change_learns_it_from_the_next_beacon(network: MakeNetwork) -> None:
    """It keeps its rows meanwhile."""
    net = network(line_of(3, spacing=10), radio=disc(12))
    net.advance("40s")
    query = ask(net, 1, "SELECT nodeid FROM sensors SAMPLE PERIOD 4 s")
    net.advance(DECIDES_S - 8 - net.now)
    net.inject(kind="link_down", mote=1, to=2)
    until_switched(net, 600)
    net.inject(kind="link_up", mote=1, to=2)
    net.advance("60s")
    since = net.now
    net.advance("40s")
    late = [row["nodeid"] for row in rows(net.line, 1, query) if row["at"] > since]
    assert all(late.count(node) >= 9 for node in net.motes), late
    agree(net)
    assert len(slots(net)) == len(net.motes)


@pytest.mark.parametrize(
    "columns", ["temp, light, humidity", "temp, light, humidity, accel_x, accel_y, mag_x"]
)
def test_a_parent_listens_on_when_a_long_frame_says_that_more_follows(
    network: MakeNetwork, columns: str
) -> None:
    """Such a frame ends when its cell's time is up: the radio went off before the main loop had read it."""
    net = network(line_of(3, spacing=10), radio=disc(12))
    net.advance("40s")
    for query in range(1, 8):
        ask(net, query, f"SELECT {columns} FROM sensors SAMPLE PERIOD 5 s")
    net.advance("30s")
    net.frames.clear()
    net.advance("100s")
    sent = [
        frame for frame, mac, packet in net.packets() if packet.type is PacketType.BUNDLE and mac.source == 2
    ]
    assert len(sent) >= 40
    assert max(len(frame.psdu) for frame in sent) > 100
    assert all(frame.received_by for frame in sent)

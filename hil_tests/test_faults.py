"""Motes that come late, move, drift or are cut off."""

from __future__ import annotations

import pytest

from hil_tests.clocks import time_errors
from hil_tests.lab import on_time
from skerry_protocol.codes import PacketType
from skerry_testbed.network import Crystals, Mote, Network, check
from skerry_testbed.pytest import MakeNetwork, NetworkHandle, disc, grid, line_of
from skerry_testbed.queries import ask, rows


def test_a_mote_that_comes_late_gets_the_queries_that_run(network: MakeNetwork) -> None:
    motes = [*line_of(3, spacing=10), Mote(id=9, x=30, y=0, boot="60 s")]
    net = network(motes, radio=disc(12))
    net.advance("20s")
    first = ask(net, 1, "SELECT temp FROM sensors SAMPLE PERIOD 5 s")
    second = ask(
        net,
        2,
        "SELECT light, temp, humidity, voltage, accel_x FROM sensors WHERE temp > -100 SAMPLE PERIOD 4 s",
    )
    net.advance("90s")
    for number, query in ((1, first), (2, second)):
        assert {row["nodeid"] for row in rows(net.line, number, query) if row["at"] > net.now - 12} == {
            0,
            1,
            2,
            9,
        }


def test_a_late_mote_learns_that_a_query_was_stopped(network: MakeNetwork) -> None:
    net = network(line_of(3, spacing=10), radio=disc(12))
    net.advance("20s")
    ask(net, 1, "SELECT temp FROM sensors SAMPLE PERIOD 2 s")
    net.advance("20s")
    net.motes[2].kill()
    net.line.stop(1)
    net.advance("10s")
    net.motes[2].reboot()
    net.advance("40s")
    assert all(row["at"] < net.now - 30 for row in ({"at": r.at} for r in net.line.of(PacketType.RESULT, 1)))


def test_what_was_cut_off_comes_back_when_the_partition_heals(network: MakeNetwork) -> None:
    net = network(line_of(4, spacing=10), radio=disc(12))
    net.advance("20s")
    query = ask(net, 1, "SELECT temp FROM sensors SAMPLE PERIOD 5 s")
    net.advance("30s")
    net.inject(kind="partition", motes=[2, 3])
    net.advance("60s")
    assert {row["nodeid"] for row in rows(net.line, 1, query) if row["at"] > net.now - 12} == {0, 1}
    net.inject(kind="link_up", mote=1, to=2)
    net.advance("60s")
    assert {row["nodeid"] for row in rows(net.line, 1, query) if row["at"] > net.now - 12} == {0, 1, 2, 3}


def test_who_is_cut_off_sleeps_between_its_neighbours_windows_and_comes_back_soon(
    network: MakeNetwork,
) -> None:
    """Its clock tells when they would be awake: for five minutes it listens then and in some spells all the time, later then alone."""
    net = network(line_of(3, spacing=10), radio=disc(12))
    net.advance("20s")
    query = ask(net, 1, "SELECT temp FROM sensors SAMPLE PERIOD 5 s")
    net.advance("40s")
    net.inject(kind="partition", motes=[2])
    before = on_time(net.motes[2].energy)
    net.advance("7min")
    searched = on_time(net.motes[2].energy)
    assert (searched - before) / 420 < 0.3
    net.advance("12min")
    assert (on_time(net.motes[2].energy) - searched) / 720 < 0.01
    net.inject(kind="link_up", mote=1, to=2)
    healed = net.now
    net.advance("40s")
    assert any(row["nodeid"] == 2 and row["at"] > healed for row in rows(net.line, 1, query))


def test_a_mote_that_moves_finds_a_parent_where_it_is(network: MakeNetwork) -> None:
    net = network(line_of(5, spacing=10), radio=disc(12))
    net.advance("30s")
    query = ask(net, 1, "SELECT parent FROM sensors SAMPLE PERIOD 5 s")
    net.advance("30s")
    net.inject(kind="move", mote=4, x=5.0, y=5.0)
    net.advance("90s")
    last = [row for row in rows(net.line, 1, query) if row["nodeid"] == 4][-1]
    assert last["at"] > net.now - 12
    assert last["parent"] in (0, 1)


def test_time_follows_a_crystal_that_drifts(network: MakeNetwork) -> None:
    """Mote 2 of a line turns from its error to 80 ppm, as in the cold: all stay within 1 ms of the root."""
    net = network(line_of(5, spacing=10), radio=disc(12), seed=9)
    net.advance("30s")
    net.inject(kind="clock_drift", mote=2, ppm=80.0)
    net.advance("20s")
    net.frames.clear()
    net.advance("60s")
    worst = time_errors(net)
    assert set(worst) == set(range(5))
    assert max(worst.values()) < 0.001, worst


@pytest.mark.slow
@pytest.mark.parametrize("seed", [9, 10])
def test_time_is_good_to_half_a_ms_over_8_hops_while_crystals_warm_up_and_cool_down(
    network: MakeNetwork, seed: int
) -> None:
    """Every other mote goes from 25 °C to -10 °C in ten minutes (-42 ppm), the others to 60 °C, beside errors of up to 40 ppm."""
    motes = line_of(9, spacing=10)
    for mote in motes:
        mote.temperature = [("60 s", 25.0), ("660 s", -10.0 if mote.id % 2 else 60.0)]
    net = network(check(Network(seed=seed, mote=motes, radio=disc(12), crystal=Crystals())))
    net.advance("60s")
    ask(net, 1, "SELECT temp FROM sensors SAMPLE PERIOD 30 s")
    net.advance("90s")
    net.frames.clear()
    net.advance("600s")
    worst = time_errors(net)
    assert set(worst) == set(range(9))
    assert max(worst.values()) < 0.0005, worst


@pytest.mark.parametrize("board", ["iris", "cc2538"])
def test_a_mote_leaves_a_parent_that_it_hears_but_that_does_not_hear_it(
    network: MakeNetwork, board: str
) -> None:
    """All hear the root; what mote 2 sends to it is lost, so it goes over mote 1."""
    net = network(line_of(3, spacing=5, boards=[board]), radio=disc(12))
    net.inject(kind="link_down", mote=2, to=0, one_way=True)
    net.advance("20s")
    query = ask(net, 1, "SELECT parent FROM sensors SAMPLE PERIOD 5 s")
    net.advance("120s")
    last = [
        row["parent"] for row in rows(net.line, 1, query) if row["nodeid"] == 2 and row["at"] > net.now - 12
    ]
    assert last
    assert set(last) == {1}


def test_a_slow_network_comes_over_to_a_new_session_of_its_root_within_three_minutes(
    network: MakeNetwork,
) -> None:
    """Its motes beacon each 48 s, by the old session's clock, and each other time on the root's channel."""
    net = network(line_of(8, spacing=10), radio=disc(12))
    net.advance("20s")
    ask(net, 1, "SELECT temp FROM sensors SAMPLE PERIOD 30 s")
    net.advance("307s")
    before = _sessions(net)
    net.motes[0].reboot()
    net.frames.clear()
    net.advance("180s")
    [session] = set(before.values())
    assert _sessions(net) == dict.fromkeys(range(8), session % 0xFFFF + 1)


def _sessions(net: NetworkHandle) -> dict[int, int]:
    """Of each mote, the session of its last beacon."""
    return {
        decoded.source: packet.body.session
        for _, decoded, packet in net.packets()
        if packet.type is PacketType.BEACON
    }


@pytest.mark.parametrize(("period", "late"), [(30, 62), (5, 30)])
def test_rows_take_a_detour_where_a_link_dies(network: MakeNetwork, period: int, late: int) -> None:
    """Rows of half a minute come with those of the epoch after next at the latest; a network that samples faster finds out no sooner
    than its control windows tell, which are each four seconds."""
    net = network(grid(5, 4, spacing=10), radio=disc(15, 0.95))
    net.advance("20s")
    query = ask(net, 1, f"SELECT parent FROM sensors SAMPLE PERIOD {period} s")
    net.advance("400s")
    for mote in (4, 9, 12):
        parent = next(row["parent"] for row in reversed(rows(net.line, 1, query)) if row["nodeid"] == mote)
        cut, network_time = net.now, net.line.network_time()
        for sender, receiver in ((mote, parent), (parent, mote)):
            net.inject(kind="link_down", mote=sender, to=receiver)
        net.advance("150s")
        delays = [
            row["at"] - cut - (row["epoch"] * period - network_time)
            for row in rows(net.line, 1, query)
            if row["nodeid"] == mote and network_time < row["epoch"] * period < network_time + 60
        ]
        assert len(delays) == 60 // period
        assert max(delays) < late
        for sender, receiver in ((mote, parent), (parent, mote)):
            net.inject(kind="link_up", mote=sender, to=receiver)
        net.advance("60s")


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(("period", "late"), [(30, 64), (5, 35)])
def test_rows_take_a_detour_over_motes_that_stand_no_closer(
    network: MakeNetwork, period: int, late: int, seed: int
) -> None:
    """A ladder, one of whose sides is cut: what lies behind goes over a rung, where a mote has to have later news of the root."""
    net = network(grid(6, 2, spacing=10), radio=disc(12, 0.95), seed=seed)
    net.advance("20s")
    query = ask(net, 1, f"SELECT parent FROM sensors SAMPLE PERIOD {period} s")
    net.advance(f"{400 + seed}s")
    parent = next(row["parent"] for row in reversed(rows(net.line, 1, query)) if row["nodeid"] == 3)
    assert parent == 2
    cut, network_time = net.now, net.line.network_time()
    for sender, receiver in ((3, 2), (2, 3)):
        net.inject(kind="link_down", mote=sender, to=receiver)
    net.advance("200s")
    delays = {
        (row["nodeid"], row["epoch"]): row["at"] - cut - (row["epoch"] * period - network_time)
        for row in rows(net.line, 1, query)
        if row["nodeid"] in (3, 4, 5) and network_time < row["epoch"] * period < network_time + 60
    }
    assert len(delays) == 3 * 60 // period
    assert max(delays.values()) < late

"""Interference on one channel: networks that hop over several go on, others do not."""

from __future__ import annotations

import msgspec
import pytest

from skerry_protocol.codes import PacketType
from skerry_protocol.limits import NO_LEVEL
from skerry_protocol.mac import CHANNEL_DEFAULT, CHANNELS_DEFAULT
from skerry_testbed.network import Interference
from skerry_testbed.pytest import MakeNetwork, disc, grid, line_of
from skerry_testbed.queries import ask, rows

PERIOD_S = 5
EPOCHS = 60
BEGIN_S = 60
ALWAYS_ON = {"level_dbm": -60.0, "duty": 1.0}


def delivered(network: MakeNetwork, board: str, channels: list[int], jammed: int) -> float:
    """Share of the rows that arrive over up to three hops while a channel is jammed for good."""
    net = network(
        grid(4, 2, spacing=10, boards=(board,)), radio=msgspec.structs.replace(disc(12), channels=channels),
        interference=[Interference(channel=jammed, begin=f"{BEGIN_S} s", **ALWAYS_ON)], seed=6,
    )  # fmt: skip
    net.advance("25s")
    query = ask(net, 1, f"SELECT nodeid FROM sensors SAMPLE PERIOD {PERIOD_S} s")
    net.advance(BEGIN_S + PERIOD_S - net.now)
    first = int(net.line.network_time()) // PERIOD_S + 1
    net.advance((EPOCHS + 8) * PERIOD_S)
    found = {(row["nodeid"], row["epoch"]) for row in rows(net.line, 1, query)}
    return sum((node, first + n) in found for node in range(8) for n in range(EPOCHS)) / (8 * EPOCHS)


@pytest.mark.parametrize("board", ["iris", "cc2538"])
@pytest.mark.parametrize("jammed", [CHANNEL_DEFAULT, min(CHANNELS_DEFAULT), 20])
def test_interference_on_one_channel_costs_no_row(network: MakeNetwork, board: str, jammed: int) -> None:
    assert delivered(network, board, list(CHANNELS_DEFAULT), jammed) >= 0.999


@pytest.mark.parametrize("board", ["iris", "cc2538"])
def test_without_hopping_it_does(network: MakeNetwork, board: str) -> None:
    assert delivered(network, board, [], CHANNEL_DEFAULT) < 0.5


def test_motes_join_where_the_home_channel_is_jammed(network: MakeNetwork) -> None:
    """From the root's start on: they find each other on the other channel of control windows."""
    net = network(
        grid(3, 2, spacing=10, boards=("iris", "cc2538")), radio=disc(12),
        interference=[Interference(channel=CHANNEL_DEFAULT, **ALWAYS_ON)], seed=6,
    )  # fmt: skip
    net.advance("4min")
    assert {record.body.node for record in net.line.of(PacketType.STATUS)} == set(range(6))


@pytest.mark.parametrize("later", [0, 4, 8, 12])
def test_who_leaves_the_tree_in_a_window_is_heard_in_it(network: MakeNetwork, later: int) -> None:
    """Windows are on two channels by turns: whatever this one's, a child leaves in it, too, and does not wait for the next."""
    net = network(line_of(4, spacing=10), radio=disc(12), seed=1)
    net.advance("20s")
    ask(net, 1, "SELECT parent FROM sensors SAMPLE PERIOD 5 s")
    net.advance(100 + later)
    for sender, receiver in ((0, 1), (1, 0)):
        net.inject(kind="link_down", mote=sender, to=receiver)
    net.frames.clear()
    net.advance("30s")
    farewells = [
        (mac.source, frame.start_ns / 1e9)
        for frame, mac, packet in net.packets()
        if packet.type is PacketType.BEACON and packet.body.level == NO_LEVEL
    ]
    first = {node: min(at for source, at in farewells if source == node) for node in (1, 2)}
    assert 0 < first[2] - first[1] < 0.2, farewells

"""Records from any mote to any other: along the tree, and to places around holes in the field."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import pytest

from skerry.network.pings import vector
from skerry_protocol.codes import CommandOp, Outcome, PacketType
from skerry_protocol.limits import NO_NODE, TICKS_PER_SECOND
from skerry_protocol.ways import Ping
from skerry_testbed.network import Mote
from skerry_testbed.pytest import MakeNetwork, NetworkHandle, disc, grid
from skerry_testbed.queries import ask, rows

BOARDS = ("iris", "cc2538")
#: Of a way's cells, in s, as PING asks for it; its control windows while a network is not slow.
ROUNDS_S, WINDOW_S = 4, 4
#: What makes another token of one.
AGAIN = 100
#: A way lapses after so many of its rounds.
LAPSES_S = 20 * ROUNDS_S


@dataclass(frozen=True)
class Arrival:
    """What the gateway is told of a ping."""

    outcome: int
    node: int
    hops: int
    took_s: float
    way: tuple[int, ...]


def ping(
    net: NetworkHandle,
    mote: int,
    to: int,
    token: int,
    place: tuple[float, float] | None = None,
    within: int = 200,
) -> None:
    where = b"" if place is None else struct.pack("<ii", *(round(part * 100) for part in place))
    net.line.command(mote, CommandOp.PING_TO, struct.pack("<HH", to, within) + where, token)


def arrivals(net: NetworkHandle) -> dict[int, Arrival]:
    """By token."""
    found: dict[int, Arrival] = {}
    for record in net.line.of(PacketType.ARRIVAL):
        body = record.body
        sent: Any = Ping.parse(body.ping)
        ticks = (body.seconds - sent.seconds) * TICKS_PER_SECOND + body.ticks - sent.ticks
        passed = tuple(node for (node,) in struct.iter_unpack("<H", sent.way))
        if sent.token in found and found[sent.token].outcome == Outcome.ARRIVED:
            continue
        found[sent.token] = Arrival(
            body.outcome, body.node, body.hops, ticks / TICKS_PER_SECOND, (body.source, *passed, body.node)
        )
    return found


def parents(net: NetworkHandle) -> dict[int, int]:
    return {record.body.node: record.body.parent for record in net.line.of(PacketType.STATUS)}


def by_tree(net: NetworkHandle, mote: int, to: int) -> tuple[int, ...]:
    """Up to the lowest common ancestor, and down."""
    up = parents(net)

    def chain(node: int) -> list[int]:
        found = [node]
        while up.get(found[-1], NO_NODE) != NO_NODE:
            found.append(up[found[-1]])
        return found

    one, other = chain(mote), chain(to)
    common = next(node for node in one if node in other)
    return (*one[: one.index(common) + 1], *reversed(other[: other.index(common)]))


def listened_s(net: NetworkHandle, mote: int) -> float:
    energy = net.motes[mote].energy
    return sum(
        seconds for state, seconds in energy.items() if state.startswith("radio") and state.endswith("_s")
    )


def tee() -> list[Mote]:
    """The root in the middle of one side, two arms of three motes, and a stem of two between the root and where they part."""
    stem = [Mote(id=0, x=0, y=0, root=True), Mote(id=1, x=10, y=0, board="cc2538"), Mote(id=2, x=20, y=0)]
    left = [Mote(id=n, x=20 + 7 * (n - 2), y=7 * (n - 2), board=BOARDS[n % 2]) for n in (3, 4, 5)]
    right = [Mote(id=n, x=20 + 7 * (n - 5), y=-7 * (n - 5), board=BOARDS[n % 2]) for n in (6, 7, 8)]
    return stem + left + right


def test_a_record_goes_up_the_tree_to_the_common_ancestor_and_down(network: MakeNetwork) -> None:
    """The first opens the way in control windows; the next ones go in one round, or wait for the way's next one."""
    net = network(tee(), radio=disc(11))
    net.advance("60s")
    ping(net, 5, 8, 1)
    net.advance("60s")
    way = by_tree(net, 5, 8)
    assert way == (5, 4, 3, 2, 6, 7, 8)
    first = arrivals(net)[1]
    assert (first.outcome, first.node, first.hops, first.way) == (Outcome.ARRIVED, 8, 6, way)
    for token in (2, 3, 4):
        ping(net, 5, 8, token)
        net.advance("40s")  # The network is slow by then: what is asked takes up to 16 s.
    found = arrivals(net)
    assert [found[token].way for token in (2, 3, 4)] == [way] * 3
    assert max(found[token].took_s for token in (2, 3, 4)) < 2 * ROUNDS_S


def test_a_mote_on_no_way_pays_nothing_and_a_way_lapses(network: MakeNetwork) -> None:
    """A way's motes listen in one cell each 4 s while it is in use. Then, and who is on none all along, they are as they were before."""
    net = network(tee(), radio=disc(11))
    net.advance("300s")

    def measured(duration_s: int) -> dict[int, float]:
        before = {mote: listened_s(net, mote) for mote in net.motes}
        net.advance(duration_s)
        return {mote: listened_s(net, mote) - before[mote] for mote in net.motes}

    # Of the network at rest: a multiple of the 16 s of its control windows.
    at_rest = measured(512)
    ping(net, 4, 5, 1)  # A neighbour: the flood reaches all, the way is theirs alone.
    ping(net, 5, 4, 2)
    net.advance("64s")
    assert {one.outcome for one in arrivals(net).values()} == {Outcome.ARRIVED}
    net.advance(LAPSES_S)
    after = measured(512)
    for mote in net.motes:
        assert after[mote] == pytest.approx(at_rest[mote], rel=0.05, abs=0.2), mote


def test_one_cell_in_four_seconds_is_all_that_a_silent_way_takes(network: MakeNetwork) -> None:
    net = network(tee(), radio=disc(11))
    net.advance("300s")
    ping(net, 5, 8, 1)
    while not arrivals(net):
        net.advance("16s")
    assert arrivals(net)[1].outcome == Outcome.ARRIVED
    before = {mote: listened_s(net, mote) for mote in net.motes}
    net.advance("16s")
    used = {mote: listened_s(net, mote) - before[mote] for mote in net.motes}
    net.advance(LAPSES_S + 64)
    before = {mote: listened_s(net, mote) for mote in net.motes}
    net.advance("16s")
    unused = {mote: listened_s(net, mote) - before[mote] for mote in net.motes}
    more = {mote: (used[mote] - unused[mote]) / 4 for mote in net.motes}
    # 8 ms, and a beacon more or less of a window's.
    assert all(more[mote] < 0.012 for mote in net.motes), more


@pytest.mark.slow
def test_a_record_finds_its_place_around_a_hole(network: MakeNetwork) -> None:
    """A field of 5 by 5 without its middle: between its sides nobody is nearer to the other, but around."""
    hole = {7, 8, 11, 12, 13, 16, 17}
    field = [
        Mote(id=mote.id, x=mote.x, y=mote.y, root=mote.root, board=BOARDS[mote.id % 2])
        for mote in grid(5, 5, spacing=10)
        if mote.id not in hole
    ]
    net = network(field, radio=disc(13))
    net.advance("60s")
    at = {mote.id: (mote.x, mote.y) for mote in field}
    ping(net, 10, 14, 1, at[14])  # across the hole
    net.advance("60s")
    ping(net, 6, NO_NODE, 2, (31.0, 22.0))  # into the hole
    while 2 not in arrivals(net) and net.now < 300:
        net.advance("8s")
    found = arrivals(net)
    assert (found[1].outcome, found[1].node) == (Outcome.ARRIVED, 14)
    assert all(
        (at[a][0] - at[b][0]) ** 2 + (at[a][1] - at[b][1]) ** 2 <= 13**2
        for a, b in zip(found[1].way, found[1].way[1:], strict=False)
    )
    nearest = min(at, key=lambda mote: (at[mote][0] - 31) ** 2 + (at[mote][1] - 22) ** 2)
    assert (found[2].outcome, found[2].node) == (Outcome.ARRIVED, nearest)
    # The question takes a control window a hop until it is at its mote; the record has a way then.
    ping(net, 6, NO_NODE, 3, (31.0, 22.0))
    while 3 not in arrivals(net) and net.now < 500:
        net.advance("8s")
    assert arrivals(net)[3].took_s < 2 * ROUNDS_S


@pytest.mark.slow
def test_many_send_at_once_over_links_that_lose_frames(network: MakeNetwork) -> None:
    """Four ways that cross, each with six records, one in ten frames lost: all arrive, each once, while rows go up as ever. A mote that has
    not said that it sends one is told again, by another token, as others remember the first."""
    net = network(tee(), radio=disc(11, reception=0.9), seed=3)
    net.advance("60s")
    query = ask(net, 1, "SELECT nodeid FROM sensors SAMPLE PERIOD 5 s")
    pairs = [(5, 8), (8, 5), (4, 7), (0, 5)]
    for turn in range(6):
        for number, (one, other) in enumerate(pairs):
            ping(net, one, other, 10 * turn + number + 1)
            net.advance("2s")
        net.advance("22s")
        done = {record.body.token for record in net.line.of(PacketType.COMMAND_ACK)}
        for number, (one, other) in enumerate(pairs):
            if 10 * turn + number + 1 not in done:
                ping(net, one, other, AGAIN + 10 * turn + number + 1)
    net.advance("120s")
    told = [Ping.parse(record.body.ping).token for record in net.line.of(PacketType.ARRIVAL)]
    found = arrivals(net)
    assert len({token % AGAIN for token in found}) == 24
    assert {token: one.outcome for token, one in found.items() if one.outcome != Outcome.ARRIVED} == {}
    assert len(told) == len(set(told))
    epochs = {(row["nodeid"], row["epoch"]) for row in rows(net.line, 1, query)}
    first, last = min(epoch for _, epoch in epochs) + 1, max(epoch for _, epoch in epochs) - 4
    missing = {(node, epoch) for node in net.motes for epoch in range(first, last)} - epochs
    assert len(missing) <= 2, missing


@pytest.mark.slow
def test_a_mote_on_the_way_dies_and_another_one_takes_its_place(network: MakeNetwork) -> None:
    """A ladder, of whose two sides each can carry the way."""
    ladder = [Mote(id=n, x=10 * (n // 2), y=9 * (n % 2), board=BOARDS[n % 2], root=n == 0) for n in range(10)]
    net = network(ladder, radio=disc(14.5))
    net.advance("60s")
    ask(net, 1, "SELECT nodeid FROM sensors SAMPLE PERIOD 5 s")  # Parents are judged by rows.
    ping(net, 8, 0, 1)
    ping(net, 1, 9, 2)
    net.advance("60s")
    found = arrivals(net)
    assert [found[token].outcome for token in (1, 2)] == [Outcome.ARRIVED] * 2
    dead = next(mote for mote in found[2].way[1:-1] if mote not in (0, 1))
    net.motes[dead].kill()
    ping(net, 8 if dead != 8 else 9, 0, 3)
    ping(net, 1, 9, 4)
    net.advance("200s")
    found = arrivals(net)
    assert [found[token].outcome for token in (3, 4)] == [Outcome.ARRIVED] * 2
    assert dead not in found[4].way


def test_what_cannot_arrive_is_told(network: MakeNetwork) -> None:
    net = network(tee(), radio=disc(11))
    net.advance("60s")
    ping(net, 5, 99, 1, within=300)  # there is no such mote
    ping(net, 4, 98, 2, within=8)
    net.advance("140s")
    found = arrivals(net)
    assert found[1].outcome == Outcome.NO_WAY
    assert found[2].outcome == Outcome.LATE


def test_a_record_goes_by_the_motes_that_are_named(network: MakeNetwork) -> None:
    """Twice by the same ones, then back by others; what no link leads by is told."""
    net = network(grid(3, 3, spacing=10, boards=BOARDS), radio=disc(13))
    net.advance("60s")

    def by(mote: int, *motes: int, token: int) -> None:
        data = struct.pack("<HH", motes[-1], 100) + vector(mote, motes)
        net.line.command(mote, CommandOp.PING_BY, data, token)

    by(2, 1, 0, 3, 4, 5, token=1)
    net.advance("20s")  # A mote opens one such way at a time.
    by(8, 7, 4, 1, token=2)
    by(6, 8, 5, token=3)
    net.advance("40s")
    by(2, 1, 0, 3, 4, 5, token=4)
    net.advance("40s")
    found = arrivals(net)
    assert [found[token].way for token in (1, 2, 4)] == [(2, 1, 0, 3, 4, 5), (8, 7, 4, 1), (2, 1, 0, 3, 4, 5)]
    assert found[4].took_s < 2 * ROUNDS_S
    assert found[3].outcome == Outcome.NO_WAY

"""Semantic routing trees, on the firmware's real image: queries go only where they can apply, and no row is lost by it."""

from __future__ import annotations

import struct

import msgspec
import pytest

from skerry.ingest.partial_states import Partial, from_packet, merge_partials
from skerry.planner.model.plans import MoteQuery
from skerry_protocol.codes import CommandOp, PacketType, RefusalReason
from skerry_protocol.commands import ACTIONS
from skerry_testbed.pytest import MakeNetwork, NetworkHandle, disc, grid, line_of
from skerry_testbed.queries import ask, create_srt, rows, senders

#: From a value's change to the first row, in s, over the two or three hops of these networks: each hop takes a control window for
#: the value's way up and one for the query's way down, of 4 s each, and one more where a frame is lost.
CHANGE_S = 60


def spreaders(net: NetworkHandle, query: int) -> set[int]:
    """Motes that sent parts of a query's program."""
    return {
        mac.source
        for _, mac, packet in net.packets()
        if packet.type is PacketType.QUERY_INSTALL and packet.body.query == query
    }


def sampled(net: NetworkHandle) -> dict[int, float]:
    """J that each mote's sensors have taken."""
    return {node: mote.energy["sensors_j"] for node, mote in net.motes.items()}


def put(net: NetworkHandle, node: int, **place: int) -> None:
    """Set a mote's room, floor or group by command."""
    for name, value in place.items():
        action = next(action for action in ACTIONS if action.name == f"set_{name}")
        token = 100 + len(net.line.of(PacketType.COMMAND_ACK))
        net.line.command(node, CommandOp.RUN, struct.pack("<Bi", action.number, value), token)
        net.advance("20s")


def told(net: NetworkHandle, query: int, mote_query: MoteQuery) -> set[tuple[int, int]]:
    """Mote and epoch of the rows of a query."""
    return {(row["nodeid"], row["epoch"]) for row in rows(net.line, query, mote_query)}


def test_a_query_goes_only_where_it_applies(network: MakeNetwork) -> None:
    """A line of six: what 2 alone answers is forwarded by 1, which does not sample; 3, 4 and 5 neither hold nor forward it."""
    net = network(line_of(6, spacing=10), radio=disc(12))
    net.advance("40s")
    tree = create_srt(net, 1, "CREATE SRT ids ON sensors (nodeid)", lambda _: range(6))
    net.advance("60s")
    net.frames.clear()
    query = ask(net, 2, "SELECT nodeid, temp FROM sensors WHERE nodeid = 2 SAMPLE PERIOD 5 s", srts=[tree])
    net.advance("60s")
    assert {row["nodeid"] for row in rows(net.line, 2, query)} == {2}
    assert spreaders(net, 2) == {0, 1}
    assert senders(net, 2) == {1, 2}
    assert {node for node, joule in sampled(net).items() if joule} == {2}


def test_rows_are_those_without_the_tree(network: MakeNetwork) -> None:
    """The same condition with and without a route, with two intervals: the same rows of the same epochs."""
    net = network(grid(5, 4, spacing=10), radio=disc(15), seed=3)
    net.advance("60s")
    tree = create_srt(net, 1, "CREATE SRT ids ON sensors (nodeid)", lambda _: range(20))
    net.advance("80s")
    net.frames.clear()
    sql = "SELECT nodeid, temp FROM sensors WHERE nodeid IN (7, 13, 14) SAMPLE PERIOD 5 s FOR 60 s"
    # A lost program is asked for in one of the next windows: the first epoch is behind them.
    routed, flooded = (ask(net, query, sql, srts=srts, lead_s=24) for query, srts in ((2, [tree]), (3, [])))
    net.advance("120s")
    assert told(net, 2, routed) == told(net, 3, flooded)
    assert len(told(net, 2, routed)) == 3 * 12
    assert len(senders(net, 2)) < 20


@pytest.mark.parametrize(
    ("where", "states"),
    [
        # How many were summed up and their sum, and the count.
        ("nodeid BETWEEN 5 AND 9", ((5, 35), (5, 0))),
        ("nodeid > 200", ((0, 0), (0, 0))),
        ("nodeid BETWEEN 5 AND 9 AND light < 0", ((0, 0), (0, 0))),
    ],
    ids=["some", "nobody's range", "nobody's reading"],
)
def test_aggregates_are_those_without_the_tree(
    network: MakeNetwork, where: str, states: tuple[tuple[int, int], ...]
) -> None:
    """Those of nobody, too: their row says that there is nobody, and the root makes it."""
    net = network(grid(4, 3, spacing=10), radio=disc(15), seed=4)
    net.advance("60s")
    tree = create_srt(net, 1, "CREATE SRT ids ON sensors (nodeid)", lambda _: range(12))
    net.advance("60s")
    sql = f"SELECT COUNT(*), SUM(nodeid) FROM sensors WHERE {where} SAMPLE PERIOD 5 s FOR 30 s"
    queries = {number: ask(net, number, sql, srts=srts) for number, srts in ((2, [tree]), (3, []))}
    net.advance("60s")
    for number, query in queries.items():
        parts: dict[int, list[Partial]] = {}
        for record in net.line.of(PacketType.PARTIAL, number):
            parts.setdefault(record.body.epoch, []).append(from_packet(query, record.body))
        merged = [merge_partials(query, found) for found in parts.values()]
        assert [partial.states for partial in merged] == [states] * 6, number


def test_a_box_of_two_attributes(network: MakeNetwork) -> None:
    """5 by 4 motes, 10 m apart: those whose x and y are asked for answer, though each alone would be asked of more."""
    net = network(grid(5, 4, spacing=10), radio=disc(15), seed=5)
    net.advance("60s")
    tree = create_srt(
        net, 1, "CREATE SRT loc ON sensors (loc)", {"xpos": [0, 4000], "ypos": [0, 3000]}.__getitem__
    )
    net.advance("80s")
    net.frames.clear()
    sql = "SELECT nodeid FROM sensors WHERE xpos >= 30 m AND ypos <= 10 m SAMPLE PERIOD 5 s FOR 60 s"
    query = ask(net, 2, sql, srts=[tree])
    net.advance("90s")
    assert {node for node, _ in told(net, 2, query)} == {3, 4, 8, 9}
    assert len(told(net, 2, query)) == 4 * 12
    assert senders(net, 2).isdisjoint({10, 11, 15, 16, 17, 18, 19})


def test_a_value_that_changes_into_the_range(network: MakeNetwork) -> None:
    """Nobody answers; then the last mote of a line is put into the room; then it is taken out again."""
    net = network(line_of(4, spacing=10), radio=disc(12))
    net.advance("30s")
    tree = create_srt(net, 1, "CREATE SRT rooms ON sensors (room)")
    net.advance("60s")
    query = ask(net, 2, "SELECT nodeid, temp FROM sensors WHERE room = 7 SAMPLE PERIOD 5 s", srts=[tree])
    net.advance("40s")
    assert not rows(net.line, 2, query)
    assert spreaders(net, 2) == set()
    put(net, 3, room=7)
    net.advance(CHANGE_S)
    net.frames.clear()
    net.advance("30s")
    assert {row["nodeid"] for row in rows(net.line, 2, query)} == {3}
    assert senders(net, 2) == {1, 2, 3}
    put(net, 3, room=8)
    net.advance("120s")
    before, net.line.records[:] = sampled(net), []
    net.frames.clear()
    net.advance("60s")
    assert not rows(net.line, 2, query)
    assert sampled(net) == before
    # Nobody asks for what he does not need.
    assert not [p for _, _, p in net.packets() if p.type is PacketType.QUERY_REQUEST]


def test_a_sampled_attribute(network: MakeNetwork) -> None:
    """It grows warm at the last mote of a line."""
    net = network(line_of(4, spacing=10), radio=disc(12), seed=5)
    for mote in net.motes.values():
        mote.sense(temp=20)
    net.advance("30s")
    tree = create_srt(net, 1, "CREATE SRT warm ON sensors (temp) SAMPLE PERIOD 10 s")
    net.advance("60s")
    query = ask(net, 2, "SELECT nodeid FROM sensors WHERE temp > 30 SAMPLE PERIOD 5 s", srts=[tree])
    net.advance("60s")
    assert spreaders(net, 2) == set()
    net.motes[3].sense(temp=35)
    net.advance(CHANGE_S + 10)
    assert {row["nodeid"] for row in rows(net.line, 2, query)} == {3}


def test_motes_that_come_and_go(network: MakeNetwork) -> None:
    """A diamond: the mote that answers loses its parent, then restarts itself; then a mote below it comes."""
    net = network(grid(2, 2, spacing=10), radio=disc(11))
    net.advance("30s")
    tree = create_srt(net, 1, "CREATE SRT ids ON sensors (nodeid)", lambda _: range(4))
    net.advance("60s")
    query = ask(net, 2, "SELECT nodeid FROM sensors WHERE nodeid = 3 SAMPLE PERIOD 5 s", srts=[tree])
    net.advance("30s")
    parent = next(r.body.parent for r in reversed(net.line.of(PacketType.STATUS)) if r.body.node == 3)
    net.motes[parent].kill()
    net.advance("90s")
    assert max(row["at"] for row in rows(net.line, 2, query)) > net.now - 12
    net.motes[3].reboot()
    net.advance("60s")
    assert max(row["at"] for row in rows(net.line, 2, query)) > net.now - 12
    net.motes[3 - parent].reboot()
    net.advance("90s")
    assert max(row["at"] for row in rows(net.line, 2, query)) > net.now - 12


def test_without_the_tree_the_query_goes_everywhere(network: MakeNetwork) -> None:
    """DROP SRT, and a row of the mote that has changed as soon as it has."""
    net = network(line_of(4, spacing=10), radio=disc(12))
    net.advance("30s")
    tree = create_srt(net, 1, "CREATE SRT rooms ON sensors (room)")
    net.advance("60s")
    ask(net, 2, "SELECT nodeid FROM sensors WHERE room = 7 SAMPLE PERIOD 5 s", srts=[tree])
    net.advance("30s")
    net.line.stop(1)
    net.advance(CHANGE_S)
    assert spreaders(net, 2) == {0, 1, 2}


@pytest.mark.parametrize(("boards", "held"), [(("cc2538", "iris"), {0: 4, 1: 1}), (("iris",), {0: 1})])
def test_as_many_trees_as_the_board_has_room_for(
    network: MakeNetwork, boards: tuple[str, ...], held: dict[int, int]
) -> None:
    """What the root does not hold, it does not pass on."""
    net = network(line_of(2, spacing=10, boards=boards), radio=disc(12))
    net.advance("30s")
    for number in range(1, held[0] + 2):
        create_srt(net, number, f"CREATE SRT t{number} ON sensors (nodeid)")
        net.advance("12s")
    refusals = {(r.body.node, r.body.query, r.body.reason) for r in net.line.of(PacketType.REFUSAL)}
    assert refusals == {
        (node, query, RefusalReason.TREES)
        for node, most in held.items()
        for query in range(most + 1, held[0] + (2 if node == 0 else 1))
    }


def test_parents_are_chosen_by_value(network: MakeNetwork) -> None:
    """Two branches and three motes below both: each takes the parent whose room is its own, though all links are alike."""
    motes = [*grid(2, 1, spacing=10), *grid(3, 2, spacing=10)]
    places = [(10.0, 0.0), (4.0, 8.0), (16.0, 8.0), (6.0, 16.0), (10.0, 16.0), (14.0, 16.0)]
    motes = [
        msgspec.structs.replace(mote, id=n, x=x, y=y, root=n == 0)
        for n, (mote, (x, y)) in enumerate(zip(motes, places, strict=False))
    ]
    net = network(motes, radio=disc(13.5))
    net.advance("40s")
    rooms = {1: 10, 2: 200, 3: 195, 4: 12, 5: 8}
    for node, room in rooms.items():
        put(net, node, room=room)
    create_srt(net, 1, "CREATE SRT rooms ON sensors (room) POLICY closest")
    # One look in four windows, by chance, and the network is old enough to have one in 16 s only.
    net.advance("480s")
    parents = {r.body.node: r.body.parent for r in net.line.of(PacketType.STATUS)}
    assert {node: parents[node] for node in (3, 4, 5)} == {3: 2, 4: 1, 5: 1}

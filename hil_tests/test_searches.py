"""Motes that are found by what never changes on them, over several trees: equal to what the motes were told."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from skerry.network.searches import Searched, arguments
from skerry_protocol.attributes import BY_NAME
from skerry_protocol.codes import CommandOp, PacketType
from skerry_protocol.commands import ACTION_BY_NAME
from skerry_protocol.limits import BROADCAST
from skerry_testbed.network import Mote
from skerry_testbed.pytest import MakeNetwork, NetworkHandle, disc, grid

BOARDS = ("iris", "cc2538")
ROOMS = {mote: 1 + mote % 4 for mote in range(12)}
#: Far from each other in the field of four by three.
ROOTS = (0, 11, 3)


def field() -> list[Mote]:
    return [
        Mote(id=mote.id, x=mote.x, y=mote.y, root=mote.root, board=BOARDS[mote.id % 2])
        for mote in grid(4, 3, spacing=10)
    ]


def heard(net: NetworkHandle, searched: Searched) -> Searched:
    for record in net.line.of(PacketType.FOUND):
        if record.body.token == searched.token:
            searched.hear(record.body)
    return searched


def search(net: NetworkHandle, token: int, mote: int, name: str, low: int, high: int, wait: int) -> Searched:
    """Until it is over, or for as long as a search may take."""
    searched = Searched(token, mote, BY_NAME[name].number, low, high, ROOTS, wait)
    net.line.command(BROADCAST, CommandOp.SEARCH, arguments(searched), token)
    end = net.now + 600
    while not heard(net, searched).complete and net.now < end:
        net.advance("8s")
    return searched


def told(rooms: dict[int, int], low: int, high: int) -> list[int]:
    return sorted(mote for mote, room in rooms.items() if low <= room <= high)


def rooms_set(net: NetworkHandle, rooms: Iterable[tuple[int, int]], token: int) -> None:
    for mote, room in rooms:
        number = ACTION_BY_NAME["set_room"].number
        net.line.command(mote, CommandOp.RUN, struct.pack("<Bi", number, room), token + mote)
        net.advance("8s")


def test_a_search_finds_those_that_have_it_and_no_others(network: MakeNetwork) -> None:
    net = network(field(), radio=disc(11))
    net.advance("60s")
    rooms_set(net, ROOMS.items(), 100)
    first = search(net, 1, 5, "room", 4, 4, 16)
    print(first.to_dict())
    assert (first.complete, sorted(first.found)) == (True, told(ROOMS, 4, 4))
    again = search(net, 2, 8, "room", 1, 1, 0)  # from another mote, by the trees that there are
    print(again.to_dict())
    assert (again.complete, sorted(again.found)) == (True, told(ROOMS, 1, 1))
    nobody = search(net, 3, 8, "room", 9, 9, 0)
    assert (nobody.complete, nobody.found) == (True, {})
    # Who moves is found where he is now.
    rooms_set(net, [(6, 9)], 200)
    net.advance("32s")
    moved = search(net, 4, 0, "room", 9, 9, 0)
    assert (moved.complete, sorted(moved.found)) == (True, [6])
    some = search(net, 5, 10, "nodeid", 3, 6, 16)  # of an interval
    print(some.to_dict())
    assert (some.complete, sorted(some.found)) == (True, [3, 4, 5, 6])

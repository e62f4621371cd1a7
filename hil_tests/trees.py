"""The routing tree, as the beacons on the air tell it."""

from __future__ import annotations

from dataclasses import dataclass

from skerry_protocol.codes import PacketType
from skerry_protocol.limits import NO_LEVEL
from skerry_testbed.pytest import NetworkHandle


@dataclass
class Loop:
    """Motes each of whom has the next one for its parent, and from when to when, s of virtual time."""

    motes: tuple[int, ...]
    began: float
    ended: float


@dataclass
class TreeSeen:
    """``loops``: in the order in which they began; ``deepest``: level; ``last``: s, when somebody beside the root told one."""

    loops: list[Loop]
    deepest: int
    last: float


def loop_among(parents: dict[int, int]) -> tuple[int, ...]:
    """One that there is; empty without."""
    for mote in parents:
        way = [mote]
        while (up := parents.get(way[-1])) is not None:
            if up in way:
                return tuple(way[way.index(up) :])
            way.append(up)
    return ()


def tree_seen(net: NetworkHandle) -> TreeSeen:
    """By the frames that are kept. A mote counts with the parent of its last beacon: what it has changed since is not known."""
    seen, parents = TreeSeen([], 0, 0.0), {}
    loop: tuple[int, ...] = ()
    for frame, decoded, packet in net.packets():
        if packet.type is not PacketType.BEACON:
            continue
        now = frame.start_ns / 1e9
        parents[decoded.source] = packet.body.parent
        if packet.body.level not in (0, NO_LEVEL):
            seen.deepest, seen.last = max(seen.deepest, packet.body.level), now
        if loop:
            seen.loops[-1].ended = now
        before, loop = loop, loop_among(parents)
        if loop and loop != before:
            seen.loops.append(Loop(loop, now, now))
    return seen

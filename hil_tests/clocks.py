"""How well motes keep the network's time, read off their beacons."""

from __future__ import annotations

import numpy as np

from skerry_protocol.codes import PacketType
from skerry_protocol.limits import TICKS_PER_SECOND
from skerry_testbed.pytest import NetworkHandle

#: At 250 kbit/s preamble and SFD take 5 bytes of 32 us.
SFD_NS = 160_000


def time_errors(net: NetworkHandle, root: int = 0) -> dict[int, float]:
    """s by which each mote's beacons in ``net.frames`` were off at worst: what they say of their own SFD, against the root's clock.

    That one is read off the root's beacons, in a straight line from each to the next; others before its first and after its last do not
    count. Motes that sent none are left out."""
    stamps: dict[int, list[tuple[float, float]]] = {}
    for frame, decoded, packet in net.packets():
        if packet.type is PacketType.BEACON:
            told = packet.body.seconds + packet.body.ticks / TICKS_PER_SECOND
            stamps.setdefault(decoded.source, []).append(((frame.start_ns + SFD_NS) / 1e9, told))
    at, told = np.array(stamps[root]).T
    return {
        node: max(abs(value - float(np.interp(when, at, told))) for when, value in values)
        for node, sent in stamps.items()
        if (values := [(when, value) for when, value in sent if at[0] <= when <= at[-1]])
    }

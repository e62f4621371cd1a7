"""Which slots a network goes by, as its beacons tell."""

from __future__ import annotations

import pytest

from skerry_protocol.beacons import SlotsEntry
from skerry_protocol.codes import PacketType
from skerry_testbed.pytest import NetworkHandle

#: Lengths that slots may have, in cells, and the last level of each band that has one length (firmware/net/mac/slot_table.c).
SIZES = [3, 4, 5, 6, 8, 10, 12, 15, 18, 20, 24, 30, 36, 48, 64, 88]
BANDS = [1, 2, 3, 4, 8, 30]


def cells(table: int) -> list[int]:
    """Of the levels of a table as in a beacon, from the first on; empty: the beginning's."""
    bands = [next(i for i, end in enumerate(BANDS) if level <= end) for level in range(1, (table >> 24) + 1)]
    return [SIZES[table >> 4 * band & 15] for band in bands]


def slots(net: NetworkHandle) -> dict[int, list[int]]:
    """Cells by level that each mote's last beacon says are in force."""
    found = {}
    for _, frame, packet in net.packets():
        if packet.type is PacketType.BEACON:
            told = packet.body.srts[:7]
            found[frame.source] = cells(SlotsEntry.parse(told).table) if told[:1] == b"\0" else []
    return found


def until_switched(net: NetworkHandle, limit_s: float) -> None:
    """Let time pass until the root's beacons say that other slots hold, and all go by them."""
    while not slots(net).get(0):
        net.frames.clear()
        net.advance("16s")
        assert net.now < limit_s, "the root has not changed the slots"
    agree(net)


def agree(net: NetworkHandle) -> None:
    """Let time pass until the last beacons of all say the same."""
    for _ in range(6):
        net.frames.clear()
        net.advance("20s")
        if len({tuple(found) for found in slots(net).values()}) == 1:
            return
    pytest.fail(f"not all go by the same slots: {slots(net)}")

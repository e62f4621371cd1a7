"""Flash of emulated CC2538 motes: pages wear alike, motes say how full and worn they are, and erase where nobody waits for them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hil_tests.lab import on_time
from hil_tests.storing import needs_compiler, storing_image
from skerry.catalog.flash import FlashReports
from skerry.planner.model.storage_points import Point
from skerry_protocol.codes import PacketType
from skerry_protocol.limits import BROADCAST
from skerry_testbed.core import World
from skerry_testbed.pytest import MakeNetwork, NetworkHandle, disc, line_of
from skerry_testbed.queries import ask, create

#: Pages that the motes of a network have for rows: docs/firmware.md.
PAGES = 144
#: Of the mote that only stores: where they begin, how many there are, and how often each is written.
FIRST, FEW, ROUNDS = 0x60000 // 2048, 8, 10
STEP_S = 0.005


@needs_compiler
def test_pages_wear_alike_over_many_rounds_of_writing(tmp_path: Path) -> None:
    """Tuples, and a storage point's rows that are copied again and again. Power goes a few times, in whatever is done then."""
    world = World(seed=1)
    image = storing_image(tmp_path, FEW)
    world.add_mote(1, "cc2538", image, b"", clock_ppm=0.0, supply_mv=3000, boot_ns=0)
    now = cuts = starts = 0
    said = ""
    while sum(erasures := world.erasures(0)) < ROUNDS * FEW:
        now += 20_000_000
        world.run(now)
        assert not world.fault(0), world.fault(0)
        said += world.uart_read(0).decode()
        assert "E" not in said
        for most, total, wrong in re.findall(r"m(\d+);s(\d+);w(\d+);", said):
            assert wrong == "0"
            # An erasure that power has cut short is not counted.
            assert 0 <= max(world.erasures(0)) - int(most) <= cuts + 1
            assert 0 <= sum(world.erasures(0)) - int(total) <= cuts + 1
            starts += 1
            said = ""
        if sum(erasures) > (cuts + 1) * 2 * FEW:
            cuts += 1
            world.cut_power(0, 100 + 77 * cuts, cuts)
        said = said[-200:]
    assert starts == cuts + 1 > 3
    pages = erasures[FIRST : FIRST + FEW]
    assert sum(pages) == sum(erasures)
    assert max(pages) <= 1.2 * sum(pages) / FEW


class Stalls:
    """Erasures of a network's motes as they come; during the steps behind the one in which an erasure began the mote stands still."""

    def __init__(self, net: NetworkHandle) -> None:
        self._net = net
        self.motes = [mote for mote in net.motes.values() if mote.erasures]
        #: Of each mote: erasures of the page that has most, and of all, one after the other.
        self.worn: dict[int, set[tuple[int, int]]] = {mote.id: set() for mote in self.motes}
        #: Mote, from, to, in s, and how long its radio was on in between.
        self.found: list[tuple[int, float, float, float]] = []

    def advance(self, seconds: float) -> None:
        """A step at a time."""
        before = {mote.id: mote.erasures for mote in self.motes}
        began: dict[int, tuple[float, float]] = {}
        for _ in range(round(seconds / STEP_S)):
            self._net.advance(STEP_S)
            now = self._net.now
            for mote in self.motes:
                erasures = mote.erasures
                if erasures != before[mote.id]:
                    before[mote.id] = erasures
                    began[mote.id] = (now, on_time(mote.energy))
                elif mote.id in began and now > began[mote.id][0] + 2.5 * STEP_S:
                    since, on = began.pop(mote.id)
                    self.found.append((mote.id, since, now, on_time(mote.energy) - on))
                self.worn[mote.id].add((max(erasures), sum(erasures)))


def test_motes_erase_outside_slots_and_windows_and_say_how_worn_they_are(network: MakeNetwork) -> None:
    """Motes that fill pages with a storage point's rows, and report others: their radio is off while they erase, and nothing is sent
    that they were to hear. What they say of their flash has come over a mote of another kind, and is what the emulator has counted."""
    net, points = (
        network(line_of(4, spacing=10, boards=["iris", "cc2538"]), radio=disc(12)),
        dict[str, Point](),
    )
    net.advance("15s")
    create(
        net, 1,
        "CREATE STORAGE POINT wide SIZE 40 AS SELECT epoch, nodeid, parent, level, xpos, ypos, uptime, resets FROM sensors "
        "SAMPLE PERIOD 250 ms",
        points,
    )  # fmt: skip
    ask(net, 2, "SELECT nodeid, uptime FROM sensors SAMPLE PERIOD 1 s")
    stalls = Stalls(net)
    stalls.advance(65)
    assert len(stalls.found) >= 8
    assert {mote for mote, *_ in stalls.found} == {1, 3}
    heard = {
        mote.id: {other.id for other in net.motes.values() if abs(other.id - mote.id) == 1}
        for mote in stalls.motes
    }
    for mote, since, until, on in stalls.found:
        assert on == 0, f"mote {mote} erased at {since:.3f} s with its radio on"
        for frame, decoded, _ in net.packets():
            if frame.start_ns / 1e9 < until and frame.end_ns / 1e9 > since and decoded.source in heard[mote]:
                assert decoded.destination not in (mote, BROADCAST), f"mote {mote} at {since:.3f} s"
    reports = FlashReports()
    told: dict[int, Any] = {}
    for record in net.line.of(PacketType.FLASH):
        reports.hear(record.body, record.at)
        told[record.body.node] = record.body
        worn = record.body.erased_most, record.body.erased_sum
        assert record.at < 16 or worn in stalls.worn[record.body.node]
    assert sorted(told) == [1, 3]
    for row in reports.described():
        assert row["pages"] == PAGES
        assert row["capacity"] >= 256 * 1024
        assert 0 < row["used"] == told[row["nodeid"]].used
        assert row["fill"] == round(row["used"] / row["capacity"], 4)
        assert (row["evicted"], row["erased_most"]) == (0, 1)
        assert row["erased_mean"] == round(told[row["nodeid"]].erased_sum / PAGES, 2)

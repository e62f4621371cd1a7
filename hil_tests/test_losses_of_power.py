"""An emulated CC2538 stores without end, and loses power while it writes a word of flash or erases a page, again and again: it has what it
has told that it stored. Its chip faults a word that is written and was not erased."""

from __future__ import annotations

import random
import re
from pathlib import Path

from hil_tests.storing import needs_compiler, storing_image
from skerry_testbed.core import World

PAGES = range(0x60000 // 2048, 0x60000 // 2048 + 12)
LOSSES = 120


@needs_compiler
def test_what_a_mote_has_stored_outlives_losses_of_power(tmp_path: Path) -> None:
    random_ = random.Random(51)
    world = World(seed=1)
    image = storing_image(tmp_path, len(PAGES))
    world.add_mote(1, "cc2538", image, b"", clock_ppm=0.0, supply_mv=3000, boot_ns=0)
    stored = rows = starts = evictions = now = 0
    said, found = "", {}
    while starts <= LOSSES:
        now += 10_000_000
        world.run(now)
        assert not world.fault(0), world.fault(0)
        said += world.uart_read(0).decode()
        told = list(re.finditer(r"([a-zA-Z])(\d+);", said))
        said = said[told[-1].end() :] if told else said
        for what, number in (each.groups() for each in told):
            assert what != "E"
            if what in "TR":
                stored, rows = (int(number) + 1, rows) if what == "T" else (stored, int(number))
                continue
            found[what] = int(number)
            if what == "w":
                assert found["w"] == 0
                # What had just become whole may not have been told any more: the line holds some 16 letters.
                assert stored <= found["n"] <= stored + 4
                assert rows <= found["r"] <= rows + 2
                evictions += found["f"] > 0
                stored, rows, starts = found["n"], found["r"], starts + 1
                world.cut_power(0, random_.randrange(700 if starts < 5 else 90), starts)
    assert world.counters(0)["resets"] == LOSSES
    assert evictions > LOSSES / 3
    erasures = world.erasures(0)
    assert sum(erasures) == sum(erasures[page] for page in PAGES)
    assert min(erasures[page] for page in PAGES) >= 1

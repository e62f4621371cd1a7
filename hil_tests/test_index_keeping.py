"""What is older than its index keeps it is neither told by motes nor kept: not to the gateway, nor to the mote that asks."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hil_tests.office import Office
from skerry_testbed.pytest import MakeNetwork, disc, grid

#: All hear each other.
BOARDS = ("iris", "cc2538", "iris", "cc2538", "cc2538", "iris")
PERIOD_S, KEEP_S = 40, 240
#: Epochs whose tuples may be there at a time, of which one begins and one ends.
KEPT = KEEP_S // PERIOD_S + 1
#: Mote 3 stores.
ASKS = 3


def test_old_tuples_go(
    network: MakeNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drawn_seed: int
) -> None:
    rng = random.Random(drawn_seed)
    net = network(grid(3, 2, spacing=5, boards=BOARDS), radio=disc(15))
    office = Office(net, tmp_path, monkeypatch)
    office.advance(120, lambda: office.gateway.site.status()["motes"] == len(BOARDS))
    made = office.ask(
        "CREATE INDEX climate ON sensors (JOINT (light FROM 200 TO 1000, temp FROM 10 TO 50))"
        f" SAMPLE PERIOD {PERIOD_S} s KEEP {KEEP_S} s"
    )
    assert made.index is not None
    asked = office.ask(f"SELECT COUNT(*) FROM climate AT MOTE {ASKS} SAMPLE PERIOD {2 * PERIOD_S} s")
    for _ in range(4 * KEPT):
        for mote in net.motes.values():
            mote.sense(light=rng.randrange(200, 1000), temp=rng.randrange(1000, 5000) / 100)
        office.advance(PERIOD_S)
    most = KEPT * len(BOARDS)
    counts = [int(row["COUNT(*)"]) for row in office.told(asked)]
    print(f"{4 * most} tuples were sampled; mote {ASKS} counted {counts}, of {most} at most")
    assert len(counts) > KEPT
    assert max(counts) <= most
    assert max(counts[len(counts) // 2 :]) > most // 3
    whole = office.ask("SELECT nodeid, epoch FROM climate")
    office.answers([whole])
    told = office.gateway.queries.indexed(whole)
    assert told is not None
    assert told["complete"]
    rows = office.told(whole)
    assert most // 3 < len(rows) <= most
    # What motes hold, as they told last: 24 s ago, most likely.
    [climate] = office.gateway.site.status()["indexes"]
    held = sum(climate["tuples"].values())
    print(f"{len(rows)} tuples answered, {held} held")
    assert most // 3 < held <= most + len(BOARDS)
    office.gateway.close()

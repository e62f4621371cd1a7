"""Motes that store tuples of an index reboot again and again on links that lose frames: what is on its way to them is stored all the same,
once, as a mote keeps what it cannot take until it has its queries again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from hil_tests.office import Office
from skerry_testbed.network import Environment, Field
from skerry_testbed.pytest import MakeNetwork, disc, grid

#: All hear each other; who stores is on nobody else's way.
BOARDS = ("iris", "cc2538", "iris", "iris", "cc2538", "iris")
STORING = {1, 4}
PERIOD_S, EPOCHS = 40, 8
#: Virtual s in which what was sampled has come to who stores it, where ways break and are opened anew.
SETTLED_S = 300
FIELDS = Environment(
    fields={
        "light": Field(base=500.0, gradient=(40.0, 30.0), amplitude=300.0, period="230 s"),
        "temp": Field(base=20.0, gradient=(0.3, 0.5), amplitude=5.0, period="310 s"),
    }
)


def test_tuples_wait_at_a_mote_that_stores_until_it_has_its_queries_again(
    network: MakeNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    motes = grid(3, 2, spacing=5, boards=BOARDS)
    net = network(motes, radio=disc(15, reception=0.9), environment=FIELDS, seed=3)
    office = Office(net, tmp_path, monkeypatch)
    office.advance(120, lambda: office.gateway.site.status()["motes"] == len(motes))
    sampled = office.ask(f"SELECT nodeid, epoch FROM sensors SAMPLE PERIOD {PERIOD_S} s")
    office.ask(
        "CREATE INDEX climate ON sensors (JOINT (light FROM 200 TO 1000, temp FROM 10 TO 30))"
        f" SAMPLE PERIOD {PERIOD_S} s KEEP 1 day"
    )
    office.advance(3 * PERIOD_S)
    first = max(row["epoch"] for row in office.told(sampled)) + 1
    for turn in range(EPOCHS):
        office.advance(PERIOD_S)
        net.motes[min(STORING) if turn % 2 else max(STORING)].reboot()
    office.advance(PERIOD_S)
    last = max(row["epoch"] for row in office.told(sampled))
    office.advance(SETTLED_S)
    asked = office.ask(f"SELECT nodeid, epoch FROM climate WHERE epoch BETWEEN {first} AND {last}")
    office.answers([asked])
    told = office.gateway.queries.indexed(asked)
    assert told is not None
    assert told["complete"]
    stored = Counter((row["nodeid"], row["epoch"]) for row in office.told(asked))
    assert set(stored.values()) == {1}
    # What a mote that rebooted had of its own in RAM is gone.
    readings = {
        (row["nodeid"], row["epoch"]) for row in office.told(sampled) if first <= row["epoch"] <= last
    }
    others = {one for one in readings if one[0] not in STORING}
    lacking = others - set(stored)
    print(
        f"{len(stored)} tuples stored; of {len(others)} readings of motes that do not store, lacking: {sorted(lacking)}"
    )
    assert len(others) > 20
    assert not lacking
    office.gateway.close()

"""Motes store tuples for each other on links that lose one frame in ten: all but one in two hundred are stored, and each once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from hil_tests.office import Office
from skerry.catalog.substitutes import Wanted
from skerry_testbed.network import Environment, Field
from skerry_testbed.pytest import MakeNetwork, disc, grid

BOARDS = ("iris", "cc2538", "iris")
FIELDS = Environment(
    fields={
        "light": Field(base=500.0, gradient=(12.0, 3.0), amplitude=300.0, period="230 s"),
        "temp": Field(base=20.0, gradient=(0.1, 0.2), amplitude=5.0, period="310 s"),
    }
)
PERIOD_S, EPOCHS = 40, 16
#: Virtual s in which what was sampled has come to who stores it, where ways break and are opened anew.
SETTLED_S = 600
#: Times that all of them are asked for, where motes do not answer.
ASKED = 3
#: Of all tuples.
STORED = 0.995


@pytest.mark.parametrize("seed", [5])
def test_tuples_are_stored_where_frames_are_lost(
    network: MakeNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    motes = grid(4, 3, spacing=10, boards=BOARDS)
    net = network(motes, radio=disc(15, reception=0.9), environment=FIELDS, seed=seed)
    # The root tells the time, by which epochs are known.
    net.advance(0.5)
    office = Office(net, tmp_path, monkeypatch)
    office.advance(300, lambda: office.gateway.site.status()["motes"] == len(motes))
    office.ask(
        "CREATE INDEX climate ON sensors (JOINT (light FROM 0 TO 1200, temp FROM 10 TO 35))"
        f" SAMPLE PERIOD {PERIOD_S} s KEEP 1 day"
    )
    # All motes have heard of it.
    office.advance(2 * PERIOD_S)
    first = int(net.line.network_time()) // PERIOD_S + 1
    office.advance(EPOCHS * PERIOD_S)
    last = first + EPOCHS - 1
    office.advance(SETTLED_S)
    # An answer may be lost as well, and says so.
    complete, stored = False, Counter[tuple[int, int]]()
    for _ in range(ASKED):
        asked = office.ask(f"SELECT nodeid, epoch FROM climate WHERE epoch BETWEEN {first} AND {last}")
        office.answers([asked])
        told = office.gateway.queries.indexed(asked)
        assert told is not None
        stored = Counter((row["nodeid"], row["epoch"]) for row in office.told(asked))
        complete = told["complete"]
        if complete:
            break
        print(f"missing: {told['missing']}")
    assert complete
    lacking = {(mote.id, epoch) for mote in motes for epoch in range(first, last + 1)} - set(stored)
    dropped = {
        mote["nodeid"]: mote["dropped"]
        for mote in office.gateway.inventory.motes(Wanted())
        if mote["dropped"]
    }
    print(f"{len(stored)} tuples stored, lacking: {sorted(lacking)}; dropped by motes: {dropped}")
    assert set(stored.values()) == {1}
    assert len(lacking) <= (1 - STORED) * len(motes) * EPOCHS
    office.gateway.close()

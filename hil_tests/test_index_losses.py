"""Motes store tuples for each other, in one part and in four: on links that lose nothing all are stored, where one frame in ten is lost all
but one in two hundred, and each once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from hil_tests.office import Office
from skerry.catalog.substitutes import Wanted
from skerry_testbed.network import Environment, Field
from skerry_testbed.pytest import MakeNetwork, disc, grid

FIELDS = Environment(
    fields={
        "light": Field(base=500.0, gradient=(12.0, 3.0), amplitude=300.0, period="230 s"),
        "temp": Field(base=20.0, gradient=(0.1, 0.2), amplitude=5.0, period="310 s"),
        "humidity": Field(base=50.0, gradient=(0.4, -0.3), amplitude=20.0, period="270 s"),
        "voltage": Field(base=3.0, gradient=(0.005, 0.002), amplitude=0.2, period="190 s"),
    }
)
LIGHT, TEMP = "light FROM 0 TO 1200", "temp FROM 10 TO 35"
HUMIDITY, VOLTAGE = "humidity FROM 0 TO 100", "voltage FROM 2.6 TO 3.4"
#: Times that all of them are asked for, where motes do not answer.
ASKED = 3


@dataclass(frozen=True)
class Case:
    """An index, of which each part has one attribute that is asked for, and when what was sampled has come to who stores it, in s: ways
    are opened anew where they break, and in four parts four for each tuple."""

    axes: str
    asked: tuple[str, ...]
    boards: tuple[str, ...]
    range_m: int
    period_s: int
    epochs: int
    settled_s: int


ONE = Case(f"JOINT ({LIGHT}, {TEMP})", ("light",), ("iris", "cc2538", "iris"), 15, 40, 16, 600)
# Motes hear four others at most, so that most ways have several hops, and those about one do not hear each other.
FOUR = Case(
    f"{LIGHT}, {TEMP}, {HUMIDITY}, {VOLTAGE}", ("light", "temp", "humidity", "voltage"),
    ("iris", "cc2538", "cc2538"), 12, 120, 6, 930,
)  # fmt: skip


@pytest.mark.parametrize(
    ("case", "reception", "lacking_most", "seed"), [(ONE, 0.9, 0.005, 5), (FOUR, 1.0, 0, 6), (FOUR, 0.9, 0.005, 7)]
)  # fmt: skip
def test_tuples_are_stored(
    network: MakeNetwork,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    case: Case,
    reception: float,
    lacking_most: float,
    seed: int,
) -> None:
    motes = grid(4, 3, spacing=10, boards=case.boards)
    net = network(motes, radio=disc(case.range_m, reception=reception), environment=FIELDS, seed=seed)
    # The root tells the time, by which epochs are known.
    net.advance(0.5)
    office = Office(net, tmp_path, monkeypatch)
    office.advance(600, lambda: office.gateway.site.status()["motes"] == len(motes))
    made = office.ask(
        f"CREATE INDEX climate ON sensors ({case.axes}) SAMPLE PERIOD {case.period_s} s KEEP 1 day"
    )
    assert made.index is not None
    assert len(made.index.parts) == len(case.asked)
    # All motes have heard of it.
    office.advance(80)
    first = int(net.line.network_time()) // case.period_s + 1
    office.advance(case.epochs * case.period_s)
    last = first + case.epochs - 1
    office.advance(case.settled_s)
    sampled = {(mote.id, epoch) for mote in motes for epoch in range(first, last + 1)}
    whole = set(sampled)
    for attribute in case.asked:
        stored = _stored(office, f"{attribute} FROM climate WHERE epoch BETWEEN {first} AND {last}")
        print(f"{attribute}: {len(stored)} stored, lacking: {sorted(sampled - set(stored))}")
        assert set(stored.values()) == {1}
        whole &= set(stored)
    dropped = {
        mote["nodeid"]: mote["dropped"]
        for mote in office.gateway.inventory.motes(Wanted())
        if mote["dropped"]
    }
    print(f"{len(whole)} tuples of {len(sampled)} are whole; dropped by motes: {dropped}")
    assert len(sampled) - len(whole) <= lacking_most * len(sampled)
    office.gateway.close()


def _stored(office: Office, what: str) -> Counter[tuple[int, int]]:
    """Names of what is stored, and how often. An answer may be lost as well, and says so."""
    for _ in range(ASKED):
        asked = office.ask(f"SELECT nodeid, epoch, {what}")
        office.answers([asked])
        told = office.gateway.queries.indexed(asked)
        assert told is not None
        if told["complete"]:
            return Counter((row["nodeid"], row["epoch"]) for row in office.told(asked))
        print(f"missing: {told['missing']}")
    raise AssertionError(f"no whole answer: {what}")

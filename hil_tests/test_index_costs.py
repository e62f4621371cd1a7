"""What it takes to open ways for tuples of an index is as the gateway says before, and nothing where they go by ways that are open."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from bench.measuring.air import OPENING, counted
from hil_tests.office import Office
from skerry.planner.cost.index_prices import energy
from skerry_testbed.pytest import MakeNetwork, NetworkHandle, disc, grid

BOARDS = ("iris", "cc2538", "cc2538")
#: Epochs that are measured, after two.
EPOCHS = 6
#: What is measured is at most so many times what is reckoned, and that so many times what is measured: which motes store what is drawn
#: here, and how often frames meet in control windows is drawn by the motes.
FACTOR = 1.5


def opened(office: Office, period_s: int, rng: Random | None) -> tuple[float, float]:
    """Bytes that open ways for a tuple, measured, and reckoned for tuples that fall evenly on those that store. Values are drawn for each;
    without ``rng`` they stay."""
    net, axes = office.net, "JOINT (light FROM 0 TO 1000, temp FROM 10 TO 30)"
    sql = f"CREATE INDEX climate ON sensors ({axes}) SAMPLE PERIOD {period_s} s"
    told = office.gateway.queries.explain(sql)["index"]["upkeep"]
    office.ask(sql)
    office.advance(120)
    # Epochs begin in the middle between two draws.
    office.advance(-(net.line.network_time() + period_s / 2) % period_s)
    for epoch in range(2 + EPOCHS):
        if epoch == 2:
            net.frames.clear()
        if rng is not None:
            _draw(net, rng)
        office.advance(period_s)
    air = counted(net.frames, len(net.motes), OPENING)
    return air.total / (EPOCHS * len(net.motes)), told["opening"] / energy(1.0) / told["tuples_a_day"]


def _draw(net: NetworkHandle, rng: Random) -> None:
    for mote in net.motes.values():
        mote.sense(light=round(rng.uniform(0, 1000)), temp=round(rng.uniform(10, 30), 2))


@pytest.mark.parametrize("seed", [3])
def test_ways_are_opened_at_the_price_that_is_told(
    network: MakeNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    net, rng = network(grid(3, 2, spacing=10, boards=BOARDS), radio=disc(12), seed=seed), Random(seed)
    # The root tells the time, by which epochs are known.
    net.advance(0.5)
    office = Office(net, tmp_path, monkeypatch)
    office.advance(300, lambda: bool(office.gateway.site.status()["motes"] == len(net.motes)))
    _draw(net, rng)
    # Ways lapse between tuples.
    measured, reckoned = opened(office, 120, rng)
    print(f"seed {seed}: {measured:.0f} bytes a tuple to open ways, {reckoned:.0f} reckoned")
    assert reckoned / FACTOR <= measured <= reckoned * FACTOR
    # They do not, and are used again.
    office.gateway.queries.ask("DROP INDEX climate", "ada")
    office.advance(60)
    again, reckoned = opened(office, 40, None)
    print(
        f"{again:.0f} bytes a tuple where each goes where the one before went; where that is drawn {reckoned:.0f} are reckoned"
    )
    assert again <= measured / 10
    office.gateway.close()

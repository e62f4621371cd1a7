"""Motes of both boards join their rows, above both of a pair or at a mote to which ways lead: what comes of that is what DuckDB joins over
their readings."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from hil_tests.drawn_joins import STRATEGIES, drawn
from hil_tests.joining import EPOCHS, Joining
from hil_tests.soaked import soaked

#: Joins of one network, each strategy as often; how many run at once; and networks, of which `make test` runs the first:
#: all 200 joins take 7 minutes of a processor.
JOINS, AT_ONCE, NETWORKS = 25, 5, 8


def _batches(draw: random.Random) -> list[list[str]]:
    """Strategies of each batch: what they share of ways and room differs."""
    left = list(STRATEGIES) * (JOINS // len(STRATEGIES))
    draw.shuffle(left)
    return [left[at : at + AT_ONCE] for at in range(0, JOINS, AT_ONCE)]


@pytest.mark.slow
@pytest.mark.parametrize("network", [0, *soaked(range(1, NETWORKS))])
def test_joins_at_motes_are_duckdbs(network: int, drawn_seed: int) -> None:
    seed = drawn_seed + network
    joining = Joining.of(seed)
    settled = equal = met = strays = 0
    hosted: Counter[str] = Counter()
    for strategies in _batches(joining.draw):
        asked = [drawn(joining.draw, strategy) for strategy in strategies]
        outcomes, readings, stays = joining.batch(asked)
        assert {mote for mote, _ in readings} == joining.net.motes.keys()
        assert len(readings) == len(joining.net.motes) * EPOCHS, "links lose nothing"
        for one in outcomes:
            print(one.told())
            assert not one.wrong, (seed, one.asked.sql, one.wrong, one.hosts)
            hosted[one.asked.strategy] += one.hosted
            met, strays = met + one.sent, strays + one.strays
            if stays:
                settled += 1
                equal += one.ours == one.theirs
    print(
        f"seed {seed}: {JOINS} joins, {settled} in a tree that stayed: {dict(hosted)} pairs at motes, which sent {met} rows, {strays} past"
    )
    assert equal == settled, seed
    assert all(hosted[one] > 2 for one in STRATEGIES[1:]), hosted
    assert met > 50
    assert settled >= JOINS / 2


#: Of a hundred answers so many may lack where one frame or acknowledgement of ten is lost and a mote starts anew in each batch: of all
#: networks' together, and of those of one, in which much hangs on who starts anew.
LACKING, LACKING_OF_ONE = 0.5, 1.0


def _lacking(seed: int) -> tuple[int, int]:
    """Of a network's answers: how many lack, and of how many."""
    joining = Joining.of(seed, reception=0.9)
    lacking = whole = 0
    for strategies in _batches(joining.draw):
        asked = [drawn(joining.draw, strategy) for strategy in strategies]
        reboots = joining.draw.randrange(1, len(joining.net.motes))
        outcomes, _, _ = joining.batch(asked, reboots)
        for one in outcomes:
            print(one.told())
            assert not one.wrong, (seed, reboots, one.asked.sql, one.wrong, one.hosts)
            whole, lacking = whole + one.certain.total(), lacking + (one.certain - one.ours).total()
    print(f"seed {seed}: {lacking} of {whole} answers lack, {100 * lacking / whole:.2f} %")
    assert whole > 1000
    assert 100 * lacking <= LACKING_OF_ONE * whole, seed
    return lacking, whole


@pytest.mark.slow
def test_few_answers_lack_where_frames_are_lost_and_motes_reboot(drawn_seed: int) -> None:
    _lacking(drawn_seed)


@pytest.mark.slow
@pytest.mark.soak
def test_few_of_all_networks_answers_lack(drawn_seed: int) -> None:
    found = [_lacking(drawn_seed + network) for network in range(NETWORKS)]
    lacking, whole = (sum(column) for column in zip(*found, strict=True))
    print(f"{lacking} of {whole} answers lack, {100 * lacking / whole:.2f} %")
    assert 100 * lacking <= LACKING * whole, drawn_seed

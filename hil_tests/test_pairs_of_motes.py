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

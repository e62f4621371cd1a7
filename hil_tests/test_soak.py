"""Soaks from seeds. A seed that failed once stays in the list; SKERRY_SOAK_SEEDS and SKERRY_SOAK_MINUTES ask for more, as `python -m bench.soak` does."""

from __future__ import annotations

import os

import pytest

from hil_tests import soak
from skerry_testbed.pytest import MakeNetwork

#: Of faults, in each run.
MINUTES = float(os.environ.get("SKERRY_SOAK_MINUTES", "5"))
SEEDS = [1, *range(1000, 1000 + int(os.environ.get("SKERRY_SOAK_SEEDS", "0")))]


def test_a_seed_draws_the_same_network_each_time_and_others_others() -> None:
    assert soak.draw(4, 10) == soak.draw(4, 10) != soak.draw(5, 10)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_network_recovers_from_whatever_its_seed_draws(network: MakeNetwork, seed: int) -> None:
    """The fixture is asked for because it skips where nothing has been built."""
    outcome = soak.run(seed, MINUTES)
    assert not outcome.problems, outcome

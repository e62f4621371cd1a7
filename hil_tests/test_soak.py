"""Soaks from seeds. A seed that failed once stays in the list; SKERRY_SOAK_SEEDS asks for so many more, of SKERRY_SOAK_MINUTES each.

`make test` runs the first two, `make soak` all others: another image draws other frames from a seed, so that each of them is as good
as any."""

from __future__ import annotations

import os

import pytest

from hil_tests import soak
from hil_tests.soaked import soaked
from skerry_testbed.pytest import MakeNetwork

MINUTES = float(os.environ.get("SKERRY_SOAK_MINUTES", "10"))
#: Seed, minutes of faults, seconds to recover.
FIRST = [
    (1, 3.0, 400.0),
    # A CC2538 whose sleep timer was due a nanosecond before its count got there never came to an end of it.
    (4, 10.0, soak.RECOVER_S),
]
OTHERS = [
    # The root rebooted, and a mote that had not heard of it went on sending rows of the session before.
    (21, 10.0, 400.0),
    # Half of the motes found no way to the root again: what they had tried in vain they forgot, and tried again.
    (53, 10.0, 600.0),
    # Five motes heard nothing of the root's new session, each of whom had a parent among the others; one found it only an hour later.
    (71, 10.0, 900.0),
    # The root took motes for its children that lived in the session before, and their rows for those of its own.
    (75, 10.0, 400.0),
    # The end of a line of eight was looking for the old session's windows, and slept, while its only neighbour came over to the new one.
    (122, 10.0, 400.0),
    # Its spells of listening were shorter than the time between two beacons of its only neighbour on the same channel.
    (191, 10.0, 600.0),
    *(
        (1000 + more, MINUTES, soak.RECOVER_S)
        for more in range(int(os.environ.get("SKERRY_SOAK_SEEDS", "0")))
    ),
]


def test_a_seed_draws_the_same_network_each_time_and_others_others() -> None:
    assert soak.draw(4, 10) == soak.draw(4, 10) != soak.draw(5, 10)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "minutes", "recover_s"),
    [*FIRST, *soaked(OTHERS)],
)
def test_a_network_recovers_from_whatever_its_seed_draws(
    network: MakeNetwork, seed: int, minutes: float, recover_s: float
) -> None:
    outcome = soak.run(network(soak.draw(seed, minutes)), minutes, recover_s)
    assert not outcome.problems, outcome

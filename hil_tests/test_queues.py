"""Full queues on the real image: what rows say of what was combined and left out adds up to all samples taken."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from hil_tests.queries import ask, rows
from skerry_testbed.pytest import MakeNetwork, disc, line_of

MOTES = 3
EPOCHS = 60


def jumping(network: MakeNetwork, policy: str) -> list[list[dict[str, Any]]]:
    """The rows of each mote of a line, in which acceleration jumps each second of the query."""
    net = network(line_of(MOTES, spacing=10), radio=disc(12))
    net.advance("20s")
    query = ask(net, 1, f"SELECT accel_x FROM sensors SAMPLE PERIOD 1 s FOR {EPOCHS} s QUEUE {policy}")
    values = itertools.cycle((0.0, 0.3, 0.9, 0.31, -0.7, 0.0, 0.02))
    # The last rows go when motes have forgotten the query.
    for _ in range(EPOCHS + 60):
        for mote in net.motes.values():
            mote.sense(accel_x=next(values))
        net.advance(1)
    arrived = rows(net.line, 1, query)
    return [[row for row in arrived if row["nodeid"] == mote] for mote in range(MOTES)]


@pytest.mark.parametrize("policy", ["NAIVE", "WINAVG", "DELTA"])
def test_nothing_is_lost_silently(network: MakeNetwork, policy: str) -> None:
    for of_mote in jumping(network, f"{policy} SIZE 5 SEND PERIOD 4 s"):
        assert sum(row["combined"] + row["left_out"] for row in of_mote) == EPOCHS
        assert len({row["epoch"] for row in of_mote}) == len(of_mote)
        # One row in four seconds, and five in the end.
        assert len(of_mote) == pytest.approx(EPOCHS / 4 + 5, abs=1)
        assert any(row["left_out"] for row in of_mote) == (policy != "WINAVG")
        assert any(row["combined"] > 1 for row in of_mote) == (policy == "WINAVG")
        in_order = [row["epoch"] for row in of_mote] == sorted(row["epoch"] for row in of_mote)
        assert in_order == (policy != "DELTA")


@pytest.mark.parametrize("policy", ["NAIVE", "WINAVG", "DELTA"])
def test_nothing_is_combined_or_left_out_where_there_is_room(network: MakeNetwork, policy: str) -> None:
    for of_mote in jumping(network, policy):
        assert [(row["combined"], row["left_out"]) for row in of_mote] == [(1, 0)] * EPOCHS


def test_delta_prefers_what_changed(network: MakeNetwork) -> None:
    net = network(line_of(2, spacing=10), radio=disc(12))
    net.advance("20s")
    query = ask(net, 1, "SELECT accel_x FROM sensors SAMPLE PERIOD 1 s QUEUE DELTA SIZE 4 SEND PERIOD 5 s")
    sent = 0
    for second in range(200):
        knock = second > 20 and second % 15 == 0
        sent += knock
        net.motes[1].sense(accel_x=0.8 if knock else 0.1)
        net.advance(1)
    knocks = [row for row in rows(net.line, 1, query) if row["nodeid"] == 1 and row["accel_x"] > 0.7]
    assert len(knocks) >= sent - 2

"""Full queues on the real image: what rows say of what was combined and left out adds up to all samples taken."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from skerry_testbed.pytest import MakeNetwork, disc, grid, line_of
from skerry_testbed.queries import ask, rows

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


def offered(network: MakeNetwork, rate: int) -> tuple[int, int, int]:
    """Of four motes around a root that sample so often a second for 30 s, all they can put into a row: rows that arrive, samples
    that these account for, and what contention each mote reports at most."""
    net = network(grid(5, 1, spacing=2), radio=disc(30), seed=4)
    net.advance("25s")
    columns = (
        "uptime, energy, xpos, ypos, accel_x, accel_y, voltage, free_ram, radio_duty, contention, resets"
    )
    query = ask(
        net,
        1,
        f"SELECT {columns} FROM sensors WHERE level > 0 SAMPLE PERIOD {1000 / rate:g} ms FOR 30 s QUEUE NAIVE",
    )
    net.advance("60s")
    arrived = rows(net.line, 1, query)
    assert {row["nodeid"] for row in arrived} == {1, 2, 3, 4}
    assert all(row["level"] == 1 for row in arrived)
    return (
        len(arrived),
        sum(row["combined"] + row["left_out"] for row in arrived),
        max(row["contention"] for row in arrived),
    )


def test_what_arrives_never_falls_as_motes_offer_more(network: MakeNetwork) -> None:
    few, accounted, calm = offered(network, 4)
    assert few == accounted == 4 * 4 * 30
    some, *_ = offered(network, 10)
    many, accounted, contended = offered(network, 20)
    assert few < some <= many < 4 * 20 * 30
    # An epoch that begins while the one before is still being sampled is no sample.
    assert 0.9 * 4 * 20 * 30 < accounted <= 4 * 20 * 30
    assert calm < contended


def test_motes_behind_a_busy_one_are_heard(network: MakeNetwork) -> None:
    net = network(line_of(4, spacing=10), radio=disc(12))
    net.advance("40s")
    query = ask(
        net, 1, "SELECT uptime, energy, xpos, ypos, accel_x FROM sensors SAMPLE PERIOD 50 ms QUEUE NAIVE"
    )
    net.advance("40s")
    arrived = [row["nodeid"] for row in rows(net.line, 1, query)]
    assert min(arrived.count(mote) for mote in range(4)) > len(arrived) / 20


@pytest.mark.parametrize(
    "query",
    [
        "ON EVENT hot SELECT light FROM sensors SAMPLE PERIOD 1 s FOR 10 s QUEUE NAIVE SEND PERIOD 3 s",
        "SELECT light FROM sensors SAMPLE PERIOD 1 s STOP ON EVENT hot QUEUE NAIVE SEND PERIOD 3 s",
    ],
)
def test_what_waits_behind_an_events_last_epoch_goes(network: MakeNetwork, query: str) -> None:
    """And not with the next event, which may never come."""
    net = network(line_of(2, spacing=10), radio=disc(12))
    net.advance("20s")
    ask(net, 1, "SELECT nodeid FROM sensors WHERE temp > 50 SIGNAL hot SAMPLE PERIOD 1 s")
    asked = ask(net, 2, query)
    net.advance("20s")
    net.motes[1].sense(temp=60.0)
    net.advance("40s")
    for mote in range(2):
        epochs = [row["epoch"] for row in rows(net.line, 2, asked) if row["nodeid"] == mote]
        assert epochs == list(range(epochs[0], epochs[0] + len(epochs)))
        assert len(epochs) >= 10
        assert len(epochs) == 10 or "STOP" in query

"""When batches follow each other at once, and when rows are waited for: by a clock that the test has."""

from __future__ import annotations

from itertools import pairwise

import pytest

from skerry.spark.pacing import INTERVAL_S, STREAM, TRICKLE, Pace

#: What a batch of few rows takes, in s.
BATCH_S = 0.06


def begins(rows_at: list[tuple[float, int]], until: float) -> list[float]:
    """When batches begin, in s, for rows that come in bursts (when, and how many)."""
    now, taken, found = 0.0, 0, list[float]()
    pace = Pace(lambda: now)
    while now < until:
        there = sum(count for at, count in rows_at if at <= now)
        if there == taken:
            now += 0.05
            continue
        now += pace.wait_s(there)
        taken = sum(count for at, count in rows_at if at <= now)
        pace.planned(taken)
        found.append(now)
        now += BATCH_S
    return found


def evenly(rate: int, until: float) -> list[tuple[float, int]]:
    """So many rows/s."""
    return [(step / 100, rate // 100) for step in range(int(100 * until))]


def gaps(found: list[float]) -> list[float]:
    return [later - earlier for earlier, later in pairwise(found)]


@pytest.mark.parametrize("rate", [100, 200, 1000, TRICKLE])
def test_nobody_waits_for_rows_that_trickle_in(rate: int) -> None:
    assert max(gaps(begins(evenly(rate, 10), 10))) < 2 * BATCH_S


def test_batches_of_a_stream_are_an_interval_apart() -> None:
    apart = gaps(begins(evenly(20_000, 10), 10))[20:]
    assert len(apart) > 10
    assert all(gap == pytest.approx(INTERVAL_S) for gap in apart)


def test_in_between_the_wait_grows_with_the_rows() -> None:
    apart = gaps(begins(evenly((TRICKLE + STREAM) // 2, 10), 10))[40:]
    assert all(gap == pytest.approx(INTERVAL_S / 2, abs=0.02) for gap in apart)


def test_an_epoch_of_many_motes_does_not_wait() -> None:
    """1,500 motes send within 150 ms of each other, once a second."""
    bursts = [(second + step / 100, 100) for second in range(10) for step in range(15)]
    assert min(gap for gap in gaps(begins(bursts, 10))) == pytest.approx(BATCH_S)


def test_rows_that_waited_while_spark_was_away_are_read_at_once() -> None:
    now = 0.0
    assert Pace(lambda: now).wait_s(10_000_000) == 0

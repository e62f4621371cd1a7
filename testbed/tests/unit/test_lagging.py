"""When a run is said to be slower than it was asked to be."""

from __future__ import annotations

import math

from skerry_testbed.cli import LAGS_S, Lagging


def test_a_run_that_stays_behind_is_told_once_and_so_is_its_end() -> None:
    lagging = Lagging(100.0)
    assert lagging.news(None, 0) is None
    assert lagging.news(30.0, 1) is None
    said = lagging.news(31.0, 1 + LAGS_S)
    assert said is not None
    assert "reaches 31 of the 100 virtual seconds per second" in said
    assert lagging.news(31.0, 20) is None
    assert lagging.news(99.0, 21) is None
    assert lagging.news(99.0, 21 + LAGS_S) == "speed 100, as asked for, is reached again"


def test_a_moment_is_not_told() -> None:
    lagging = Lagging(10.0)
    for now in range(100):
        assert lagging.news(1.0 if now % 2 else 10.0, now) is None


def test_as_fast_as_it_goes_is_always_reached() -> None:
    lagging = Lagging(math.inf)
    assert lagging.news(0.1, 0) is None
    assert lagging.news(0.1, 100) is None

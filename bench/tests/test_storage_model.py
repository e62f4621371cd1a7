"""The model of an index's cost: what it counts is what a message on its way would be counted as."""

from __future__ import annotations

import numpy as np
import pytest

from bench.measuring.storage_load import Query, queries_of, tuples_of
from bench.measuring.storage_network import Meter, Network, framed
from bench.measuring.storage_series import SERIES, Asker, Series

RNG = np.random.default_rng(3)
NETWORK = Network.drawn(30, RNG)
POINTS = tuples_of("uniform", RNG, 300)
BY_NAME = {series.name: series for series in SERIES}


def steps(meter: Meter, root: int, ends: list[int]) -> set[tuple[int, int]]:
    """Links of the ways from a root to all ends, walked one by one."""
    found = set()
    for end in ends:
        while end != root:
            before = int(meter.network.parent[root, end])
            found.add((before, end))
            end = before  # noqa: PLW2901 (the walk)
    return found


def test_messages_are_counted_hop_by_hop() -> None:
    meter = Meter(NETWORK)
    meter.one(5, 17, 10)
    assert meter.total == 10 * NETWORK.hops[5, 17] == meter.received.sum()
    assert meter.sent[17] == meter.received[5] == 0
    ends = [1, 2, 9, 20, 28]
    links = steps(meter, 4, ends)
    meter.clear()
    meter.multicast(4, ends, 3)
    assert meter.total == 3 * len({sender for sender, _ in links})
    assert meter.received.sum() == 3 * len(links)
    meter.clear()
    meter.gather(4, ends, 3)
    assert meter.total == meter.received.sum() == 3 * len(links)
    assert meter.sent[4] == 0
    assert [float(framed(n)) for n in (0, 1, 36, 37)] == [0, 8, 43, 51]


@pytest.mark.parametrize("series", SERIES, ids=lambda series: series.name)
def test_every_series_answers_with_the_same_tuples(series: Series) -> None:
    """And what joins have sent is not sent again, whatever the accounting."""
    queries = queries_of("uniform", "uniform", 12, len(NETWORK), np.random.default_rng(5))
    asker = Asker(NETWORK, POINTS, series, states=False)
    for query in queries:
        visits = asker.index.visits(query, cached=series.cached)
        found = asker.index.run(
            query, visits, asker.order(query, visits), asker.meter, asker.caches, states=False
        )
        inside = [(POINTS[:, a] >= low) & (POINTS[:, a] <= high) for a, (low, high) in query.limits.items()]
        assert found == int(np.all(inside, axis=0).sum() if inside else len(POINTS))
    if series.cached and series.choice == "best":
        again = asker.ask(queries)
        assert again == asker.ask(queries), "nothing is left to be sent"


def test_a_cache_without_room_asks_for_everything_again() -> None:
    query = Query({0: (0, 40_000), 1: (10_000, 50_000)}, frozenset((0, 1)), 3)
    costs = {}
    for room in (None, 10**6, 0):
        asker = Asker(NETWORK, POINTS, BY_NAME["best"], states=False, room=room)
        costs[room] = [asker.ask([query]) for _ in range(3)]
    assert costs[None] == costs[10**6]
    assert costs[None][1] < costs[None][0] == costs[0][0] < costs[0][1] == costs[0][2]

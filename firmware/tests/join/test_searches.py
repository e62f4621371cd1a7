"""Searches by content find all that there are, and nothing else, as counting does; ways and roots are held against scipy's."""

from __future__ import annotations

import ctypes
import random
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import shortest_path

from firmware.tests.join.searching import (
    BLOOM,
    BOX,
    CIRCLE,
    HISTOGRAM,
    INTERVAL,
    LONG,
    NOBODY,
    PATH,
    REFUSED,
    Ask,
    Network,
    Search,
    Shape,
    Summary,
    Value,
    checked,
    neighbours_of,
)  # fmt: skip

values = st.integers(-32768, 32767)
positions = st.tuples(values, values)
kinds = st.sampled_from([INTERVAL, BOX, BLOOM, HISTOGRAM])


def drawn(seed: int, motes: int) -> tuple[dict[int, set[int]], np.ndarray]:
    """A connected network, and its hops."""
    rng = random.Random(seed)
    links = {(rng.randrange(mote), mote) for mote in range(1, motes)}
    links |= {tuple(rng.sample(range(motes), 2)) for _ in range(rng.randrange(2 * motes))}
    graph = np.zeros((motes, motes))
    for a, b in links:
        graph[a, b] = graph[b, a] = 1
    return neighbours_of(links, range(motes)), shortest_path(graph, unweighted=True)


@given(
    st.integers(0, 2**32), st.integers(2, 40), kinds, st.integers(1, 4), st.sampled_from([1, 2, 255]),
    st.sampled_from([1, 20, 2000]),
)  # fmt: skip
@settings(max_examples=80, deadline=None)
def test_a_search_finds_all_that_have_it_by_ways_that_there_are(
    seed: int, motes: int, kind: int, trees: int, room: int, spread: int
) -> None:
    rng = random.Random(seed)
    neighbours, hops = drawn(seed, motes)
    has = {
        mote: (rng.randint(-spread, spread), rng.randint(-spread, spread)) for mote in neighbours if rng.random() < 0.8
    }  # fmt: skip
    shape = Shape(-spread, 8, kind)
    network = Network(checked(), neighbours, 0, trees, shape, has, room)
    for tree, root in enumerate(network.roots):
        assert [network.places[mote][tree].hops for mote in sorted(neighbours)] == list(hops[root])
        apart = hops[network.roots[:tree]].min(axis=0) if tree else None
        assert apart is None or (apart[root], root) == (apart.max(), int(apart.argmax())), (
            "as far as possible"
        )
    for _ in range(3):
        source = rng.randrange(motes)
        x, y = rng.randint(-spread, spread), rng.randint(-spread, spread)
        low, high = (x, y), (x + rng.choice([0, 5, 600]), y + rng.choice([0, 5, 600]))
        outcome = network.search(source, low, high)
        expected = {
            mote for mote, (a, b) in has.items()
            if low[0] <= a <= high[0] and (kind != BOX or low[1] <= b <= high[1]) and mote != source
        }  # fmt: skip
        assert outcome.refused == outcome.turned == 0
        if not outcome.longer:
            assert outcome.paths.keys() == expected
            assert all(len(paths) == trees for paths in outcome.paths.values()), "in each tree"
        assert outcome.paths.keys() <= expected
        assert max(Counter(outcome.visited).values(), default=1) == 1, "once in each tree"
        for mote, paths in outcome.paths.items():
            for path in paths:
                assert (path[0], path[-1]) == (source, mote)
                assert len(set(path)) == len(path)
                assert all(b in neighbours[a] for a, b in pairwise(path))
                assert len(path) - 1 >= hops[source, mote]


@given(
    kinds, values, st.integers(0, 12), st.lists(positions, max_size=40), st.lists(positions, max_size=40), positions,
    st.integers(0, 70), st.integers(0, 70),
)  # fmt: skip
@settings(max_examples=300, deadline=None)
def test_a_summary_denies_nothing_that_is_in_it(
    kind: int, low: int, width: int, one: list[tuple[int, int]], other: list[tuple[int, int]],
    at: tuple[int, int], wide: int, high: int,
) -> None:  # fmt: skip
    code, shape = checked(), Shape(low, width, kind)
    assert code.summary_shape_check(ctypes.byref(shape))
    parts = []
    for inside in (one, other):
        summary = Summary()
        code.summary_clear(ctypes.byref(shape), ctypes.byref(summary))
        for value in inside:
            code.summary_add(ctypes.byref(shape), ctypes.byref(summary), ctypes.byref(Value(*value)))
        parts.append(summary)
    code.summary_merge(ctypes.byref(shape), ctypes.byref(parts[0]), ctypes.byref(parts[1]))
    all_values = one + other
    for a, b in [at, *all_values[:5]]:
        ask = Ask(Value(a, b), Value(min(a + wide, 32767), min(b + high, 32767)))
        there = sum(
            bool(code.summary_asked(ctypes.byref(shape), ctypes.byref(Value(*value)), ctypes.byref(ask)))
            for value in all_values
        )
        assert there == sum(
            ask.low.x <= v <= ask.high.x and (kind != BOX or ask.low.y <= w <= ask.high.y) for v, w in all_values
        )  # fmt: skip
        may = code.summary_may(ctypes.byref(shape), ctypes.byref(parts[0]), ctypes.byref(ask))
        assert may or not there
        assert all_values or not may, "nothing is in it"
        count = code.summary_count(ctypes.byref(shape), ctypes.byref(parts[0]), ctypes.byref(ask))
        assert kind != HISTOGRAM or count >= min(there, 15)


@pytest.mark.parametrize(("kind", "denied"), [(INTERVAL, 0), (BLOOM, 0.8), (HISTOGRAM, 0.3)])
def test_which_summary_denies_what_is_not_there(kind: int, denied: float) -> None:
    """Eight values from all over: a Bloom filter denies most others, a histogram whose bins are empty, an interval hardly any."""
    code, rng, count = checked(), random.Random(1), 0
    shape, tries = Shape(0, 6, kind), 500
    for _ in range(tries):
        inside = rng.sample(range(1024), 8)
        summary = Summary()
        code.summary_clear(ctypes.byref(shape), ctypes.byref(summary))
        for value in inside:
            code.summary_add(ctypes.byref(shape), ctypes.byref(summary), ctypes.byref(Value(value, 0)))
        asked = rng.choice([value for value in range(1024) if value not in inside])
        ask = Ask(Value(asked, 0), Value(asked, 0))
        count += not code.summary_may(ctypes.byref(shape), ctypes.byref(summary), ctypes.byref(ask))
    assert count / tries >= denied


def test_searches_that_cannot_be_are_refused() -> None:
    """In a line 0 - 1 - 2 - 3, whose second tree has its root at 3."""
    neighbours = {0: {1}, 1: {0, 2}, 2: {1, 3}, 3: {2}}
    network = Network(
        checked(), neighbours, 0, 2, Shape(0, 0, BLOOM), {mote: (mote, 0) for mote in neighbours}
    )
    assert network.roots == [0, 3]
    assert network.places[0][0].parent == NOBODY

    def forged(path: list[int], tree: int = 0, down: bool = False, low: int = 0, high: int = 5) -> Search:
        full = [*path, *[0] * (PATH - len(path))][:PATH]
        return Search(
            Ask(Value(low, 0), Value(high, 0)), (ctypes.c_uint16 * PATH)(*full), NOBODY, len(path), tree, down
        )

    assert network.hear(2, 3, forged([3])) != REFUSED
    assert network.hear(2, 1, forged([1], down=True)) != REFUSED
    for sender, search in (
        (3, forged([3], tree=2)), (3, forged([])), (3, forged([*[9] * PATH, 3])), (3, forged([1])), (3, forged([3], low=6)),
        (3, forged([3], down=True)), (1, forged([1])), (2, forged([2])),
    ):  # fmt: skip
        assert network.hear(2, sender, search) == REFUSED
    assert network.hear(2, 3, forged([2, 1, 3])) == CIRCLE
    assert network.hear(2, 3, forged([*range(10, 10 + PATH - 1), 3])) == LONG

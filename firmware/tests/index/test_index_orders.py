"""Histograms and join orders, against equation 1 as numpy computes it, and all orders one by one."""

from __future__ import annotations

import ctypes
import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from skerry.index.code import (
    LAST,
    NULL,
    Field,
    Histogram,
    IndexCode,
    Load,
    Part,
    Stop,
)  # fmt: skip

POINTS = 65536


def drawn(index: IndexCode, rng: np.random.Generator, attributes: int, bins: int) -> Histogram:
    """A histogram with counts of all sizes."""
    size = bins**attributes
    counts = (rng.random(size) ** 6 * 3000).astype(int) * (rng.random(size) < 0.7)
    return Histogram(attributes, bins, bytes(index.library.histogram_coded(int(c)) for c in counts))


def interpolated(index: IndexCode, histogram: Histogram, low: list[int], high: list[int]) -> float:
    """Tuples in a box, each bin's evenly over the bin."""
    counts: NDArray[np.float64] = np.array(
        [index.library.histogram_count(c) for c in histogram.counts], float
    )
    counts = counts.reshape([histogram.bins] * histogram.attributes)
    starts = np.ceil(np.arange(histogram.bins + 1) * POINTS / histogram.bins)
    for first, last in zip(low, high, strict=True):
        overlap = np.minimum(last + 1, starts[1:]) - np.maximum(first, starts[:-1])
        counts = np.tensordot(np.clip(overlap, 0, None) / np.diff(starts), counts, 1)
    return float(counts)


def test_counts_are_nearly_what_they_were(index: IndexCode) -> None:
    count, coded = index.library.histogram_count, index.library.histogram_coded
    assert [count(coded(n)) for n in range(16)] == list(range(16))
    for n in [*range(16, 5000), *np.geomspace(5000, 7_864_320, 500).astype(int)]:
        assert abs(count(coded(int(n))) - n) <= n / 16
    assert [coded(count(c)) for c in range(0xA8)] == list(range(0xA8))
    assert count(coded(2**32 - 1)) == 7_864_320


def test_what_has_room_on_a_mote(index: IndexCode) -> None:
    assert [index.library.histogram_bins(k, 1024) for k in range(1, 7)] == [16, 16, 10, 5, 4, 3]
    assert [index.library.histogram_bytes(*of) for of in ((0, 5), (7, 2), (4, 0), (4, 17), (6, 10))] == [
        0, 0, 0, 0, 10**6,
    ]  # fmt: skip


@pytest.mark.parametrize("attributes", range(1, 7))
def test_estimate_interpolates(index: IndexCode, attributes: int) -> None:
    rng, bins = np.random.default_rng(attributes), index.library.histogram_bins(attributes, 1024)
    for _ in range(20):
        histogram = drawn(index, rng, attributes, int(rng.integers(1, bins + 1)))
        ends = np.sort(rng.integers(0, NULL + 1, (attributes, 2)), axis=1)
        limits = {a: (int(low), int(high)) for a, (low, high) in enumerate(ends)}
        of = int(rng.integers(0, 1 << attributes))
        low = [limits[a][0] if of >> a & 1 else 0 for a in range(attributes)]
        high = [limits[a][1] if of >> a & 1 else NULL for a in range(attributes)]
        expected = interpolated(index, histogram, low, high)
        estimate = index.estimate(histogram, index.box(attributes, limits), of)
        everything = index.estimate(histogram, index.box(attributes), 0)
        assert abs(estimate - expected) <= 1 + 0.001 * everything


def test_a_tuple_is_counted_where_it_is_asked_for(index: IndexCode) -> None:
    rng = np.random.default_rng(2)
    for bins in (1, 3, 5, 16):
        for _ in range(50):
            point = [int(p) for p in rng.integers(0, NULL + 1, 2)]
            struct = Histogram(2, bins, bytes(bins * bins)).struct
            place = index.library.histogram_place(ctypes.byref(struct), (ctypes.c_uint16 * 2)(*point))
            assert place == point[0] * bins // POINTS * bins + point[1] * bins // POINTS


@pytest.mark.parametrize("seed", range(6))
def test_middle_of_what_is_asked(index: IndexCode, seed: int) -> None:
    """Against the mean over a fine grid of tuples that match."""
    rng = np.random.default_rng(seed)
    attributes = 1 + seed % 3
    area = Field(-5000, 2000, -5000 + 6400, 2000 + 3200)
    limits = {}
    for attribute in range(attributes):
        low, high = sorted(int(v) for v in rng.integers(0, LAST, 2))
        limits[attribute] = low, high
    box, cells = index.box(attributes, limits), index.walk(index.box(attributes, limits), 12)
    weights = np.array([2.0**-cell.length for cell in cells])
    rectangles = np.array([index.zone_area(area, cell).sides for cell in cells], float)
    middles = (rectangles[:, :2] + rectangles[:, 2:]) / 2
    middle = weights @ middles / weights.sum()
    # Of 64 places in each.
    inside = (np.mgrid[0:8, 0:8].reshape(2, -1).T + 0.5) / 8
    spots = rectangles[:, None, :2] + inside[None] * (rectangles[:, 2:] - rectangles[:, :2])[:, None]
    away = weights @ np.hypot(*(spots - middle).transpose(2, 0, 1)).mean(axis=1) / weights.sum()
    stop = index.stop(Part(area, 40), 1, box, 500)
    # Halved eight times, zones are 400 cm by 200.
    assert math.dist((stop.x, stop.y), middle) < 450
    assert abs(stop.gather / 16 * 500 - away) < 150 + 0.1 * away
    # 40 motes have zones of the sixth halving.
    assert stop.owners == max(1, int(40 * sum(2.0**-cell.length for cell in index.walk(box, 6))))
    # In squares of what a transmission covers: half as many transmissions, and more where zones lie apart.
    squares = 6400 * 3200 / 500**2
    share = sum(2.0**-cell.length for cell in index.walk(box, 8))
    spread = 1.33 * math.sqrt(squares * share) * away / 500
    assert stop.spread == 0 if stop.owners == 1 else abs(stop.spread / 16 - spread) <= 0.25 * spread + 1
    everywhere = index.stop(Part(area, 40), 1, box, 500, everywhere=True)
    assert abs(everywhere.spread / 16 - squares / 2) < 1


def cost_by_hand(stops: list[Stop], order: tuple[int, ...], matching: list[int], load: Load) -> float:
    """Equation 1 with the fan-out, in sixteenths of a transmission of a byte."""
    cost, chosen, carried = 0.0, 0, 0
    for here, there in itertools.pairwise([*order, None]):
        assert here is not None
        chosen |= 1 << here
        carried |= stops[here].attributes
        values = (carried & load.measured).bit_count() * load.value
        if there is None:
            if load.state:
                return float(cost + (stops[here].owners - 1) * load.state * 16)
            return float(cost + matching[chosen] * values * stops[here].gather)
        way = math.hypot(stops[here].x - stops[there].x, stops[here].y - stops[there].y) * 16 / load.hop
        cost += matching[chosen] * (values + load.name) * (way + stops[there].spread)
    raise AssertionError


@pytest.mark.parametrize("count", range(1, 7))
def test_best_order_is_the_cheapest_of_all(index: IndexCode, count: int) -> None:
    rng = np.random.default_rng(count)
    for _ in range(6):
        stops = [
            Stop(
                1 << i,
                *(int(v) for v in rng.integers(-20_000, 20_000, 2)),
                *(int(v) for v in rng.integers(0, 99, 2)),
                9,
            )
            for i in range(count)
        ]
        matching = [int(4000 * math.prod(rng.random(s.bit_count()))) for s in range(1 << count)]
        load = Load(1500, 6, 2, int(rng.integers(0, 1 << count)), int(rng.choice([0, 6])))
        plan = index.plan(stops, load).know(matching)
        costs = {order: plan.cost(order) for order in itertools.permutations(range(count))}
        least, best = plan.best()
        assert least == min(costs.values()) == costs[best]
        for order, cost in costs.items():
            by_hand = cost_by_hand(stops, order, matching, load)
            assert by_hand * 0.93 - 1e5 <= cost <= by_hand * 1.08 + 1e5

"""Tuples and queries among zones: who stores what a query asks for, with DuckDB for what that is."""

from __future__ import annotations

from itertools import pairwise

import duckdb
import numpy as np
import pandas as pd
import pytest

from skerry.index.code import LAST, NULL, IndexCode, Owned, Range

NAMES = "abcdef"


@pytest.mark.parametrize("low_high", [(0, 1000), (-(2**31), 2**31 - 1), (7, 7), (-5, 2), (0, 2**31 - 1)])
def test_points_follow_values(index: IndexCode, low_high: tuple[int, int]) -> None:
    low, high = low_high
    rng = np.random.default_rng(1)
    ends = [-(2**31), low - 1, low, low + 1, high - 1, high, high + 1, 2**31 - 1]
    values = sorted(
        v for v in {*ends, *(int(v) for v in rng.integers(low, high + 1, 500))} if -(2**31) <= v < 2**31
    )
    points = [index.point(Range(low, high), value) for value in values]
    assert all(a <= b for a, b in pairwise(points))
    for value, point in zip(values, points, strict=True):
        inside = min(max(value, low), high)
        expected = 0 if value <= low else LAST if high == low else (inside - low) * LAST // (high - low)
        assert point == expected


@pytest.mark.parametrize("attributes", range(1, 7))
def test_code_takes_a_bit_of_each_attribute_in_turn(index: IndexCode, attributes: int) -> None:
    rng = np.random.default_rng(attributes)
    for _ in range(50):
        points = [int(p) for p in rng.integers(0, NULL + 1, attributes)]
        bits = [f"{point:016b}" for point in points]
        turns = "".join(column for level in zip(*bits, strict=True) for column in level)
        assert f"{index.code(points):032b}" == turns[:32].ljust(32, "0")


@pytest.mark.parametrize("seed", range(12))
def test_owners_that_are_asked_have_what_duckdb_finds(index: IndexCode, seed: int) -> None:
    """NULLs and values beyond their range, one to six attributes, ranges of all kinds."""
    rng = np.random.default_rng(seed)
    attributes, motes = 1 + seed % 6, int(rng.choice([1, 3, 20, 60]))
    codes = [int(c) for c in rng.choice(2**32, motes, replace=False)]
    owners = [index.owned(own, (other for other in codes if other != own)) for own in codes]
    ranges = [Range(-200, int(rng.integers(-199, 3000))) for _ in range(attributes)]
    values = rng.normal(400, 900, (400, attributes)).astype(int)
    tuples = pd.DataFrame(values, columns=list(NAMES[:attributes]), dtype="Int64")
    tuples = tuples.mask(rng.random(tuples.shape) < 0.1)
    rows = [[None if v is pd.NA else int(v) for v in row] for row in tuples.itertuples(index=False)]
    stored = [index.code([index.point(r, v) for r, v in zip(ranges, row, strict=True)]) for row in rows]
    tuples["stored"] = stored
    tuples["owner"] = [int(np.argmin(np.array(codes) ^ code)) for code in stored]
    database = duckdb.connect()
    database.register("tuples", tuples)
    for _ in range(25):
        box, conditions = index.box(attributes), ["true"]
        for attribute in np.flatnonzero(rng.random(attributes) < 0.6):
            low, high = sorted(int(v) for v in rng.integers(-1500, 3500, 2))
            assert index.limit(box, int(attribute), ranges[attribute], low, high)
            conditions.append(f"{NAMES[attribute]} BETWEEN {low} AND {high}")
        asked = {place for place, owned in enumerate(owners) if index.asks(box, owned)}
        sql = f"SELECT stored, owner FROM tuples WHERE {' AND '.join(conditions)}"
        matching = database.execute(sql).fetchall()
        assert {owner for _, owner in matching} <= asked, conditions
        zones = index.walk(box, 10)
        for code, _ in matching:
            assert len([zone for zone in zones if code in zone.codes]) == 1
    assert not index.limit(index.box(1), 0, ranges[0], 5, 4)


@pytest.mark.parametrize("seed", range(3))
def test_an_owner_is_asked_exactly_where_it_may_have_something(index: IndexCode, seed: int) -> None:
    """All 65,536 points of one attribute, looked at one by one."""
    rng = np.random.default_rng(seed)
    points = np.arange(NULL + 1)
    for _ in range(200):
        point, free = (int(v) for v in rng.integers(0, NULL + 1, 2))
        low, high = sorted(int(v) for v in rng.integers(0, NULL + 1, 2))
        if rng.random() < 0.5:
            high = min(NULL, low + int(rng.integers(0, 50)))
        own = ((points ^ point) & ~free & NULL) == 0
        expected = bool((own & (points >= low) & (points <= high)).any())
        owned = Owned(point << 16, free << 16 | 0xFFFF)
        assert index.asks(index.box(1, {0: (low, high)}), owned) == expected


@pytest.mark.parametrize("attributes", [1, 2, 3])
def test_zones_of_a_walk_are_all_and_no_more(index: IndexCode, attributes: int) -> None:
    """Against every zone of so many halvings, looked at one by one."""
    rng, depth = np.random.default_rng(attributes), 9
    for _ in range(20):
        limits = {}
        for attribute in range(attributes):
            low, high = sorted(int(v) for v in rng.integers(0, NULL + 1, 2))
            limits[attribute] = low, high
        box = index.box(attributes, limits)
        walked = [zone for one in index.walk(box, depth) for zone in one.codes[:: 1 << (32 - depth)]]
        expected = []
        for place in range(1 << depth):
            bits = f"{place:0{depth}b}"
            ends = [
                (bits[a::attributes].ljust(16, "0"), bits[a::attributes].ljust(16, "1"))
                for a in range(attributes)
            ]
            if all(
                int(lo, 2) <= limits[a][1] and int(hi, 2) >= limits[a][0] for a, (lo, hi) in enumerate(ends)
            ):
                expected.append(place << (32 - depth))
        assert walked == expected

"""Pairs of many users as arrays: taken apart, cut and sent."""

from __future__ import annotations

import numpy as np
import pytest

from skerry.execution.joined import Joined, Pairs


def drawn(draw: np.random.Generator, rows: int) -> list[tuple[int, Pairs]]:
    """Entries with one table or two, some of them with several readings of it, some with nothing."""
    found = []
    for entry in draw.choice(1000, 12, replace=False).tolist():
        tables = int(draw.integers(1, 3))
        for _ in range(int(draw.integers(1, 3))):
            count = int(draw.integers(0, 9))
            left = np.sort(draw.integers(0, rows, count))
            versions = draw.integers(1, 9, tables).tolist()
            found.append((entry, Pairs(left, versions, [draw.integers(0, 50, count) for _ in range(tables)])))
    return found


def plain(pairs: list[Pairs]) -> list[object]:
    return [(one.left.tolist(), list(one.versions), [at.tolist() for at in one.found]) for one in pairs]


@pytest.mark.parametrize("seed", range(20))
def test_pairs_are_what_they_were_made_of(seed: int) -> None:
    draw = np.random.default_rng(seed)
    made = drawn(draw, 30)
    joined = Joined.of(made)
    sent = Joined.from_batch(joined.to_batch())
    kept = draw.random(30) < 0.5
    rank = np.cumsum(kept) - 1
    for entry in range(1000):
        mine = [one for of, one in made if of == entry and len(one.left)]
        assert plain(joined.pairs(entry)) == plain(sent.pairs(entry)) == plain(mine)
        some = [
            Pairs(rank[one.left[kept[one.left]]], one.versions, [at[kept[one.left]] for at in one.found])
            for one in mine
        ]
        assert plain(joined.kept(kept).pairs(entry)) == plain([one for one in some if len(one.left)])
    assert not Joined.of([])
    assert not Joined.of([(1, Pairs(np.empty(0, np.int64), [1], [np.empty(0, np.int64)]))])

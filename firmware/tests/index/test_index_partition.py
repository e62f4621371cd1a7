"""The field in parts: every mote is in one, and there are as many as its weight says."""

from __future__ import annotations

import numpy as np
import pytest

from skerry.index.code import Field, IndexCode, Part

FIELD = Field(0, 0, 10_000, 6_000)


def inside(part: Part, place: tuple[int, int]) -> bool:
    """Whether a mote stands in a part."""
    left, bottom, right, top = part.area.sides
    return bool(left <= place[0] < right and bottom <= place[1] < top)


@pytest.mark.parametrize("parts", range(1, 7))
@pytest.mark.parametrize("seed", range(5))
def test_parts_hold_motes_by_weight(index: IndexCode, parts: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    motes = int(rng.integers(60, 300))
    # Uniform, or most of them in a corner.
    spread = rng.random((motes, 2)) ** (1 if seed % 2 else 4)
    places = [(int(x * 10_000), int(y * 6_000)) for x, y in spread]
    weights = [int(w) for w in rng.integers(1, 5, parts)] if seed else [1] * parts
    found = index.partition(FIELD, places, weights)
    assert found is not None
    areas = [(p.area.right - p.area.left) * (p.area.top - p.area.bottom) for p in found]
    assert sum(areas) == 60_000_000
    assert min(areas) > 0
    homes = [[number for number, part in enumerate(found) if inside(part, place)] for place in places]
    assert all(len(home) == 1 for home in homes), "parts do not overlap"
    counts = [homes.count([number]) for number in range(parts)]
    assert counts == [part.motes for part in found]
    for count, weight in zip(counts, weights, strict=True):
        # Half a mote is lost or won at each cut; in the corner several stand on one line.
        assert abs(count - motes * weight / sum(weights)) <= (3 if seed % 2 else 12)


def test_four_equal_parts_are_quarters(index: IndexCode) -> None:
    places = [(x, y) for x in range(0, 10_000, 500) for y in range(0, 10_000, 500)]
    found = index.partition(Field(0, 0, 10_000, 10_000), places, [1] * 4)
    assert found is not None
    assert [part.motes for part in found] == [100] * 4
    corners = [(part.area.left > 4000, part.area.bottom > 4000) for part in found]
    assert corners == [(False, False), (False, True), (True, False), (True, True)]


def test_each_part_has_a_mote_or_there_is_no_partition(index: IndexCode) -> None:
    line = [(x * 10, 7) for x in range(6)]
    assert [part.motes for part in index.partition(FIELD, line, [1] * 6) or []] == [1] * 6
    assert [part.motes for part in index.partition(FIELD, line, [255, 1, 1]) or []] == [4, 1, 1]
    assert index.partition(FIELD, line[:5], [1] * 6) is None
    assert index.partition(FIELD, [(5, 5)] * 9, [1, 1]) is None
    assert index.partition(FIELD, [], [1]) is None
    assert index.partition(FIELD, line, []) is None
    assert index.partition(FIELD, line * 2, [1] * 7) is None

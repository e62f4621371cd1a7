"""Zones of a field and their owners, against arithmetic of another kind."""

from __future__ import annotations

import numpy as np
import pytest

from skerry.index.code import BITS, Field, IndexCode, Zone


def halved(field: Field, x: int, y: int) -> str:
    """The code of a position as one would do it by hand."""
    sides, code = [[field.left, field.right], [field.bottom, field.top]], ""
    for bit in range(BITS):
        low, high = sides[bit % 2]
        middle = low + (high - low) // 2
        upper = (x, y)[bit % 2] >= middle
        sides[bit % 2] = [middle, high] if upper else [low, middle]
        code += "01"[upper]
    return code


@pytest.mark.parametrize("seed", range(5))
def test_code_of_a_position_is_that_of_all_zones_around_it(index: IndexCode, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(100):
        left, bottom = (int(v) for v in rng.integers(-(2**20), 2**20, 2))
        field = Field(left, bottom, left + int(rng.integers(1, 2**21)), bottom + int(rng.integers(1, 2**21)))
        x = int(rng.integers(field.left, field.right))
        y = int(rng.integers(field.bottom, field.top))
        code = index.zone_code(field, x, y)
        assert f"{code:032b}" == halved(field, x, y)
        for length in range(0, BITS + 1, 5):
            area = index.zone_area(field, Zone(code & -(1 << (BITS - length)) & 0xFFFFFFFF, length))
            assert area.left <= x < area.right
            assert area.bottom <= y < area.top


@pytest.mark.parametrize(
    "field",
    [Field(-(2**31), -(2**31), 2**31 - 1, 2**31 - 1), Field(5, 5, 5, 5), Field(0, 0, 1, 2**31 - 1)],
    ids=["all there is", "a point", "a line"],
)
def test_any_field_has_codes(index: IndexCode, field: Field) -> None:
    corners = [(field.left, field.bottom), (2**31 - 1, 2**31 - 1), (-(2**31), -(2**31))]
    assert [f"{index.zone_code(field, x, y):032b}" for x, y in corners] == [
        halved(field, x, y) for x, y in corners
    ]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("motes", [1, 2, 7, 50])
def test_every_code_has_one_owner_the_nearest_by_xor(index: IndexCode, seed: int, motes: int) -> None:
    """With holes in the field, and after deaths, which are motes that nobody knows of."""
    rng = np.random.default_rng(seed)
    codes = [int(c) for c in rng.choice(2**32, motes, replace=False)]
    if motes > 2:  # some in one corner
        codes[2:4] = [codes[0] ^ 1, codes[0] ^ 6][: len(codes[2:4])]
    for alive in (codes, codes[: (motes + 1) // 2]):
        owners = [index.owned(own, (other for other in alive if other != own)) for own in alive]
        for code in [*(int(c) for c in rng.integers(0, 2**32, 300)), *codes]:
            own = [place for place, one in enumerate(owners) if (one.code ^ code) & ~one.any == 0]
            assert own == [min(range(len(alive)), key=lambda place: alive[place] ^ code)]


@pytest.mark.parametrize("seed", range(3))
def test_zone_of_an_owner_holds_nobody_else(index: IndexCode, seed: int) -> None:
    codes = [int(c) for c in np.random.default_rng(seed).choice(2**32, 40, replace=False)]
    for own in codes:
        zone = index.zone_of_owner(index.owned(own, (other for other in codes if other != own)))
        assert [code for code in codes if code in zone.codes] == [own]
        around = Zone(zone.code & -(2 << (BITS - zone.length)) & 0xFFFFFFFF, zone.length - 1)
        assert len([code for code in codes if code in around.codes]) > 1, "it is no smaller than need be"


def test_a_mote_that_knows_nobody_owns_all(index: IndexCode) -> None:
    owned = index.owned(0x12345678, [])
    assert (owned.any, index.zone_of_owner(owned).length) == (0xFFFFFFFF, 0)
    assert not index.leave(owned, 0x12345678), "one in the same place is another matter"

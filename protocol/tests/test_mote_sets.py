"""Sets of motes' short addresses, as programs carry them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from protocol.tests.test_golden import load
from skerry_protocol import mote_sets


@load("mote_sets")
def test_mote_set(meaning: list[int], data: bytes) -> None:
    assert mote_sets.build(meaning) == data
    assert mote_sets.parse(data) == meaning


@given(st.sets(st.integers(0, 0xFFFE), max_size=80))
def test_what_is_built_is_read(motes: set[int]) -> None:
    told = mote_sets.build(motes)
    assert mote_sets.parse(told) == sorted(motes)
    assert len(told) <= 3 * len(motes), "two bytes lead to any address"


@given(st.sets(st.integers(0, 200), min_size=1))
def test_motes_whose_numbers_lie_together_take_a_bit_each(motes: set[int]) -> None:
    assert len(mote_sets.build(motes)) <= max(motes) // 7 + 1

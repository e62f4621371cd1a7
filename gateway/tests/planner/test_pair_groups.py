"""Pairs of motes as programs carry them: groups have the pairs that were asked for, and take no more bytes than pairs one by one."""

from __future__ import annotations

import json
from itertools import combinations, product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.planner.model import pair_groups
from skerry_protocol.limits import PAIRS_MOTES

NUMBERS = range(PAIRS_MOTES)
VECTORS = json.loads(
    (Path(__file__).resolve().parents[3] / "protocol" / "vectors" / "pair_groups.json").read_text()
)
motes = st.integers(0, 12)


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_golden_bytes(vector: dict[str, object]) -> None:
    pairs = [(s, t) for s, t in vector["meaning"]]  # type: ignore[attr-defined]
    told = bytes.fromhex(str(vector["hex"]))
    assert pair_groups.build(pairs, NUMBERS) == told
    assert pair_groups.parse(told, NUMBERS) == pairs


@given(st.sets(st.tuples(motes, motes), max_size=40))
def test_groups_have_the_pairs_that_were_asked_for(pairs: set[tuple[int, int]]) -> None:
    told = pair_groups.build(pairs, NUMBERS)
    assert pair_groups.parse(told, NUMBERS) == sorted(pairs)
    assert len(told) <= 2 * len(pairs)
    found = pair_groups.groups(pairs)
    assert all(group[0][1] == pair_groups.S for group in found), "one begins where the one before ends"


@given(st.sets(motes, min_size=1), st.sets(motes, min_size=1))
def test_who_is_a_pair_by_an_equality_takes_a_byte(sources: set[int], targets: set[int]) -> None:
    assert len(pair_groups.build(list(product(sources, targets)), NUMBERS)) <= len(sources) + len(targets)


@given(st.sets(motes, min_size=2), st.randoms(use_true_random=False))
def test_who_is_a_pair_by_an_order_takes_a_byte(some: set[int], draw: object) -> None:
    order = sorted(some)
    draw.shuffle(order)  # type: ignore[attr-defined]
    assert len(pair_groups.build(list(combinations(order, 2)), NUMBERS)) == len(order)


@given(st.binary(max_size=40))
def test_any_bytes_are_read(told: bytes) -> None:
    """Each s of a group with each t behind it, as they are told of."""
    found, group = set(), list[tuple[int, int]]()
    for byte, before in zip(told, b"\0" + told, strict=False):
        if byte // PAIRS_MOTES == pair_groups.S != before // PAIRS_MOTES:
            group = []
        group.append(divmod(byte, PAIRS_MOTES))
        role, mote = group[-1]
        if role & pair_groups.T:
            found |= {(s, mote) for other, s in group[:-1] if other & pair_groups.S}
    assert pair_groups.parse(told, NUMBERS) == sorted(found)

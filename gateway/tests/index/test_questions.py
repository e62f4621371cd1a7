"""What motes are told of a question, and whom it asks: against brute force over drawn tuples."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from skerry.index.code import NULL, Field, motes_code
from skerry.index.questions import Names, coarse, codes, encoded, owners, point


@pytest.mark.parametrize("seed", range(50))
def test_owners_of_all_that_is_asked_for_are_asked(seed: int) -> None:
    rng = np.random.default_rng(seed)
    attributes, motes = 1 + seed % 6, int(rng.choice([1, 2, 6, 25]))
    codes = {node: int(code) for node, code in enumerate(rng.choice(2**32, motes, replace=False))}
    for _ in range(6):
        points = [tuple(sorted(rng.integers(0, NULL + 1, 2).tolist())) for _ in range(attributes)]
        told = coarse([(low, high) for low, high in points])
        assert all(a <= low and high <= b for (low, high), (a, b) in zip(points, told, strict=True))
        asked = owners(told, codes)
        tuples = np.column_stack([rng.integers(low, high + 1, 50) for low, high in points])
        stored = [motes_code().code([int(p) for p in row]) for row in tuples]
        nearest = {min(codes, key=lambda node: codes[node] ^ code) for code in stored}
        assert nearest <= set(asked)
        if motes == 1:
            assert asked == [0]


def test_a_question_for_one_half_asks_its_side_alone() -> None:
    codes = {1: 0, 2: 1 << 31, 3: 1 << 31 | 1 << 30}
    assert owners([(0, 0x7FFF)], codes) == [1]
    assert owners([(0x8000, 0xBFFF)], codes) == [2]
    assert owners([(0x7FFF, 0x8000)], codes) == [1, 2]
    assert owners([(0, NULL)], codes) == [1, 2, 3]


def test_a_packet_has_the_highest_bits_of_points() -> None:
    told = coarse([(0x1234, 0x5678), (0, NULL)])
    assert told == [(0x1230, 0x567F), (0, NULL)]
    packed = encoded(told, Names())
    assert len(packed) == 6
    assert [int.from_bytes(packed[at : at + 3], "little") for at in (0, 3)] == [0x567123, 0xFFF000]


@pytest.mark.parametrize("seed", range(20))
def test_names_that_are_told_hold_those_that_are_asked_for(seed: int) -> None:
    rng = np.random.default_rng(seed)
    named = [
        (int(n), int(e)) for n, e in zip(rng.integers(0, 300, 9), rng.integers(0, 90_000, 9), strict=True)
    ]
    for room in range(19):
        told = Names().of(named).encoded(room)
        assert len(told) in (0, room)
        if not told:
            assert room < 6
            continue
        first, more = struct.unpack("<IH", told[:6])
        mask, bits = int.from_bytes(told[6:], "little"), 8 * (room - 6)
        assert min(epoch for _, epoch in named) == first
        for node, epoch in named:
            assert more == 0xFFFF or epoch <= first + more
            assert not bits or mask >> node % bits & 1
    assert Names().encoded(18) == b""


def test_codes_of_owners_are_by_the_least_rectangle_with_all() -> None:
    assert codes({1: (-5, 0), 2: (5, 0), 3: (5, 100)}) == {
        node: motes_code().zone_code(Field(-5, 0, 6, 101), x, y)
        for node, (x, y) in {1: (-5, 0), 2: (5, 0), 3: (5, 100)}.items()
    }


def test_values_outside_belong_to_the_edge() -> None:
    assert point(-200, 3000, -32768) == 0
    assert point(-200, 3000, 32767) == point(-200, 3000, 3001) < NULL

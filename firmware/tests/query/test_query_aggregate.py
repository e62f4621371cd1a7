"""Partial state records: one mote's own, and merging them in any order."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware.tests.query import host
from firmware.tests.query.mote import COMPLETE, Mote, field, program
from skerry_protocol import records
from skerry_protocol.attributes import BY_NAME, ValueFormat
from skerry_protocol.bytecode import Op, constant, instruction
from skerry_protocol.codes import Aggregate, PacketType, QueryFlag
from skerry_protocol.limits import NO_GROUP

TEMP = instruction(Op.ATTR, BY_NAME["temp"].number)
VALUED = (Aggregate.COUNT, Aggregate.SUM, Aggregate.AVG, Aggregate.MIN, Aggregate.MAX)
FIELDS = [field(ValueFormat.I32, b"", Aggregate.COUNT)] + [field(ValueFormat.I32, TEMP, a) for a in VALUED]
#: Rows below 0 degrees do not pass.
PROGRAM = program(FIELDS, where=TEMP + constant(0) + instruction(Op.GE), flags=QueryFlag.AGGREGATE)
EVERYTHING = program(FIELDS, flags=QueryFlag.AGGREGATE)
QUERY = 3


def states(record: Any) -> list[tuple[int, int]]:
    """(count, value) of each field."""
    return [(state.count, state.value) for state in record.states]


def own_partial(mote: Mote, data: bytes, reading: int | None) -> bytes:
    """The partial state record of a mote with that temperature, as bytes."""
    mote.sensor(BY_NAME["temp"].number, reading)
    mote.synchronise(99.9)
    assert mote.install(data, QUERY) == COMPLETE
    mote.run(1)
    (record,) = mote.records()
    assert record.type is PacketType.PARTIAL
    return bytes(records.Partial.build(record.body))


def test_squares_beyond_48_bits_are_not_merged_and_not_cut_off(mote: Mote) -> None:
    """From readings of 2^24 on; STDDEV(energy) of a mote that has taken 17 kJ."""
    data = program([field(ValueFormat.I32, TEMP, Aggregate.VARIANCE)], flags=QueryFlag.AGGREGATE)
    parts = []
    for reading in (1 << 24, (1 << 24) - 1, -(1 << 31)):
        other = Mote(host.query_library())
        parts.append(own_partial(other, data, reading))
    nothing = own_partial(Mote(host.query_library()), data, 0)
    for part in (parts[1], parts[2], nothing):
        assert mote.merge(parts[0], part) is None
        assert mote.merge(part, parts[0]) is None
    small = own_partial(Mote(host.query_library()), data, 3)
    merged = merge_all(mote, [parts[1], small])
    low, high = merged.states[1]["value"] % 2**32, merged.states[1]["count"]
    assert high << 32 | low == ((1 << 24) - 1) ** 2 + 9


def merge_all(mote: Mote, parts: Sequence[bytes]) -> Any:
    """Merged from the first on, decoded."""
    into = parts[0]
    for part in parts[1:]:
        merged = mote.merge(into, part)
        assert merged is not None
        into = merged
    return records.Partial.parse(into)


@pytest.mark.parametrize(
    ("data", "reading", "expected"),
    [
        (PROGRAM, 2150, [(1, 0), (1, 0), (1, 2150), (1, 2150), (1, 2150), (1, 2150)]),
        (PROGRAM, -5, [(0, 0)] * 6),
        (PROGRAM, None, [(0, 0)] * 6),
        (EVERYTHING, -5, [(1, 0), (1, 0), (1, -5), (1, -5), (1, -5), (1, -5)]),
        (EVERYTHING, None, [(1, 0)] + [(0, 0)] * 5),
    ],
    ids=["passes", "refused by WHERE", "WHERE is NULL", "no WHERE", "NULL counts in COUNT(*) only"],
)
def test_own_reading(mote: Mote, data: bytes, reading: int | None, expected: list[tuple[int, int]]) -> None:
    """The mote itself is always counted as considered."""
    partial = records.Partial.parse(own_partial(mote, data, reading))
    assert (partial.query, partial.epoch, partial.motes, partial.overflow) == (QUERY, 100, 1, 0)
    assert states(partial) == expected
    assert mote.rows == 1


readings = st.lists(st.none() | st.integers(-40_000, 40_000), min_size=1, max_size=12)


@given(values=readings, shuffle=st.randoms(use_true_random=False))
def test_merging_in_any_order_equals_direct_aggregation(
    query_library: Path, values: list[int | None], shuffle: random.Random
) -> None:
    """A random merge tree over the motes' own records gives what a table of all their rows gives."""
    parts = [own_partial(Mote(query_library), PROGRAM, value) for value in values]
    mote = Mote(query_library)
    mote.install(PROGRAM, QUERY)
    while len(parts) > 1:
        a = parts.pop(shuffle.randrange(len(parts)))
        b = parts.pop(shuffle.randrange(len(parts)))
        merged = mote.merge(a, b)
        assert merged is not None
        assert merged == mote.merge(b, a), "merging is commutative"
        parts.append(merged)
    result = records.Partial.parse(parts[0])
    rows = [value for value in values if value is not None and value >= 0]
    assert result.motes == len(values)
    count = len(rows)
    expected = [0, 0, sum(rows), sum(rows), min(rows, default=0), max(rows, default=0)]
    assert states(result) == [(count, value) for value in expected]


def partial(
    values: Sequence[int], *, query: int = QUERY, epoch: int = 5, motes: int = 1, overflow: int = 0
) -> bytes:
    """A record of six fields that all hold ``values``' sum (or extreme) for one reading each."""
    state = [{"count": len(values), "value": sum(values)}] * 6
    fields = {"query": query, "epoch": epoch, "motes": motes, "overflow": overflow, "states": state}
    return bytes(records.Partial.build(fields))


@pytest.mark.parametrize("sign", [1, -1])
def test_states_whose_sum_leaves_32_bits_go_on_side_by_side(mote: Mote, sign: int) -> None:
    mote.install(EVERYTHING, QUERY)
    big = sign * 2**30 * 2 - (sign > 0)
    assert mote.merge(partial([big]), partial([sign])) is None
    assert states(merge_all(mote, [partial([big]), partial([-sign])]))[2] == (2, big - sign)


def test_counts_stay_at_their_largest_value(mote: Mote) -> None:
    mote.install(EVERYTHING, QUERY)
    result = merge_all(mote, [partial([], motes=65000), partial([], motes=1000)])
    assert result.motes == 65535
    many = [{"count": 65000, "value": 0}] * 6
    counted = records.Partial.build({"query": QUERY, "epoch": 5, "motes": 1, "overflow": 0, "states": many})
    assert mote.merge(counted, counted) is None, "COUNT is not cut off"


@pytest.mark.parametrize(
    "other",
    [
        partial([1], query=4),
        partial([1], epoch=6),
        partial([1]) + bytes(6),
        partial([1])[:-1],
        partial([1])[:8],
        b"",
    ],
    ids=["query", "epoch", "more states", "cut state", "cut header", "empty"],
)
def test_other_shapes_are_not_merged(mote: Mote, other: bytes) -> None:
    mote.install(EVERYTHING, QUERY)
    into = partial([1]).ljust(64, b"\0")
    assert mote.merge(into, other) is None


def test_states_that_were_left_out_are_zero(mote: Mote) -> None:
    mote.install(EVERYTHING, QUERY)
    result = merge_all(mote, [partial([4]), partial([5])[:-12]])
    assert states(result) == [(2, 4), (2, 4), (2, 9), (2, 9), (1, 4), (1, 4)]


def test_mote_without_the_program_merges_nothing(mote: Mote) -> None:
    assert mote.merge(partial([1]), partial([1])) is None
    mote.install(program([field(ValueFormat.I32, TEMP)]), QUERY)
    assert mote.merge(partial([1]), partial([1])) is None


LEVEL = instruction(Op.ATTR, BY_NAME["level"].number)
GROUPED = program(
    [field(ValueFormat.I32, LEVEL, Aggregate.GROUP), field(ValueFormat.I32, TEMP, Aggregate.SUM)],
    where=TEMP + constant(0) + instruction(Op.GE),
    flags=QueryFlag.AGGREGATE,
)


def grouped(group: int | None, value: int) -> bytes:
    """A record of GROUPED: one mote of that group."""
    state = [{"count": int(group is not None), "value": group or 0}, {"count": 1, "value": value}]
    fields = {"query": QUERY, "epoch": 5, "motes": 1, "overflow": 0, "states": state}
    return bytes(records.Partial.build(fields))


@pytest.mark.parametrize("group", [None, 0, 7, -3])
def test_states_of_one_group_are_merged(mote: Mote, group: int | None) -> None:
    mote.install(GROUPED, QUERY)
    result = merge_all(mote, [grouped(group, 20), grouped(group, 3)])
    assert result.motes == 2
    assert states(result) == [(0, 0) if group is None else (2, group), (2, 23)]


@pytest.mark.parametrize(("one", "other"), [(1, 2), (None, 0), (0, None), (-1, 1)])
def test_states_of_different_groups_are_not(mote: Mote, one: int | None, other: int | None) -> None:
    """NULL is a group of its own, unlike 0."""
    mote.install(GROUPED, QUERY)
    assert mote.merge(grouped(one, 1), grouped(other, 1)) is None


def test_row_that_is_refused_belongs_to_no_group(mote: Mote) -> None:
    mote.sensor(BY_NAME["temp"].number, -5)
    mote.synchronise(99.9)
    assert mote.install(GROUPED, QUERY) == COMPLETE
    mote.run(1)
    [record] = mote.records()
    assert record.body.motes == 1, "it tells that the mote has its part in the epoch"
    assert states(record.body) == [(0, NO_GROUP), (0, 0)]


def test_motes_whose_rows_are_refused_are_told_together_and_apart_from_groups(mote: Mote) -> None:
    mote.install(GROUPED, QUERY)
    state = [{"count": 0, "value": NO_GROUP}, {"count": 0, "value": 0}]
    refused = bytes(
        records.Partial.build({"query": QUERY, "epoch": 5, "motes": 1, "overflow": 0, "states": state})
    )
    both = merge_all(mote, [refused, refused])
    assert (both.motes, states(both)) == (2, [(0, NO_GROUP), (0, 0)])
    for group in (None, 0, NO_GROUP):
        assert mote.merge(refused, grouped(group, 1)) is None

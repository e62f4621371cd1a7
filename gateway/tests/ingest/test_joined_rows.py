"""Rows of pairs that the gateway joins, some of which are lost on their way up."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace

import pytest

from skerry.ingest.joined_rows import JoinedRows
from skerry.planner.model.pair_groups import S, T
from skerry.planner.model.pairing import HOST, clause_of, numbered
from skerry.planner.model.plans import QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import encode
from skerry.planner.planner import plan_query
from skerry.sql.errors import QueryError
from skerry_protocol import codec
from skerry_protocol.codes import Aggregate
from skerry_protocol.limits import FIELDS_MAXIMUM, JOINED_NUMBER, RESULT_NONE_BEFORE

QUERY, PERIOD_S = 1, 10


def joining(rows: int, at_a_mote: bool = False) -> JoinedRows:
    """Of mote 3, and 1 where a mote joins them, as s with 2 as t, in windows of so many rows."""
    told = plan_query(
        "SELECT s.nodeid, t.nodeid, s.temp FROM sensors AS s, sensors AS t "
        f"WINDOW {rows} ROWS WHERE s.nodeid = t.nodeid + 1 SAMPLE PERIOD {PERIOD_S} s JOIN AT BASE"
    )
    assert isinstance(told, QueryPlan)
    assert told.pairing is not None
    if at_a_mote:
        placed = clause_of(told.pairing, told.period_ms, hosts=[(1, 40, [(3, 2), (1, 2)])])
    else:
        placed = clause_of(told.pairing, told.period_ms, pairs=[(3, 2)])
    return JoinedRows(merge([replace(told, clauses=(placed,))]))


@pytest.mark.parametrize(
    ("rows", "numbers", "turns", "expected"),
    [
        (1, {8: 0, 9: 1, 10: 2}, [11], {(8, 8), (9, 9), (10, 10)}),
        (1, {8: 0, 10: 2}, [11], {(8, 8), (10, 10)}),
        (2, {8: 0, 10: 2}, [11], {(8, 8), (8, 9), (10, 9), (10, 10)}),
        (1, {8: 0, 11: 2}, [12], {(8, 8), (11, 11)}),
        (1, {8: 0, 11: 1}, [12], {(8, 8), (8, 9), (8, 10), (11, 11)}),
        (1, {8: 0, 11: 2}, [9, 10], {(8, 8), (8, 9)}),
    ],
    ids=["all come", "one is lost", "two rows", "one of two epochs", "no row", "it may still come"],
)
def test_a_window_ends_before_what_is_lost(
    rows: int, numbers: dict[int, int], turns: list[int], expected: set[tuple[int, int]]
) -> None:
    """Epochs of s and t that meet, where of mote 3 rows come with these numbers and of 2 all: what is before an epoch is joined at its
    turn."""
    gateway = joining(rows)
    for epoch, number in numbers.items():
        gateway.take(codec.Result(QUERY, 3, epoch, 0, struct.pack("<Bh", S | number << 2, 20)))
    for epoch in range(8, 12):
        gateway.take(codec.Result(QUERY, 2, epoch, 0, struct.pack("<Bh", T | (epoch - 8) << 5, 20)))
    found = []
    for turn in turns:
        # Rows climb for 10 s and are waited for a sample period more.
        until, met = gateway.due(QUERY, (turn + 2) * PERIOD_S * 1000)
        assert until == turn
        for one in met:
            _, behind_s, behind_t = struct.unpack_from("<Hii", one.values)
            found.append((one.epoch - behind_s, one.epoch - behind_t))
        gateway.done(until)
    assert sorted(found) == sorted(expected)


def stray(gateway: JoinedRows, node: int, epoch: int, passed: int, none_before: int = 0) -> None:
    nulls = none_before << RESULT_NONE_BEFORE
    gateway.take(codec.Result(QUERY, node, epoch, nulls, struct.pack("<Bh", passed, 20)))


def met(gateway: JoinedRows, now: int) -> list[tuple[int, int, int, int]]:
    """Answers of all epochs before one."""
    found = []
    for one in gateway.due(QUERY, (now + 2) * PERIOD_S * 1000)[1]:
        other, behind_s, behind_t = struct.unpack_from("<Hii", one.values)
        found.append((one.node, one.epoch - behind_s, other, one.epoch - behind_t))
    return found


def test_what_passes_its_host_meets_rows_of_which_answers_tell() -> None:
    gateway = joining(1, at_a_mote=True)
    answer = codec.Joined(
        QUERY, 1, 10, 4 << JOINED_NUMBER, 2, 10, 4 << JOINED_NUMBER, struct.pack("<2h", 20, 20)
    )
    assert gateway.joined(answer) == [], "it waits"
    assert met(joining(1, at_a_mote=True), 12) == []
    stray(gateway, 3, 10, numbered(S, 5))
    assert sorted(met(gateway, 12)) == [(1, 10, 2, 10), (3, 10, 2, 10)]


def test_rows_say_which_mote_has_joined_them() -> None:
    """3 with 2 is joined at 1, of which an answer comes, and a row of 3 that has passed it, which the gateway joins."""
    told = plan_query(
        "SELECT s.nodeid, joined_at + 1 AS next, joined_at, s.temp FROM sensors AS s, sensors AS t WINDOW 1 ROWS "
        f"WHERE s.nodeid = t.nodeid + 1 SAMPLE PERIOD {PERIOD_S} s JOIN AT BASE"
    )
    assert isinstance(told, QueryPlan)
    assert told.pairing is not None
    placed = clause_of(told.pairing, told.period_ms, hosts=[(1, 40, [(3, 2)])])
    gateway = JoinedRows(merge([replace(told, clauses=(placed,))]))
    numbers = 4 << JOINED_NUMBER
    gateway.joined(codec.Joined(QUERY, 3, 10, numbers, 2, 10, numbers, struct.pack("<2h", 20, 20)))
    stray(gateway, 3, 11, numbered(S, 5))
    stray(gateway, 2, 11, numbered(T, 5))
    _, found = gateway.due(QUERY, 14 * PERIOD_S * 1000)
    place = [column.expr for column in gateway.query.columns].index(HOST)
    hosts = {
        one.epoch: None if one.nulls >> place & 1 else gateway.layout.unpack(one.values)[place]
        for one in found
    }
    assert hosts == {10: 1, 11: None}


def carrying(names: Sequence[str]) -> QueryPlan:
    """A join whose condition is about the first nine, and whose rows tell the others."""
    asked = " OR ".join(f"s.{name} > t.{name}" for name in names[:9])
    plan = plan_query(
        f"SELECT {', '.join(f's.{name}' for name in names[9:])} FROM sensors AS s, sensors AS t WINDOW 1 s "
        f"WHERE s.nodeid < t.nodeid AND ({asked}) SAMPLE PERIOD 1 s JOIN AT BASE"
    )
    assert isinstance(plan, QueryPlan)
    return plan


def test_as_many_attributes_meet_as_rows_have_columns_for() -> None:
    """What both have passed is one of the columns; motes take the program."""
    names = [
        "light",
        "temp",
        "humidity",
        "voltage",
        "accel_x",
        "accel_y",
        "free_ram",
        "noise",
        "mag_x",
        "mag_y",
        "link",
        "radio_duty",
    ]
    told = merge([carrying(names[:11])])
    fields = codec.decode_program(encode(told, 0)).fields
    assert [field.aggregate for field in fields] == [0] * FIELDS_MAXIMUM + [Aggregate.PAIRS]
    gateway, values = JoinedRows(told), struct.pack("<22h", *range(100, 122))
    [found] = gateway.joined(codec.Joined(QUERY, 1, 10, 0, 2, 10, 0, values))
    assert gateway.layout.unpack(found.values) == (2, 0, 0, 109, 110)
    with pytest.raises(QueryError, match="rows of 12 attributes are too long to meet"):
        carrying(names)


@pytest.mark.parametrize(
    ("epoch", "number", "is_sure"),
    [(11, 4, True), (12, 4, True), (12, 5, False), (12, 3, False), (11, 2, False), (11, 0, False)],
    ids=[
        "the next",
        "the next, later",
        "one is missing",
        "a cycle",
        "started again, perhaps",
        "started again",
    ],
)
def test_a_window_reaches_as_far_as_the_next_number_tells(epoch: int, number: int, is_sure: bool) -> None:
    """3's row of epoch 8 is its third. Whether it is the newest one at epoch 10, when 2's comes past its host, too, says the next one that
    does: what 3 has had before it started again, and after, may be at its host."""
    gateway = joining(1, at_a_mote=True)
    stray(gateway, 3, 8, numbered(S, 3))
    stray(gateway, 3, epoch, numbered(S, number))
    stray(gateway, 2, 10, numbered(T, 0))
    assert ((3, 8, 2, 10) in met(gateway, 11)) is is_sure


@pytest.mark.parametrize(
    ("none_before", "meets"),
    [(0, False), (3, False), (5, True)],
    ids=["not told", "some may be lost", "none can be lost"],
)
def test_a_window_reaches_behind_a_start_as_far_as_no_row_can_be_lost(none_before: int, meets: bool) -> None:
    """3 starts again after its row of epoch 8, and has the next one in 14: whether that of 8 is among its last two then."""
    gateway = joining(2)
    stray(gateway, 3, 8, numbered(S, 4))
    stray(gateway, 3, 14, numbered(S, 0), none_before)
    stray(gateway, 2, 14, numbered(T, 1))
    assert ((3, 8, 2, 14) in met(gateway, 15)) is meets

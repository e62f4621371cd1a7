"""Rows of pairs that the gateway joins, some of which are lost on their way up."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from skerry.ingest.joined_rows import JoinedRows
from skerry.planner.model.pairing import S, T, clause_of
from skerry.planner.model.plans import QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.planner import plan_query
from skerry_protocol import codec

QUERY, PERIOD_S = 1, 10


def joining(rows: int) -> JoinedRows:
    """Of mote 3 as s with 2 as t, in windows of so many rows."""
    told = plan_query(
        "SELECT s.nodeid, t.nodeid, s.temp FROM sensors AS s, sensors AS t "
        f"WINDOW {rows} ROWS WHERE s.nodeid = t.nodeid + 1 SAMPLE PERIOD {PERIOD_S} s JOIN AT BASE"
    )
    assert isinstance(told, QueryPlan)
    assert told.pairing is not None
    placed = clause_of(told.pairing, told.period_ms, (2, 3), base=2, pairs=[(3, 2)])
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

"""A stream that says nothing for a week of virtual time: no answer of others waits for it, what is kept stays bounded, and its rows join
again when they come."""

from __future__ import annotations

from dataclasses import replace

import duckdb
import pyarrow as pa
import pytest

from gateway.tests.joins.drawn import SCHEMA, SECOND, SITES, Case, Row, expected, listed
from skerry.joins.conditions import Column, Compared
from skerry.joins.join import Join, Step
from skerry.joins.rows import Algorithm
from skerry.joins.single import SingleJoin
from skerry.joins.windows import Window

MINUTE, DAY = 60 * SECOND, 86_400 * SECOND
#: A row of the first stream each so long; the second one is silent from the first hour to the last day, the third one always.
PERIOD, WINDOW, LATENESS = 10 * MINUTE, 60 * MINUTE, 30 * MINUTE
EQUAL = Compared("=", Column("a", "item"), Column("b", "item"))
INNER = Join({"a": "s0", "b": "s1"}, {frozenset("ab"): Window(WINDOW)}, EQUAL, (), LATENESS)
JOINS: dict[str, tuple[Join, Algorithm]] = {
    "HW": (INNER, "HW"),
    "MW": (INNER, "MW"),
    "NLW": (INNER, "NLW"),
    "rows": (replace(INNER, windows={frozenset("ab"): Window(WINDOW, 3)}), "MW"),
    "left": (replace(INNER, where=None, steps=(Step("left", EQUAL),)), "HW"),
    "asof left": (replace(INNER, where=None, steps=(Step("asof left", EQUAL),)), "HW"),
    "three": (
        Join(
            {"a": "s0", "b": "s1", "c": "s0"}, {frozenset("ab"): Window(WINDOW), frozenset("bc"): Window(WINDOW)},
            EQUAL, (), LATENESS,
        ), "MW",
    ),
}  # fmt: skip


def week() -> Case:
    """Of :data:`INNER`."""
    found: dict[str, list[Row]] = {"s0": [], "s1": [], "s2": []}
    for number in range(7 * DAY // PERIOD):
        at = 10**15 + number * PERIOD
        loud = not 6 <= number < 6 * DAY // PERIOD
        stream = "s1" if number % 3 == 2 and loud else "s0"
        found[stream].append((number, at, at, 0, number % 4, None, 0.5, *SITES[0]))
    return Case(INNER, found)


@pytest.mark.parametrize("kind", JOINS)
def test_what_is_kept_while_a_stream_is_silent_is_bounded(kind: str) -> None:
    join, algorithm = JOINS[kind]
    case = replace(week(), join=join)
    running = SingleJoin(join, dict.fromkeys(case.streams, SCHEMA), algorithm)
    parts, most, sizes = [], 0, []
    hour = 60 * MINUTE // PERIOD
    for first in range(0, case.length, hour):
        parts.append(running.feed(case.tables(first, first + hour)))
        most = max(most, running.operator.rows)
        sizes.append(running.operator.bytes)
    # Rows of the way from end to end and of LATENESS, once for each alias, and a batch.
    reach = max(join.retention(place) for place in range(len(join.aliases)))
    assert most <= len(join.aliases) * ((reach + LATENESS) // PERIOD + hour + 1)
    days = len(sizes) // 7
    assert max(sizes[days : 6 * days]) <= max(sizes[:days]), "no day of silence keeps more than the first"
    right = expected(case, duckdb.connect())
    assert listed(pa.concat_tables([*parts, running.finish()], promote_options="permissive")) == right
    numbers = [row[1] for row in right]
    assert any(int(str(number)) > 6 * DAY // PERIOD for number in numbers), "it joins again"
    if join.is_outer:
        there = [row for part in parts for row in listed(part)]
        silent = [row for row in there if DAY // PERIOD < int(str(row[1])) < 5 * DAY // PERIOD]
        assert len(silent) == 4 * DAY // PERIOD - 1
        assert {row[2] for row in silent} == {None}, "who meets nobody is told without it"

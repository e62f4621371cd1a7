"""Conditions longer than a mote's program: what motes ask of them, and what the gateway does."""

from __future__ import annotations

import pytest

from skerry.expressions.expression import render
from skerry.planner.model.plans import QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import program_size
from skerry.planner.planner import plan_query
from skerry.service.explain import explain, explain_text
from skerry.sql.errors import QueryError
from skerry_protocol.limits import PROGRAM_MAXIMUM

FORTY = "nodeid IN (" + ", ".join(map(str, range(3, 83, 2))) + ")"


def planned(text: str) -> QueryPlan:
    plan = plan_query(text)
    assert isinstance(plan, QueryPlan)
    return plan


@pytest.mark.parametrize(
    ("where", "asked"),
    [
        (FORTY, "(nodeid >= 3) AND (nodeid <= 81)"),
        (f"{FORTY} AND temp > 25.5", "((nodeid >= 3) AND (nodeid <= 81)) AND (temp > 25.5)"),
        (f"NOT {FORTY} AND light > 3", "light > 3"),
        (" OR ".join(f"temp > {i} AND light = {i}" for i in range(5, 40)), "(light >= 5) AND (light <= 39)"),
        (" OR ".join(f"nodeid = {i}" for i in range(1000)), "(nodeid >= 0) AND (nodeid <= 999)"),
        (" OR ".join(f"temp * {i} > 1" for i in range(1, 41)), None),
    ],
)
def test_motes_ask_a_range_around_it(where: str, asked: str | None) -> None:
    plan = planned(f"SELECT nodeid FROM sensors WHERE {where} SAMPLE PERIOD 10 s")
    assert (render(plan.mote_where) if plan.mote_where is not None else None) == asked
    assert program_size(merge([plan])) <= PROGRAM_MAXIMUM
    assert "(it is too long for a mote's program of 192 bytes)" in explain_text(explain(plan))


def test_of_very_many_motes_ask_as_many_as_fit() -> None:
    plan = planned(
        f"SELECT nodeid FROM sensors WHERE {' AND '.join(f'temp <> {i}' for i in range(400))} ONCE"
    )
    assert 150 < program_size(merge([plan])) <= PROGRAM_MAXIMUM


def test_aggregates_of_rows_that_the_gateway_chooses() -> None:
    plan = planned(f"SELECT AVG(temp), COUNT(*) FROM sensors WHERE {FORTY} GROUP BY level SAMPLE PERIOD 10 s")
    assert plan.window is not None
    assert [str(window) for window in plan.window.windows] == ["the last 10 s, each 10 s"]
    assert not merge([plan]).aggregate
    said = explain_text(explain(plan))
    assert "aggregates rows of all motes over the last 10 s, each 10 s" in said
    assert "(nodeid = 81) (it is too long for a mote's program of 192 bytes)" in said


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT MEDIAN(temp) FROM sensors WHERE {FORTY} SAMPLE PERIOD 10 s",
        f"SELECT nodeid, WINAVG(3, temp) FROM sensors WHERE {FORTY} SAMPLE PERIOD 10 s",
        f"SELECT nodeid, temp FROM sensors WHERE {FORTY} SAMPLE PERIOD 10 s QUEUE DELTA",
        f"SELECT nodeid, temp FROM sensors WHERE {FORTY} OUTPUT ACTION leds(1) SAMPLE PERIOD 10 s",
        f"ON EVENT hot SELECT AVG(temp) FROM sensors WHERE {FORTY} SAMPLE PERIOD 10 s FOR 1 min",
    ],
)
def test_refused_where_motes_have_to_ask_all_of_it(query: str) -> None:
    with pytest.raises(QueryError, match=r"query too large for a mote: \d+ bytes, limit 192"):
        planned(query)

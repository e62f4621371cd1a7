"""What the proxy decided, what it costs, and what else there was: as explain and status say it."""

from __future__ import annotations

import json

import pytest

from gateway.tests.planner.test_storage_points import create
from skerry.expressions.ranges import doubt
from skerry.planner.cost.energy import cost_of, decided
from skerry.planner.model.plans import QueryPlan
from skerry.planner.model.storage_points import Point
from skerry.planner.physical.merge import merge
from skerry.planner.planner import plan_query
from skerry.service.explain import explain, explain_text
from skerry.sharing.demand import Demand


def plan_of(sql: str) -> QueryPlan:
    plan = plan_query(f"SELECT {sql}")
    assert isinstance(plan, QueryPlan)
    return plan


def crowd(count: int) -> list[QueryPlan]:
    return [
        plan_of(f"nodeid, light WHERE light BETWEEN {i} AND {i + 100} SAMPLE PERIOD {10 + i % 3} s")
        for i in range(count)
    ]


def test_alternatives_are_told_by_their_power() -> None:
    plans = [*crowd(20), plan_of("temp WHERE light < 50 SAMPLE PERIOD 30 s")]
    found = decided(merge(plans), plans)
    assert found["users"] == 21
    assert found["attributes"] == ["temp", "light"] or found["attributes"] == ["light", "temp"]
    assert found["where"] == "(light >= 0) AND (light <= 119)" or "light <= 119" in found["where"]
    assert found["period_ms"] == 10_000
    each, everything = found["alternatives"]
    own = sum(cost_of(merge([plan])).watts for plan in plans)
    assert each["power"] == pytest.approx(own)
    assert found["power"] < everything["power"] < own
    assert "motes hold 8" in each["what"]
    assert json.loads(json.dumps(found)) == found


def test_those_reckoned_with_stand_for_many_users() -> None:
    plans = [plan_of("temp SAMPLE PERIOD 10 s")] * 1000
    [each] = decided(merge(plans), plans)["alternatives"]
    assert each["power"] == pytest.approx(1000 * cost_of(merge(plans)).watts)


def test_aggregates_on_motes_are_compared_with_rows() -> None:
    plans = [plan_of("AVG(temp), MAX(light), COUNT(*) WHERE voltage > 2.5 SAMPLE PERIOD 10 s")]
    found = decided(merge(plans), plans)
    assert found["aggregated_by_motes"]
    [rows] = found["alternatives"]
    assert "aggregated at the gateway" in rows["what"]
    assert rows["power"] > 0


def test_explain_says_what_a_newcomer_costs() -> None:
    demand = Demand()
    for i, plan in enumerate(crowd(3)):
        demand.add_user(str(i), plan, 10)
    asked = plan_of("nodeid, light WHERE light BETWEEN 0 AND 100 SAMPLE PERIOD 10 s")
    explained = explain(asked, None, demand)
    assert explained["stream"]["unchanged"]
    assert explained["stream"]["decision"]["users"] == 4
    text = explain_text(explained)
    assert "it samples light where" in text
    assert "a query for each of 4 users" in text
    assert [len(plans) for plans in demand.served().values()] == [3]
    assert explain(plan_of("AVG(temp) SAMPLE PERIOD 10 s"), None, demand)["stream"]["decision"]["users"] == 1


@pytest.mark.parametrize(
    ("sql", "share"),
    [
        ("nodeid, temp SAMPLE PERIOD 1 s", 1.0),
        ("WINMAX(60, 60, temp) SAMPLE PERIOD 1 s", 1 / 60),
        ("WINMAX(temp, 8 s, 8 s) WHERE light > 100 SAMPLE PERIOD 1 s", 1 / 8),
        ("temp SAMPLE PERIOD 1 s QUEUE WINAVG SEND PERIOD 4 s", 1 / 4),
        ("temp INTO seen SAMPLE PERIOD 1 s", 0.0),
    ],
)
def test_the_radio_is_paid_for_what_is_sent(sql: str, share: float) -> None:
    points: dict[str, Point] = {}
    create("CREATE STORAGE POINT seen SIZE 8 (temp int16)", points)
    plan = plan_query(f"SELECT {sql}", points)
    assert isinstance(plan, QueryPlan)
    cost = cost_of(merge([plan]))
    whole = cost_of(merge([plan_of("temp SAMPLE PERIOD 1 s")])).radio
    assert cost.radio == pytest.approx(share * whole)


@pytest.mark.parametrize(
    ("where", "read"),
    [
        ("", "temp"),
        ("AND s.light > 300", "temp, light"),
        ("AND s.humidity > 50 AND t.humidity > 50", "temp WHERE humidity > 50"),
    ],
)
def test_what_a_join_at_motes_samples_is_paid_as_by_a_query_of_rows(where: str, read: str) -> None:
    joins = merge(
        [
            plan_of(
                "s.nodeid, t.nodeid FROM sensors AS s, sensors AS t WINDOW 3 ROWS "
                f"WHERE s.nodeid < t.nodeid AND s.temp - t.temp > 2 {where} SAMPLE PERIOD 10 s JOIN AT ANCESTOR"
            )
        ]
    )
    assert cost_of(joins).sampling == pytest.approx(
        cost_of(merge([plan_of(f"{read} SAMPLE PERIOD 10 s")])).sampling
    )
    assert cost_of(joins).sampling > 0


def test_epochs_of_an_aligned_event_are_paid_by_their_own_period() -> None:
    plan = plan_query("ON ALIGNED EVENT hot SELECT temp SAMPLE PERIOD 3 s FOR 9 s")
    assert isinstance(plan, QueryPlan)
    assert cost_of(merge([plan])).period_ms == 3000


def test_fast_rows_share_a_record() -> None:
    one = cost_of(merge([plan_of("accel_x SAMPLE PERIOD 1 s")]))
    fast = cost_of(merge([plan_of("accel_x SAMPLE PERIOD 100 ms")]))
    assert one.radio / 10 < fast.radio < one.radio / 5


def test_rows_that_stay_on_motes_are_not_said_to_be_sent() -> None:
    points: dict[str, Point] = {}
    plan = create(
        "CREATE STORAGE POINT seen SIZE 8 AS SELECT light WHERE light > 3 SAMPLE PERIOD 2 s", points
    )
    found = explain(plan, None, Demand())
    assert found["stream"]["decision"]["alternatives"] == []
    lines = explain_text(found).splitlines()
    assert "  keep light where light > 3" in lines
    assert "  has nothing to pass on: rows stay on their motes" in lines
    assert not any("hands rows" in line or "on the air" in line for line in lines)


@pytest.mark.parametrize(
    ("sql", "own"),
    [
        ("temp SAMPLE PERIOD 2 s", False),
        ("AVG(temp) SAMPLE PERIOD 2 s", False),
        ("WINAVG(3, temp) SAMPLE PERIOD 2 s", False),
        ("temp ONCE", True),
        ("WINAVG(3, temp) SAMPLE PERIOD 2 s FOR 1 h", True),
        ("temp SAMPLE PERIOD 2 s STOP ON EVENT hot", True),
    ],
)
def test_only_what_can_be_joined_is_said_to_be(sql: str, own: bool) -> None:
    text = explain_text(explain(plan_of(sql), None, Demand()))
    assert ("until others join" in text) is not own
    assert "a mote query of its own" in text


def test_explain_says_how_far_back_a_query_goes() -> None:
    found = explain(plan_of("nodeid, temp HISTORY 7 day SAMPLE PERIOD 10 s"))
    assert found["gateway"]["history_ms"] == 7 * 86_400_000
    assert "  begins with what was recorded in the last 1 week, from its files" in explain_text(found)
    joined = plan_of(
        "s.temp - h.temp AS rise FROM sensors AS s, sensors HISTORY 2 h AS h WHERE h.nodeid = s.nodeid SAMPLE PERIOD 10 s"
    )
    assert "  joins with the past of sensors in the 2 h before where nodeid = h.nodeid" in explain_text(
        explain(joined)
    )


@pytest.mark.parametrize(
    ("event", "period", "waits"),
    [
        ("ON EVENT hot ", "1 s FOR 20 s", True),
        ("ON EVENT every(1 h) ", "1 s FOR 20 s", True),
        ("", "1 s FOR 20 s", False),
        ("", "1 s STOP ON EVENT hot", False),
    ],
)
def test_what_a_query_that_waits_takes_is_while_it_runs(event: str, period: str, waits: bool) -> None:
    plan = plan_query(f"{event}SELECT nodeid, light SAMPLE PERIOD {period}")
    assert isinstance(plan, QueryPlan)
    explained = explain(plan, None, Demand())
    assert explained["stream"]["decision"]["waits"] == waits
    assert ("for 1 user, while it runs" in explain_text(explained)) == waits


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("temp = NULL", "WHERE is never true: temp = NULL asks of what is unknown: write IS NULL"),
        ("light > 3 AND temp > 125", "WHERE is never true: temp is -40 to 125 degC"),
        ("humidity < -7", "WHERE is never true: humidity is -6 to 119 %RH"),
        ("nodeid = 70000", "WHERE is never true: nodeid is 0 to 65534"),
        ("temp BETWEEN 30 AND 20", "WHERE is never true: it leaves no value of temp"),
        ("light > 3 AND voltage < 2700", "voltage < 2700 is always true: voltage is 1.8 to 5.5 V"),
        ("voltage > 2700", "WHERE is never true: voltage is 1.8 to 5.5 V"),
        ("voltage < 2700 mV", None),
        ("humidity BETWEEN 0 AND 120", None),
        ("temp >= 125 AND humidity <= -6", None),
        ("temp > 125 OR light > 3", None),
        ("temp IS NULL", None),
    ],
)
def test_a_condition_that_cannot_be_meant_is_told(where: str, why: str | None) -> None:
    plan = plan_of(f"nodeid WHERE {where} SAMPLE PERIOD 10 s")
    assert doubt(plan.where) == why
    notes = [line for line in explain_text(explain(plan)).splitlines() if line.startswith("note")]
    assert notes == ([f"note: {why}"] if why is not None else [])


@pytest.mark.parametrize(
    ("sql", "waits"),
    [
        ("AVG(temp) SAMPLE PERIOD 10 s", "12 s"),
        ("AVG(temp) SAMPLE PERIOD 10 s WAIT 90 s", "90 s"),
        ("AVG(temp) SAMPLE PERIOD 10 s WAIT 0 s", "0 s"),
        ("temp SAMPLE PERIOD 10 s", None),
        ("AVG(temp) SAMPLE PERIOD 10 s HISTORY 1 day ONLY", None),
    ],
)
def test_explain_says_how_long_an_epoch_is_waited_for(sql: str, waits: str | None) -> None:
    said = [
        line for line in explain_text(explain(plan_of(sql))).splitlines() if "one row for each epoch" in line
    ]
    wanted = f"  has one row for each epoch: when all motes are in it, or {waits} after its beginning"
    assert said == ([] if waits is None else [wanted])

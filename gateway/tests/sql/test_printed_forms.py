"""Queries as papers and manuals print them, and what is said where they leave something open."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from skerry.planner.model.plans import QueryPlan
from skerry.planner.model.storage_points import Point
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import encode
from skerry.planner.planner import plan_point, plan_query, plan_srt
from skerry.service.explain import explain, explain_text
from skerry.sql.ast import CreatePoint, CreateSrt
from skerry.sql.errors import QueryError
from skerry_protocol.attributes import BY_NAME


def planned(text: str) -> QueryPlan:
    plan = plan_query(text)
    assert isinstance(plan, QueryPlan)
    return plan


def point_of(text: str) -> tuple[Point, QueryPlan]:
    statement = plan_query(text)
    assert isinstance(statement, CreatePoint)
    return plan_point(statement, 1)


def same(plan: QueryPlan, other: QueryPlan) -> bool:
    """But for their texts, and what is said of them."""

    def bare(one: QueryPlan) -> QueryPlan:
        outputs = tuple(replace(output, name=str(i)) for i, output in enumerate(one.outputs))
        return replace(one, text="", notes=(), outputs=outputs)

    return bare(plan) == bare(other)


@pytest.mark.parametrize(
    ("printed", "plain"),
    [
        (
            "SELECT nodeid, voltage WHERE voltage < 4 FROM sensors SAMPLE PERIOD 10 s",
            "SELECT nodeid, voltage FROM sensors WHERE voltage < 4 SAMPLE PERIOD 10 s",
        ),
        (
            "SELECT AVG(s.temp) SAMPLE PERIOD 10 s GROUP BY s.room FROM sensors AS s WHERE s.light > 3",
            "SELECT AVG(temp) FROM sensors WHERE light > 3 GROUP BY room SAMPLE PERIOD 10 s",
        ),
        (
            "ON EVENT e(nodeid): SELECT s.temp FROM sensors AS s WHERE s.nodeid = e.nodeid SAMPLE PERIOD 2 s FOR 10 s",
            "ON EVENT e(nodeid): SELECT temp FROM sensors WHERE nodeid = event.nodeid SAMPLE PERIOD 2 s FOR 10 s",
        ),
        (
            "ON EVENT e(temp): SELECT E.temp, e.loc, dist(loc, e.loc) AS d FROM sensors SAMPLE PERIOD 2 s FOR 10 s",
            "ON EVENT e(temp): SELECT event.temp, event.loc, dist(loc, event.loc) AS d FROM sensors SAMPLE PERIOD 2 s FOR 10 s",
        ),
        (
            "SELECT temp SAMPLE PERIOD 2 s STOP ON hot WHERE hot.nodeid = nodeid",
            "SELECT temp SAMPLE PERIOD 2 s STOP ON EVENT hot WHERE event.nodeid = nodeid",
        ),
        (
            "SELECT temp SAMPLE PERIOD 2 s FOR 3 rounds",
            "SELECT temp SAMPLE PERIOD 2 s FOR 6 s",
        ),
        ("SELECT temp EPOCH DURATION 2048 FOR 3 rounds", "SELECT temp SAMPLE PERIOD 2048 ms FOR 6144 ms"),
        ("SELECT temp QUERY LIFETIME 30 days", "SELECT temp LIFETIME 720 h"),
        ("SELECT temp LIFETIME 2 months", "SELECT temp LIFETIME 60 days"),
        ("SELECT temp LIFETIME 0.5 year", "SELECT temp LIFETIME 4380 h"),
        ("SELECT xloc, yloc WHERE xloc > 3 m ONCE", "SELECT xpos, ypos WHERE xpos > 3 m ONCE"),
        (
            "ON EVENT e(xloc, yloc): SELECT event.xloc, event.yloc ONCE",
            "ON EVENT e(xpos, ypos): SELECT event.xpos, event.ypos ONCE",
        ),
        ("SELECT light", "SELECT light FROM sensors SAMPLE PERIOD 10 s"),
        ("SELECT AVG(s.temp) FROM sensors s", "SELECT AVG(temp) FROM sensors SAMPLE PERIOD 10 s"),
        ("SELECT temp HISTORY 1 h", "SELECT temp FROM sensors HISTORY 1 h SAMPLE PERIOD 10 s"),
        ("SELECT temp LIFETIME 2592000 MIN SAMPLE RATE 60", "SELECT temp LIFETIME 30 days MIN SAMPLE RATE 1 min"),
        (
            "ON EVENT every(60): SELECT temp SAMPLE PERIOD 1 FOR 5",
            "ON EVENT every(1 min): SELECT temp SAMPLE PERIOD 1 s FOR 5 s",
        ),
    ],
)  # fmt: skip
def test_printed_forms_mean_the_plain_ones(printed: str, plain: str) -> None:
    assert same(planned(printed), planned(plain))


def test_a_stop_names_what_its_event_says() -> None:
    """TinyDB 2005, 3.5: STOP ON EVENT(param) WHERE cond(param)."""
    named = planned("SELECT temp SAMPLE PERIOD 2 s STOP ON EVENT hot(temp) WHERE hot.temp > 25.5")
    value = planned("SELECT temp SAMPLE PERIOD 2 s STOP ON EVENT hot WHERE event.value > 2550")
    assert encode(merge([named]), 0) == encode(merge([value]), 0)


def test_a_storage_point_samples_its_fields() -> None:
    """TinyDB 2005, appendix B.2."""
    printed, plan = point_of(
        "CREATE STORAGE POINT p SIZE 1 min (temp int32, light uint16) SAMPLE PERIOD 10 s"
    )
    plain, same_plan = point_of(
        "CREATE STORAGE POINT p SIZE 1 min AS SELECT temp, light FROM sensors SAMPLE PERIOD 10 s"
    )
    assert (printed.rows, printed.seconds, printed.period_ms, printed.circular) == (6, 60, 10_000, True)
    assert [(field.name, field.format.name) for field in printed.fields] == [
        ("temp", "I32"),
        ("light", "U16"),
    ]
    assert replace(printed, fields=plain.fields) == plain
    assert [column.expr for column in plan.columns] == [column.expr for column in same_plan.columns]
    assert plan.period_ms == same_plan.period_ms


def test_a_storage_point_is_filled_for_a_while() -> None:
    point, plan = point_of(
        "CREATE STORAGE POINT p SIZE 8 AS (SELECT temp FROM sensors) SAMPLE PERIOD 10 FOR 8 rounds"
    )
    assert (plan.period_ms, plan.duration_ms, point.circular) == (10_000, 80_000, False)
    assert plan.notes == ("SAMPLE PERIOD 10 is 10 s, as no unit was given",)


def test_a_tree_over_tinydbs_positions() -> None:
    """TinyDB 2005, section 5: CREATE SRT loc ON sensors (xloc, yloc) ROOT 0."""
    statement = plan_query("CREATE SRT loc ON sensors (xloc, yloc) ROOT 0")
    assert isinstance(statement, CreateSrt)
    tree, _ = plan_srt(statement, 1, root=0)
    assert [axis.attribute for axis in tree.axes] == [BY_NAME["xpos"].number, BY_NAME["ypos"].number]


@pytest.mark.parametrize(
    ("query", "notes"),
    [
        ("SELECT temp SAMPLE PERIOD 10 s FOR 3", ()),
        ("SELECT temp SAMPLE PERIOD 10", ("SAMPLE PERIOD 10 is 10 s, as no unit was given",)),
        ("SELECT temp EPOCH DURATION 2048", ("EPOCH DURATION 2048 is 2048 ms, as no unit was given",)),
        ("SELECT temp", ("each 10 s, as no SAMPLE PERIOD was given",)),
        ("SELECT temp HISTORY 60 ONLY", ("HISTORY 60 is 60 s, as no unit was given",)),
        (
            "SELECT temp QUEUE NAIVE SEND PERIOD 20 SAMPLE PERIOD 10",
            ("SAMPLE PERIOD 10 is 10 s, as no unit was given", "SEND PERIOD 20 is 20 s, as no unit was given"),
        ),
    ],
)  # fmt: skip
def test_what_is_left_open_is_said(query: str, notes: tuple[str, ...]) -> None:
    plan = planned(query)
    assert plan.notes == notes
    if plan.history is None:
        told: dict[str, Any] = explain(plan)
        assert told["notes"] == list(notes)
        assert [line for line in explain_text(told).splitlines() if line.startswith("note: ")] == [
            f"note: {note}" for note in notes
        ]


#: The queries of TinyDB's own test suite, tests.xml in its release of 2003, and whether they run here.
_OF_TINYDB = {
    "select nodeid": None,
    "select light": None,
    "select light, temp": None,
    "select light,temp,voltage,nodeid,parent,accel_x,accel_y": None,
    "select max(light)": None,
    "select count(light)": None,
    "select count(light),max(light)": None,
    "select count(light),max(temp)": None,
    "select count(light),max(temp),min(voltage),sum(nodeid)": None,
    "select light where light > 400": None,
    "select light where light < 400": None,
    "select light where temp > 400": None,
    "select light,temp where light > 200 and temp < 100": None,
    "select light + 10": None,
    "select light + 10, temp / 10": None,
    "select avg(light + 10)": None,
    "select light where (light / 10) > 50": None,
    "select avg(light) group by nodeid": None,
    "select avg(light),min(temp) group by nodeid": None,
    "select avg(light),nodeid group by nodeid": None,
    "select light where light < 400 output action SetSnd(512)": "unknown command 'SetSnd'",
    "select light epoch duration 400": "light cannot be sampled each 400 ms",
    "select light epoch duration 2000": None,
    "select light epoch duration 18124": None,
    "select light epoch duration -1": "unexpected '-'",
    "select avg(light),temp": "'temp' has one value for each mote, and an aggregate one for all",
}


@pytest.mark.parametrize(("query", "refused"), _OF_TINYDB.items())
def test_queries_of_tinydbs_own_tests(query: str, refused: str | None) -> None:
    """No board here has a sounder, and the light sensor takes 402 ms."""
    if refused is None:
        assert planned(query).period_ms in (10_000, 2000, 18_124)
        return
    with pytest.raises(QueryError) as raised:
        planned(query)
    assert raised.value.message.startswith(refused)

"""OUTPUT ACTION (SELECT …): what is checked of it with the rows that start it, in the user's own words."""

from __future__ import annotations

import pytest

from skerry.planner.model.plans import QueryPlan
from skerry.planner.model.storage_points import Points
from skerry.planner.planner import plan_point, plan_query
from skerry.sql.ast import CreatePoint
from skerry.sql.errors import QueryError


def test_a_query_that_rows_start_waits_for_an_event_of_its_own() -> None:
    plan = plan_query(
        "SELECT nodeid WHERE temp > 50 OUTPUT ACTION (SELECT AVG(light) FROM sensors ONCE) SAMPLE PERIOD 10 s"
    )
    assert isinstance(plan, QueryPlan)
    (signal,) = plan.clauses
    assert plan.starts == (f"ON EVENT {signal.name}: SELECT AVG(light) FROM sensors ONCE",)
    assert str(signal) == "start the query of OUTPUT ACTION with the first of several rows in a row"
    started = plan_query(plan.starts[0])
    assert isinstance(started, QueryPlan)
    assert [clause.name for clause in started.clauses] == [signal.name]


def _points() -> Points:
    text = "CREATE STORAGE POINT recent SIZE 8 AS (SELECT light FROM sensors SAMPLE PERIOD 10 s)"
    statement = plan_query(text)
    assert isinstance(statement, CreatePoint)
    return {"recent": plan_point(statement, 1)[0]}


POINTS = _points()


def _plan(sql: str) -> None:
    statement = plan_query(sql, POINTS)
    if isinstance(statement, CreatePoint):
        plan_point(statement, 2, POINTS)


def _refused(sql: str) -> QueryError:
    with pytest.raises(QueryError) as refused:
        _plan(sql)
    return refused.value


@pytest.mark.parametrize(
    ("sql", "message", "marked"),
    [
        (
            "SELECT nodeid\nOUTPUT ACTION (SELECT temp FROM sensors SAMPLE PERIOD 2 s) SAMPLE PERIOD 2 s",
            "OUTPUT ACTION needs to know how long",
            "SELECT temp FROM sensors SAMPLE PERIOD 2 s",
        ),
        (
            "SELECT nodeid OUTPUT ACTION (SELECT temp\nOUTPUT ACTION (SELECT lght ONCE) ONCE) SAMPLE PERIOD 2 s",
            "unknown attribute 'lght'",
            "lght",
        ),
        (
            "CREATE STORAGE POINT hot SIZE 8 AS SELECT nodeid OUTPUT ACTION (SELECT rl.light FROM recent AS rl SAMPLE PERIOD 2 s) ONCE",
            "OUTPUT ACTION needs to know how long",
            "SELECT rl.light FROM recent AS rl SAMPLE PERIOD 2 s",
        ),
        (
            "SELECT nodeid OUTPUT ACTION (SELECT temp OUTPUT ACTION BUFFER(8) ONCE) SAMPLE PERIOD 2 s",
            "rows cannot start a query that makes a storage point",
            "SELECT temp OUTPUT ACTION BUFFER(8) ONCE",
        ),
    ],
)
def test_what_rows_start_is_checked_with_them_in_the_users_own_words(
    sql: str, message: str, marked: str
) -> None:
    error = _refused(sql)
    assert error.message.startswith(message)
    assert error.text == sql
    assert error.span is not None
    assert sql[error.span.start : error.span.end] == marked
    assert "EVENT" not in f"{error.message}{error.hint}"


def test_what_rows_start_may_read_storage_points() -> None:
    sql = "SELECT nodeid OUTPUT ACTION (SELECT rl.light FROM recent AS rl ONCE) SAMPLE PERIOD 2 s"
    assert isinstance(plan_query(sql, POINTS), QueryPlan)
    assert "unknown table 'rl'" in _refused(sql.replace("recent AS rl", "rl")).message

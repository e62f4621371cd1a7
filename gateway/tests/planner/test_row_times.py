"""``time`` of every row, in UTC, and ``network_time``: in rows, aggregates, windows, joins, storage points and events."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gateway.tests.logs import STREAMS, plan_of, steady
from gateway.tests.pasts import ORIGIN
from skerry.delivery.engine import Engine
from skerry.execution.residual import Residual, Rows
from skerry.expressions.expression import render
from skerry.planner.model.plans import Feed, MoteQuery, QueryPlan
from skerry.planner.model.storage_points import Point
from skerry.planner.physical.merge import merge
from skerry.planner.planner import plan_point, plan_query
from skerry.sql.ast import CreatePoint
from skerry.sql.row_text import moment_text
from skerry.storage.log.record import Kind

BOOT = datetime.fromtimestamp(ORIGIN / 1_000_000, UTC)
RECENT = "CREATE STORAGE POINT recent SIZE 8 AS (SELECT nodeid, light FROM sensors SAMPLE PERIOD 10 s)"


def at(seconds: float) -> datetime:
    """So long behind the root's boot."""
    return BOOT + timedelta(seconds=seconds)


def points() -> dict[str, Point]:
    statement = plan_query(RECENT)
    assert isinstance(statement, CreatePoint)
    return {"recent": plan_point(statement, 1)[0]}


def planned(sql: str) -> QueryPlan:
    plan = plan_query(sql, points())
    assert isinstance(plan, QueryPlan)
    return plan


def rows(plan: QueryPlan, epochs: Sequence[int], **columns: Sequence[int | None]) -> list[dict[str, Any]]:
    """What a user sees of rows of these epochs, whose columns that motes report are these, others 0."""
    query = merge([plan])
    arrays: dict[str, list[int | None]] = {
        "epoch": list(epochs),
        "utc_ms": [ORIGIN // 1000 + epoch * query.period_ms for epoch in epochs],
        "nodeid": [7] * len(epochs),
        "kind": [Kind.TOLD if query.aggregate else Kind.ROW] * len(epochs),
        **{name: list(values) for name, values in columns.items()},
    }
    for name in _reported(query):
        arrays.setdefault(name, [0] * len(epochs))
    batch = Rows(pa.RecordBatch.from_pydict({n: pa.array(v, pa.int64()) for n, v in arrays.items()}), query)
    residual = Residual(plan)
    chosen = residual.select(batch, Feed("u", 1, plan.period_ms, query.period_ms, 0))
    return residual.project(batch, chosen).to_pylist()


def _reported(query: MoteQuery) -> list[str]:
    if not query.aggregate:
        return [column.name for column in query.columns]
    return [
        "motes",
        "wait",
        "revision",
        *(f"{what}_{i}" for i in range(len(query.columns)) for what in ("count", "value")),
    ]


def test_a_rows_time_is_when_it_was_sampled() -> None:
    plan = planned(
        "SELECT time, NOW() AS now, NOW AS too, network_time, time - 90 s AS before, time - NOW() AS apart FROM sensors SAMPLE PERIOD 5 s"
    )
    assert [(o.type, o.unit) for o in plan.outputs] == [
        ("timestamp", ""), ("timestamp", ""), ("timestamp", ""), ("decimal", "s"), ("timestamp", ""), ("decimal", "s"),
    ]  # fmt: skip
    assert rows(plan, [3]) == [
        {"time": at(15), "now": at(15), "too": at(15), "network_time": 15.0, "before": at(-75), "apart": 0.0}
    ]
    assert Residual(plan).schema().field("time").type == pa.timestamp("us", tz="UTC")


def test_conditions_on_the_time_are_asked_at_the_gateway() -> None:
    plan = planned(
        f"SELECT time FROM sensors WHERE temp > 3 AND time >= {at(10).timestamp():.0f} SAMPLE PERIOD 5 s"
    )
    assert plan.mote_where is not None
    assert render(plan.mote_where) == "temp > 3"
    assert [row["time"] for row in rows(plan, [1, 2, 3, 4], temp=[400, 400, 200, 400])] == [at(10), at(20)]


def test_an_aggregates_time_is_its_epochs() -> None:
    plan = planned("SELECT time, COUNT(*) AS n FROM sensors HAVING COUNT(*) > 1 SAMPLE PERIOD 10 s")
    assert merge([plan]).aggregate
    assert rows(plan, [6, 7], count_0=[3, 4]) == [{"time": at(60), "n": 3}, {"time": at(70), "n": 4}]


@pytest.mark.parametrize("speed", [1.0, 4.0])
def test_a_windows_time_is_its_end(speed: float) -> None:
    """At speed 4 a second of UTC is four of network time."""
    log = steady(20)
    log.records["sample"] = ORIGIN + np.rint(log.records["epoch"] * 5_000_000 / speed).astype(np.int64)
    engine = Engine(STREAMS.get, log.block, speed=speed)
    plan = plan_of("SELECT time, network_time, COUNT(*, 15 s) AS n FROM sensors SAMPLE PERIOD 5 s")
    engine.subscribe("u", plan, 0)
    engine.set_feeds("u", {1: Feed("u", 1, 5000, 5000, 0)})
    engine.process(log.block(0, 20))
    subscriber = engine.subscriber("u")
    assert subscriber is not None
    found = subscriber.buffer.deliveries(-1, through=20)
    assert found is not None
    seen = [row for part in found[0] for row in part.columns.to_pylist()]
    assert [row["network_time"] for row in seen] == [15.0 * (i + 1) for i in range(len(seen))]
    assert [row["time"] for row in seen] == [at(15 * (i + 1) / speed) for i in range(len(seen))]
    assert len(seen) >= 5


def test_a_stored_rows_time_is_its_own() -> None:
    """Of the session that is over, whose network time tells nothing now, it is not known."""
    plan = planned("SELECT time, network_time, light FROM recent SAMPLE PERIOD 10 s")
    assert [o.type for o in plan.outputs] == ["timestamp", "decimal", "integer"]
    found = rows(plan, [10, 10], s15=[38, 900], s14=[250, 0], s1=[5, 6])
    assert found == [
        {"time": at(38.25), "network_time": 38.25, "light": 5},
        {"time": None, "network_time": 900.0, "light": 6},
    ]


def test_a_joins_time_is_the_later_rows() -> None:
    plan = planned("SELECT time, s.time AS s, r.time AS r FROM sensors AS s, recent AS r SAMPLE PERIOD 10 s")
    assert rows(plan, [10], s15=[38], s14=[250]) == [{"time": at(100), "s": at(100), "r": at(38.25)}]
    past = planned(
        "SELECT time, h.time, s.time - h.time AS ago FROM sensors AS s, sensors HISTORY 2 h AS h WHERE h.nodeid = s.nodeid "
        "SAMPLE PERIOD 10 s"
    )
    assert [(o.name, o.type, render(o.expr)) for o in past.outputs] == [
        ("time", "timestamp", "time"), ("h.time", "timestamp", "h.time"), ("ago", "decimal", "time - h.time"),
    ]  # fmt: skip


def test_the_later_row_of_two_storage_points() -> None:
    plan = planned("SELECT time, network_time FROM recent AS a, recent AS b ONCE")
    # Seconds and milliseconds of the first one's row, then of the second's.
    stored = {"s15": [38, 38, 38], "s14": [250, 250, 250], "s31": [38, 20, 99], "s30": [750, 0, 0]}
    assert rows(plan, [60] * 3, **stored) == [
        {"time": at(38.75), "network_time": 38.75},
        {"time": at(38.25), "network_time": 38.25},
        {"time": None, "network_time": 99.0},
    ]


def test_beside_an_aggregate_over_a_storage_point_it_is_the_epochs() -> None:
    plan = planned("SELECT time, COUNT(*) AS n FROM recent HAVING COUNT(*) > 1 SAMPLE PERIOD 10 s")
    assert rows(plan, [6], count_0=[3]) == [{"time": at(60), "n": 3}]
    assert [output.name for output in plan.outputs] == ["time", "n"]


def test_an_events_time_is_when_it_was_raised() -> None:
    plan = planned(
        "ON EVENT hot(time): SELECT time, event.time, event.network_time, time - hot.time AS behind SAMPLE PERIOD 2 s FOR 10 s"
    )
    (number,) = [c.name for c in merge([plan]).columns if c.name == "event.network_time"]
    assert rows(plan, [20], **{number: [33]}) == [
        {"time": at(40), "event.time": at(33), "event.network_time": 33, "behind": 7.0}
    ]
    aggregate = planned("ON EVENT hot: SELECT event.time, AVG(temp) SAMPLE PERIOD 2 s FOR 10 s")
    assert {"event.network_time", "event.nodeid"} == {render(group) for group in aggregate.groups}


def test_moments_in_json() -> None:
    told = json.dumps({"a": at(0.25), "b": at(0.000001)}, default=moment_text)
    assert json.loads(told) == {"a": "2026-11-19T23:50:00.250Z", "b": "2026-11-19T23:50:00.000001Z"}

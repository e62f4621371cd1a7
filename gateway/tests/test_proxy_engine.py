"""One pass for all users, against each user's query on its own."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.plan.merge import merge
from skerry.plan.model import Feed, QueryPlan
from skerry.plan.planner import plan_query
from skerry.proxy.engine import Engine
from skerry.proxy.index import RangeIndex
from skerry.streams.ingest import Stream
from skerry.streams.record import RECORD
from skerry.streams.source import batch_of


def plan_of(sql: str) -> QueryPlan:
    plan = plan_query(sql)
    assert isinstance(plan, QueryPlan)
    return plan


def feed(user: str, period_ms: int) -> Feed:
    return Feed(user, 1, period_ms, 5000, 0)


def make_rows(stream: Stream, count: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    made = np.zeros(count, RECORD)
    made["stream"] = stream.number
    made["node"] = rng.integers(0, 50, count)
    made["epoch"] = np.arange(count) // 50
    made["sample"] = made["epoch"] * 5000
    for i in range(len(stream.mote_query.columns)):
        made["value"][:, i] = rng.integers(0, 6000, count)
    made["nulls"] = rng.integers(0, 4, count) * (rng.random(count) < 0.1)
    return pa.Table.from_batches([batch_of(made, 100)])


@settings(max_examples=20, deadline=None)
@given(
    bounds=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=3, max_size=30),
    seed=st.integers(0, 1000),
)
def test_the_index_finds_what_each_condition_finds(bounds: list[tuple[int, int]], seed: int) -> None:
    plans = [
        plan_of(
            f"SELECT nodeid, temp FROM sensors WHERE temp BETWEEN {low} AND {high} SAMPLE PERIOD {5 if i % 3 else 10} s"
        )
        for i, (low, high) in enumerate(bounds)
    ]
    stream = Stream(1, 1, 1, dataclasses.replace(merge(plans), where=None))
    engine = Engine({1: stream}.get)
    for i, plan in enumerate(plans):
        engine.subscribe(str(i), plan)
        engine.set_feeds(str(i), {1: feed(str(i), plan.period_ms)})
    table = make_rows(stream, 9000, seed)
    engine.process(table)
    values, nodes = table.column("value0").to_numpy(), table.column("node").to_numpy()
    known = (table.column("nulls").to_numpy() & 1) == 0
    epochs = table.column("epoch").to_numpy()
    for i, (low, high) in enumerate(bounds):
        passing = known & (values >= low * 100) & (values <= high * 100)
        if plans[i].period_ms == 10_000:
            passing &= epochs % 2 == 0
        places = np.flatnonzero(passing)
        found = engine.subscriber(str(i)).buffer.after(99)  # type: ignore[union-attr]
        assert found is not None
        assert [number for number, _ in found] == (places + 100).tolist()
        assert [row["nodeid"] for _, row in found] == nodes[places].tolist()


def test_ranges_include_their_ends() -> None:
    index = RangeIndex([("a", 10, 20), ("b", None, 9), ("c", 21, None), ("d", 30, 25)])
    values = np.array([20, 9, 21, 10], dtype=np.int64)
    found = {user: places.tolist() for user, places in index.matches(values, np.arange(4))}
    assert found == {"a": [0, 3], "b": [1], "c": [2]}


def test_readers_resume_behind_their_position() -> None:
    plan = plan_of("SELECT nodeid FROM sensors SAMPLE PERIOD 5 s")
    stream = Stream(1, 1, 1, merge([plan]))
    engine = Engine({1: stream}.get)
    engine.subscribe("u", plan)
    engine.set_feeds("u", {1: feed("u", 5000)})
    engine.process(make_rows(stream, 100, 1))
    buffer = engine.subscriber("u").buffer  # type: ignore[union-attr]
    assert [number for number, _ in buffer.after(180) or []] == list(range(181, 200))
    assert buffer.after(98) is None, "rows before the first batch are the log's to serve"


@pytest.mark.parametrize("late", [False, True])
def test_a_stream_that_is_not_the_users_gives_nothing(late: bool) -> None:
    plan = plan_of("SELECT temp FROM sensors SAMPLE PERIOD 5 s")
    stream = Stream(1, 1, 1, merge([plan]))
    engine = Engine({1: stream}.get)
    engine.subscribe("u", plan)
    engine.set_feeds("u", {2: feed("u", 5000)} if late else {})
    assert engine.process(make_rows(stream, 100, 1)) == 0

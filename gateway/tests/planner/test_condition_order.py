"""The order in which conditions are asked: the cheapest by the model, and what a mote really samples."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware.tests.query import host
from firmware.tests.query.mote import COMPLETE, Mote
from skerry.expressions.expression import conjuncts, render
from skerry.planner.model.plans import MoteQuery, QueryPlan
from skerry.planner.physical.condition_order import considered, expected_energy, selectivity
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import chosen, encode
from skerry.planner.planner import plan_query
from skerry.sharing.needs import need_of
from skerry_protocol.attributes import BY_NAME

LIGHT, TEMP, HUMIDITY = (BY_NAME[name] for name in ("light", "temp", "humidity"))


def mote_query(text: str) -> MoteQuery:
    plan = plan_query(f"{text} SAMPLE PERIOD 1 s")
    assert isinstance(plan, QueryPlan)
    return merge([plan])


def order(text: str) -> list[str]:
    return [render(condition) for condition in chosen(mote_query(text)).conditions]


def test_cheap_and_selective_first() -> None:
    """Humidity costs a tenth of light; with equal chances to fail it is asked first."""
    text = "SELECT nodeid FROM sensors WHERE light > 20000 AND humidity > 56.5"
    assert order(text) == ["humidity > 56.5", "light > 20000"]
    assert order("SELECT nodeid FROM sensors WHERE humidity > -5 AND light > 39999") == [
        "light > 39999", "humidity > -5",
    ] or LIGHT.energy > 2 * HUMIDITY.energy  # fmt: skip


def test_what_costs_nothing_goes_before_all() -> None:
    assert order("SELECT light FROM sensors WHERE temp > 100 AND level < 2")[0] == "level < 2"


def test_energy_by_hand() -> None:
    """temp > 42.5 is true for half of -40..125: light is read for one row in two."""
    plan = chosen(mote_query("SELECT light FROM sensors WHERE temp > 42.5"))
    assert plan.staged
    assert plan.energy == pytest.approx(TEMP.energy + LIGHT.energy / 2, rel=1e-3)
    at_once = [
        other
        for other in considered(mote_query("SELECT light FROM sensors WHERE temp > 42.5"))
        if not other.staged
    ]
    assert [other.energy for other in at_once] == [pytest.approx(TEMP.energy + LIGHT.energy)]


def test_nothing_to_save_is_sampled_at_once() -> None:
    assert not chosen(mote_query("SELECT temp FROM sensors")).staged


conditions = st.lists(
    st.builds(
        "{} {} {}".format,
        st.sampled_from(["light", "temp", "humidity", "accel_x", "level"]),
        st.sampled_from(["<", ">", "=", "<>"]),
        st.integers(-50, 120),
    ),
    min_size=1,
    max_size=6,
)


@given(conditions, st.sampled_from(["nodeid", "light", "temp", "*"]))
def test_no_order_is_cheaper_than_the_chosen_one(wanted: list[str], column: str) -> None:
    query = mote_query(f"SELECT {column} FROM sensors WHERE {' AND '.join(wanted)}")
    columns = frozenset(
        c.expr.operand for c in query.columns if c.expr is not None and c.expr.operand is not None
    )
    best = chosen(query)
    parts = conjuncts(query.where)
    assert sorted(map(render, best.conditions)) == sorted(map(render, parts))
    cheapest = min(expected_energy(one, columns) for one in permutations(parts))
    assert best.energy <= cheapest + 1e-12
    assert all(0 <= selectivity(part) <= 1 for part in parts)


def test_many_conditions_on_shared_sensors() -> None:
    """Seven conditions on pairs of sensors: what is read for one serves another, and no order is cheaper than the chosen one."""
    where = (
        "(mag_x > 1900 OR light > 60000) AND light > 50000 AND (mag_x > 0 OR mag_y > 0) AND (mag_y < 0 OR accel_x < 0) "
        "AND accel_x > accel_y AND (humidity > 99 OR light < 30000) AND temp > 60"
    )
    plan = plan_query(f"SELECT humidity, light FROM sensors WHERE {where} SAMPLE PERIOD 1 s")
    assert isinstance(plan, QueryPlan)
    query = merge([plan])
    columns = frozenset({HUMIDITY.number, LIGHT.number})
    parts = conjuncts(query.where)
    cheapest = min(expected_energy(one, columns) for one in permutations(parts))
    assert chosen(query).energy == pytest.approx(cheapest)


@pytest.fixture
def mote() -> Mote:
    return Mote(host.query_library())


def test_mote_reads_only_what_the_outcome_needs(mote: Mote) -> None:
    for entry, value in ((LIGHT, 100), (TEMP, 2000), (HUMIDITY, 4000)):
        mote.sensor(entry.number, value)
    mote.synchronise(99.5)
    query = mote_query("SELECT temp FROM sensors WHERE humidity > 30 AND light > 200")
    assert mote.install(encode(query, 0), 1) == COMPLETE
    mote.run(1)
    assert (mote.acquisitions, mote.last_mask) == (2, 1 << LIGHT.number)
    assert list(mote.records()) == []
    mote.sensor(LIGHT.number, 300)
    mote.run(1)
    assert (mote.acquisitions, mote.last_mask) == (5, 1 << TEMP.number)
    assert len(list(mote.records())) == 1


def test_without_interleaving_a_mote_reads_all_before_it_asks(mote: Mote) -> None:
    """TinyDB 2005, 4.2: NO INTERLEAVE samples all sensors at the epoch's beginning, another query that saves some beside it or not."""
    for entry, value in ((LIGHT, 100), (TEMP, 2000), (HUMIDITY, 4000)):
        mote.sensor(entry.number, value)
    mote.synchronise(99.5)
    at_once = mote_query("SELECT NO INTERLEAVE temp FROM sensors WHERE humidity > 30 AND light > 200")
    assert mote.install(encode(at_once, 0), 1) == COMPLETE
    mote.run(1)
    everything = sum(1 << entry.number for entry in (LIGHT, TEMP, HUMIDITY))
    assert (mote.acquisitions, mote.last_mask) == (1, everything)
    assert list(mote.records()) == []
    staged = mote_query("SELECT temp FROM sensors WHERE humidity > 30 AND light > 200")
    assert mote.install(encode(staged, 0), 2) == COMPLETE
    mote.sensor(LIGHT.number, 300)
    mote.run(1)
    assert (mote.acquisitions, mote.last_mask) == (2, everything)
    assert len(list(mote.records())) == 2


def test_without_interleaving_nothing_else_is_considered() -> None:
    at_once = mote_query("SELECT NO INTERLEAVE light FROM sensors WHERE temp > 42.5")
    (plan,) = considered(at_once)
    assert not plan.staged
    assert plan.energy == pytest.approx(TEMP.energy + LIGHT.energy)
    assert MoteQuery.from_dict(at_once.to_dict()) == at_once


@pytest.mark.parametrize("what", ["temp", "AVG(temp)", "WINMAX(light, 8 s, 8 s)"])
def test_who_wants_all_at_once_shares_with_others_who_do(what: str) -> None:
    """Others would pay for what their conditions spare them."""

    def key(text: str) -> Hashable:
        plan = plan_query(f"{text} FROM sensors WHERE humidity > 30 SAMPLE PERIOD 1 s")
        assert isinstance(plan, QueryPlan)
        need = need_of(plan, "u")
        return need.kind, need.share

    at_once = key(f"SELECT NO INTERLEAVE {what}")
    assert at_once == key(f"SELECT NO INTERLEAVE {what}")
    assert at_once != key(f"SELECT {what}")


shared = st.lists(
    st.tuples(
        st.sampled_from(["light, temp", "humidity", "WINMAX(humidity, 2 s, 2 s)", "COUNT(*), MAX(light)"]),
        st.lists(st.sampled_from(["light > 150", "temp > 20", "humidity < 45", "temp <= 20"]), max_size=3, unique=True),
    ),
    min_size=2, max_size=6,
)  # fmt: skip


@settings(max_examples=40)
@given(shared, st.lists(st.tuples(*[st.integers(0, 1)] * 3), min_size=6, max_size=6))
def test_no_sensor_is_read_twice_in_an_instant(
    asked: list[tuple[str, list[str]]], trace: list[tuple[int, int, int]]
) -> None:
    """Whatever the order in which each query asks its conditions; and each has the rows that it has alone."""
    queries = [
        mote_query(f"SELECT {columns} FROM sensors {'WHERE ' + ' AND '.join(where) if where else ''}")
        for columns, where in asked
    ]
    together, read = run_together(queries, trace)
    assert max(read, default=0) <= 1
    for i, query in enumerate(queries):
        alone, _ = run_together([query], trace)
        assert [data for number, data in together if number == i + 1] == [data for _, data in alone]


def run_together(
    queries: list[MoteQuery], trace: list[tuple[int, int, int]]
) -> tuple[list[tuple[int, bytes]], list[int]]:
    """What the queries send, by query from 1 on, and how often each sensor was read in each second."""
    mote = Mote(host.query_library())
    mote.synchronise(99.5)
    found: list[tuple[int, bytes]] = []
    read: list[int] = []
    for choice in trace:
        before = [mote.reads(entry.number) for entry in (LIGHT, TEMP, HUMIDITY)]
        for entry, low, which in zip((LIGHT, TEMP, HUMIDITY), (100, 1990, 4000), choice, strict=True):
            mote.sensor(entry.number, low + 1000 * which)
        if not found and not read:
            for number, query in enumerate(queries, 1):
                assert mote.install(encode(query, 0), number) == COMPLETE
        mote.run(1)
        read += [
            mote.reads(entry.number) - n for entry, n in zip((LIGHT, TEMP, HUMIDITY), before, strict=True)
        ]
        for record in mote.records():
            body = dict(record.body if isinstance(record.body, dict) else record.body._asdict())
            rest = {key: value for key, value in body.items() if key not in ("query", "_io")}
            found.append((body["query"], repr(rest).encode()))
    return found, read


def test_queries_of_one_instant_read_a_sensor_once(mote: Mote) -> None:
    for entry, value in ((LIGHT, 300), (TEMP, 2000)):
        mote.sensor(entry.number, value)
    mote.synchronise(99.5)
    mote.install(encode(mote_query("SELECT temp FROM sensors WHERE light > 200"), 0), 1)
    mote.install(encode(mote_query("SELECT light, temp FROM sensors"), 0), 2)
    mote.run(1)
    assert mote.acquisitions == 1
    assert len(list(mote.records())) == 2


@pytest.mark.parametrize(
    "condition", ["dist(loc, point(3 m, 4 m)) < 10 m", "xpos < 10 m", "ypos - xpos >= 2 m"]
)
def test_the_range_of_positions_says_nothing_of_where_motes_are(condition: str) -> None:
    """It is what a mote can be told, thousands of km: a room would be a share of nothing."""
    plan = plan_query(f"SELECT light WHERE {condition} SAMPLE PERIOD 10 s")
    assert isinstance(plan, QueryPlan)
    assert plan.where is not None
    assert selectivity(plan.where) == pytest.approx(1 / 3)

"""Semantic routing trees: how values become codes, and what conditions ask of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.catalog import Catalog
from skerry.planner.features.srt import Axis, Srt
from skerry.planner.model.plans import QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import encode
from skerry.planner.physical.srt_routes import ALL_CODES, NO_CODES, Route, route_of, routed
from skerry.planner.planner import plan_query, plan_srt
from skerry.service.explain import explain, explain_text
from skerry.sharing.demand import Demand
from skerry.sql.ast import CreateSrt
from skerry_protocol import limits, programs, records
from skerry_protocol.attributes import BY_NAME
from skerry_protocol.codec import decode_program
from skerry_protocol.codes import Aggregate, Policy
from skerry_protocol.limits import FIELDS_MAXIMUM


def tree(*attributes: str, low: int = 0, step: int = 1, number: int = 1) -> Srt:
    axes = tuple(Axis(BY_NAME[name].number, low, step) for name in attributes)
    return Srt("tree", number, Policy.LINK, axes)


def plan(where: str, what: str = "temp") -> QueryPlan:
    planned = plan_query(f"SELECT {what} FROM sensors WHERE {where} SAMPLE PERIOD 10 s")
    assert isinstance(planned, QueryPlan)
    return planned


def route(where: str, srt: Srt) -> Route | None:
    return route_of(merge([plan(where)]).where, srt)


@given(
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-1000, 1000),
    st.integers(1, 10**6),
)
def test_codes_never_fall(a: int, b: int, low: int, step: int) -> None:
    axis = Axis(0, low, step)
    assert 0 <= axis.code(min(a, b)) <= axis.code(max(a, b)) <= 255


@pytest.mark.parametrize(
    ("where", "parts"),
    [
        ("nodeid < 5", ((0, 4), NO_CODES)),
        ("nodeid >= 300", ((255, 255), NO_CODES)),
        ("nodeid = 3 OR nodeid BETWEEN 7 AND 9", ((3, 3), (7, 9))),
        ("nodeid IN (3, 9, 12)", ((3, 3), (9, 12))),
        ("nodeid < 5 AND nodeid > 7", (NO_CODES, NO_CODES)),
        ("nodeid < 5 AND temp > 3", ((0, 4), NO_CODES)),
        ("(nodeid < 5 OR temp > 3) AND nodeid < 9", ((0, 8), NO_CODES)),
    ],
)
def test_what_a_condition_leaves_of_one_attribute(where: str, parts: tuple[tuple[int, int], ...]) -> None:
    found = route(where, tree("nodeid"))
    assert found is not None
    assert found.parts == parts


@pytest.mark.parametrize(
    "where", ["temp > 3", "NOT nodeid = 3", "nodeid < 5 OR temp > 3", "nodeid + 1 < 5", "nodeid >= 0"]
)
def test_what_may_be_anywhere_has_no_route(where: str) -> None:
    assert route(where, tree("nodeid")) is None


def test_a_box() -> None:
    srt = tree("xpos", "ypos", step=100)
    found = route("xpos < 5 m AND ypos BETWEEN 2 m AND 3.5 m", srt)
    assert found is not None
    assert found.parts == ((0, 4), (2, 3))
    assert found.takes((4, 2))
    assert not found.takes((5, 2))
    of_one = route("xpos < 5 m", srt)
    assert of_one is not None
    assert of_one.parts == ((0, 4), ALL_CODES)


@given(
    st.lists(st.tuples(st.sampled_from("<>="), st.integers(-5, 30)), min_size=1, max_size=5),
    st.lists(st.sampled_from(["AND", "OR"]), min_size=4, max_size=4),
    st.integers(1, 4),
    st.integers(0, 25),
)
def test_no_mote_that_applies_is_left_out(
    tests: list[tuple[str, int]], joints: list[str], step: int, value: int
) -> None:
    """Whatever the condition: a mote whose value passes is asked."""
    where, holds = "", ""
    for i, (op, constant) in enumerate(tests):
        joint = f" {joints[i - 1]} " if i else ""
        where += f"{joint}nodeid {op} {constant}"
        holds += f"{joint.lower()}{value} {op.replace('=', '==')} {constant}"
    srt = tree("nodeid", step=step)
    found = route(where, srt)
    if eval(holds):
        assert found is None or found.takes((srt.axes[0].code(value),))


def test_of_several_trees_the_one_that_leaves_out_most() -> None:
    query = merge([plan("nodeid < 5 AND room = 3")])
    clauses = routed(query, [tree("nodeid", number=1), tree("room", number=2)]).clauses
    assert [(clause.kind, clause.values[0]) for clause in clauses] == [(Aggregate.ROUTE, 2)]


def test_a_full_program_goes_everywhere() -> None:
    columns = ", ".join(f"nodeid * {i} + light - temp / 7 AS c{i}" for i in range(FIELDS_MAXIMUM - 3))
    planned = plan_query(f"SELECT {columns} FROM sensors WHERE nodeid < 5 ONCE")
    assert isinstance(planned, QueryPlan)
    query = merge([planned])
    for changed in (query, routed(query, [tree("nodeid")])):
        assert len(encode(changed, 0)) <= limits.PROGRAM_MAXIMUM


def test_an_attribute_has_several_names() -> None:
    made = []
    for names in ("temp, accel_x", "temperature, accel", "Temperature, ACCEL"):
        statement = plan_query(f"CREATE SRT t ON sensors ({names})")
        assert isinstance(statement, CreateSrt)
        made.append(plan_srt(statement, 1)[0])
    assert made[0] == made[1] == made[2]


def test_the_program_of_a_tree() -> None:
    statement = plan_query("CREATE SRT loc ON sensors (loc)")
    assert isinstance(statement, CreateSrt)
    srt, planned = plan_srt(statement, 9, values={"xpos": [-100, 5019], "ypos": [0]}.__getitem__)
    assert srt.axes == (Axis(10, -100, 20), Axis(11, 0, 1))
    program = decode_program(encode(merge([planned]), 0))
    (code,) = [field.code for field in program.fields if field.aggregate == Aggregate.SRT]
    parsed = programs.Srt.parse(code)
    assert (parsed.srt, [(a.attribute, a.low, a.step) for a in parsed.axes]) == (
        9,
        [(10, -100, 20), (11, 0, 1)],
    )
    assert Srt.from_list(srt.to_list()) == srt


def test_queries_take_the_way_of_a_new_tree_and_leave_it() -> None:
    demand = Demand()
    demand.add_user("ada", plan("nodeid < 5"), 100)
    assert not demand.advance(110)
    demand.route_by([tree("nodeid")])
    (installed,) = demand.advance(120).install
    assert [clause.kind for clause in installed.mote_query.clauses] == [Aggregate.ROUTE]
    demand.route_by([])
    (installed,) = demand.advance(160).install
    assert not installed.mote_query.clauses


def test_a_query_with_a_memory_keeps_its_way() -> None:
    demand = Demand()
    demand.route_by([tree("nodeid")])
    (installed,) = demand.add_user("ada", plan("nodeid < 5", "WINAVG(temp, 4, 4)"), 100).install
    assert installed.mote_query.clauses
    demand.route_by([])
    assert not demand.advance(160)


def test_explain_says_where() -> None:
    catalog = Catalog()
    for node, parent in ((0, 65535), (1, 0), (2, 1), (3, 0)):
        status = dict.fromkeys((field.name for field in records.Status.subcons), 0) | {"statics": []}
        catalog.update({**status, "node": node, "parent": parent, "uptime": 1}, 0)
    demand = Demand()
    demand.route_by([tree("nodeid")])
    explained = explain(plan("nodeid = 2"), catalog, demand)
    assert explained["route"]["motes"] == [2]
    assert explained["route"]["forwarding"] == [0, 1]
    assert (
        "route\n  by semantic routing tree tree over nodeid: to 1 mote (2)\n  and 2 motes (0, 1) on the way"
        in explain_text(explained)
    )
    demand.route_by([tree("room")])
    explained = explain(plan("room = 2"), catalog, demand)
    assert explained["route"]["motes"] is None
    assert "over room: to 0% of its codes" in explain_text(explained)

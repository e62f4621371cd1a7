"""Approximate answers beside exact ones: whose tolerance motes keep, and what is never withheld."""

from __future__ import annotations

from gateway.tests.sharing.plans import kept, rows
from skerry.ingest.partial_states import Partial, merge_partials
from skerry.planner.model.plans import Difference, Installation
from skerry.planner.physical.merge import merge
from skerry.service.explain import explain, explain_text
from skerry.sharing.demand import Demand
from skerry_protocol.codec import decode_program
from skerry_protocol.codes import QueryFlag


def test_motes_do_not_withhold_states_once_somebody_wants_them_counted() -> None:
    """MAX and COUNT share a state, which then has to come from all."""
    demand = Demand()
    alone = demand.add_user("a", rows("MAX(temp)"), 100)
    assert [i.mote_query.snoop for i in alone.install] == [True]
    both = demand.add_user("b", rows("COUNT(temp)"), 101)
    assert [i.mote_query.snoop for i in both.install] == [False]
    assert [decode_program(i.program).flags for i in both.install] == [QueryFlag.AGGREGATE]


def test_an_exact_stream_serves_approximate_users_as_long_as_somebody_needs_it() -> None:
    def columns(installed: tuple[Installation, ...]) -> list[list[str]]:
        return [[c.aggregate.name for c in i.mote_query.columns] for i in installed]

    demand = Demand()
    within = rows("AVG(temp)", length="APPROXIMATE WITHIN 1")
    assert columns(demand.add_user("a", within, 100).install) == [["AVG", "REPRESENTATIVE"]]
    exact = demand.add_user("b", rows("SUM(temp)"), 150).install
    assert columns(exact) == [["AVG"]], "SUM and AVG are of one state"
    assert not exact[0].mote_query.snoop
    assert demand.add_user("c", within, 200) == Difference()
    demand.advance(250)
    assert demand.feeds("a")[-1].query == demand.feeds("b")[-1].query == demand.feeds("c")[-1].query
    again = demand.remove_user("b", 300).install
    assert columns(again) == [["AVG", "REPRESENTATIVE"]]
    assert again[0].mote_query.snoop


def test_approximate_answers_of_several_values_are_exact() -> None:
    """Motes count as a sibling for one value. A COUNT does not err, and goes with any."""
    demand = Demand()
    demand.add_user("a", rows("AVG(temp)", length="APPROXIMATE WITHIN 1"), 100)
    demand.add_user("b", rows("COUNT(*)", length="APPROXIMATE WITHIN 0"), 150)
    last = demand.installations()[-1].mote_query.columns
    assert [c.aggregate.name for c in last] == ["AVG", "COUNT", "REPRESENTATIVE"]
    assert last[-1].expr is not None
    assert last[-1].expr.operand == 100
    both = demand.add_user("c", rows("AVG(light)", length="APPROXIMATE WITHIN 9"), 200).install[0]
    assert [c.aggregate.name for c in both.mote_query.columns] == ["AVG", "AVG", "COUNT"]
    assert not both.mote_query.snoop


def test_the_smallest_tolerance_serves_all() -> None:
    demand = Demand()
    demand.add_user("a", rows("AVG(temp)", length="APPROXIMATE WITHIN 1"), 100)
    assert demand.add_user("b", rows("SUM(temp)", length="APPROXIMATE WITHIN 2"), 120) == Difference()
    closer = demand.add_user("c", rows("COUNT(*), AVG(temp)", length="APPROXIMATE WITHIN 0.5 degC"), 150)
    columns = closer.install[0].mote_query.columns
    assert [c.aggregate.name for c in columns] == ["AVG", "COUNT", "REPRESENTATIVE"]
    assert columns[-1].expr is not None
    assert columns[-1].expr.operand == 50
    assert kept(demand).installations() == demand.installations()


def test_difference_of_a_late_state_adds_to_the_sum() -> None:
    query = merge([rows("AVG(temp), COUNT(*)", length="APPROXIMATE WITHIN 1")])
    parts = [Partial(5, 3, ((3, 60), (3, 0), (0, 0))), Partial(5, 0, ((0, -7), (0, 0), (0, 0)))]
    for order in (parts, parts[::-1]):
        assert merge_partials(query, order) == Partial(5, 3, ((3, 53), (3, 0), (0, 0)))


def test_errors_are_stated() -> None:
    told = explain_text(
        explain(rows("AVG(temp) * 2 AS twice, COUNT(*), SUM(temp)", length="APPROXIMATE WITHIN 0.5"))
    )
    assert "  AVG(temp) errs by 0.5 degC at most\n" in told
    assert "  COUNT(*) errs not; a mote that is gone counts for up to 7 epochs\n" in told
    assert "  SUM(temp) errs by 0.5 degC at most for each mote that it counts\n" in told

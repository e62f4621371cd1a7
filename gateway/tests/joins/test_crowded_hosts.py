"""Motes that join may have more answers than they get up the tree: where that is known a join is refused, and where it may be, told."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.tests.joins.test_join_choice import JOIN, line
from gateway.tests.opened import opened
from gateway.tests.peer import RootPeer
from skerry.joins.placement.estimates import Estimates, Rates
from skerry.joins.placement.trees import Tree
from skerry.planner.model.plans import QueryPlan
from skerry.planner.planner import plan_query
from skerry.service.pair_answers import Crowded, crowded
from skerry.sql.errors import QueryError

#: 0 - 1 - … - 6: fifteen pairs of six motes in one room, each joined at the upper one.
ROOMS = dict.fromkeys(range(1, 7), 9)
AT_ANCESTOR = f"{JOIN} JOIN AT ANCESTOR"


def test_answers_of_hosts_below_count_too() -> None:
    plan = plan_query(AT_ANCESTOR)
    assert isinstance(plan, QueryPlan)
    assert plan.pairing is not None
    tree = Tree(0, {1: 0, 2: 1, 3: 2})
    hosts, rates = {2: [(2, 3)] * 6, 3: [(3, 3)] * 5}, Rates(Estimates(window=3))
    found = crowded(plan.pairing, plan.period_ms, hosts, {2: tree, 3: tree}, rates)
    assert found == (Crowded(1, 66, 60), Crowded(2, 66, 60)), "mote 3 has 30 of its own"
    longer = crowded(plan.pairing, 2 * plan.period_ms, hosts, {2: tree, 3: tree}, rates)
    assert longer == (), "twice as many frames go up then"


def test_too_many_answers_are_refused_where_that_is_known_and_told_where_it_may_be(
    peer: RootPeer, tmp_path: Path
) -> None:
    with opened(peer, tmp_path) as gateway:
        line(peer, gateway, ROOMS)
        said = f"{AT_ANCESTOR} ESTIMATE pair 90 %"
        text = "mote 1 would send 81 answers up in a sample period, and gets some 60 through"
        with pytest.raises(QueryError, match=text) as refused:
            gateway.queries.ask(said, "ada")
        assert "JOIN AT BASE" in refused.value.summary
        whys = {one["strategy"]: one["why"] for one in gateway.queries.explain(said)["placed"]["strategies"]}
        assert whys["at ancestor"] == text
        assert whys["at base"] is None
        # Nobody has said how many rows match.
        explained = gateway.queries.explain(AT_ANCESTOR)
        assert (
            "mote 1 would send 90 answers up in a sample period, and gets some 60 through"
            in explained["text"]
        )
        assert explained["placed"]["crowded"][0] == {"mote": 1, "answers": 90.0, "most": 60}
        asked = gateway.queries.ask(AT_ANCESTOR, "ada")
        assert "answers may come late, or lack" in gateway.pairs.told()[asked.id]
        few = f"{AT_ANCESTOR} ESTIMATE pair 10 %"
        assert gateway.queries.explain(few)["placed"]["crowded"] == []
        gateway.queries.ask(few, "ada")

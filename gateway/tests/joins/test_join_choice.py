"""Where motes' rows are joined when a query does not say so: what it may say instead, what strategies cost, and which is taken."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.tests.joins.test_joins_with_motes import ask, questions_of, report
from gateway.tests.opened import opened
from gateway.tests.peer import RootPeer
from gateway.tests.process import wait_for
from skerry.catalog.catalog import Mote
from skerry.ingest.join_tally import JoinTally
from skerry.joins.placement.choosing import ALL_TRIED, Choosing, transitive_groups
from skerry.joins.placement.estimates import Estimates, Rates
from skerry.joins.placement.estimating import Estimate
from skerry.joins.placement.plans import gathered, listened
from skerry.joins.placement.prices import HOPS
from skerry.joins.placement.trees import Tree
from skerry.planner.cost import radio
from skerry.planner.cost.join_prices import (
    CELL_SECONDS,
    CHILD_CELLS,
    KEPT_OPEN,
    kept_rows,
    prices,
    row_bytes,
    way_cells,
)
from skerry.planner.model.pairing import hosts_of
from skerry.planner.model.plans import QueryPlan
from skerry.planner.planner import plan_query
from skerry.sensors.paired_motes import Pair
from skerry.service.explain_join import trees
from skerry.service.pair_costs import cost_of, plan_of
from skerry.service.pair_places import Way, places
from skerry.sql.errors import QueryError
from skerry_protocol.attributes import BY_NAME
from skerry_protocol.codes import PairsWay

FIRMWARE = Path(__file__).parents[3] / "firmware"
JOIN = (
    "SELECT s.nodeid, t.nodeid, s.temp - t.temp AS difference FROM sensors AS s, sensors AS t WINDOW 3 ROWS "
    "WHERE s.room = t.room AND s.nodeid < t.nodeid AND s.temp - t.temp > 2 SAMPLE PERIOD 10 s"
)
#: Of two motes next to each other whose rows seldom match: by bytes a join in the network pays.
SELDOM = "ESTIMATE s 100 %, t 100 %, pair 0 % COST BYTES"
SELDOM_MATCHING = f"{JOIN} {SELDOM}; -- where it is joined is not said"
shares = st.floats(0, 1)
#: Costs are sums in another order each time.
EQUAL = 1 + 1e-9


def planned(sql: str) -> QueryPlan:
    plan = plan_query(sql)
    assert isinstance(plan, QueryPlan)
    assert plan.pairing is not None
    return plan


def test_what_is_known_of_a_join_reaches_its_plan() -> None:
    pairing = planned(
        f"{JOIN} JOIN IN NETWORK ESTIMATE S 10 %, pair 5%, t 100 % COST bytes LEARNING OFF DELIVER WITHIN 50 s"
    ).pairing
    assert pairing is not None
    assert pairing.estimates == Estimates(0.1, 1.0, 0.05, 3)
    assert pairing.cost == "bytes"
    usual = planned(f"{JOIN} JOIN AT BASE").pairing
    assert usual is not None
    assert (usual.estimates, usual.cost) == (Estimates(window=3), "energy")


@pytest.mark.parametrize(
    ("clauses", "said"),
    [
        ("ESTIMATE u 10 %", "ESTIMATE of 'u' .*rows are of s or t, and pair is two that meet"),
        ("ESTIMATE s 110 %", "ESTIMATE s 110 % .*a share is from 0 % to 100 %"),
        ("ESTIMATE s 10 %, t 5 %, s 1 %", "ESTIMATE says s twice"),
        ("ESTIMATE s 10", "expected %"),
        ("ESTIMATE s 10 % t 5 %", "unexpected 't' .*expected a comma"),
        ("ESTIMATE", "as in ESTIMATE s 10 %, t 100 %, pair 5 %"),
        ("COST BYTES COST ENERGY", "COST is said twice"),
        ("COST HOPS", "as in COST BYTES or COST ENERGY"),
        ("LEARNING", "LEARNING OFF"),
        ("DELIVER WITHIN 29 s", "DELIVER WITHIN 29 s is too short for JOIN AT BASE.*write at least 30 s"),
        ("DELIVER WITHIN 3 parsecs", "unknown unit of time 'parsecs'"),
        ("JOIN NAIVE", "where motes' rows are joined is said twice"),
    ],
)
def test_what_cannot_be_said_of_a_join_is_refused_by_name(clauses: str, said: str) -> None:
    with pytest.raises(QueryError) as refused:
        plan_query(f"{JOIN} JOIN AT BASE {clauses}")
    assert re.search(said, refused.value.summary, re.DOTALL)


@pytest.mark.parametrize("strategy", ["IN NETWORK", "BY HASH", "THROUGH BASE"])
def test_ways_are_not_gone_by_more_often_than_they_have_cells(strategy: str) -> None:
    with pytest.raises(QueryError) as refused:
        plan_query(f"{JOIN.replace('10 s', '4 s')} JOIN {strategy}")
    assert f"a sample period of 4 s is too short for JOIN {strategy}" in refused.value.summary
    assert "write SAMPLE PERIOD 5 s or longer, or JOIN AT ANCESTOR or AT BASE" in refused.value.summary
    assert planned(f"{JOIN.replace('10 s', '5 s')} JOIN {strategy}").period_ms == 5000
    assert planned(f"{JOIN.replace('10 s', '1 s')} JOIN AT ANCESTOR").period_ms == 1000


@pytest.mark.parametrize("clause", ["ESTIMATE s 1 %", "COST BYTES", "LEARNING OFF", "DELIVER WITHIN 1 min"])
def test_it_is_of_two_motes_alone(clause: str) -> None:
    with pytest.raises(QueryError, match="is for two motes whose rows meet"):
        plan_query(f"SELECT temp FROM sensors SAMPLE PERIOD 10 s {clause}")


def test_its_words_are_names_elsewhere() -> None:
    for name in ("estimate", "cost", "learning", "deliver"):
        plan = plan_query(
            f"SELECT temp AS {name} FROM sensors AS {name} WHERE {name}.temp > 3 SAMPLE PERIOD 10 s"
        )
        assert isinstance(plan, QueryPlan)
        assert [output.name for output in plan.outputs] == [name]


def test_ways_have_the_cells_that_motes_give_them() -> None:
    """The numbers are the firmware's: every() and quiet_rounds() of meet_ways.c."""
    conf = (FIRMWARE / "net/transport/transport_conf.h").read_text()
    least, most = (int(found[1]) for found in re.finditer(r"#define WAY_EVERY_(?:LEAST|MOST) (\d+)", conf))
    meet = (FIRMWARE / "query/operators/meet_ways.c").read_text()
    shifted = re.search(r"while \(power < WAY_EVERY_MOST && \(uint32_t\)(\d+) << power <= seconds\)", meet)
    kept = re.search(r"#define MEET_KEPT_OPEN (\d+)U", (FIRMWARE / "query/query_conf.h").read_text())
    assert shifted is not None
    assert kept is not None
    assert int(kept[1]) == KEPT_OPEN
    for period in (1, 4, 10, 31, 32, 60, 64, 600, 4096):
        power = least
        while power < most and int(shifted[1]) << power <= period:
            power += 1
        assert way_cells(period) == period / (1 << power)
        assert kept_rows(period) == period / (KEPT_OPEN << power - least)
    assert way_cells(10) == 2.5
    for file, name in (("net_conf.h", "SILENT_ROUNDS"), ("routing/neighbours.h", "NEIGHBOUR_DONE_ROUNDS")):
        rounds = re.search(rf"#define {name} (\d+)", (FIRMWARE / "net" / file).read_text())
        assert rounds is not None
        assert int(rounds[1]) == CHILD_CELLS


def test_who_says_nothing_is_listened_to_for_as_long() -> None:
    """0 - 1 - 2 and 0 - 1 - 3: 1 listens to both in two cells, whatever they send; the root's radio is on in any case."""
    tree, price, rates = Tree(0, {1: 0, 2: 1, 3: 1}), prices("energy", 2, 4, 10), Rates(Estimates(1, 1, 0, 1))
    cells = 2 * CHILD_CELLS * radio.listening(CELL_SECONDS)
    assert listened(price, tree) == pytest.approx(cells)
    costs = [
        gathered("", dict.fromkeys(motes, frozenset({"s"})), (), tree).cost(rates, price, tree)
        for motes in ((), (2,), (2, 3))
    ]
    assert costs[0] == pytest.approx(cells)
    sent = radio.both_ends(radio.record_seconds(row_bytes(2)))
    assert costs[0] < costs[1] < costs[2] < cells + 4 * sent, "each of two hops"


class Drawn:
    """A tree of motes, pairs among them, and what is known of their rows."""

    def __init__(self, parents: list[int], pairs: list[tuple[int, int]], known: Estimates) -> None:
        # A mote's parent is one with a lower number.
        self.tree = Tree(0, {mote: above % mote for mote, above in enumerate(parents, 1)})
        count = len(parents)
        self.pairs: list[Pair] = list(dict.fromkeys((1 + s % count, 1 + t % count) for s, t in pairs))
        self.rates = Rates(known)

    def motes(self) -> dict[int, Mote]:
        """As the gateway hears them; those of a pair have a room of their own."""
        parents: dict[int, int | None] = {0: None, **self.tree.parents}
        room = BY_NAME["room"].number
        rooms = {mote: 1 + place for place, pair in enumerate(self.pairs) for mote in pair}
        return {
            number: Mote(
                number, "cc2538" if number % 3 else "iris", 0, 0, 1, 1, 0x3FFF, above, self.tree.hops(number), 1, 2, 0,
                number, 0, 3, 900, 0, 1, 20, 5, 0, 9, 0, 0, root=0, statics={room: rooms.get(number, 1000 + number)},
            )
            for number, above in parents.items()
        }  # fmt: skip


drawn = st.builds(
    Drawn,
    st.lists(st.integers(0, 40), min_size=2, max_size=14),
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=8),
    st.builds(Estimates, shares, shares, st.sampled_from([0, 0.01, 0.1, 1]), st.sampled_from([1, 3])),
)
units = st.sampled_from(["bytes", "energy"])


@given(drawn, units)
@settings(max_examples=150, deadline=None)
def test_in_the_network_is_never_dearer_than_the_base(found: Drawn, unit: str) -> None:
    price, tree, pairs = prices(unit, 2, 4, 10), found.tree, found.pairs
    hosts = {pair: [mote for mote in tree.between(*pair) if mote] for pair in pairs}
    estimate = Estimate(tree, found.rates, price)
    at, decided = Choosing(hosts, 0, estimate.cost).chosen(transitive_groups(pairs))
    assert {pair for one in decided for pair in one.group.pairs} <= set(pairs) == set(at)
    cost = cost_of(PairsWay.SENT, at, tree, found.rates, price)
    assert estimate.cost(at) == pytest.approx(cost), "reckoned as a plan's flows are"
    base = cost_of(PairsWay.SENT, dict.fromkeys(pairs, 0), tree, found.rates, price)
    assert cost <= base * EQUAL
    for pair in pairs:
        for other in (0, *hosts[pair]):
            moved = cost_of(PairsWay.SENT, {**at, pair: other}, tree, found.rates, price)
            assert cost <= moved * EQUAL, "none is better off elsewhere, where the others stay"


@given(drawn, units, st.booleans())
@settings(max_examples=150, deadline=None)
def test_small_groups_are_where_all_of_them_together_cost_least(
    found: Drawn, unit: str, forced: bool
) -> None:
    """Against all placings at any motes."""
    price, tree, pairs = prices(unit, 2, 4, 10), found.tree, found.pairs[:3]
    hosts = {pair: [mote for mote in tree.between(*pair) if mote] for pair in pairs}
    estimate = Estimate(tree, found.rates, price)
    groups = transitive_groups(pairs)
    at, decided = Choosing(hosts, 0, estimate.cost, forced=forced).chosen(groups)
    if len(groups) > 1 or not all(hosts.values()):
        return
    union = sorted({mote for those in hosts.values() for mote in those} | (set() if forced else {0}))
    if len(union) ** len(pairs) > ALL_TRIED:
        return
    costs = {
        placed: estimate.cost(dict(zip(pairs, placed, strict=True)))
        for placed in product(union, repeat=len(pairs))
    }
    assert estimate.cost(at) == pytest.approx(min(costs.values()))
    network = min(cost for placed, cost in costs.items() if 0 not in placed)
    base = estimate.cost(dict.fromkeys(pairs, 0))
    assert decided[0].difference == pytest.approx(network - base)
    if not forced and decided[0].difference < -1e-9 * base:
        assert any(at.values()), "as a whole it is cheaper in the network"


def test_groups_are_complete_graphs_or_bipartite() -> None:
    rooms = [(4, 5), (4, 6), (5, 6), (8, 9)]
    assert [(sorted(one.producers), one.complete) for one in transitive_groups(rooms)] == [
        ([4, 5, 6], True),
        ([8, 9], True),
    ]
    # 2 is s of one key and t of another: each is a group of its own.
    keys = [(1, 2), (1, 3), (2, 4), (2, 5)]
    assert [one.pairs for one in transitive_groups(keys)] == [((1, 2), (1, 3)), ((2, 4), (2, 5))]
    assert all(one.complete for one in transitive_groups(keys))
    chain = transitive_groups([(1, 2), (3, 2), (3, 4)])
    assert [one.complete for one in chain] == [False]


@given(drawn, units, st.sampled_from([60, 300, 900]))
@settings(max_examples=60, deadline=None)
def test_nor_where_motes_have_little_room(found: Drawn, unit: str, room: int) -> None:
    known = found.rates.usual
    words = f"ESTIMATE s {known.s * 100:f} %, t {known.t * 100:f} %, pair {known.pair * 100:f} % COST {unit}"
    plan = planned(f"{JOIN} JOIN IN NETWORK {words}")
    assert plan.pairing is not None
    motes = found.motes()
    there = places(plan.pairing, plan.period_ms, motes, room)
    tree = trees(motes)[0]
    at = dict.fromkeys(there.base, 0) | {pair: host for host, pairs in there.hosts.items() for pair in pairs}
    rates, price = (
        Rates(plan.pairing.estimates),
        prices(unit, plan.pairing.width // 2, plan.pairing.width, 10),
    )
    base = cost_of(PairsWay.SENT, dict.fromkeys(at, 0), tree, rates, price)
    cost = plan_of(PairsWay.SENT, at, tree, there.relays).cost(rates, price, tree)
    assert cost <= base * EQUAL


@given(drawn, st.sampled_from(["THROUGH BASE", "BY HASH", "IN NETWORK"]))
@settings(max_examples=60, deadline=None)
def test_a_way_carries_no_more_rows_of_all_queries_than_its_cells(found: Drawn, strategy: str) -> None:
    """Four fifths of its cells, where several queries ask for the same pairs: what it has no cells for is the gateway's."""
    loads: dict[Way, float] = {}
    hosted = []
    plan = planned(f"{JOIN} JOIN {strategy}")
    assert plan.pairing is not None
    for _ in range(3):
        there = places(plan.pairing, plan.period_ms, found.motes(), taken=loads, forced=True)
        hosted.append(sum(map(len, there.hosts.values())))
        for way, rows in there.loads(plan.pairing.way, 0, plan.period_ms).items():
            loads[way] = loads.get(way, 0) + rows
    assert all(rows <= 0.8 * way_cells(10) / 10 + 1e-9 for rows in loads.values())
    assert hosted[0] >= hosted[1] >= hosted[2] == 0, "two rows fill each way"


@given(drawn)
@settings(max_examples=60, deadline=None)
def test_what_motes_send_is_counted_hop_by_hop(found: Drawn) -> None:
    """By the paper's price of 1 a hop, against walking all ways."""
    tree, rates, known = found.tree, found.rates, found.rates.usual
    pairs = [pair for pair in found.pairs if pair[0] != pair[1]]
    for way in PairsWay:
        at = {pair: pair[1] if way is PairsWay.FROM_ROOT else tree.ancestor(*pair) for pair in pairs}
        sent = 0.0
        roles: dict[int, set[str]] = {}
        for pair in pairs:
            for role, mote in zip("st", pair, strict=True):
                roles.setdefault(mote, set()).add(role)
        match way:
            case PairsWay.CLIMB:
                for mote, own in roles.items():
                    least = min(tree.hops(at[pair]) for pair in pairs if mote in pair)
                    sent += rates.sends(mote, frozenset(own)) * (tree.hops(mote) - least)
            case PairsWay.SENT:
                for mote in roles:
                    for host in {at[pair] for pair in pairs if mote in pair} - {0}:
                        own = {
                            role
                            for pair in pairs
                            if at[pair] == host
                            for role, one in zip("st", pair, strict=True)
                            if one == mote
                        }
                        sent += rates.sends(mote, frozenset(own)) * (len(tree.between(mote, host)) - 1)
                for mote in {mote for pair in pairs if at[pair] == 0 for mote in pair}:
                    own = {
                        role
                        for pair in pairs
                        if at[pair] == 0
                        for role, one in zip("st", pair, strict=True)
                        if one == mote
                    }
                    sent += rates.sends(mote, frozenset(own)) * tree.hops(mote)
            case PairsWay.FROM_ROOT:
                sent += sum(known.s * tree.hops(s) for s in {s for s, _ in pairs})
                sent += sum(known.s * tree.hops(t) for _, t in pairs)
        sent += sum(known.results * tree.hops(mote) for mote in at.values())
        assert plan_of(way, at, tree).cost(rates, HOPS) == pytest.approx(sent), way


def line(peer: RootPeer, gateway: Any, rooms: dict[int, int]) -> None:
    """0 - 1 - 2 - 3 - … - 6: a chain of motes."""
    for node in range(1, 7):
        report(peer, node, node - 1, node, rooms.get(node))
    wait_for(lambda: len(gateway._network.catalog.all()) == 6)


def test_the_cheapest_strategy_is_taken(peer: RootPeer, tmp_path: Path) -> None:
    with opened(peer, tmp_path) as gateway:
        nobody = gateway.queries.explain(JOIN)["placed"]
        assert nobody["taken"] == "no two motes that the gateway knows are a pair"
        line(peer, gateway, {5: 9, 6: 9})
        # By energy, the base wins, and that is said.
        explained = gateway.queries.explain(JOIN)
        told = explained["placed"]
        assert (told["runs"], told["cost"]) == ("at base", "energy")
        assert told["taken"] == "by estimate nothing takes less energy than to join at the base"
        ways = {one["strategy"]: one for one in told["strategies"]}
        assert set(ways) == {"naive", "at base", "at ancestor", "through base", "by hash", "in network"}
        assert min(one["cost"] for one in ways.values()) == ways["at base"]["cost"] < ways["naive"]["cost"]
        assert ways["in network"]["cost"] <= ways["at base"]["cost"]
        assert re.search(r"mJ  at base +taken", explained["text"])
        assert "taken: at base, as by estimate nothing takes less energy" in explained["text"]
        assert "5 with 6" in explained["text"]
        # By bytes, rows of neighbours far away that seldom match stay there.
        explained = gateway.queries.explain(SELDOM_MATCHING)
        told = explained["placed"]
        assert told["estimates"] == {"s": 1.0, "t": 1.0, "pair": 0.0, "window": 3.0}
        costs = {one["strategy"]: one["cost"] for one in told["strategies"]}
        assert costs[told["runs"]] == min(costs.values()) < costs["at base"]
        assert re.fullmatch(r"by estimate it takes \d+% fewer bytes than to join at the base", told["taken"])
        assert [one["pairs"] for one in told["hosts"]] == [[[5, 6]]]
        assert f"taken: {told['runs']}, as by estimate" in explained["text"]
        # The same for one that says where it is joined, with what else there was.
        hinted = gateway.queries.explain(f"{JOIN} JOIN THROUGH BASE {SELDOM}")["placed"]
        assert (hinted["runs"], hinted["taken"]) == ("through base", "the query says so")
        assert {one["strategy"]: one["cost"] for one in hinted["strategies"]} == costs
        naive = gateway.queries.explain(f"{JOIN} JOIN NAIVE")["placed"]
        assert (naive["runs"], naive["taken"]) == ("naive", "the query says so")
        # Ways have no cells for rows of so short a period.
        often = gateway.queries.explain(SELDOM_MATCHING.replace("10 s", "1 s"))["placed"]
        whys = {one["strategy"]: one["why"] for one in often["strategies"]}
        assert whys["by hash"] == "a sample period of 1 s is too short for JOIN BY HASH"
        # What has no static condition, or what motes have not, is the gateway's.
        for sql, why in (
            (
                JOIN.replace("s.room = t.room AND s.nodeid < t.nodeid AND ", ""),
                "that any two motes are a pair",
            ),
            (f"{JOIN} LATENESS 3 s", "LATENESS is not for rows that motes join"),
        ):
            told = gateway.queries.explain(sql)
            assert told["placed"]["runs"] == "naive"
            assert why in told["placed"]["taken"]
            assert told["placed"]["taken"] in told["text"] or told["placed"]["why"] is not None
        in_time = gateway.queries.explain(f"{JOIN} DELIVER WITHIN 30 s")["placed"]
        assert {one["strategy"] for one in in_time["strategies"] if one["cost"] is not None} == {
            "at base",
            "at ancestor",
        }
        with pytest.raises(QueryError, match="DELIVER WITHIN 29 s is too short"):
            gateway.queries.ask(f"{JOIN} DELIVER WITHIN 29 s", "ada")


def test_rows_that_say_where_they_were_joined_are_motes_to_join(peer: RootPeer, tmp_path: Path) -> None:
    """The gateway's own join, which would be taken as all rows come already, is out; where motes cannot, it is refused."""
    telling = JOIN.replace("t.nodeid,", "t.nodeid, joined_at,")
    with opened(peer, tmp_path) as gateway:
        line(peer, gateway, {5: 9, 6: 9})
        ask(gateway, "SELECT nodeid, temp, room FROM sensors SAMPLE PERIOD 10 s")
        assert gateway.queries.explain(JOIN)["placed"]["runs"] == "naive"
        assert gateway.queries.explain(telling)["placed"]["runs"] == "at base"
        assert gateway.queries.explain(f"{telling} {SELDOM}")["placed"]["runs"] not in ("naive", "at base")
        query = ask(gateway, telling)
        assert query.sql == f"{telling} JOIN AT BASE LEARNING ON"
        assert gateway.queries.explain(telling)["placed"]["learns"]
        for more, said in (
            ("JOIN NAIVE", "JOIN NAIVE is without joined_at: .*write JOIN NAIVE LEARNING ON"),
            ("LATENESS 3 s", "motes cannot join these rows: LATENESS .*leave joined_at out"),
        ):
            with pytest.raises(QueryError) as refused:
                ask(gateway, f"{telling} {more}")
            assert re.search(said, refused.value.summary, re.DOTALL)


def test_groups_tell_what_the_network_takes_more_than_the_base(peer: RootPeer, tmp_path: Path) -> None:
    """Of 0 - 1 - … - 6 motes 4, 5 and 6 are in one room, 1 and 2 in another one, for which the base is nearer."""
    with opened(peer, tmp_path) as gateway:
        line(peer, gateway, {1: 7, 2: 7, 4: 9, 5: 9, 6: 9})
        explained = gateway.queries.explain(f"{JOIN} JOIN IN NETWORK ESTIMATE pair 7 % COST BYTES")
        told = explained["placed"]
        near, far = sorted(told["groups"], key=lambda one: one["motes"])
        assert (near["motes"], near["pairs"], near["complete"]) == ([1, 2], [[1, 2]], True)
        assert (far["motes"], len(far["pairs"]), far["complete"]) == ([4, 5, 6], 3, True)
        assert (near["joined"], far["joined"]) == ("at base", "in network")
        assert far["difference"] < 0 < near["difference"]
        costs = {one["strategy"]: one["cost"] for one in told["strategies"]}
        assert costs["in network"] == pytest.approx(costs["at base"] + far["difference"])
        less = f"{-far['difference']:.4g}"
        text = (
            f"group of 4, 5, 6: 3 pairs, in the network; in the network takes {less} B less than at the base"
        )
        assert text in explained["text"]
        assert "group of 1, 2" not in explained["text"], "of a single pair its place says all"
        base = gateway.queries.explain(f"{JOIN} JOIN AT BASE")["placed"]
        assert base["groups"] == []


def test_what_is_taken_is_remembered(peer: RootPeer, tmp_path: Path) -> None:
    with opened(peer, tmp_path) as gateway:
        line(peer, gateway, {5: 9, 6: 9})
        query = ask(gateway, SELDOM_MATCHING)
        wait_for(lambda: len(peer.programs()) == 1)
        assert query.plan.pairing is not None
        strategy = query.plan.pairing.strategy
        assert query.sql == f"{JOIN} {SELDOM} JOIN {strategy} LEARNING ON"
        assert query.plan.pairing.learns
        [status] = gateway.site.status()["joins"]
        assert (status["query"], status["kind"]) == (query.id, strategy.lower())
        assert [one["pairs"] for one in status["hosts"]] == [[[5, 6]]]
        learning = status["learning"]
        assert (learning["assumed"], learning["counted"]) == ({"s": 1.0, "t": 1.0, "pair": 0.0}, None)
        assert (learning["judged_from"], learning["changes"]) == (50, [])
        explained = gateway.queries.explain(SELDOM_MATCHING)
        assert explained["placed"]["learning"] == learning
        assert f"it runs, {strategy.lower()} since " in explained["text"]
        fixed = gateway.queries.explain(f"{JOIN} {SELDOM} LEARNING OFF")
        assert fixed["placed"]["learning"] is None
        assert "nothing is learnt while it runs" in fixed["text"]
    with opened(peer, tmp_path) as gateway:
        again = gateway.queries.get(query.id)
        assert again.plan.pairing is not None
        assert again.plan.pairing.strategy == strategy
        # What was learnt before, which is nothing yet.
        [status] = gateway.site.status()["joins"]
        assert status["learning"] == learning


def test_what_is_learnt_outlives_a_restart_and_costs_are_by_it(peer: RootPeer, tmp_path: Path) -> None:
    asked = f"{JOIN} COST BYTES"
    with opened(peer, tmp_path) as gateway:
        line(peer, gateway, {5: 9, 6: 9})
        query = ask(gateway, asked)
        wait_for(lambda: len(peer.programs()) == 1)
        assert query.sql == f"{asked} JOIN AT BASE LEARNING ON"
        assert query.plan.notes == (
            "joined at base, as by estimate nothing takes fewer bytes than to join at the base; placed anew by what is counted while "
            "it runs",
        )
        tally = JoinTally([(5, 6)], {(5, "s"), (6, "t")})
        tally.came(99)
        rows = [(mote, role, epoch) for mote, role in ((5, "s"), (6, "t")) for epoch in range(100, 160)]
        tally.settle(160, rows)
        learning = gateway.pairs.learn(query.plan, tally)
        assert learning is not None
        [change] = learning["changes"]
        assert change["from"] == "at base"
        gateway.persistence.save()
        told = gateway.queries.explain(asked)["placed"]
        assert (told["runs"], told["taken"]) == (change["to"], change["why"])
        costs = {one["strategy"]: one["cost"] for one in told["strategies"]}
        assert min(costs.values()) == costs[change["to"]] < 0.9 * costs["at base"]
        assert told["estimates"]["pair"] == 0.0
        assert [one["pairs"] for one in told["hosts"]] == [[[5, 6]]]
    with opened(peer, tmp_path) as gateway:
        [status] = gateway.site.status()["joins"]
        assert (status["kind"], status["learning"]) == (
            change["to"],
            {**learning, "counted": None, "epochs": 0},
        )


def test_where_motes_are_to_send_all_it_is_learnt_of_them(peer: RootPeer, tmp_path: Path) -> None:
    with opened(peer, tmp_path) as gateway:
        line(peer, gateway, {1: 9, 3: 9})
        said = gateway.queries.explain(JOIN)["placed"]
        assert (said["runs"], said["learns"]) == ("at base", True), "who has no partner sends nothing"
        assert gateway.queries.explain(f"{JOIN} LEARNING OFF")["placed"]["learns"] is False
    with opened(peer, tmp_path / "bytes") as gateway:
        line(peer, gateway, {5: 9, 6: 9})
        query = ask(gateway, f"{JOIN} COST BYTES JOIN NAIVE LEARNING ON")
        wait_for(lambda: len(peer.programs()) == 1)
        assert query.plan.pairing is not None
        assert (query.plan.pairing.strategy, query.plan.pairing.learns) == ("NAIVE", True)
        assert len(query.plan.clauses) == 1
        assert hosts_of(query.plan.clauses[0]) == {}
        assert query.plan.clauses[0].pairs == ((5, 6),)
        told = gateway.queries.explain(query.sql)["placed"]
        assert told["runs"] == "naive"
        costs = {one["strategy"]: one["cost"] for one in told["strategies"]}
        assert costs["naive"] > costs["at base"]
        tally = JoinTally([(5, 6)], {(5, "s"), (6, "t")})
        tally.came(99)
        tally.settle(160, [(5, "s", epoch) for epoch in range(100, 160)])
        learning = gateway.pairs.learn(query.plan, tally)
        assert learning is not None
        assert learning["changes"][0]["from"] == "naive"
        assert "t 100 % was assumed and 0 % counted" in learning["changes"][0]["why"]


def test_rows_that_come_already_are_joined_for_nothing(peer: RootPeer, tmp_path: Path) -> None:
    with opened(peer, tmp_path) as gateway:
        line(peer, gateway, {5: 9, 6: 9})
        assert gateway.queries.explain(JOIN)["placed"]["runs"] == "at base"
        ask(gateway, "SELECT nodeid, temp, room FROM sensors SAMPLE PERIOD 10 s")
        wait_for(lambda: len(peer.programs()) == 1)
        told = gateway.queries.explain(JOIN)["placed"]
        assert (told["runs"], told["taken"]) == (
            "naive",
            "queries that run bring these rows already: it costs nothing more",
        )
        assert told["strategies"][0]["strategy"] == "naive"
        assert told["strategies"][0]["cost"] == 0
        query = ask(gateway, JOIN)
        assert query.sql == JOIN
        assert query.plan.pairing is None
        assert len(questions_of(gateway, query)) == 1
        assert len(peer.programs()) == 1

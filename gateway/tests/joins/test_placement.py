"""Where pairs of motes are joined: costs against those of walking each link, ways and groups against scipy's."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise as steps

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, shortest_path

from skerry.joins.placement import pair as pairs
from skerry.joins.placement import strategies
from skerry.joins.placement.collapsing import FLOWS, FlowSeen, Gossip, Mote, Opportunity, Ways, collapse, cost
from skerry.joins.placement.estimates import Estimates, Pair, Rates
from skerry.joins.placement.groups import Producer, Sent, decided, groups_of
from skerry.joins.placement.keys import key_hash, nearest, place_of
from skerry.joins.placement.learning import Counted, placed_anew
from skerry.joins.placement.multicast import branches, links_to, straightened
from skerry.joins.placement.plans import Plan
from skerry.joins.placement.prices import HOPS, Prices
from skerry.joins.placement.trees import Path, Tree

shares = st.floats(0, 1)
seeds = st.integers(0, 2**32)
PRICES = Prices("any", 3, 5, 7, 0.25, 0.5)


class Drawn:
    """A connected network with a tree, and shortest ways."""

    def __init__(self, seed: int, motes: int = 14) -> None:
        rng = np.random.default_rng(seed)
        self.random = random.Random(seed)
        links = {(int(rng.integers(0, mote)), mote) for mote in range(1, motes)}
        links |= {(a, b) for a in range(motes) for b in range(a) if rng.random() < 0.12}
        self.neighbours: dict[int, set[int]] = {mote: set() for mote in range(motes)}
        for a, b in links:
            self.neighbours[a].add(b)
            self.neighbours[b].add(a)
        edges = np.array([(a, b) for a in self.neighbours for b in self.neighbours[a]])
        graph = csr_array((np.ones(len(edges)), edges.T), (motes, motes))
        self.hops, self.before = shortest_path(graph, unweighted=True, return_predecessors=True)
        self.tree = Tree(0, {mote: int(self.before[0, mote]) for mote in range(1, motes)})
        chosen = self.random.sample(range(1, motes), 10)
        self.s, self.t = chosen[:5], chosen[5:]

    def path(self, one: int, other: int) -> Path:
        """A shortest one."""
        found = [other]
        while found[-1] != one:
            found.append(int(self.before[one, found[-1]]))
        return tuple(found[::-1])

    def network(self, drawn: list[Pair]) -> strategies.Network:
        """As the planner sees it."""
        paths = {pair: (self.path(*pair), self.tree.between(*pair)) for pair in drawn}
        return strategies.Network(self.tree, paths, self.neighbours, lambda key: key[0], self.path)

    def query(self, *, transitive: bool) -> strategies.Query:
        """Groups of equal keys, or any pairs."""
        key = {mote: self.random.randrange(3) for mote in self.s + self.t}
        drawn = [
            (s, t) for s in self.s for t in self.t
            if (key[s] == key[t] if transitive else self.random.random() < 0.3)
        ]  # fmt: skip
        passing = {mote: frozenset("s" if mote in self.s else "t") for mote in self.s + self.t}
        keys = {pair: (key[pair[0]],) for pair in drawn} if transitive else None
        return strategies.Query(tuple(drawn), passing, keys, transitive)


@given(seeds, shares, shares, shares, st.sampled_from([1, 3]))
@settings(max_examples=25, deadline=None)
def test_a_pairs_cost_is_that_of_its_plan_and_never_above_the_bases(
    seed: int, s: float, t: float, both: float, window: int
) -> None:
    drawn, estimates = Drawn(seed), Estimates(s, t, both, window)
    pair = (drawn.s[0], drawn.t[0])
    network, rates = drawn.network([pair]), Rates(estimates)
    query = strategies.Query((pair,), {pair[0]: frozenset("s"), pair[1]: frozenset("t")})
    paths = network.paths[pair]
    found = {one.strategy: one for one in pairs.considered(pair, paths, drawn.tree, estimates, PRICES)}
    for name, plan in {
        pairs.BASE: strategies.base(query, network),
        pairs.ANCESTOR: strategies.ancestors(query, network),
        pairs.THROUGH_BASE: strategies.through(query, network),
    }.items():
        assert plan.cost(rates, PRICES) == pytest.approx(found[name].cost)
        assert plan.places[pair] == found[name].mote
    cheapest = pairs.cheapest(pair, paths, drawn.tree, estimates, PRICES)
    assert cheapest.cost == min(one.cost for one in found.values()) <= found[pairs.BASE].cost
    plan = strategies.pairwise(query, network, rates, PRICES)
    assert plan.cost(rates, PRICES) == pytest.approx(
        min(found[pairs.BASE].cost, found[pairs.IN_NETWORK].cost)
    )
    mote = found[pairs.IN_NETWORK].mote
    hops = drawn.hops
    paper = (
        pairs.on_way(pair, paths[0], paths[0].index(mote), drawn.tree, estimates, HOPS)
        if mote in paths[0]
        else None
    )
    if paper is not None:
        expected = s * hops[pair[0], mote] + t * hops[mote, pair[1]] + (s + t) * window * both * hops[mote, 0]
        assert paper.cost == pytest.approx(expected), "3.1"


@given(seeds)
@settings(max_examples=10, deadline=None)
def test_the_trees_ways_are_shortest_in_it(seed: int) -> None:
    drawn = Drawn(seed)
    edges = np.array(list(drawn.tree.parents.items()))
    graph = csr_array((np.ones(len(edges)), edges.T), drawn.hops.shape)
    hops = shortest_path(graph, unweighted=True, directed=False)
    for a in range(14):
        for b in range(14):
            path = drawn.tree.between(a, b)
            assert (path[0], path[-1], len(path) - 1) == (a, b, hops[a, b])
            assert all(
                drawn.tree.parents.get(x) == y or drawn.tree.parents.get(y) == x for x, y in steps(path)
            )
            assert len(path) - 1 == hops[a, m := drawn.tree.ancestor(a, b)] + hops[m, b]


def test_a_tree_without_an_end_is_told_of() -> None:
    tree = Tree(0, {1: 0, 2: 3, 3: 2, 4: 9})
    assert [tree.up(mote) for mote in (1, 2, 4)] == [(1, 0), None, None]
    with pytest.raises(KeyError, match="mote 4 has no way to the root 0"):
        tree.way(4)


@given(seeds, st.booleans(), shares, shares, shares)
@settings(max_examples=25, deadline=None)
def test_every_plan_joins_every_pair_where_both_rows_come(
    seed: int, transitive: bool, s: float, t: float, both: float
) -> None:
    """Walked link by link: what producers send reaches the pair's place, and answers the root."""
    drawn = Drawn(seed)
    query, rates = drawn.query(transitive=transitive), Rates(Estimates(s, t, both, 3))
    network = drawn.network(list(query.pairs))
    for plan in strategies.plans(query, network, rates, PRICES):
        reached: dict[int, set[int]] = {}
        for flow in plan.flows:
            if flow.answers:
                assert flow.links[0][0] == flow.source
                assert flow.links[-1][1] == 0
                continue
            at = reached.setdefault(flow.source, {flow.source})
            for sender, receiver in flow.links:
                assert receiver in drawn.neighbours[sender]
                assert sender in at, f"{plan.name}: nobody has brought {sender} the row"
                at.add(receiver)
        answered = {pair for flow in plan.flows for pair in flow.answers}
        for pair in query.pairs:
            mote = plan.places[pair]
            assert all(mote in reached.get(producer, {producer}) for producer in pair), plan.name
            assert mote == 0 or pair in answered
        links = sum(flow.rate(rates) * len(flow.links) for flow in plan.flows)
        assert plan.cost(rates, HOPS) == pytest.approx(links)
        kept = plan.stored(3)
        assert sum(kept.values()) == 3 * len({(plan.places[p], i, p[i]) for p in query.pairs for i in (0, 1)})


def test_fewer_links_are_never_dearer() -> None:
    """Multicast takes no more than ways one by one, collapsing no more than multicast, where nobody chooses the base."""
    for seed in range(30):
        drawn = Drawn(seed, 30)
        query = drawn.query(transitive=False)
        network = drawn.network(list(query.pairs))
        rates = Rates(Estimates(1, 1, 0, 1))
        own = strategies.placed(query, network, rates, HOPS, forced=True)
        straight = {producer: straightened(ways.values()) for producer, ways in own.ways.items()}
        collapsed = collapse(straight, drawn.neighbours, 0)
        for producer, ways in own.ways.items():
            for one in (straight[producer], collapsed[producer]):
                assert {end: (path[0], path[-1]) for end, path in one.items()} == {
                    end: (producer, end) for end in ways
                }
                assert all(b in drawn.neighbours[a] for path in one.values() for a, b in steps(path))
                arrived = Counter(receiver for _, receiver in links_to(one.values()))
                assert one is not straight[producer] or max(arrived.values(), default=1) == 1, "a tree"
            assert cost(collapsed[producer]) <= cost(straight[producer])
            assert cost(straight[producer]) <= sum(len(path) - 1 for path in ways.values()) or len(ways) > 1


def test_two_ways_of_a_producer_collapse_where_they_are_neighbours() -> None:
    """1 - 2 - 3 - 4 - 5 and 1 - 6 - 7 - 8 - 9, and 3 hears 7: the second way branches off at 3, or the first at 7."""
    ways = {5: (1, 2, 3, 4, 5), 9: (1, 6, 7, 8, 9)}
    mote = Mote(3, {2, 4, 7}, root=0)
    mote.passes(FlowSeen(1, 5, 2, 4, 2))
    [(told, found)] = mote.hear(Gossip(7, 8, 1, 9, (7, 8, 9)))
    assert (told, found) == (1, Opportunity(3, 7, 5, 9))
    assert mote.hear(Gossip(7, 8, 1, 9, (7, 8, 9))) == [], "once"
    known = Ways(ways)
    assert known.apply(found)
    assert cost(known.used) == 7 < cost(ways) == 8
    assert branches(known.used.values()) in ({3: (4, 7)}, {7: (3, 8)}, {7: (8, 3)})
    other = Mote(7, {6, 8, 3}, root=0)
    other.passes(FlowSeen(1, 9, 6, 8, 2))
    assert other.hear(Gossip(3, 4, 1, 5, (3, 4, 5))) == [], "the lower destination speaks"


def test_a_longer_way_to_the_same_end_goes_on_by_a_shorter_one() -> None:
    mote = Mote(3, {2, 4, 7}, root=0)
    mote.passes(FlowSeen(2, 9, 2, 4, 4))
    [(told, found)] = mote.hear(Gossip(7, 8, 1, 9, (7, 8, 9)))
    assert told == 2
    known = Ways({9: (2, 3, 4, 5, 6, 9)})
    assert known.apply(found)
    assert known.used == {9: (2, 3, 7, 8, 9)}
    for number in range(20, 20 + FLOWS):
        mote.passes(FlowSeen(number, 30, 2, 4, 4))
    assert 2 not in {flow.source for flow in mote.flows}, "of more than five the oldest is forgotten"


@given(seeds)
@settings(max_examples=25, deadline=None)
def test_groups_are_what_hangs_together(seed: int) -> None:
    rng = random.Random(seed)
    drawn = [(rng.randrange(9), rng.randrange(9)) for _ in range(rng.randrange(1, 14))]
    s, t = zip(*drawn, strict=True)
    graph = csr_array((np.ones(len(drawn)), (np.array(s), 9 + np.array(t))), (18, 18))
    _, labels = connected_components(graph, directed=False)
    found = groups_of(drawn)
    assert {frozenset(group.pairs) for group in found} == {
        frozenset(pair for pair in drawn if labels[pair[0]] == label) for label in {labels[one] for one in s}
    }
    for group in found:
        sources, targets = {s for s, _ in group.pairs}, {t for _, t in group.pairs}
        assert group.complete == all((s, t) in group.pairs for s in sources for t in targets)
    together = groups_of([(1, 2), (2, 3), (1, 3), (5, 6), (6, 7)], symmetric=True)
    assert [group.complete for group in together] == [True, False]


@given(seeds, st.integers(1, 4), st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_a_group_decides_as_one_whatever_the_order_of_messages(seed: int, sources: int, targets: int) -> None:
    rng = random.Random(seed)
    numbers = rng.sample(range(50), sources + targets)
    s, t = numbers[:sources], numbers[sources:]
    motes = {number: Producer(number) for number in numbers}
    differences = {number: rng.uniform(-5, 5) for number in numbers}
    waiting: list[Sent] = []
    found = [(a, b) for a in s for b in t]
    rng.shuffle(found)

    def deliver() -> None:
        to, message = waiting.pop(rng.randrange(len(waiting)))
        waiting.extend(motes[to].hear(message))

    for a, b in found:
        for one, other in ((a, b), (b, a)):
            waiting.extend(motes[one].found(other, differences[one]))
        for _ in range(rng.randrange(4)):
            if waiting:
                deliver()
    for _ in range(10_000):
        if not waiting:
            break
        deliver()
    assert not waiting, "it ends"
    expected = decided(differences.values())
    assert {mote.decision for mote in motes.values()} == {expected}
    assert {mote.coordinator for mote in motes.values()} == {min(numbers)}
    # One that costs so much more makes the group go to the base.
    changed = motes[rng.choice(numbers)]
    waiting.extend(changed.found(next(iter(changed.partners)), 1000.0))
    while waiting:
        deliver()
    assert {mote.decision for mote in motes.values()} == {"at base"}


def test_a_group_is_never_dearer_than_the_base_by_what_its_producers_reckon() -> None:
    """Where rows are sent once to all of a group's motes, the base wins; where nothing matches, the network."""
    drawn = Drawn(5, 30)
    query = drawn.query(transitive=True)
    network = drawn.network(list(query.pairs))
    never, always = Rates(Estimates(1, 1, 0, 3)), Rates(Estimates(1, 1, 1, 3))

    def hops(plan: Plan, rates: Rates) -> float:
        return plan.cost(rates, HOPS)

    for rates in (never, always):
        assert hops(strategies.grouped(query, network, rates, HOPS), rates) <= hops(
            strategies.base(query, network), rates
        )
    assert set(strategies.grouped(query, network, always, HOPS).places.values()) == {0}


def test_what_is_counted_moves_a_pair_when_it_is_off_by_a_third() -> None:
    before = Estimates(0.3, 0.3, 0.1, 3)
    assert Counted().estimates(before) == before
    found = Counted(epochs=100, s=30, t=39, results=20).estimates(before)
    assert (found.s, found.t, found.pair) == (0.3, 0.39, pytest.approx(20 / (3 * 69)))
    assert not placed_anew(found, before)
    counted = Counted(epochs=100, s=30, t=44, results=20)
    assert placed_anew(counted.estimates(before), before), "0.44 is 47 % more than 0.3"
    assert Counted(epochs=50).estimates(before) == Estimates(0, 0, 0.1, 3)


def test_keys_have_places_all_over_the_field() -> None:
    motes = [(number, number % 10, number // 10) for number in range(100)]
    found = Counter(nearest(place_of((key,), -0.5, -0.5, 9.5, 9.5), motes) for key in range(5000))
    assert len(found) == 100
    assert max(found.values()) < 100, "50 each"
    assert key_hash((1, 2)) != key_hash((2, 1))


@pytest.mark.parametrize(("name", "share"), [("s", 1.1), ("t", -0.1), ("pair", 10)])
def test_an_estimate_is_a_share(name: str, share: float) -> None:
    with pytest.raises(ValueError, match=f"estimate of {name} is .*: a share is from 0 to 1, as 10 % is 0.1"):
        Estimates(**{name: share})

"""Hosts, and motes that join none, that pass rows on: who has which rows then, what that costs, and what motes are told of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain, combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.tests.joins.test_join_choice import EQUAL, JOIN, Drawn, drawn, planned, units
from skerry.joins.placement.estimates import Estimates, Pair, Rates
from skerry.joins.placement.estimating import Estimate
from skerry.joins.placement.plans import needed
from skerry.joins.placement.prices import HOPS
from skerry.joins.placement.relays import PASSED_ON, Relays, relayed
from skerry.joins.placement.trees import Tree
from skerry.planner.cost.join_prices import prices
from skerry.planner.model.pairing import clause_of, hosts_of, state_bytes
from skerry.service.pair_costs import cost_of, plan_of
from skerry.service.pair_places import places
from skerry.service.pair_ways import Ways, carried_rows
from skerry_protocol import mote_sets
from skerry_protocol.codes import PairsWay
from skerry_protocol.limits import PAIRS_MOTES
from skerry_protocol.programs import Pairs, PairsHost

PLAN = planned(f"{JOIN} JOIN IN NETWORK")
#: 0 - 1 - … - 8.
LINE = Tree(0, {mote: mote - 1 for mote in range(1, 9)})


def hosted(found: Drawn, draw: st.DataObject) -> dict[Pair, int]:
    """Pairs at drawn motes other than the root."""
    motes = sorted(found.tree.parents)
    return {pair: draw.draw(st.sampled_from(motes)) for pair in found.pairs}


def told(hosts: dict[int, list[Pair]], relays: Relays) -> bytes:
    """The code that motes have."""
    assert PLAN.pairing is not None
    told_of = {**hosts, **{mote: [] for mote in relays.branching(hosts)}}
    order = sorted(told_of, key=lambda host: -len(relays.before(host)))
    made = clause_of(PLAN.pairing, 10_000, [(host, 1, told_of[host]) for host in order], relays=relays.of)
    assert {host: list(pairs) for host, (_, pairs) in hosts_of(made).items()} == {
        host: sorted(pairs) for host, pairs in hosts.items()
    }
    return bytes(made.values)


def read(code: bytes) -> tuple[list[int], list[tuple[int, bytes]]]:
    """Motes by their numbers; hosts, by theirs, and the bytes of their groups."""
    head = Pairs.parse(code)
    at = Pairs.sizeof() + head.condition
    motes = mote_sets.parse(code[at : at + head.motes])
    at += head.motes + head.s + head.t
    hosts = []
    while at < len(code):
        one = PairsHost.parse(code[at:])
        at += PairsHost.sizeof()
        hosts.append((one.host, code[at : at + one.groups]))
        at += one.groups
    return motes, hosts


def received(code: bytes) -> Counter[tuple[int, int, int]]:
    """By producer, role and host how often the host has a row that passes in this role alone, as motes read their program."""
    motes, hosts = read(code)

    def goes(producer: int, role: int) -> Iterator[tuple[int, int]]:
        """From whom to whom; hosts that pass rows on stand behind those to which they do."""
        passing: set[int] = set()
        for place, (host, groups) in enumerate(hosts):
            passed = [byte for byte in groups if byte < PAIRS_MOTES]
            needs = any(byte % PAIRS_MOTES == producer and byte // PAIRS_MOTES >> role & 1 for byte in groups)
            if host == producer or not (needs or place in passing):
                continue
            if flagged := producer in passed[1:]:
                assert place < passed[0] < len(hosts)
                passing.add(passed[0])
            yield (hosts[passed[0]][0] if flagged else producer), host

    found = Counter[tuple[int, int, int]]()
    for producer, role in product(range(len(motes)), (0, 1)):
        hops = list(goes(producer, role))
        have = {producer}
        while True:
            new = [(source, host) for source, host in hops if source in have and host not in have]
            if not new:
                break
            for _, host in new:
                found[motes[producer], role, motes[host]] += 1
                have.add(host)
        assert {host for _, host in hops} <= have, "whoever passes a row on has it"
    return found


@given(drawn, units, st.integers(1, 4), st.data())
@settings(max_examples=150, deadline=None)
def test_each_host_has_each_row_that_it_needs_once(
    found: Drawn, unit: str, most: int, draw: st.DataObject
) -> None:
    at, price = hosted(found, draw), prices(unit, 2, 4, 10)
    sent = needed(at)
    relays = Estimate(found.tree, found.rates, price, most).relays(sent)
    hosts: dict[int, list[Pair]] = {}
    for pair, host in at.items():
        hosts.setdefault(host, []).append(pair)
    have = received(told(hosts, relays))
    for pair, host in at.items():
        for role, mote in enumerate(pair):
            assert have[mote, role, host] == (mote != host)
    assert set(have.values()) <= {1}
    needs = {
        (mote, role, host) for pair, host in at.items() for role, mote in enumerate(pair) if mote != host
    }
    assert set(have) == needs, "nobody has what it does not need"
    ways = relays.ways(sent)
    assert all(len(carried) <= most for (source, _), carried in ways.items() if len(carried) > 1)
    assert all(len(relays.before(host)) <= PASSED_ON for host in hosts)


@given(drawn, units, st.integers(1, 4), st.data())
@settings(max_examples=150, deadline=None)
def test_ways_branch_and_meet_where_that_costs_less(
    found: Drawn, unit: str, most: int, draw: st.DataObject
) -> None:
    """Each host has each row that it needs once, whoever passes it on."""
    at, price = hosted(found, draw), prices(unit, 2, 4, 10)
    sent, estimate = needed(at), Estimate(found.tree, found.rates, price, most)
    relays = estimate.branched(sent)
    hosts: dict[int, list[Pair]] = {}
    for pair, host in at.items():
        hosts.setdefault(host, []).append(pair)
    have = received(told(hosts, relays))
    for pair, host in at.items():
        for role, mote in enumerate(pair):
            assert have[mote, role, host] == (mote != host)
    assert set(have.values()) <= {1}
    passing = {by for by, _ in relays.of.values()}
    assert {host for _, _, host in have} <= {*hosts, *passing}
    assert found.tree.root not in passing
    ways = relays.ways(sent)
    assert all(len(carried) <= most for carried in ways.values() if len(carried) > 1)
    assert all(len(relays.before(host)) <= PASSED_ON for host in (*hosts, *passing))
    costs = [
        plan_of(PairsWay.SENT, at, found.tree, these).cost(found.rates, price, found.tree)
        for these in (relays, estimate.relays(sent))
    ]
    assert costs[0] <= costs[1] * EQUAL


@given(drawn, units, st.data())
@settings(max_examples=100, deadline=None)
def test_rows_are_passed_on_where_that_costs_less(found: Drawn, unit: str, draw: st.DataObject) -> None:
    """As a plan's flows are reckoned; of two hosts against all that may be."""
    at, price, tree = hosted(found, draw), prices(unit, 2, 4, 10), found.tree
    sent, estimate = needed(at), Estimate(tree, found.rates, price, 2)
    relays = estimate.relays(sent)
    cost = plan_of(PairsWay.SENT, at, tree, relays).cost(found.rates, price, tree)
    assert estimate.cost(at) == pytest.approx(cost)
    assert cost <= cost_of(PairsWay.SENT, at, tree, found.rates, price) * EQUAL
    hosts = sorted(set(at.values()))
    if len(hosts) == 2:
        costs = []
        for by, host in ((None, None), tuple(hosts), tuple(hosts[::-1])):
            shared = [
                mote
                for mote, to in sent
                if to == host and mote != by and not sent[mote, to] & ~sent.get((mote, by), 0)
            ]  # type: ignore[arg-type]
            own = (by, host) in sent
            for whose in chain.from_iterable(combinations(shared, count) for count in range(3 - own)):
                tried = Relays({host: (by, frozenset(whose))} if whose and by and host else {})
                costs.append(plan_of(PairsWay.SENT, at, tree, tried).cost(found.rates, price, tree))
        assert cost == pytest.approx(min(costs))


def test_hops_that_two_hosts_share_are_counted_once() -> None:
    """Mote 8's rows go to 6, to 4 and to 2: 2 hops each in place of 2, 4 and 6."""
    at = {(8, 6): 6, (8, 4): 4, (8, 2): 2}
    rates = Rates(Estimates(1, 1, 0, 1))
    estimate = Estimate(LINE, rates, HOPS, 2)
    relays = estimate.relays(needed(at))
    assert relays.of == {4: (6, frozenset({8})), 2: (4, frozenset({8}))}
    assert estimate.cost(at) == 6
    assert Estimate(LINE, rates, HOPS).cost(at) == 12
    # A third time nothing is passed on: it would come late.
    farther = {**at, (8, 1): 1}
    assert max(map(len, map(estimate.relays(needed(farther)).before, (1, 2, 4, 6)))) == PASSED_ON


def test_ways_branch_and_meet_at_motes_that_join_none() -> None:
    """Below 3, itself below 2 and 1, stand 4 and 5, and below each of these two motes more."""
    tree = Tree(0, {1: 0, 2: 1, 3: 2, 4: 3, 5: 3, 6: 4, 7: 4, 8: 5, 9: 5})
    estimate = Estimate(tree, Rates(Estimates(1, 1, 0, 1)), HOPS, 2)
    # 1's rows go to 6 and to 8: they part at 3.
    apart = needed({(1, 6): 6, (1, 8): 8})
    branched = estimate.branched(apart)
    assert branched.of == {6: (3, frozenset({1})), 8: (3, frozenset({1}))}
    assert branched.branching({6, 8}) == [3]
    # Rows of 6 and of 8 go to 1, and meet there, which saves nothing by hops, and listeners by energy.
    together = needed({(6, 8): 1})
    assert not estimate.branched(together).of
    energy = Estimate(tree, Rates(Estimates(1, 1, 0, 1)), prices("energy", 2, 4, 10), 2)
    assert energy.branched(together).of == {1: (3, frozenset({6, 8}))}
    # 1 hears 6, and would send to it at once.
    near = Estimate(
        tree, Rates(Estimates(1, 1, 0, 1)), HOPS, 2, near=lambda one, other: {one, other} == {1, 6}
    )
    assert not near.branched(apart).of
    refusing = Estimate(
        tree, Rates(Estimates(1, 1, 0, 1)), HOPS, 2, lambda relays, _: 3 not in relays.branching({6, 8})
    )
    assert 3 not in refusing.branched(apart).branching({6, 8})


def test_a_way_between_hosts_carries_no_more_than_it_has_cells_for() -> None:
    """Of motes 6, 7 and 8, whose rows go to 5 and to 1; s of the three are passed on as far as there is room."""
    pairs: list[Pair] = [(s, t) for s in (6, 7, 8) for t in (5, 1)]
    at = {pair: pair[1] for pair in pairs}
    sent = needed(at)
    for most in (1, 2, 3):
        relays = relayed(sent, Estimate(LINE, Rates(), HOPS).of_way, most)
        assert [(by, len(whose)) for by, whose in relays.of.values()] == [(5, most)]
    refused = relayed(sent, Estimate(LINE, Rates(), HOPS).of_way, 3, lambda relays: 1 not in relays.of)
    assert 1 not in refused.of
    assert carried_rows(10_000) == 2


@given(drawn, units, st.sampled_from([200, 400, 900]))
@settings(max_examples=60, deadline=None)
def test_hosts_pass_on_what_they_have_room_for(found: Drawn, unit: str, room: int) -> None:
    known = found.rates.usual
    words = f"ESTIMATE s {known.s * 100:f} %, t {known.t * 100:f} %, pair {known.pair * 100:f} % COST {unit}"
    plan = planned(
        f"{JOIN.replace('s.room = t.room AND s.nodeid < t.nodeid', 's.nodeid < t.nodeid')} JOIN IN NETWORK {words}"
    )
    assert plan.pairing is not None
    motes = {number: mote for number, mote in found.motes().items() if number < 7}
    made = places(plan.pairing, plan.period_ms, motes, room, forced=True)
    ways = made.ways(PairsWay.SENT, 0)
    assert Ways(dict.fromkeys(motes, found.tree), motes, {}).full(ways) is None
    hosts = {host: list(pairs) for host, pairs in made.hosts.items()}
    if hosts:
        assert set(received(told(hosts, made.relays)).values()) <= {1}
        code = told(hosts, made.relays)
        assert bool(made.relays.of) == any(groups[0] < PAIRS_MOTES for _, groups in read(code)[1])


def test_a_host_that_passes_rows_on_has_room_for_them() -> None:
    assert PLAN.pairing is not None
    hosts = [(2, 5, [(4, 2)]), (3, 5, [(4, 3)])]
    alone = clause_of(PLAN.pairing, 10_000, hosts)
    passed = clause_of(PLAN.pairing, 10_000, hosts, relays={2: (3, frozenset({4}))})
    # 8 rows wait in place of those of 5 epochs, 13 bytes and a value each.
    assert state_bytes(passed) - state_bytes(alone) == 3 * (13 + PLAN.pairing.width)

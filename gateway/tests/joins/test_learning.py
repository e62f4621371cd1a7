"""What is learnt while motes join: shares of drawn rows, by what comes to the gateway of them, and when that is no chance."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from gateway.tests.joins.test_join_choice import JOIN, Drawn, planned
from skerry.ingest.join_tally import JoinTally
from skerry.joins.placement.estimates import Estimates, Rates
from skerry.joins.placement.learning import EPOCHS, is_sure, learnt
from skerry.planner.cost.join_prices import prices
from skerry.planner.model.clause import Clause
from skerry.planner.model.plans import QueryPlan
from skerry.service.kept_learning import learning_of, row_of
from skerry.service.pair_costs import cost_of
from skerry.service.pair_learning import FILLING_MAXIMUM, Learning, filling, look
from skerry.service.pair_places import Places, clause, places

#: s and t of two pairs, all of whose rows come.
PAIRS = ((1, 2), (1, 3))


def tallied(chance: random.Random, epochs: int, s: float, t: float, pair: float) -> JoinTally:
    """Rows of these shares; windows are of the same epoch, so that w is a half: each of both meets the other once."""
    tally = JoinTally(PAIRS, {(mote, role) for mote in (1, 2, 3) for role in "st"})
    tally.came(99)
    rows = {
        (mote, role, epoch)
        for mote, role, share in ((1, "s", s), (2, "t", t), (3, "t", t))
        for epoch in range(100, 100 + epochs)
        if chance.random() < share
    }
    for one, other in PAIRS:
        for epoch in range(100, 100 + epochs):
            both = (one, "s", epoch) in rows and (other, "t", epoch) in rows
            if both and chance.random() < pair:
                tally.answered(one, epoch, other, epoch)
                tally.answered(one, epoch, other, epoch)
    tally.settle(100 + epochs, sorted(rows))
    return tally


def test_shares_of_drawn_rows_are_learnt(drawn_seed: int) -> None:
    chance = random.Random(drawn_seed)
    before = Rates(Estimates(1, 1, 1, 0.5))
    found = learnt(tallied(chance, 2000, 0.4, 1.0, 0.1).counts(), before)
    assert set(found.off) == {"s", "pair"}, drawn_seed
    assert found.rates.usual.s == pytest.approx(0.4, abs=0.05)
    assert found.rates.usual.t == 1.0
    # What the model says of answers is what has come.
    assert found.rates.usual.results == pytest.approx(0.04, abs=0.02)
    assert not learnt(tallied(chance, 2000, 0.4, 1.0, 0.1).counts(), found.rates).off, drawn_seed


def test_what_is_as_it_was_assumed_moves_nothing(drawn_seed: int) -> None:
    chance = random.Random(drawn_seed)
    right = Rates(Estimates(0.5, 0.5, 1 / 4, 0.5))
    off = [bool(learnt(tallied(chance, EPOCHS, 0.5, 0.5, 0.5).counts(), right).off) for _ in range(100)]
    # Six shares are looked at, each of which is off by chance 3 times in 1,000.
    assert sum(off) <= 8, drawn_seed


def test_counting_begins_anew_and_knows_no_answer_twice() -> None:
    tally = tallied(random.Random(1), 60, 1, 1, 1)
    counts = tally.counts()
    assert (counts.epochs, counts.rows[1, "s"], counts.answers) == (60, 60, {(1, 2): 60, (1, 3): 60})
    tally.clear()
    assert (tally.counts().epochs, tally.counts().answers) == (0, {})
    tally.answered(1, 160, 2, 161)
    tally.settle(162, [(1, "s", 160), (2, "t", 161), (1, "s", 99)])
    counts = tally.counts()
    assert (counts.epochs, counts.rows[1, "s"], counts.rows[2, "t"], counts.answers) == (2, 1, 1, {(1, 2): 1})


def hosted(s: int, answers: int) -> JoinTally:
    """Of two motes whose rows go to a host: they say themselves how many they have had, 5 as s and 6 as t in each epoch."""
    tally = JoinTally([(5, 6)], set())
    tally.came(99)
    tally.told(5, 110, 32, 32, 0)
    for last in (140, 172, 172, 204):
        tally.told(5, last, 32, s, 0)
        tally.told(6, last, 32, 0, 32)
    for epoch in range(110, 110 + answers):
        tally.answered(5, epoch, 6, epoch)
    tally.settle(210)
    return tally


def test_rows_that_go_to_hosts_are_counted_by_their_motes() -> None:
    counts = hosted(8, 0).counts()
    assert counts.rows == {}
    assert counts.told == {(5, "s"): (24, 96), (6, "t"): (96, 96)}, "of epochs since counting began, and once"
    found = learnt(counts, Rates(Estimates(1, 1, 0, 3)))
    assert set(found.off) == {"s"}
    assert found.off["s"] == (1.0, pytest.approx(0.25))
    assert (found.rates.s[5], found.rates.t[6]) == (0.25, 1.0)
    assert not learnt(counts, found.rates).off


def test_pairs_without_answers_are_told_why() -> None:
    aliases = ("s", "t")
    assert hosted(0, 0).counts().silent(aliases) == {(5, 6): "no row of mote 5 has passed as s in 96 epochs"}
    assert hosted(8, 0).counts().silent(aliases) == {(5, 6): "no two rows have matched in 110 epochs"}
    assert hosted(8, 3).counts().silent(aliases) == {}


def test_few_rows_are_no_proof() -> None:
    assert not is_sure(0.3, 0.2, 50)
    assert is_sure(0.3, 0.2, 500)
    assert not is_sure(0.5, 1.0, 0)
    assert is_sure(0.0, 1.0, 1)


def test_windows_of_rows_fill_as_their_motes_send() -> None:
    assert [filling(3, 1.0), filling(1, 1.0), filling(0, 0.1)] == [3, 1, 0]
    assert 15 < filling(3, 0.5) < 25
    assert filling(3, 0.01) == FILLING_MAXIMUM


#: 0 - 1 - 2 - … - 6, of which the last two are a pair.
CHAIN = Drawn([0, 1, 2, 3, 4, 5], [(4, 5)], Estimates())


def cost(plan: QueryPlan, placed: Places, rates: Rates) -> float:
    assert plan.pairing is not None
    at = {pair: host for host, pairs in placed.hosts.items() for pair in pairs}
    price = prices(plan.pairing.cost, plan.pairing.width // 2, plan.pairing.width, plan.period_ms / 1000)
    return cost_of(plan.pairing.way, dict.fromkeys(placed.base, 0) | at, CHAIN.tree, rates, price)


def weigh(plan: QueryPlan, rates: Rates) -> tuple[Clause, Places, float]:
    assert plan.pairing is not None
    told, found = clause(plan, places(plan.pairing, plan.period_ms, CHAIN.motes(), rates=rates))
    return told, found, cost(plan, found, rates)


def counted(epochs: int, answers: int, *, at_base: bool) -> JoinTally:
    """Each epoch has a row of both; as many answers as that."""
    tally = JoinTally([(5, 6)], {5, 6} if at_base else set())
    tally.came(99)
    for epoch in range(100, 100 + epochs):
        for behind in range(answers):
            tally.answered(5, epoch, 6, epoch - behind)
    tally.settle(
        100 + epochs,
        [(mote, role, e) for mote, role in ((5, "s"), (6, "t")) for e in range(100, 100 + epochs)],
    )
    return tally


def test_pairs_go_into_the_network_and_back_to_the_base() -> None:
    plan = planned(f"{JOIN} COST BYTES JOIN AT BASE LEARNING ON")
    assert plan.pairing is not None
    assert plan.pairing.learns
    learning = Learning.of(plan.pairing, 0)
    _, placed = clause(plan, places(plan.pairing, plan.period_ms, CHAIN.motes()))
    assert not placed.hosts

    def seen(tally: JoinTally, now: float) -> Places | None:
        moved = look(learning, plan, placed, tally, weigh, cost, now)
        return None if moved is None else moved.places

    assert seen(counted(EPOCHS - 1, 0, at_base=True), 1) is None, "nothing is judged by so few"
    tally = counted(EPOCHS, 0, at_base=True)
    there = seen(tally, 2)
    assert there is not None
    assert [*there.hosts.values()] == [((5, 6),)]
    assert (tally.counts().epochs, learning.strategy != "AT BASE", learning.needed) == (0, True, 2 * EPOCHS)
    [change] = learning.changes
    assert (change.before, change.after, change.at) == ("AT BASE", learning.strategy, 2)
    assert "pair 100 % was assumed and 0 % counted, in 50 epochs: so it takes" in change.why
    # As was learnt: they stay.
    placed = there
    assert seen(counted(2 * EPOCHS, 0, at_base=False), 3) is None
    # Six answers in each epoch are more than two rows.
    assert seen(counted(2 * EPOCHS - 1, 6, at_base=False), 4) is None
    back = seen(counted(2 * EPOCHS, 6, at_base=False), 5)
    assert back is not None
    assert (dict(back.hosts), learning.strategy) == ({}, "AT BASE")
    placed = back
    assert seen(counted(4 * EPOCHS - 1, 0, at_base=True), 6) is None, "each change doubles what is counted"
    assert replace(learning, counted=None, epochs=0) == learning_of(row_of("SELECT …", learning)), (
        "kept as it is"
    )
    described = learning.described()
    assert [one["to"] for one in described["changes"]] == [change.after.lower(), "at base"]
    assert described["judged_from"] == 4 * EPOCHS

"""The model of joins in a network: answers are DuckDB's, what is metered is what plans expect, ways are ways."""

from __future__ import annotations

from itertools import pairwise

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from bench.measuring.join_learning import learned
from bench.measuring.join_meter import ANSWER_VALUES, ROW_VALUES, Metered, Readings
from bench.measuring.join_network import TOPOLOGIES, Field, Topology, without_circles
from bench.measuring.join_queries import Asked, query_0, query_1, query_2, query_3
from bench.measuring.join_series import CHOSEN, chosen, flooded, placed_by, priced
from hil_tests.datasets import DATA
from skerry.joins.placement import strategies
from skerry.joins.placement.estimates import Estimates, Rates
from skerry.joins.placement.learning import EPOCHS
from skerry.joins.placement.pair import BASE
from skerry.planner.cost.join_prices import prices

RNG = np.random.default_rng(7)
FIELD = Field.drawn("7", 60, RNG)
ASKED = query_1(FIELD, np.random.default_rng(7))


@pytest.mark.parametrize("window", [1, 3])
def test_answers_are_duckdbs(window: int) -> None:
    readings = Readings.drawn(len(FIELD), 60, 0.5, 0.4, 0.2, RNG)
    tables = {
        role: pa.table({"mote": motes, "epoch": epochs, "u": readings.values[motes, epochs]})
        for role in "st"
        for motes, epochs in [np.nonzero(readings.passes[role])]
    }
    chosen = pa.table({"s": [s for s, _ in ASKED.query.pairs], "t": [t for _, t in ASKED.query.pairs]})
    with duckdb.connect() as database:
        for name, table in (("s_rows", tables["s"]), ("t_rows", tables["t"]), ("pairs", chosen)):
            database.register(name, table)
        found = database.execute(
            """WITH s AS (SELECT *, row_number() OVER (PARTITION BY mote ORDER BY epoch) AS n FROM s_rows),
            t AS (SELECT *, row_number() OVER (PARTITION BY mote ORDER BY epoch) AS n FROM t_rows)
            SELECT pairs.s, pairs.t, greatest(a.epoch, b.epoch) AS at, count(*) FROM pairs
            JOIN s AS a ON a.mote = pairs.s JOIN t AS b ON b.mote = pairs.t AND a.u = b.u
            WHERE CASE WHEN a.epoch <= b.epoch
                THEN (SELECT count(*) FROM s AS c WHERE c.mote = a.mote AND c.epoch <= b.epoch) - a.n < $window
                ELSE (SELECT count(*) FROM t AS c WHERE c.mote = b.mote AND c.epoch <= a.epoch) - b.n < $window END
            GROUP BY ALL""",
            {"window": window},
        ).fetchall()
    own = {pair: readings.answers(pair, window) for pair in ASKED.query.pairs}
    assert {(s, t, at): count for s, t, at, count in found} == {
        (*pair, at): int(count) for pair, counts in own.items() for at, count in enumerate(counts) if count
    }


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_topologies_are_what_they_are_called(topology: Topology) -> None:
    if topology == "lab" and not DATA.exists():
        pytest.skip(f"{DATA} is not here")
    field = Field.drawn(topology, 100, np.random.default_rng(3))
    expected = {"grid": (6.5, 7.5), "lab": (4, 54)}.get(topology)
    low, high = expected if expected is not None else (int(topology) - 0.1, int(topology) + 0.1)
    assert low <= field.mean_neighbours <= high
    # One of the lab's 54 motes delivered nothing.
    assert len(field) == {"lab": 53}.get(topology, 100)
    for source, to in ((0, 17), (30, 2), (44, 45)):
        for path in (field.shortest(source, to), field.geographic(source, to)):
            assert (path[0], path[-1]) == (source, to)
            assert all(b in field.neighbours[a] for a, b in pairwise(path))
            assert len(set(path)) == len(path) >= field.hops[source, to] + 1
    assert without_circles([1, 2, 3, 2, 4]) == (1, 2, 4)


@pytest.mark.parametrize("make", [query_0, query_1, query_2, lambda field, _: query_3(field, near_m=30)])
def test_searches_find_every_pair(make: type[Asked]) -> None:
    asked = make(FIELD, np.random.default_rng(11))  # type: ignore[call-arg, arg-type]
    assert asked.query.pairs
    assert set(asked.network.paths) == set(asked.query.pairs)
    assert all(len(paths) == 3 for paths in asked.network.paths.values()), "by each tree"


def test_bytes_metered_are_about_those_expected() -> None:
    """Rows travel together, so that they are at most what each alone in its frame would take."""
    estimates = Estimates(0.5, 0.1, 0.05, 3)
    readings = Readings.drawn(len(FIELD), 400, 0.5, 0.1, 0.05, RNG)
    metered, rates = Metered(len(FIELD), readings, 3), Rates(estimates)
    price = prices("bytes", ROW_VALUES, ANSWER_VALUES, 10)
    for plan in strategies.plans(ASKED.query, ASKED.network, rates, price):
        expected, found = plan.cost(rates, price) * readings.epochs, metered.load(plan)
        assert 0.25 * expected < found.total < 1.1 * expected, plan.name
        assert found.sent.sum() == pytest.approx(found.received.sum())
        assert found.joules > 0


@pytest.mark.parametrize("unit", ["bytes", "energy"])
@pytest.mark.parametrize("shares", [(0.1, 1.0, 0.05), (1.0, 1.0, 0.01), (1.0, 1.0, 1.0)])
def test_hosts_chosen_are_never_dearer_than_the_base(shares: tuple[float, float, float], unit: str) -> None:
    rates, price = Rates(Estimates(*shares, 1)), priced(unit)
    for make in (query_0, query_1, query_2):
        asked = make(FIELD, np.random.default_rng(11))
        base = strategies.base(asked.query, asked.network)
        plan = chosen(asked, rates, price)
        assert set(plan.places) == set(asked.query.pairs)
        assert plan.cost(rates, price) <= base.cost(rates, price) * (1 + 1e-9)


def test_wrong_estimates_are_learnt_and_right_ones_stay() -> None:
    asked, price = query_2(FIELD, np.random.default_rng(11)), priced("bytes")
    right, wrong = Rates(Estimates(1.0, 0.1, 0.01, 1)), Rates(Estimates(0.1, 1.0, 1.0, 1))
    epochs = 400
    readings = Readings.drawn(len(FIELD), epochs, 1.0, 0.1, 0.01, np.random.default_rng(12))
    metered = Metered(len(FIELD), readings, 1)
    planned = placed_by(asked, CHOSEN, price)
    stays, moves = (learned(asked, metered, planned, rates, price) for rates in (right, wrong))
    assert stays.changes == 0
    assert stays.load(0, epochs).total == pytest.approx(metered.load(planned(right)).total)
    assert moves.changes == 1
    before, after = moves.stretches
    # The one before runs until the other's windows are full, which each mote hears of.
    assert (before.begin, after.begin, after.end) == (0, EPOCHS, epochs)
    assert EPOCHS < before.end < epochs
    whole = (
        metered.load(before.plan, slice(0, before.end)).total
        + metered.load(after.plan, slice(EPOCHS, None)).total
    )
    assert moves.load(0, epochs).total == pytest.approx(whole + flooded(asked).total)
    last = slice(before.end, epochs)
    assert metered.load(after.plan, last).total < metered.load(before.plan, last).total
    handed = moves.handed_over(5)
    assert [(one.begin, one.end) for one in handed.stretches] == [(0, EPOCHS + 5), (EPOCHS, epochs)]
    spared = metered.load(before.plan, slice(EPOCHS + 5, before.end)).total
    rows = metered.window_rows(after.plan).total
    assert rows > 0
    assert handed.load(0, epochs).total == pytest.approx(moves.load(0, epochs).total - spared + rows)
    assert stays.handed_over(5).load(0, epochs).total == stays.load(0, epochs).total


def test_a_window_of_one_row_takes_what_an_epoch_does_in_which_all_pass_and_none_match() -> None:
    asked, price = query_0(FIELD, np.random.default_rng(11)), priced("bytes")
    rates = Rates(Estimates(1.0, 1.0, 0.0, 1))
    readings = Readings.drawn(len(FIELD), 1, 1.0, 1.0, 1e-12, np.random.default_rng(12))
    metered = Metered(len(FIELD), readings, 1)
    for plan in (strategies.base(asked.query, asked.network), chosen(asked, rates, price)):
        assert plan.flows
        assert all(len(roles) == 1 for flow in plan.flows if not flow.answers for _, roles in flow.rows)
        assert metered.window_rows(plan).total == pytest.approx(metered.load(plan).total)


def test_readings_follow_each_other() -> None:
    first, second = (Readings.drawn(3, epochs, 0.5, 0.5, 0.2, RNG) for epochs in (4, 5))
    both = first.then(second)
    assert both.epochs == 9
    assert np.array_equal(both.values[:, :4], first.values)
    assert np.array_equal(both.passes["t"][:, 4:], second.passes["t"])


def test_a_tree_that_is_listened_to_as_a_whole_takes_more_energy_and_no_bytes() -> None:
    metered = Metered(len(FIELD), Readings.drawn(len(FIELD), 20, 0.5, 0.5, 0.1, RNG), 1)
    plan = strategies.base(ASKED.query, ASKED.network)
    part, whole = metered.load(plan), metered.load(plan, tree=FIELD.tree)
    assert part.total == whole.total
    assert part.joules < whole.joules
    assert plan.name == BASE

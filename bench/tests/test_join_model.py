"""The model of joins in a network: answers are DuckDB's, what is metered is what plans expect, ways are ways."""

from __future__ import annotations

from itertools import pairwise

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from bench.measuring.join_meter import ANSWER_VALUES, ROW_VALUES, Metered, Readings
from bench.measuring.join_network import TOPOLOGIES, Field, Topology, without_circles
from bench.measuring.join_queries import Asked, query_0, query_1, query_2, query_3
from hil_tests.datasets import DATA
from skerry.joins.placement import strategies
from skerry.joins.placement.estimates import Estimates, Rates
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

"""Aggregates of an index's tuples that need all values, against DuckDB."""

from __future__ import annotations

import random
from typing import Any

import duckdb
import pytest

from skerry.planner.features.indexing import Axis, Index, IndexPart
from skerry.sensors.index_tables import StoredTuple, answered, table_of
from skerry.sensors.planning import planned
from skerry.sql.errors import QueryError
from skerry_protocol.attributes import BY_NAME

INDEX = Index(
    "climate",
    7,
    (Axis(BY_NAME["light"].number, 0, 2000), Axis(BY_NAME["temp"].number, 1000, 3500)),
    30_000,
    86_400_000,
    (IndexPart((0, 1), {1: (0, 0)}),),
)


def plan_of(sql: str) -> Any:
    plan = planned(sql, {"climate": table_of(INDEX)})
    assert plan is not None
    assert plan.sources is not None
    return plan.sources


def drawn(rng: random.Random, count: int) -> list[StoredTuple]:
    return [
        StoredTuple(
            rng.randrange(5),
            1,
            n,
            (rng.randrange(20) * 50, None if rng.random() < 0.1 else rng.randrange(1000, 1060)),
        )
        for n in range(count)
    ]


def answers_to(sql: str, tuples: list[StoredTuple]) -> list[tuple[Any, ...]]:
    found = answered(plan_of(sql), INDEX, tuples, lambda _: None)
    return [tuple(row.values()) for row in found.to_pylist()]


def rounded(rows: list[Any]) -> list[tuple[Any, ...]]:
    return sorted(
        (tuple(round(v, 9) if isinstance(v, float) else v for v in row) for row in rows),
        key=lambda row: tuple((v is None, 0 if v is None else v) for v in row),
    )


def database(tuples: list[StoredTuple]) -> duckdb.DuckDBPyConnection:
    found = duckdb.connect()
    found.execute("CREATE TABLE climate (nodeid INTEGER, epoch INTEGER, light INTEGER, temp DECIMAL(8, 2))")
    found.executemany(
        "INSERT INTO climate VALUES (?, ?, ?, ?::INTEGER / 100)",
        [(one.node, one.epoch, one.values[0], one.values[1]) for one in tuples] or [(0, 0, 0, 0)],
    )
    if not tuples:
        found.execute("DELETE FROM climate")
    return found


@pytest.mark.parametrize("count", [0, 1, 2, 200])
def test_median_and_the_like_are_duckdbs(drawn_seed: int, count: int) -> None:
    rng = random.Random(drawn_seed)
    tuples = drawn(rng, count)
    share = rng.randrange(101) / 100
    for group in ("", " GROUP BY nodeid"):
        first = "nodeid, " if group else ""
        where = " WHERE light < 700 OR temp > 10.3"
        ours = f"""SELECT {first}MEDIAN(temp), QUANTILE(light, {share}), VARIANCE(temp), STDDEV(light), COUNT(DISTINCT temp)
            FROM climate{where}{group}"""
        theirs = f"""SELECT {first}quantile_disc(temp, 0.5)::DOUBLE, quantile_disc(light, {share}), var_samp(temp::DOUBLE),
            stddev_samp(light), count(DISTINCT temp) FROM climate{where}{group}"""
        assert rounded(answers_to(ours, tuples)) == rounded(database(tuples).execute(theirs).fetchall())


def test_rankings_and_histograms_are_duckdbs(drawn_seed: int) -> None:
    tuples = drawn(random.Random(drawn_seed), 200)
    [row] = answers_to(
        "SELECT TOP(4, temp), BOTTOM(3, light), HISTOGRAM(temp, 10.1, 10.5, 4) FROM climate", tuples
    )
    base = database(tuples)
    top = base.execute(
        "SELECT nodeid, temp::DOUBLE FROM climate ORDER BY temp DESC NULLS LAST, nodeid LIMIT 4"
    )
    assert [(one["nodeid"], one["value"]) for one in row[0]] == top.fetchall()
    bottom = base.execute("SELECT nodeid, light FROM climate ORDER BY light, nodeid LIMIT 3").fetchall()
    assert [(one["nodeid"], one["value"]) for one in row[1]] == bottom
    bins = base.execute(
        "SELECT least(greatest(floor((temp - 10.1) * 10), 0), 3)::INTEGER AS bin, count(*) FROM climate"
        " WHERE temp IS NOT NULL GROUP BY bin"
    )
    counted = dict(bins.fetchall())
    assert row[2] == [counted.get(bin, 0) for bin in range(4)]


def test_over_nothing_lists_are_empty_and_estimates_are_exact() -> None:
    sql = "SELECT TOP(2, temp), HISTOGRAM(temp, 10, 20, 2), MEDIAN(temp), ERROR(MEDIAN(temp)), VARIANCE(temp) FROM climate"
    assert answers_to(sql, []) == [([], [0, 0], None, 0, None)]


def test_having_and_order_by_take_them() -> None:
    tuples = [StoredTuple(node, 1, n, (100 * node + n, 2000)) for node in range(4) for n in range(3)]
    sql = "SELECT nodeid, MEDIAN(light) FROM climate GROUP BY nodeid HAVING MEDIAN(light) > 150 ORDER BY MEDIAN(light) DESC LIMIT 1"
    assert answers_to(sql, tuples) == [(3, 301)]


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("QUANTILE(temp, 2)", "QUANTILE needs a number from 0 to 1 as q, not 2"),
        ("QUANTILE(temp)", "write QUANTILE"),
        ("TOP(13, temp)", "from 1 to 12 as n, not 13"),
        ("TOP(1.5, temp)", "a whole number"),
        ("HISTOGRAM(temp, 30, 10, 4)", "from 30 to 10 have no width"),
        ("HISTOGRAM(temp, 10, 30, 37)", "from 1 to 36 as bins, not 37"),
        ("MEDIAN(time)", "MEDIAN is of numbers"),
        ("MEDIAN(temp, 5 min)", "write MEDIAN"),
        ("ERROR(AVG(temp))", "ERROR has no meaning here"),
    ],
)
def test_what_they_do_not_take_is_said(what: str, said: str) -> None:
    with pytest.raises(QueryError) as raised:
        plan_of(f"SELECT {what} FROM climate")
    assert said in str(raised.value)

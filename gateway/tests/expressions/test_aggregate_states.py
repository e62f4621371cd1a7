"""Aggregates of several cells: the motes' own code merges, the gateway evaluates, DuckDB says what is right."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from firmware.tests.query import host
from firmware.tests.query.mote import COMPLETE, Mote
from skerry.built_library import LibraryError
from skerry.execution.residual import Residual, Rows
from skerry.expressions import aggregate_code
from skerry.ingest.partial_states import from_packet, merge_partials, partials_batch
from skerry.planner.model.plans import Feed, MoteQuery, QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import encode
from skerry.planner.planner import plan_query
from skerry.service.explain import explain
from skerry.sql.errors import QueryError
from skerry_protocol import records
from skerry_protocol.attributes import BY_NAME

#: Hundredths of a degree; None: the sensor failed.
readings = st.lists(st.none() | st.integers(-4000, 12500) | st.integers(2000, 2050), min_size=1, max_size=40)


def test_a_library_that_is_missing_is_told_with_what_makes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKERRY_BUILD", str(tmp_path))
    monkeypatch.setattr(aggregate_code, "_library", cache(aggregate_code._library.__wrapped__))
    missing = tmp_path / "firmware" / "libskerry_aggregates.so"
    with pytest.raises(LibraryError, match=f"^{missing} is missing: run 'make firmware' in "):
        aggregate_code.check()


@pytest.fixture(scope="module")
def library() -> Path:
    return host.query_library()


def plan(what: str) -> QueryPlan:
    result = plan_query(f"SELECT {what} FROM sensors SAMPLE PERIOD 1 s")
    assert isinstance(result, QueryPlan)
    return result


def own_state(library: Path, query: MoteQuery, node: int, temp: int | None) -> bytes:
    """A PARTIAL body as the mote of that address makes it."""
    mote = Mote(library)
    mote.identify(node)
    mote.sensor(BY_NAME["temp"].number, temp)
    mote.synchronise(99.9)
    assert mote.install(encode(query, 0), 1) == COMPLETE
    mote.run(1)
    (record,) = mote.records()
    return bytes(records.Partial.build(record.body))


def in_network(library: Path, what: str, temps: Sequence[int | None], seed: int) -> dict[str, Any]:
    """The row that a network with these readings, on motes 0, 1, …, gives after merging in a random tree. States whose sum a mote's bits
    do not hold go on side by side."""
    wanted = plan(what)
    query = merge([wanted])
    parts = [own_state(library, query, node, temp) for node, temp in enumerate(temps)]
    mote, order = Mote(library), random.Random(seed)
    mote.install(encode(query, 0), 1)
    apart = []
    while len(parts) > 1:
        one, other = (parts.pop(order.randrange(len(parts))) for _ in range(2))
        both = mote.merge(one, other)
        if both is None:
            apart.append(one)
            parts.append(other)
            continue
        decoded = [from_packet(query, records.Partial.parse(data)) for data in (one, other, both)]
        assert merge_partials(query, decoded[:2]) == decoded[2], "gateway and motes merge alike"
        parts.append(both)
    brought = [from_packet(query, records.Partial.parse(data)) for data in (*apart, *parts)]
    batch = Rows(partials_batch(query, [merge_partials(query, brought)]), query)
    residual = Residual(wanted)
    chosen = residual.select(batch, Feed("u", 1, 1000, 1000, 0))
    table = residual.project(batch, chosen)
    assert table.schema == residual.schema()
    (row,) = table.to_pylist()
    assert isinstance(row, dict)
    return row


def in_duckdb(select: str, temps: Sequence[int | None]) -> tuple[Any, ...]:
    """The same of a table of motes and exact decimals."""
    sensors = pa.table(  # noqa: F841 duckdb finds it by its name
        {
            "nodeid": range(len(temps)),
            "temp": pa.array([None if t is None else Decimal(t) / 100 for t in temps], pa.decimal128(9, 2)),
        }
    )
    (row,) = duckdb.sql(f"SELECT {select} FROM sensors").fetchall()
    return tuple(row)


@settings(max_examples=25)
@given(readings, st.integers(0, 2**32))
def test_variance_and_deviation(library: Path, temps: list[int | None], seed: int) -> None:
    row = in_network(library, "VARIANCE(temp) AS v, STDDEV(temp) AS s, COUNT(temp) AS n", temps, seed)
    v, s, n = in_duckdb("VAR_SAMP(temp), STDDEV_SAMP(temp), COUNT(temp)", temps)
    assert row["n"] == n
    if v is None:
        assert (row["v"], row["s"]) == (None, None)
        return
    assert row["v"] == pytest.approx(v, abs=0.5000001e-7, rel=1e-9)
    assert row["s"] == pytest.approx(s, abs=0.5000001e-5, rel=1e-9)


def test_variance_beyond_a_motes_bits_is_exact_up_to_64(library: Path) -> None:
    """The one's square leaves 48 bits."""
    assert in_network(library, "VARIANCE(temp * 2000) AS v", [12500, 0], 1) == {"v": 250_000**2 / 2}
    assert in_network(library, "VARIANCE(temp * 65000) AS v", [12500] * 30, 1) == {"v": None}


@settings(max_examples=25)
@given(readings, st.integers(0, 2**32))
@example([12500, 12500, 12500, -4000, -4000, -4000, -4000], 3)
@example([12500] * 40, 1)
def test_sums_are_exact_whatever_the_tree(library: Path, temps: list[int | None], seed: int) -> None:
    """Up to nine digits each: with the third reading they are beyond a mote's 32 bits, or with a later one within them again."""
    of = "temp * 65000"
    row = in_network(library, f"SUM({of}) AS s, AVG({of}) AS a, COUNT({of}) AS n", temps, seed)
    s, n = in_duckdb(f"SUM({of}), COUNT({of})", temps)
    assert row["n"] == n
    assert row["s"] == (None if s is None else float(s))
    assert row["a"] == (None if s is None else pytest.approx(float(s / n), abs=0.5000001e-5, rel=1e-12))


@settings(max_examples=25)
@given(readings, st.integers(0, 2**32), st.sampled_from(["0", "0.1", "0.5", "0.9", "1"]))
def test_quantiles_are_between_their_bounds(
    library: Path, temps: list[int | None], seed: int, share: str
) -> None:
    row = in_network(
        library, f"QUANTILE(temp, {share}) AS q, ERROR(QUANTILE(temp, {share})) AS e", temps, seed
    )
    (exact,) = in_duckdb(f"QUANTILE_DISC(temp, {share})", temps)
    if exact is None:
        assert (row["q"], row["e"]) == (None, None)
        return
    assert abs(row["q"] - float(exact)) <= row["e"] + 1e-9
    if len(set(temps) - {None}) <= 8:
        assert row["e"] == 0


def test_median_of_many_is_near(library: Path) -> None:
    """54 motes in an office: the stated error is far below the spread of the readings."""
    draw = random.Random(4)
    temps = [round(draw.gauss(2200, 150)) for _ in range(54)]
    row = in_network(library, "MEDIAN(temp) AS m, ERROR(MEDIAN(temp)) AS e", temps, 1)
    (exact,) = in_duckdb("QUANTILE_DISC(temp, 0.5)", temps)
    assert abs(row["m"] - float(exact)) <= row["e"] <= 0.75


@settings(max_examples=25)
@given(readings, st.integers(0, 2**32), st.integers(1, 6))
def test_top_and_bottom(library: Path, temps: list[int | None], seed: int, number: int) -> None:
    row = in_network(library, f"TOP({number}, temp) AS hot, BOTTOM({number}, temp) AS cold", temps, seed)
    known = [(node, temp / 100) for node, temp in enumerate(temps) if temp is not None]
    for name, sign in (("hot", -1), ("cold", 1)):
        best = sorted(known, key=lambda entry: (sign * entry[1], entry[0]))[:number]
        assert [(entry["nodeid"], entry["value"]) for entry in row[name]] == best


@settings(max_examples=25)
@given(readings, st.integers(0, 2**32), st.integers(1, 36))
def test_histogram(library: Path, temps: list[int | None], seed: int, bins: int) -> None:
    row = in_network(library, f"HISTOGRAM(temp, -5.5, 30, {bins}) AS h", temps, seed)
    where = f"LEAST({bins - 1}, GREATEST(0, CAST(FLOOR((temp + 5.5) * {bins} / 35.5) AS INT)))"
    cells = ", ".join(f"COUNT(temp) FILTER (WHERE {where} = {bin})" for bin in range(bins))
    assert row["h"] == list(in_duckdb(cells, temps))


@settings(max_examples=15)
@given(
    st.lists(st.integers(-4000, 12500) | st.integers(0, 9), min_size=1, max_size=80), st.integers(0, 2**32)
)
def test_count_distinct_is_within_its_error(library: Path, temps: list[int], seed: int) -> None:
    row = in_network(library, "COUNT(DISTINCT temp) AS n, ERROR(COUNT(DISTINCT temp)) AS e", temps, seed)
    (exact,) = in_duckdb("COUNT(DISTINCT temp)", temps)
    # Hashes are fixed: among the sets that are tried, some are far out of the ordinary.
    assert abs(row["n"] - exact) <= 4.5 * row["e"] + 1
    load = exact / 384
    assert row["e"] == pytest.approx(math.sqrt(384 * (math.exp(load) - load - 1)), abs=0.6)


def test_states_are_shared() -> None:
    shared = merge(
        [plan("MEDIAN(temp), QUANTILE(temp, 0.9), ERROR(MEDIAN(temp)), VARIANCE(temp), STDDEV(temp)")]
    )
    assert [(c.aggregate.name, c.cells) for c in shared.columns if c.is_field] == [
        ("QUANTILES", 8), ("VARIANCE", 2),
    ]  # fmt: skip
    assert len(shared.columns) == 10
    assert MoteQuery.from_dict(shared.to_dict()) == shared


def test_having_and_arithmetic_take_estimates(library: Path) -> None:
    row = in_network(
        library, "QUANTILE(temp, 0.75) - QUANTILE(temp, 0.25) AS spread", [100, 200, 300, 400], 1
    )
    assert row["spread"] == 2.0


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("TOP(0, temp)", "TOP needs a whole number from 1 to 12 as n, not 0 at column 12: write TOP(3, temp)"),
        ("TOP(temp)", "TOP does not take these at column 8: write TOP(3, temp)"),
        ("TOP(3, temp) + 1", "TOP(3, temp) is a list, not a value to reckon with at column 8: "
         "ask for it as a column of its own"),
        ("QUANTILE(temp, 90)", "QUANTILE needs a number from 0 to 1 as q, not 90 at column 23: write QUANTILE(temp, 0.9)"),
        ("HISTOGRAM(temp, 30, 10, 20)", "HISTOGRAM's bins from 30 to 10 have no width at column 24: "
         "write HISTOGRAM(temp, 10, 30, 20): from 10 to 30 degrees in 20 bins"),
        ("HISTOGRAM(temp, 10, 30, 37)", "HISTOGRAM needs a whole number from 1 to 36 as bins, not 37 at column 32: "
         "write HISTOGRAM(temp, 10, 30, 20): from 10 to 30 degrees in 20 bins"),
        ("ERROR(AVG(temp))", "ERROR has no meaning here at column 14: "
         "it is of MEDIAN, QUANTILE or COUNT(DISTINCT …): the others are exact"),
        ("SUM(DISTINCT temp)", "SUM(DISTINCT …) has no meaning here at column 8: write COUNT(DISTINCT …)"),
        ("VARIANCE(temp, light)", "VARIANCE takes one argument at column 23: write VARIANCE(temp)"),
        ("MEDIAN(temp), MEDIAN(light)", "these aggregates need 16 cells at column 8: "
         "a partial state has 12: one for COUNT, SUM, AVG, MIN, MAX and each GROUP BY, more for others"),
    ],
)  # fmt: skip
def test_refusals(what: str, message: str) -> None:
    with pytest.raises(QueryError) as raised:
        plan(what)
    assert raised.value.summary == message


def test_explain_tells_what_is_made_of_a_state() -> None:
    having = "STDDEV(temp) > 1 AND QUANTILE(temp, 0.9) > 3 AND ERROR(MEDIAN(temp)) < 2"
    planned = plan_query(f"SELECT VARIANCE(temp) FROM sensors HAVING {having} SAMPLE PERIOD 1 s")
    assert isinstance(planned, QueryPlan)
    said = "((STDDEV(temp) > 1) AND (QUANTILE(temp, 0.9) > 3)) AND (ERROR(QUANTILE(temp, 0.5)) < 2)"
    assert explain(planned)["gateway"]["having"] == said


def test_a_condition_at_the_gateway_may_have_a_long_list() -> None:
    known = ", ".join(str(number) for number in range(3, 3000))
    text = f"SELECT COUNT(*) AS n, COUNT(*) IN ({known}) AS c FROM sensors HAVING COUNT(*) NOT IN ({known}) SAMPLE PERIOD 1 s"
    planned = plan_query(text)
    assert isinstance(planned, QueryPlan)
    assert planned.having is not None
    assert explain(planned)["gateway"]["having"].startswith("NOT ")

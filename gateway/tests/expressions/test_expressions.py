"""The same expression means the same on a mote, at the gateway, and in a database."""

from __future__ import annotations

import ctypes
import math
from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import scipy.stats
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from firmware.tests.query import host
from firmware.tests.query.test_query_vm import hash_of
from gateway.tests.generated import NAMES, Row, conditions, exact_numbers, in_database, numbers, rows_of_motes
from skerry.execution.residual import Residual, Rows
from skerry.expressions import build
from skerry.expressions.assembler import assemble, obstacle
from skerry.expressions.evaluate import Evaluator
from skerry.planner.model.plans import Feed, QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import fits
from skerry.planner.planner import plan_query
from skerry.sql.errors import QueryError
from skerry_protocol.attributes import ATTRIBUTES, BY_NAME
from skerry_protocol.bytecode import check, hashed

_NODEID, _EPOCH = (build.attribute(BY_NAME[name]) for name in ("nodeid", "epoch"))


def planned(text: str) -> QueryPlan:
    try:
        plan = plan_query(text)
    except QueryError as error:
        # Random expressions compare metres with volts, are too long, or leave 64 bits.
        known = ("unit mismatch", "too large", "may reach", "out of range")
        assume(not any(part in error.message for part in known))
        raise
    assert isinstance(plan, QueryPlan)
    return plan


def at_gateway(plan: QueryPlan, rows: list[Row]) -> list[dict[str, object]]:
    """The user's rows as the gateway computes them from what motes send."""
    query = merge([plan])
    columns: dict[str, pa.Array] = {
        "nodeid": pa.array([row["nodeid"] for row in rows], pa.int64()),
        "epoch": pa.array([0] * len(rows), pa.int64()),
    }
    for column in query.columns:
        columns[column.name] = pa.array([row[column.name] for row in rows], pa.int64())
    batch = Rows(pa.RecordBatch.from_pydict(columns), query)
    residual = Residual(plan)
    indices = residual.select(batch, Feed("u", 1, plan.period_ms, query.period_ms, 0))
    return residual.project(batch, indices).to_pylist()


@settings(max_examples=150)
@given(exact_numbers, conditions(exact_numbers), rows_of_motes)
def test_gateway_agrees_with_duckdb(number: str, condition: str, rows: list[Row]) -> None:
    plan = planned(f"SELECT {number} AS x, {condition} AS c FROM sensors SAMPLE PERIOD 1 s")
    try:
        expected = in_database(f"SELECT {number} AS x, {condition} AS c FROM sensors", rows)
    except duckdb.Error:
        assume(False)
        raise
    got = [(row["x"], row["c"]) for row in at_gateway(plan, rows)]
    assert got == [(None if x is None else float(str(x)), c) for x, c in expected]


@settings(max_examples=100)
@given(conditions(exact_numbers), rows_of_motes)
def test_rows_that_pass_are_those_that_duckdb_selects(condition: str, rows: list[Row]) -> None:
    plan = planned(f"SELECT nodeid FROM sensors WHERE {condition} SAMPLE PERIOD 1 s")
    try:
        expected = in_database(f"SELECT nodeid FROM sensors WHERE {condition}", rows)
    except duckdb.Error:
        assume(False)
        raise
    assert [row["nodeid"] for row in at_gateway(plan, rows)] == [int(str(node)) for (node,) in expected]


@settings(max_examples=100)
@given(
    st.sampled_from(["temp", "light", "level * temp", "temp / light", "xpos * 100000000"]),
    st.sampled_from(["= {}", "<> {}", "IN (1, {}, 21.5)", "NOT IN ({}, 0)", "BETWEEN {} AND 20", "> {}", "<= {}"]),
    st.sampled_from(["999999999999999999", "-99999999999999999", "0.000000000000000001", "1.00000000000000001", "-2e-17", "2500000000"]),
    rows_of_motes,
)  # fmt: skip
def test_numbers_that_no_value_reaches_are_compared_as_in_duckdb(
    number: str, test: str, constant: str, rows: list[Row]
) -> None:
    """Equality, too, though 64 bits do not hold the value and the constant at the finer digits."""
    condition = f"({number}) {test.format(constant)}"
    plan = plan_query(f"SELECT {condition} AS c FROM sensors SAMPLE PERIOD 1 s")
    assert isinstance(plan, QueryPlan)
    # A database has no more digits for a quotient than for a double.
    exact = (
        f"CAST(round({number}, 5) AS DECIMAL(38, 18))"
        if "/" in number
        else f"CAST({number} AS DECIMAL(38, 18))"
    )
    value = exact.replace("temp / light", "temp / NULLIF(light, 0)")
    expected = in_database(
        f"SELECT {value} {test.format(f'CAST({constant} AS DECIMAL(38, 18))')} FROM sensors", rows
    )
    assert [row["c"] for row in at_gateway(plan, rows)] == [c for (c,) in expected]


@settings(max_examples=100)
@given(st.sampled_from(NAMES), st.sampled_from(NAMES), rows_of_motes)
def test_quotients_agree_with_duckdb_at_their_digits(a: str, b: str, rows: list[Row]) -> None:
    plan = planned(f"SELECT {a} / {b} AS x, {a} / 3 AS y FROM sensors SAMPLE PERIOD 1 s")
    expected = in_database(f"SELECT {a} / NULLIF({b}, 0), {a} / 3 FROM sensors", rows)
    for row, (x, y) in zip(at_gateway(plan, rows), expected, strict=True):
        for output, value in zip(plan.outputs, (x, y), strict=True):
            got = row[output.name]
            if value is None or got is None:
                assert got is value
            else:
                assert isinstance(got, float)
                half = 0.5000001 * 10**-output.digits
                assert math.isclose(got, float(str(value)), rel_tol=1e-12, abs_tol=half)


class Machine:
    """The firmware's stack machine, compiled for this host."""

    def __init__(self) -> None:
        sources = (
            host.FIRMWARE / "query" / "expressions" / "vm.c",
            host.FIRMWARE / "lib" / "wide.c",
            host.HERE / "vm_rows.c",
        )
        self._run = ctypes.CDLL(str(host.build("libskerry_vm.so", sources, host.TRAPS))).vm_run_rows
        self._run.restype = None

    def run(self, code: bytes, attributes: dict[int, int | None]) -> int | None:
        """The program's value over attributes by number; None: NULL."""
        width = len(attributes)
        values = (ctypes.c_int32 * width)(*[attributes[number] or 0 for number in range(width)])
        nulls = ctypes.c_uint32(sum(1 << number for number in attributes if attributes[number] is None))
        result, known = ctypes.c_int32(), ctypes.c_uint8()
        self._run(
            code, ctypes.c_uint8(len(code)), values, ctypes.byref(nulls), ctypes.c_uint32(width),
            ctypes.c_uint32(1), ctypes.byref(result), ctypes.byref(known),
        )  # fmt: skip
        return result.value if known.value else None


@pytest.fixture(scope="module")
def machine() -> Machine:
    return Machine()


@settings(max_examples=200)
@given(numbers, conditions(numbers), rows_of_motes)
def test_motes_agree_with_the_gateway(machine: Machine, number: str, condition: str, rows: list[Row]) -> None:
    plan = planned(f"SELECT {number} AS x, {condition} AS c FROM sensors SAMPLE PERIOD 1 s")
    by_output = zip(*(row.values() for row in at_gateway(plan, rows)), strict=True)
    for output, of_rows in zip(plan.outputs, by_output, strict=True):
        if obstacle(output.expr) is not None:
            continue
        code = assemble(output.expr)
        check(code)
        for row, expected in zip(rows, of_rows, strict=True):
            values = {a.number: row.get(a.name) for a in ATTRIBUTES}
            value = machine.run(code, values)
            assert (None if value is None else value / 10**output.digits) == expected


@settings(max_examples=200)
@given(conditions(numbers), rows_of_motes)
def test_motes_drop_no_row_that_the_user_wants(machine: Machine, condition: str, rows: list[Row]) -> None:
    plan = planned(f"SELECT nodeid FROM sensors WHERE {condition} AND light < 1000 SAMPLE PERIOD 1 s")
    wanted = {row["nodeid"] for row in at_gateway(plan, rows)}
    if plan.mote_where is None:
        return
    code = assemble(plan.mote_where)
    sent = {
        row["nodeid"] for row in rows if machine.run(code, {a.number: row.get(a.name) for a in ATTRIBUTES})
    }
    assert wanted <= sent
    if plan.mote_where == plan.where:
        assert wanted == sent


@settings(max_examples=100)
@given(st.lists(conditions(exact_numbers), min_size=2, max_size=4), rows_of_motes)
def test_a_shared_query_drops_no_row_that_any_user_wants(
    machine: Machine, conditions: list[str], rows: list[Row]
) -> None:
    plans = [
        planned(f"SELECT nodeid FROM sensors WHERE {c} AND light > 5 SAMPLE PERIOD 1 s") for c in conditions
    ]
    where = merge(plans).where
    if where is None:
        return
    code = assemble(where)
    for plan in plans:
        for row in rows:
            if at_gateway(plan, [row]):
                assert machine.run(code, {a.number: row.get(a.name) for a in ATTRIBUTES})


#: Of attributes and plain numbers: others would often compare metres with volts.
_tests = st.builds(
    "{} {} {}".format, st.sampled_from(NAMES), st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), st.integers(-50, 50)
) | st.builds("{} IN ({}, {})".format, st.sampled_from(NAMES), st.integers(0, 50), st.integers(0, 50))  # fmt: skip
_pairs = st.builds("({} {} {})".format, _tests, st.sampled_from(["AND", "OR"]), _tests)


@settings(max_examples=100)
@given(
    st.lists(_tests | _pairs, min_size=12, max_size=40), st.sampled_from(["AND", "OR"]), _tests, rows_of_motes
)
def test_of_long_conditions_motes_drop_no_row_that_the_user_wants(
    machine: Machine, parts: list[str], operator: str, further: str, rows: list[Row]
) -> None:
    """They ask of them what fits, and the gateway the rest."""
    condition = f"({f' {operator} '.join(parts)}) AND {further}"
    plan = planned(f"SELECT nodeid FROM sensors WHERE {condition} SAMPLE PERIOD 1 s")
    assert fits(merge([plan]))
    try:
        expected = in_database(f"SELECT nodeid FROM sensors WHERE {condition}", rows)
    except duckdb.Error:
        assume(False)
        raise
    wanted = [int(str(node)) for (node,) in expected]
    assert [row["nodeid"] for row in at_gateway(plan, rows)] == wanted
    if plan.mote_where is not None:
        code = assemble(plan.mote_where)
        sent = [
            row["nodeid"]
            for row in rows
            if machine.run(code, {a.number: row.get(a.name) for a in ATTRIBUTES})
        ]
        assert set(wanted) <= set(sent)


@settings(max_examples=100)
@given(numbers, conditions(exact_numbers), rows_of_motes)
def test_once_gives_what_a_periodic_query_gives(
    machine: Machine, number: str, condition: str, rows: list[Row]
) -> None:
    """Motes run the whole program: condition and columns, whichever of them they can."""
    text = f"SELECT nodeid, {number} AS x FROM sensors WHERE {condition}"
    plan = planned(f"{text} ONCE")
    query = merge([plan])
    columns: dict[str, list[int | None]] = {"nodeid": [], "epoch": []}
    for row in rows:
        values = {a.number: row.get(a.name) for a in ATTRIBUTES}
        if query.where is not None and not machine.run(assemble(query.where), values):
            continue
        columns["nodeid"].append(row["nodeid"])
        columns["epoch"].append(0)
        for column in query.columns:
            assert column.expr is not None
            value = machine.run(assemble(column.expr), values)
            assert value is None or column.format.minimum <= value <= column.format.maximum
            columns.setdefault(column.name, []).append(value)
    arrays = {name: pa.array(columns.get(name, []), pa.int64()) for name in columns}
    arrays |= {c.name: pa.array([], pa.int64()) for c in query.columns if c.name not in columns}
    batch = Rows(pa.RecordBatch.from_pydict(arrays), query)
    residual = Residual(plan)
    chosen = residual.select(batch, Feed("u", 1, 1000, 1000, 0))
    assert residual.project(batch, chosen).to_pylist() == at_gateway(
        planned(f"{text} SAMPLE PERIOD 1 s"), rows
    )


@settings(max_examples=60)
@given(st.sampled_from(["level", "light", "nodeid", "light - 300"]), st.integers(0, 30), rows_of_motes)
def test_shift_is_duckdbs(machine: Machine, value: str, places: int, rows: list[Row]) -> None:
    """TinyDB's >>; of negative numbers, too, it rounds down."""
    plan = planned(f"SELECT ({value}) >> {places} AS x FROM sensors SAMPLE PERIOD 1 s")
    expected = in_database(f"SELECT CAST({value} AS BIGINT) >> {places} FROM sensors", rows)
    assert [row["x"] for row in at_gateway(plan, rows)] == [x for (x,) in expected]
    if obstacle(plan.outputs[0].expr) is None:
        code = assemble(plan.outputs[0].expr)
        for row, (x,) in zip(rows, expected, strict=True):
            assert machine.run(code, {a.number: row.get(a.name) for a in ATTRIBUTES}) == x


#: An attribute's integer, in units of its last decimal place, in SQL.
_INTEGERS = {
    "nodeid": "nodeid",
    "light": "light",
    "temp": "temp * 100",
    "-level": "-level",
    "xpos - 1 m": "(xpos - 1) * 100",
}


@settings(max_examples=60)
@given(st.sampled_from(list(_INTEGERS)), rows_of_motes)
def test_hash_is_as_it_is_defined(machine: Machine, value: str, rows: list[Row]) -> None:
    """Step by step in DuckDB, on a mote, at the gateway, and in the past's SQL."""
    plan = planned(f"SELECT hash({value}) AS x FROM sensors SAMPLE PERIOD 1 s")
    expected = in_database(f"SELECT {hash_of(f'CAST({_INTEGERS[value]} AS HUGEINT)')} FROM sensors", rows)
    assert [row["x"] for row in at_gateway(plan, rows)] == [x for (x,) in expected]
    code = assemble(plan.outputs[0].expr)
    for row, (x,) in zip(rows, expected, strict=True):
        assert machine.run(code, {a.number: row.get(a.name) for a in ATTRIBUTES}) == x


@settings(max_examples=60)
@given(st.integers(0, 2**31 - 1), st.integers(0, 65534), st.integers(0, 2**31 - 1))
def test_a_row_has_one_random_value_which_anybody_can_compute(
    machine: Machine, seed: int, node: int, epoch: int
) -> None:
    plan = planned(f"SELECT random({seed}) AS x, random({seed}) AS y FROM sensors SAMPLE PERIOD 1 s")
    drawn = hashed(hashed(node - seed) - epoch) % 10**6
    assert {machine.run(assemble(o.expr), dict(enumerate((node, 0, 0, epoch)))) for o in plan.outputs} == {
        drawn
    }
    columns = {expr: (np.array([at]), np.array([True])) for expr, at in ((_NODEID, node), (_EPOCH, epoch))}
    values, known = Evaluator(columns, np.array([epoch * 1000]))(plan.outputs[0].expr, 1000)
    assert (values.tolist(), known.tolist()) == ([drawn], [True])


def test_random_values_are_spread_evenly_and_depend_on_each_other_in_no_way_that_shows() -> None:
    nodes, epochs = np.divmod(np.arange(40_000), 400)
    columns = {_NODEID: (nodes, np.full(40_000, fill_value=True))}
    expr = planned("SELECT random() AS x FROM sensors SAMPLE PERIOD 1 s").outputs[0].expr
    other = planned("SELECT random() AS x FROM sensors SAMPLE PERIOD 2 s").outputs[0].expr
    values, others = (Evaluator(columns, epochs * 1000)(one, 1000)[0] for one in (expr, other))
    assert scipy.stats.kstest(values / 1e6, "uniform").pvalue > 0.01
    for a, b in ((values[1:], values[:-1]), (values[400:], values[:-400]), (values, others)):
        assert abs(scipy.stats.pearsonr(a, b).statistic) < 0.02


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("hash()", "hash takes one argument at column 8: write hash(nodeid)"),
        ("random(1, 2)", "random takes at most one argument"),
        ("random(-1)", "-1 is no seed of random at column 15: it is a whole number of 0 to 2147483647"),
        ("random(light)", "light is no seed of random"),
        ("abs(*)", "abs(*) has no meaning at column 8: write abs(temp)"),
        ("hash(DISTINCT temp)", "hash(DISTINCT …) has no meaning"),
        ("abs(temp > 3)", "abs needs numbers, and this is a condition"),
        ("hsh(temp)", "unknown function 'hsh' at column 8: did you mean 'hash'?"),
    ],
)
def test_a_function_of_what_it_is_not_of_is_refused(call: str, message: str) -> None:
    with pytest.raises(QueryError) as error:
        plan_query(f"SELECT {call} FROM sensors")
    assert error.value.summary.startswith(message)


@settings(max_examples=60)
@given(
    st.sampled_from(
        ["level + {} >> {} + 1", "light - {} >> {}", "2 * light >> {} >> {}", "{} + light % 7 >> {}"]
    ),
    st.integers(0, 12),
    st.integers(0, 12),
    rows_of_motes,
)
def test_shift_stands_between_sums_and_comparisons(
    form: str, first: int, second: int, rows: list[Row]
) -> None:
    number = form.format(first, second)
    tests = (f"{number} >= 3 >> 1", f"{number} BETWEEN 5 >> 1 AND 2 + 7 >> 1", f"{number} IN (8 >> 2, 3)")
    columns = ", ".join(f"{text} AS c{i}" for i, text in enumerate((number, *tests)))
    plan = planned(f"SELECT {columns} FROM sensors SAMPLE PERIOD 1 s")
    whole = "(SELECT CAST(level AS BIGINT) AS level, CAST(light AS BIGINT) AS light FROM sensors)"
    expected = in_database(f"SELECT {columns} FROM {whole}", rows)
    assert [tuple(row.values()) for row in at_gateway(plan, rows)] == expected


@settings(max_examples=60)
@given(
    st.lists(st.integers(-9, 9) | st.decimals(-1000, 1000, places=2), min_size=4, max_size=4), rows_of_motes
)
def test_distances_are_duckdbs(places: list[int | Decimal], rows: list[Row]) -> None:
    """Rounded to the cm, of constants too, and of positions that have more decimal places."""
    a, b, c, d = places
    pairs = [
        (f"{a}", f"{b}", f"{c}", f"{d}"),
        ("xpos", f"{b}", f"{c}", "ypos"),
        ("xpos / 3", f"{b}", f"{c}", f"{d}"),
    ]
    ours = ", ".join(
        f"dist(point({x}, {y}), point({u}, {v})) AS c{i}" for i, (x, y, u, v) in enumerate(pairs)
    )
    exact = ", ".join(
        f"sqrt((({x}) - ({u}))::DOUBLE ** 2 + (({y}) - ({v}))::DOUBLE ** 2)" for x, y, u, v in pairs
    )
    plan = planned(f"SELECT {ours} FROM sensors SAMPLE PERIOD 1 s")
    rows = [row | {"ypos": 1234} for row in rows]
    expected = in_database(f"SELECT {exact} FROM sensors", rows, ["xpos", "ypos"])
    for row, distances in zip(at_gateway(plan, rows), expected, strict=True):
        for got, distance, cm in zip(row.values(), distances, (0.5, 0.5, 1), strict=True):
            assert (got is None) == (distance is None)
            assert got is None or abs(float(str(got)) - float(str(distance))) <= cm / 100 + 1e-6

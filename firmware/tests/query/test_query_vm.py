"""The stack machine against DuckDB and against exact arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware.tests.query.mote import Mote
from skerry_protocol.bytecode import (
    COLUMN_MAXIMUM,
    MAXIMUM_POWER,
    STACK_DEPTH,
    BytecodeError,
    Op,
    check,
    constant,
    instruction,
)

LOW, HIGH = -(2**31), 2**31 - 1
COLUMNS = 4

# An expression as (code, SQL). SQL works in HUGEINT, whose 127 bits hold every intermediate value, and gives
# NULL where the result leaves 32 bits.
Expression = tuple[bytes, str]

interesting = st.sampled_from([0, 1, -1, 2, 5, 10, -10, 15, 25, 100, -105, 32767, 65536, LOW, LOW + 1, HIGH])
integers = interesting | st.integers(-2000, 2000) | st.integers(LOW, HIGH)


def bounded(sql: str) -> str:
    """SQL of a HUGEINT, NULL where it needs more than 32 bits."""
    return f"(SELECT CASE WHEN v BETWEEN {LOW} AND {HIGH} THEN v END FROM (SELECT {sql} AS v))"


def rounded(numerator: str, denominator: str) -> str:
    """SQL of numerator / denominator, half away from zero, NULL for a zero denominator."""
    return bounded(
        "(SELECT CASE WHEN d <> 0 THEN sign(n) * sign(d) * ((2 * abs(n) + abs(d)) // (2 * abs(d))) END "
        f"FROM (SELECT {numerator} AS n, {denominator} AS d))"
    )


def hash_of(a: str) -> str:
    """SQL of HASH: each shift and product of its definition by itself, in the low 32 bits."""
    x = f"(({a}) & 4294967295)"
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        x = f"(SELECT (xor(x, x >> {shift}) * {factor}::HUGEINT) & 4294967295 FROM (SELECT {x} AS x))"
    return f"({x} & 2147483647)"


def _binary(op: Op, template: str) -> Callable[[Expression, Expression], Expression]:
    return lambda a, b: (a[0] + b[0] + instruction(op), template.format(a=a[1], b=b[1]))


def _number(value: int) -> str:
    return f"(({value})::HUGEINT)"


numeric_leaves = st.one_of(
    integers.map(lambda value: (constant(value), _number(value))),
    st.integers(0, COLUMNS - 1).map(lambda n: (instruction(Op.ATTR, n), f"c{n}")),
    st.just((instruction(Op.NULL), "(NULL::HUGEINT)")),
)
powers = st.integers(0, MAXIMUM_POWER)


def _numeric(children: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    def scaled(op: Op, sql: Callable[[str, str, int], str]) -> st.SearchStrategy[Expression]:
        return st.builds(
            lambda a, b, p: (a[0] + b[0] + instruction(op, p), sql(a[1], b[1], p)), children, children, powers
        )

    def shifted(op: Op, sql: Callable[[str, int], str]) -> st.SearchStrategy[Expression]:
        return st.builds(lambda a, p: (a[0] + instruction(op, p), sql(a[1], p)), children, powers)

    return st.one_of(
        st.builds(_binary(Op.ADD, bounded("{a} + {b}")), children, children),
        st.builds(_binary(Op.SUB, bounded("{a} - {b}")), children, children),
        st.builds(
            _binary(
                Op.MOD, "(SELECT CASE WHEN b = 0 THEN NULL ELSE a % b END FROM (SELECT {a} AS a, {b} AS b))"
            ),
            children,
            children,
        ),
        scaled(Op.MUL, lambda a, b, p: rounded(f"{a} * {b}", _number(10**p))),
        scaled(Op.DIV, lambda a, b, p: rounded(f"{a} * {_number(10**p)}", b)),
        shifted(Op.UPSCALE, lambda a, p: bounded(f"{a} * {_number(10**p)}")),
        shifted(Op.DOWNSCALE, lambda a, p: rounded(a, _number(10**p))),
        children.map(lambda a: (a[0] + instruction(Op.ABS), bounded(f"abs({a[1]})"))),
        children.map(lambda a: (a[0] + instruction(Op.HASH), hash_of(a[1]))),
        children.map(lambda a: (a[0] + instruction(Op.NEG), bounded(f"-({a[1]})"))),
    )


numeric = st.recursive(numeric_leaves, _numeric, max_leaves=6)
comparisons = [(Op.EQ, "="), (Op.NE, "<>"), (Op.LT, "<"), (Op.LE, "<="), (Op.GT, ">"), (Op.GE, ">=")]
boolean_leaves = st.one_of(
    st.builds(
        lambda a, b, op: _binary(op[0], f"({{a}} {op[1]} {{b}})")(a, b),
        numeric,
        numeric,
        st.sampled_from(comparisons),
    ),
    numeric.map(lambda a: (a[0] + instruction(Op.IS_NULL), f"({a[1]} IS NULL)")),
    st.just((instruction(Op.NULL), "(NULL::BOOLEAN)")),
    st.booleans().map(lambda value: (constant(int(value)), f"({value})")),
)


def _logic(children: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.one_of(
        st.builds(_binary(Op.AND, "({a} AND {b})"), children, children),
        st.builds(_binary(Op.OR, "({a} OR {b})"), children, children),
        children.map(lambda a: (a[0] + instruction(Op.NOT), f"(NOT {a[1]})")),
        children.map(lambda a: (a[0] + instruction(Op.IS_NULL), f"({a[1]} IS NULL)")),
    )


boolean = st.recursive(boolean_leaves, _logic, max_leaves=5)
rows = st.lists(st.tuples(*[integers | st.none()] * COLUMNS), min_size=8, max_size=8)


def _fits(expression: Expression) -> bool:
    try:
        check(expression[0])
    except BytecodeError:
        return False
    return len(expression[0]) <= 255


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    """A private database in memory."""
    return duckdb.connect(config={"threads": 1})


@settings(max_examples=400)
@given(expression=(numeric | boolean).filter(_fits), data=rows)
def test_agrees_with_duckdb(
    query_library: Path,
    database: duckdb.DuckDBPyConnection,
    expression: Expression,
    data: list[tuple[int | None, ...]],
) -> None:
    """Any expression over any rows, NULLs and overflows included."""
    code, sql = expression
    columns = ", ".join(f"c{n}" for n in range(COLUMNS))
    values = ", ".join(
        "(" + ", ".join([str(i), *("NULL" if v is None else str(v) for v in row)]) + ")"
        for i, row in enumerate(data)
    )
    typed = ", ".join(f"c{n}::HUGEINT AS c{n}" for n in range(COLUMNS))
    answers = database.execute(
        f"SELECT ({sql})::HUGEINT FROM (SELECT i, {typed} FROM (VALUES {values}) t(i, {columns})) ORDER BY i"
    ).fetchall()
    assert Mote(query_library).evaluate(code, data) == [answer[0] for answer in answers], sql


def _exact(numerator: int, denominator: int) -> int | None:
    """Half away from zero; None where SQL has NULL."""
    if denominator == 0:
        return None
    size = (2 * abs(numerator) + abs(denominator)) // (2 * abs(denominator))
    value = size if (numerator < 0) == (denominator < 0) else -size
    return value if LOW <= value <= HIGH else None


@settings(max_examples=500)
@given(st.lists(st.tuples(integers, integers), min_size=1, max_size=64), powers)
def test_scaling_is_exact(query_library: Path, pairs: list[tuple[int, int]], power: int) -> None:
    """64-bit intermediates, rounding and overflow of MUL, DIV, UPSCALE and DOWNSCALE."""
    mote = Mote(query_library)
    a, b = instruction(Op.ATTR, 0), instruction(Op.ATTR, 1)
    ten = 10**power
    expected = {
        a + b + instruction(Op.MUL, power): [_exact(x * y, ten) for x, y in pairs],
        a + b + instruction(Op.DIV, power): [_exact(x * ten, y) for x, y in pairs],
        a + instruction(Op.UPSCALE, power): [_exact(x * ten, 1) for x, _ in pairs],
        a + instruction(Op.DOWNSCALE, power): [_exact(x, ten) for x, _ in pairs],
    }
    for code, values in expected.items():
        assert mote.evaluate(code, pairs) == values


@pytest.mark.parametrize(
    ("code", "value"),
    [
        (constant(-7) + constant(2) + instruction(Op.MOD), -1),
        (constant(7) + constant(-2) + instruction(Op.MOD), 1),
        (constant(LOW) + constant(-1) + instruction(Op.MOD), 0),
        (constant(LOW) + constant(-1) + instruction(Op.DIV, 0), None),
        (constant(LOW) + instruction(Op.NEG), None),
        (constant(5) + instruction(Op.DOWNSCALE, 1), 1),
        (constant(-5) + instruction(Op.DOWNSCALE, 1), -1),
        (constant(4) + instruction(Op.DOWNSCALE, 1), 0),
        (constant(1) + constant(0) + instruction(Op.DIV, 0), None),
        (constant(1) + constant(0) + instruction(Op.MOD), None),
        (constant(LOW), LOW),
        (constant(HIGH) + constant(1) + instruction(Op.ADD), None),
        (constant(LOW) + constant(1) + instruction(Op.SUB), None),
        (instruction(Op.NULL) + instruction(Op.IS_NULL), 1),
    ],
)
def test_corner_cases(mote: Mote, code: bytes, value: int | None) -> None:
    assert mote.accepts(code)
    assert mote.evaluate(code, [(0,)]) == [value]


def test_three_valued_logic(mote: Mote) -> None:
    """The truth tables of SQL:1992, 8.12."""
    truth = {0: constant(0), 1: constant(1), None: instruction(Op.NULL)}
    for a, code_a in truth.items():
        assert mote.evaluate(code_a + instruction(Op.NOT), [(0,)]) == [None if a is None else 1 - a]
        for b, code_b in truth.items():
            both = 0 if 0 in (a, b) else None if None in (a, b) else 1
            either = 1 if 1 in (a, b) else None if None in (a, b) else 0
            assert mote.evaluate(code_a + code_b + instruction(Op.AND), [(0,)]) == [both]
            assert mote.evaluate(code_a + code_b + instruction(Op.OR), [(0,)]) == [either]


def test_deepest_stack_runs_and_one_more_is_refused(mote: Mote) -> None:
    def nested(depth: int) -> bytes:
        return constant(3) * depth + instruction(Op.ADD) * (depth - 1)

    assert mote.evaluate(nested(STACK_DEPTH), [(0,)]) == [3 * STACK_DEPTH]
    assert not mote.accepts(nested(STACK_DEPTH + 1))


def test_what_can_change_a_window_is_asked_of_columns_alone(mote: Mote) -> None:
    """The operand is a column's place."""
    reading = constant(5)
    for column in range(COLUMN_MAXIMUM + 1):
        assert mote.accepts(reading + instruction(Op.CHANGES, column))
    assert not mote.accepts(reading + instruction(Op.CHANGES, COLUMN_MAXIMUM + 1))
    assert not mote.accepts(instruction(Op.CHANGES, 0)), "it takes a reading"
    assert not mote.accepts(reading + bytes([Op.CHANGES])), "its operand is cut off"


def test_longest_code_runs(mote: Mote) -> None:
    code = constant(1) + instruction(Op.NOT) * 253
    assert len(code) == 255
    assert mote.evaluate(code, [(0,)]) == [0]

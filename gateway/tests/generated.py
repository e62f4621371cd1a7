"""Expressions, conditions and rows for tests to draw, and what DuckDB says about them."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import duckdb
import pyarrow as pa
from hypothesis import strategies as st

from skerry_protocol.attributes import BY_NAME

NAMES = ["level", "temp", "humidity", "light", "voltage", "accel_x", "xpos", "nodeid"]

literals = st.one_of(
    st.integers(-50, 50).map(str),
    st.decimals(-50, 50, places=3).map(str),
    st.sampled_from(["0", "25.5", "25.555", "0.00001", "1000000", "99999999999", "NULL"]),
)
leaves = st.one_of(st.sampled_from(NAMES), literals)


def _grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from("+-%"), inner),
        st.builds("({} * {})".format, st.sampled_from(NAMES), st.integers(-9, 9)),
        st.builds("(- {})".format, inner),
        st.builds("abs({})".format, inner),
    )


exact_numbers = st.recursive(leaves, _grow, max_leaves=6)
numbers = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*/%"), inner),
        st.builds("abs({})".format, inner),
    ),
    max_leaves=6,
)


def conditions(of: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    tests = st.one_of(
        st.builds("({} {} {})".format, of, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), of),
        st.builds(
            "({} {} {})".format, st.sampled_from(NAMES), st.sampled_from(["<", "<=", ">", ">="]), literals
        ),
        st.builds("({} IS {}NULL)".format, of, st.sampled_from(["", "NOT "])),
        st.builds("({} {}BETWEEN {} AND {})".format, of, st.sampled_from(["", "NOT "]), of, of),
        st.builds("({} {}IN ({}, {}))".format, of, st.sampled_from(["", "NOT "]), of, literals),
    )
    return st.recursive(
        tests,
        lambda inner: st.one_of(
            st.builds("({} {} {})".format, inner, st.sampled_from(["AND", "OR"]), inner),
            st.builds("(NOT {})".format, inner),
        ),
        max_leaves=5,
    )


def _value(name: str) -> st.SearchStrategy[int | None]:
    entry = BY_NAME[name]
    low, high = (round(bound * 10**entry.digits) for bound in (entry.minimum, entry.maximum))
    near = st.integers(max(low, -100), max(low, min(high, 100)))
    return st.one_of(st.none(), st.integers(low, high), near, st.sampled_from([low, high]))


rows_of_motes = st.lists(
    st.fixed_dictionaries({name: _value(name) for name in NAMES[:-1]} | {"nodeid": st.integers(0, 65534)}),
    min_size=1,
    max_size=5,
)
Row = dict[str, int | None]
#: Of tiny tables, over which several threads would only wait for each other.
database = duckdb.connect(config={"threads": 1})


def in_database(select: str, rows: Sequence[Row], names: Sequence[str] = NAMES) -> list[tuple[object, ...]]:
    """``select`` with ``sensors`` as a table of these columns: attributes as exact decimals, others as integers."""

    columns = {}
    for name in names:
        values = [row[name] for row in rows]
        if name not in BY_NAME:
            columns[name] = pa.array(values, pa.int64())
            continue
        digits = BY_NAME[name].digits
        exact = [None if value is None else Decimal(value).scaleb(-digits) for value in values]
        columns[name] = pa.array(exact, pa.decimal128(9 + digits, digits))
    # As a table, since hundreds of literals take longer to read than the answer.
    database.register("sensors", pa.table(columns))
    return database.execute(select).fetchall()

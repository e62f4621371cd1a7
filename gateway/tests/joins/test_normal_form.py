"""Conditions in conjunctive normal form are true, false and unknown where the original is, by DuckDB over drawn rows."""

from __future__ import annotations

import duckdb
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.joins.condition_text import text_of
from skerry.joins.conditions import (
    AllOf,
    AnyOf,
    Calculated,
    Column,
    Compared,
    Condition,
    Known,
    Not,
    Operand,
    Value,
    aliases_of,
    columns_of,
    evaluate,
)
from skerry.joins.normal_form import CLAUSES_MAXIMUM, normal_form, split

_NAMES = ("x", "room", "temp")
_COLUMNS = [Column(alias, name) for alias in "st" for name in _NAMES]
S, T = ({name: Column(alias, name) for name in _NAMES} for alias in "st")


def is_static(column: Column) -> bool:
    return column.name != "temp"


columns = st.sampled_from(_COLUMNS)
operands: st.SearchStrategy[Operand] = st.one_of(
    columns,
    st.integers(-3, 3).map(Value),
    st.builds(Calculated, st.sampled_from(["+", "-", "*"]), columns, st.one_of(columns, st.integers(-3, 3).map(Value))),
)  # fmt: skip
literals: st.SearchStrategy[Condition] = st.one_of(
    st.builds(Compared, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), operands, operands),
    st.builds(Known, columns),
)
drawn: st.SearchStrategy[Condition] = st.recursive(
    literals,
    lambda inner: st.one_of(
        inner.map(Not),
        st.builds(
            lambda make, parts: make(tuple(parts)),
            st.sampled_from([AllOf, AnyOf]),
            st.lists(inner, min_size=2, max_size=3),
        ),
    ),
    max_leaves=10,
)
pairs = st.lists(
    st.tuples(*[st.one_of(st.none(), st.integers(-3, 3))] * len(_COLUMNS)), min_size=20, max_size=20
)
database = duckdb.connect(config={"threads": 1})


def values(rows: list[tuple[int | None, ...]]) -> dict[tuple[str, str], pa.Array]:
    return {
        (column.alias, column.name): pa.array([row[i] for row in rows], pa.int64())
        for i, column in enumerate(_COLUMNS)
    }


@settings(max_examples=200)
@given(drawn, pairs)
def test_clauses_together_are_what_the_condition_is(
    condition: Condition, rows: list[tuple[int | None, ...]]
) -> None:
    clauses = split(condition, "s", "t", is_static)
    by_name = values(rows)
    for alias in "st":
        table = {name: by_name[alias, name] for name in _NAMES} | {"pair": pa.array(range(len(rows)))}
        database.register(alias, pa.table(table))
    whole = AllOf(tuple(clauses.all()))
    found = database.execute(
        f"SELECT {text_of(condition)}, {text_of(whole)} FROM s JOIN t USING (pair) ORDER BY pair"
    ).fetchall()
    assert all(one == other for one, other in found)
    assert evaluate(whole, lambda *of: by_name[of], len(rows)).to_pylist() == [one for one, _ in found]
    assert sorted(map(str, normal_form(condition))) == sorted(map(str, clauses.all())), "each in one place"
    for alias in "st":
        assert all(
            aliases_of(clause) == {alias} for clause in (*clauses.own_static[alias], *clauses.own[alias])
        )
        assert all(all(map(is_static, columns_of(clause))) for clause in clauses.own_static[alias])
        assert all(not all(map(is_static, columns_of(clause))) for clause in clauses.own[alias])
    for clause in (*clauses.primary, *clauses.secondary):
        assert (aliases_of(clause), all(map(is_static, columns_of(clause)))) == ({"s", "t"}, True)
    assert all(aliases_of(c) == {"s", "t"} and not all(map(is_static, columns_of(c))) for c in clauses.pair)


def test_the_papers_query_1_is_split_as_it_is_there() -> None:
    """S.id < 25 AND T.id > 50 AND S.x = T.y + 5 AND S.u = T.u, and what can be asked only of who was found."""
    condition = AllOf((
        Compared("<", S["room"], Value(25)),
        Not(AnyOf((Not(Compared(">", T["room"], Value(50))), Compared("<=", T["temp"], Value(0))))),
        Compared("=", S["x"], Calculated("+", T["x"], Value(5))),
        Compared("=", S["temp"], T["temp"]),
        Compared("<>", S["room"], T["room"]),
        AnyOf((Compared("=", S["room"], Value(1)), Compared("<", T["room"], S["x"]))),
        AnyOf((Compared("=", S["room"], T["room"]), Compared("<", Calculated("*", T["x"], T["x"]), S["x"]))),
        Compared("=", Value(1), Value(1)),
    ))  # fmt: skip
    assert split(condition, "s", "t", is_static).described() == [
        "never changes: 1 = 1",
        "s decides once: s.room < 25",
        "t decides once: t.room > 50",
        "t decides with each row: NOT (t.temp <= 0)",
        "leads to partners: s.x = (t.x + 5)",
        "leads to partners: (s.room = 1) OR (t.room < s.x)",
        "asked of each partner once: s.room <> t.room",
        "asked of each partner once: (s.room = t.room) OR ((t.x * t.x) < s.x)",
        "asked of each pair of rows: s.temp = t.temp",
    ]


def test_a_clause_that_another_implies_is_left_out() -> None:
    a, b, c = (Compared("=", S["x"], Value(number)) for number in range(3))
    assert normal_form(AnyOf((AllOf((a, b)), a))) == (a,)
    assert normal_form(AllOf((AnyOf((a, b)), AnyOf((b, a, c)), AnyOf((b, a))))) == (AnyOf((a, b)),)
    assert normal_form(None) == ()


def test_what_would_be_too_many_clauses_stays_one() -> None:
    ways = [AllOf((Compared("=", S["x"], Value(n)), Compared("=", T["x"], Value(n)))) for n in range(7)]
    assert len(normal_form(AnyOf(tuple(ways[:6])))) == 2**6 == CLAUSES_MAXIMUM
    assert normal_form(AnyOf(tuple(ways))) == (AnyOf(tuple(ways)),)
    assert split(AnyOf(tuple(ways)), "s", "t", is_static).secondary == (AnyOf(tuple(ways)),)

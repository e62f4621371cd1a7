"""Conditions of a join as executors evaluate them: what one alias's row decides is a column that its reader calculates beforehand.

So all of it means what it does in a query over one table; what is left for the join are comparisons between such columns, and sums of them.
"""

from __future__ import annotations

import json
from typing import Literal

import pyarrow as pa

from skerry.joins.conditions import (
    AllOf,
    AnyOf,
    Calculated,
    Called,
    Column,
    Compared,
    Condition,
    Known,
    Not,
    Operand,
    Value,
)
from skerry.planner.model import source_plans as plans
from skerry.planner.model.source_plans import Term
from skerry.sensors.evaluate import arrow_type
from skerry.sensors.join_resolver import aliases_of, of_batches
from skerry.sql.errors import QueryError

#: Before the JSON of a calculated column: the type, and the term. Names of columns in batches begin with letters.
CALCULATED = "="
#: The type of decimals that are compared for being equal: the same text, as all have the same places.
EXACT = "exact"
#: Names that rows of joins have for themselves.
_OWN = ("time", "number", "clock", "source")
_SIGNS: dict[str, Literal["=", "<>", "<", "<=", ">", ">="]] = {
    "=": "=", "<>": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">=",
}  # fmt: skip


def column_of(term: Term, kind: str, alias: str) -> Column:
    """A term over one alias's row, as a column of this type."""
    [of] = aliases_of(term) or [alias]
    own = of_batches(term)
    if own.op == "column" and kind == own.type and own.value not in _OWN:
        return Column(of, str(own.value))
    return Column(of, CALCULATED + json.dumps([kind, own.to_list()], separators=(",", ":")))


def calculated(name: str) -> tuple[str, Term] | None:
    """The type of a column and the term that gives it; None: it is one of the batches'."""
    if not name.startswith(CALCULATED):
        return None
    kind, term = json.loads(name.removeprefix(CALCULATED))
    return kind, Term.from_list(term)


def type_of(kind: str) -> pa.DataType:
    """Of a column."""
    return pa.string() if kind == EXACT else arrow_type(kind)


def condition_of(term: Term, alias: str) -> Condition:
    """``alias``: whose row decides what is constant. Raises QueryError."""
    if term.op in ("AND", "OR") and len(aliases_of(term)) > 1:
        parts = tuple(condition_of(arg, alias) for arg in term.args)
        return AllOf(parts) if term.op == "AND" else AnyOf(parts)
    if len(aliases_of(term)) < 2:
        return Compared("=", column_of(term, plans.BOOLEAN, alias), Value(True))
    if term.op == "NOT":
        return Not(condition_of(term.args[0], alias))
    if term.op == "IS NULL":
        return Not(Known(_operand(term.args[0], term.args[0].type, alias)))
    left, right = term.args
    kind = _common(left, right)
    sign = _SIGNS.get(term.op)
    if sign is not None:
        if kind == plans.DECIMAL and sign in ("=", "<>"):
            kind = EXACT
        return Compared(sign, _operand(left, kind, alias), _operand(right, kind, alias))
    raise QueryError(
        f"'{term.op}' cannot be decided between streams", "compare columns of one with those of the other"
    )


def _common(left: Term, right: Term) -> str:
    """The type in which two are compared."""
    kinds = {left.type, right.type} - {plans.NULL}
    if len(kinds) < 2:
        kind = next(iter(kinds), plans.TEXT)
        if kind == plans.BOOLEAN and max(len(aliases_of(left)), len(aliases_of(right))) > 1:
            raise QueryError(
                "a condition between streams is compared", "join conditions with AND, OR and NOT"
            )
        return kind
    mixed = max(len(aliases_of(left)), len(aliases_of(right))) > 1
    return plans.DECIMAL if kinds == {plans.INT, plans.DECIMAL} and not mixed else plans.DOUBLE


def _operand(term: Term, kind: str, alias: str) -> Operand:
    if term.op == "literal" and term.value is not None and kind in (plans.INT, plans.DOUBLE):
        return Value(int(term.value) if kind == plans.INT else float(term.value))
    if len(aliases_of(term)) < 2:
        return column_of(term, kind, alias)
    if term.type == plans.TIMESTAMP:
        hint = "subtract the times, as in a.time - c.time < b.length"
        raise QueryError("a time of one stream and a length of another are compared", hint)
    kind = plans.INT if term.type == plans.INT else plans.DOUBLE
    if term.op == "NEGATE":
        return Calculated("-", Value(0), _operand(term.args[0], kind, alias))
    match term.op:
        case "ABS" | "HASH" | "DIST":
            of = {"ABS": kind, "HASH": plans.INT, "DIST": plans.DOUBLE}[term.op]
            return Called(term.op, tuple(_operand(arg, of, alias) for arg in term.args))
    left, right = (_operand(arg, kind, alias) for arg in term.args)
    match term.op:
        case "+" | "-" | "*" | "/" | "%":
            return Calculated(term.op, left, right)
    raise QueryError(f"'{term.op}' cannot be reckoned between streams", "reckon within each, and compare")

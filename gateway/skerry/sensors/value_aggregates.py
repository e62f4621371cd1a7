"""Aggregates that need every value of their rows, as MEDIAN does: over rows that are all there. Motes and windows keep summaries for these;
here they are exact."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from skerry.expressions.unit_algebra import product_unit
from skerry.expressions.values_at import at_share
from skerry.planner.model import source_plans as plans
from skerry.planner.model.source_plans import Term
from skerry.planner.model.source_windows import SourceAggregate, State
from skerry.sensors.found import Found
from skerry.sensors.resolver import Resolver
from skerry.sql import ast
from skerry.sql.errors import QueryError

_OF_ONE = ("MEDIAN", "VARIANCE", "STDDEV")
_RANKED = ("TOP", "BOTTOM")
_FORMS = {
    "TOP": "write TOP(3, temp)",
    "BOTTOM": "write BOTTOM(3, temp)",
    "QUANTILE": "write QUANTILE(temp, 0.9)",
    "HISTOGRAM": "write HISTOGRAM(temp, 10, 30, 20): from 10 to 30 in 20 bins",
}
KINDS = (*_OF_ONE, *_FORMS)
ERROR = "ERROR"
#: The most that TOP and HISTOGRAM give, as of motes.
_RANKS_MAXIMUM, _BINS_MAXIMUM = 12, 36
_MILLION = 1_000_000
#: Whose values TOP and BOTTOM rank.
_NAMED = "nodeid"


def is_one(kind: str) -> bool:
    """Whether an aggregate is made of values one by one."""
    return kind in KINDS


def called(node: ast.Call, rows: Resolver) -> tuple[SourceAggregate, str]:
    """An aggregate of :data:`KINDS` and its unit. Raises QueryError."""
    kind = node.function.upper()
    form = _FORMS.get(kind, f"write {kind}(temp)")
    constants = [one for one in node.arguments if _constant(one) is not None]
    others = [one for one in node.arguments if _constant(one) is None]
    wanted = 0 if kind in _OF_ONE else 3 if kind == "HISTOGRAM" else 1
    if node.star or node.distinct or len(others) != 1 or len(constants) != wanted:
        raise QueryError(f"{kind} does not take these", form, node.span)
    found = rows.expression(others[0])
    if found.term.type not in plans.NUMBERS:
        raise QueryError(f"{kind} is of numbers", "COUNT says how many there are", others[0].span)
    said = [rows.expression(one, found).term.value for one in constants]
    numbers = [Decimal(str(value)) for value in said]
    _check(kind, numbers, constants, form)
    named = _named(kind, node, rows) if kind in _RANKED else None
    unit = {"VARIANCE": product_unit(found.unit, found.unit), "HISTOGRAM": ""}.get(kind, found.unit)
    return SourceAggregate(kind, found.term, False, None, tuple(map(str, numbers)), named), unit


def error_of(node: ast.Call, rows: Resolver) -> Found:
    """ERROR of an estimate: nothing is estimated here. Raises QueryError."""
    [of] = node.arguments if len(node.arguments) == 1 else [None]
    kind = of.function.upper() if isinstance(of, ast.Call) else ""
    if not isinstance(of, ast.Call) or not (
        kind in ("MEDIAN", "QUANTILE") or (kind == "COUNT" and of.distinct)
    ):
        hint = "it is of MEDIAN, QUANTILE or COUNT(DISTINCT …): the others are exact"
        raise QueryError("ERROR has no meaning here", hint, node.span)
    if kind != "COUNT":
        called(of, rows)
    return Found(Term("literal", plans.INT, (), 0))


def _constant(node: ast.Expression) -> ast.Number | None:
    inner = node.operand if isinstance(node, ast.Unary) and node.operator == "-" else node
    return inner if isinstance(inner, ast.Number) else None


def _check(kind: str, numbers: Sequence[Decimal], nodes: Sequence[ast.Expression], form: str) -> None:
    bounds = {
        "TOP": ("n", 1, _RANKS_MAXIMUM, True),
        "BOTTOM": ("n", 1, _RANKS_MAXIMUM, True),
        "QUANTILE": ("q", 0, 1, False),
        "HISTOGRAM": ("bins", 1, _BINS_MAXIMUM, True),
    }.get(kind)
    if bounds is None:
        return
    name, least, most, whole = bounds
    if not least <= numbers[-1] <= most or (whole and numbers[-1] % 1):
        what = "a whole number" if whole else "a number"
        text = f"{kind} needs {what} from {least} to {most} as {name}, not {numbers[-1]}"
        raise QueryError(text, form, nodes[-1].span)
    if kind == "HISTOGRAM" and numbers[0] >= numbers[1]:
        text = f"HISTOGRAM's bins from {numbers[0]} to {numbers[1]} have no width"
        raise QueryError(text, form, nodes[0].span.to(nodes[1].span))


def _named(kind: str, node: ast.Call, rows: Resolver) -> Term:
    if rows.table.place(_NAMED) is None:
        hint = f"{rows.table.name} has no column '{_NAMED}'; MIN and MAX need none"
        raise QueryError(f"{kind} says which motes have the values", hint, node.span)
    return rows.column(_NAMED)


def value(aggregate: SourceAggregate, known: Mapping[State, Any]) -> Any:
    """What one comes to, as a column of its type takes it."""
    values = [one for one in known[aggregate.states[0]] if one is not None]
    match aggregate.kind:
        case "MEDIAN":
            return at_share([(one, 1) for one in sorted(values)], _MILLION // 2)
        case "QUANTILE":
            share = int(Decimal(aggregate.constants[0]) * _MILLION)
            return at_share([(one, 1) for one in sorted(values)], share)
        case "VARIANCE" | "STDDEV":
            return _spread(values, root=aggregate.kind == "STDDEV")
        case "HISTOGRAM":
            return _histogram(values, aggregate.constants)
    motes = known[aggregate.states[1]]
    pairs = [
        (one, mote) for one, mote in zip(known[aggregate.states[0]], motes, strict=True) if one is not None
    ]
    sign = -1 if aggregate.kind == "TOP" else 1
    ranked = sorted(pairs, key=lambda pair: (sign * pair[0], pair[1]))
    count = int(Decimal(aggregate.constants[0]))
    return [
        {"nodeid": mote, "value": one if isinstance(one, int) else float(one)} for one, mote in ranked[:count]
    ]


def _spread(values: Sequence[Any], *, root: bool) -> float | None:
    """VARIANCE of a sample, or its root."""
    if len(values) < 2 or not all(map(math.isfinite, values)):
        return None
    exact = list(map(Fraction, values))
    count, total = len(exact), sum(exact)
    of = Fraction(count * sum(one * one for one in exact) - total * total, count * (count - 1))
    return math.sqrt(of) if root else float(of)


def _histogram(values: Sequence[Any], constants: Sequence[str]) -> list[int]:
    low, high, bins = Fraction(constants[0]), Fraction(constants[1]), int(Decimal(constants[2]))
    counts = [0] * bins
    for one in values:
        # What is infinite is beyond an end.
        share = (Fraction(one) - low) / (high - low) if math.isfinite(one) else one
        place = 0 if share <= 0 else bins - 1 if share >= 1 else math.floor(share * bins)
        counts[place] += 1
    return counts

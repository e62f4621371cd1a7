"""Sums of times: one less another is a length in seconds, and a time with a length added or subtracted is a time."""

from __future__ import annotations

from skerry.planner.model import source_plans as plans
from skerry.planner.model.source_plans import Term
from skerry.sensors.found import Found
from skerry.sql import ast
from skerry.sql.errors import QueryError
from skerry.sql.units import TIME, unit_of

_MICROSECONDS = Term("literal", plans.INT, (), 1_000_000)
_SECONDS = Found(Term("literal", plans.DOUBLE, (), 0.0), TIME)


def unit_from(node: ast.Expression, other: Found | None) -> Found | None:
    """What a side of a sum stands beside: beside a time, a text is one as well, and a number a length in seconds."""
    is_time = other is not None and other.term.type == plans.TIMESTAMP
    return _SECONDS if is_time and isinstance(node, ast.Number | ast.Unary) else other


def time_sum(node: ast.Binary, left: Found, right: Found) -> Found | None:
    """None: no side is a time. Raises QueryError."""
    times = [side.term.type == plans.TIMESTAMP for side in (left, right)]
    if not any(times) or node.operator not in "+-":
        return None
    if all(times) and node.operator == "-":
        whole = Term("-", plans.INT, (_microseconds(left.term), _microseconds(right.term)))
        # Whole µs divided once: the double that is nearest, as a literal is.
        return Found(Term("/", plans.DOUBLE, (whole, _MICROSECONDS)), TIME)
    if all(times):
        hint = "one less the other is the time between them, as in a.time - b.time"
        raise QueryError("two times are added", hint, node.span)
    if not times[0] and node.operator == "-":
        hint = "a time less a length is a time, as in a.time - 5 min"
        raise QueryError("a time is subtracted from what is none", hint, node.span)
    (time, length), of = ((left, right), node.right) if times[0] else ((right, left), node.left)
    if length.term.type not in plans.NUMBERS:
        raise QueryError(f"{length.term.type.upper()} is no length of time", "write one as in 5 min", of.span)
    if length.unit and unit_of(length.unit) != unit_of(TIME):
        hint = f"bring it to {TIME}: a time and a length are a time"
        raise QueryError(f"a length of time is in {TIME}, and this is in {length.unit}", hint, of.span)
    return Found(Term(node.operator, plans.TIMESTAMP, (time.term, length.term)))


def _microseconds(time: Term) -> Term:
    return Term("MICROSECONDS", plans.INT, (time,))

"""Whether units go together. Raises QueryError at the place of the mistake."""

from __future__ import annotations

from skerry.expressions.expression import MIXED, PLAIN, Expr
from skerry.expressions.unit_algebra import UTC
from skerry.sql import ast
from skerry.sql.errors import QueryError
from skerry.sql.units import TIME, units_of

#: Of positions.
LENGTH = "m"


def check_units(
    left: Expr, right: Expr, left_node: ast.Expression, right_node: ast.Expression, *, strict: bool
) -> None:
    """Refuses to put different units together.

    Attributes of different units may be added (an index of comfort, say): the sum then has no unit. A number with a unit, and any
    comparison (``strict``), must fit.
    """
    if left.unit == right.unit or {left.unit, right.unit} & {PLAIN, MIXED}:
        return
    if not strict and {left.unit, right.unit} == {UTC, TIME}:
        return
    if not (strict or left.is_constant or right.is_constant):
        return
    wrong, wrong_node, other, other_node = (
        (left, left_node, right, right_node) if left.is_constant else (right, right_node, left, left_node)
    )
    units = units_of(other.unit)
    hint = f"write a number in {', '.join(units)}" if units else "write a number without a unit"
    if not wrong.is_constant:
        hint = "compare values of one unit, or divide by a number with a unit"
    raise QueryError(
        f"unit mismatch: {described(other, other_node)}, {described(wrong, wrong_node)}",
        hint,
        wrong_node.span,
    )


def check_moments(operator: str, left: Expr, right: Expr, span: ast.Span) -> None:
    """Refuses to reckon with moments otherwise than by what lies between them."""
    moments = (left.unit, right.unit).count(UTC)
    if moments and (
        operator not in ("+", "-")
        or (operator == "+" and moments > 1)
        or (operator == "-" and left.unit != UTC)
    ):
        hint = "write time - 1 h, time + 90 s, or the difference of two times, which is in s"
        raise QueryError(f"'{operator}' has no meaning for moments", hint, span)


def check_length(expr: Expr, node: ast.Expression) -> None:
    """Refuses a coordinate that has a unit, and it is none of length."""
    if expr.unit not in (LENGTH, "", PLAIN, MIXED):
        hint = f"write a number in {', '.join(units_of(LENGTH))}"
        raise QueryError(
            f"unit mismatch: positions are in {LENGTH}, {described(expr, node)}", hint, node.span
        )


def described(expr: Expr, node: ast.Expression) -> str:
    """What the unit of a part of a query is, for messages."""
    if isinstance(node, ast.Name):
        subject = f"'{node.name}'"
    elif isinstance(node, ast.Number):
        subject = f"{node.value.normalize():f} {node.unit}"
    else:
        subject = "this expression"
    return f"{subject} is in {expr.unit}" if expr.unit else f"{subject} has no unit"

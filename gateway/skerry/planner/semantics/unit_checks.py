"""Whether units go together. Raises QueryError at the place of the mistake."""

from __future__ import annotations

from skerry.expressions.expression import MIXED, PLAIN, Expr
from skerry.sql import ast
from skerry.sql.errors import QueryError
from skerry.sql.units import units_of

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

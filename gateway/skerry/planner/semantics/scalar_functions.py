"""Functions of one row: ``abs``, ``hash`` and ``random``. Source: Aspen 2010, appendix B."""

from __future__ import annotations

from collections.abc import Callable

from skerry.expressions import build
from skerry.expressions.expression import Expr, Kind, render
from skerry.sql import ast
from skerry.sql.errors import QueryError

#: Each, and how it is written.
NAMES = {"ABS": "abs(temp)", "HASH": "hash(nodeid)", "RANDOM": "random(), or with a seed random(7)"}


def value(node: ast.Call, seed: int, number: Callable[[ast.Expression], Expr]) -> Expr:
    """The value of a call. ``seed``: what random() begins at, unless it names another. Raises QueryError."""
    name = node.function.upper()
    least = 0 if name == "RANDOM" else 1
    if not least <= len(node.arguments) <= 1:
        raise QueryError(
            f"{node.function} takes {'at most ' * (not least)}one argument", f"write {NAMES[name]}", node.span
        )
    if name == "RANDOM":
        return build.random(_seed(node.arguments[0], number) if node.arguments else seed)
    argument = number(node.arguments[0])
    if argument.kind is Kind.NULL:
        return build.null()
    return build.absolute(argument) if name == "ABS" else build.hash_of(argument)


def _seed(node: ast.Expression, number: Callable[[ast.Expression], Expr]) -> int:
    found = number(node)
    if not found.is_constant or found.digits or not 0 <= (found.operand or 0) <= build.INT32_MAXIMUM:
        hint = f"it is a whole number of 0 to {build.INT32_MAXIMUM}, as in random(7)"
        raise QueryError(f"{render(found)} is no seed of random", hint, node.span)
    return found.operand or 0

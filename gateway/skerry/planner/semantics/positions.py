"""Positions: ``loc`` and ``event.loc``, which stand for two columns, and ``dist``. Source: TinyDB 2005, 3.5."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from skerry.expressions import build
from skerry.expressions.expression import Expr
from skerry.planner.semantics.unit_checks import check_length
from skerry.sql import ast
from skerry.sql.errors import QueryError
from skerry_protocol.attributes import BY_NAME

LOC = "loc"
_AXES = ("xpos", "ypos")
#: Decimal places of positions, which motes know to the cm.
_DIGITS = BY_NAME["xpos"].digits


def with_axes(select: ast.Select) -> ast.Select:
    """The query with ``loc`` written out where it is a column or grouped by. Raises QueryError."""
    items: list[ast.SelectItem] = []
    for item in select.items:
        place = _place(item.expression)
        if place is None:
            items.append(item)
            continue
        if item.alias is not None:
            hint = "leave AS out: it is two columns, xpos and ypos"
            raise QueryError("a position cannot be given a name", hint, item.span)
        prefix = f"{place.table}." if place.table is not None else ""
        for name, axis in zip(_AXES, _axes(place), strict=True):
            items.append(ast.SelectItem(axis, f"{prefix}{name}", item.span))
    groups: list[ast.Expression] = []
    for node in select.groups:
        place = _place(node)
        groups += [node] if place is None else _axes(place)
    return replace(select, items=tuple(items), groups=tuple(groups))


def distance(node: ast.Call, number: Callable[[ast.Expression], Expr]) -> Expr:
    """``dist(a, b)`` in m, rounded to cm; a and b are ``loc``, ``event.loc`` or ``point(x, y)``. Raises QueryError."""
    if len(node.arguments) != 2 or node.star:
        raise QueryError("dist takes two positions", "write dist(loc, event.loc)", node.span)
    (ax, ay), (bx, by) = (_coordinates(argument, number) for argument in node.arguments)
    # Constants have no more digits than they need: the distance has those of cm.
    east, north = (_centimetres(build.subtract(a, b)) for a, b in ((ax, bx), (ay, by)))
    return build.hypotenuse(east, north)


def _coordinates(node: ast.Expression, number: Callable[[ast.Expression], Expr]) -> tuple[Expr, Expr]:
    place = _place(node)
    if place is not None:
        first, second = _axes(place)
        return number(first), number(second)
    if (
        isinstance(node, ast.Call)
        and node.function.lower() == "point"
        and len(node.arguments) == 2
        and not node.star
    ):
        x, y = (_length(number(argument), argument) for argument in node.arguments)
        return x, y
    raise QueryError("this is no position", "positions are loc, event.loc and point(3 m, 4 m)", node.span)


def _length(expr: Expr, node: ast.Expression) -> Expr:
    """In cm, as motes know positions. A number without a unit is in m."""
    check_length(expr, node)
    if expr.digits > _DIGITS and expr.is_constant:
        raise QueryError("positions are known to the cm", "write it with two decimal places", node.span)
    return _centimetres(expr)


def _centimetres(expr: Expr) -> Expr:
    if expr.digits > _DIGITS:
        return build.downscale(expr, expr.digits - _DIGITS)
    return build.upscale(expr, _DIGITS - expr.digits)


def _place(node: ast.Expression | ast.Star) -> ast.Name | None:
    return node if isinstance(node, ast.Name) and node.name.lower() == LOC else None


def _axes(node: ast.Name) -> tuple[ast.Name, ast.Name]:
    x, y = (replace(node, name=name) for name in _AXES)
    return x, y

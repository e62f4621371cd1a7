"""Calls of functions of numbers: ``abs``, ``hash`` and ``dist``, which mean what they do in queries to motes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from skerry.planner.model import source_plans as plans
from skerry.planner.model.source_plans import Term
from skerry.sensors.found import Found
from skerry.sql import ast
from skerry.sql.errors import QueryError

#: Each, and how it is written.
USAGE = {
    "ABS": "abs(a.level - b.level)",
    "HASH": "hash(a.id)",
    "DIST": "dist(a.loc, b.loc), or dist(a.loc, point(3 m, 4 m))",
}
_LOC, _AXES, _METRE = "loc", ("xpos", "ypos"), "m"
Resolve = Callable[[ast.Expression, Found | None], Found]


def scalar_of(node: ast.Call, resolve: Resolve) -> Found:
    """Of one of :data:`USAGE`. Raises QueryError."""
    function, usage = node.function.upper(), f"write {USAGE[node.function.upper()]}"
    needed = 2 if function == "DIST" else 1
    if node.star or node.distinct or len(node.arguments) != needed:
        takes = "two positions" if needed > 1 else "one argument"
        raise QueryError(f"{node.function} takes {takes}", usage, node.span)
    if function == "DIST":
        axes = [axis for argument in node.arguments for axis in _axes(argument, resolve, usage)]
        return Found(Term("DIST", plans.DOUBLE, tuple(axes)), _METRE)
    known = resolve(node.arguments[0], None)
    numbers = plans.NUMBERS if function == "ABS" else {plans.INT}
    if known.term.type not in numbers:
        what = "numbers" if function == "ABS" else "whole numbers"
        raise QueryError(f"{node.function} is of {what}", usage, node.arguments[0].span)
    if function == "ABS":
        return Found(Term("ABS", known.term.type, (known.term,)), known.unit)
    return Found(Term("HASH", plans.INT, (known.term,)))


def _axes(node: ast.Expression, resolve: Resolve, usage: str) -> list[Term]:
    """East and north of a position, in m."""
    if isinstance(node, ast.Name) and node.name.lower() == _LOC:
        parts: list[ast.Expression] = [replace(node, name=axis) for axis in _AXES]
    elif (
        isinstance(node, ast.Call) and node.function.lower() == "point" and len(node.arguments) == len(_AXES)
    ):
        parts = [*node.arguments]
    else:
        raise QueryError("this is no position", usage, node.span)
    metres = Found(Term("literal", plans.DOUBLE, (), 0.0), _METRE)
    found = [resolve(part, metres) for part in parts]
    for one in found:
        if one.term.type not in plans.NUMBERS or one.unit not in ("", _METRE):
            unit = f"in {one.unit}" if one.unit else one.term.type.upper()
            raise QueryError(f"a position is {unit}", f"xpos and ypos are numbers in {_METRE}", node.span)
    return [one.term for one in found]

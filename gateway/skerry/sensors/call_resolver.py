"""Calls of functions over arrays in a query, resolved: arguments checked, shapes looked up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from skerry.mining.errors import MiningError
from skerry.mining.shapes import Shapes
from skerry.planner.model import source_plans as plans
from skerry.planner.model.source_plans import Term
from skerry.sensors import array_calls, scalar_calls
from skerry.sensors.table_functions import FUNCTIONS
from skerry.sql import ast
from skerry.sql.errors import QueryError, did_you_mean

#: How table functions are written that are no functions over arrays, too.
_MINING = {name: of.usage for name, of in FUNCTIONS.items() if name not in array_calls.USAGE}

#: Shapes by their names, of the table that a text names. Raises QueryError.
ShapesOf = Callable[[ast.Text], dict[str, list[float]]]


class Resolved(Protocol):
    """What an expression is."""

    @property
    def term(self) -> Term:
        """Its term."""


def no_shapes(name: ast.Text) -> dict[str, list[float]]:
    """Where no tables can be seen."""
    raise QueryError(f"there is no table '{name.text}'", "shapes are in a table of sensors", name.span)


def call_of(node: ast.Call, resolve: Callable[[ast.Expression], Resolved], shapes: ShapesOf) -> Term:
    """A call's term. Raises QueryError."""
    function, arguments = node.function.lower(), node.arguments
    if function not in array_calls.USAGE:
        names, of_numbers = (", ".join(usage) for usage in (array_calls.USAGE, scalar_calls.USAGE))
        guess = did_you_mean(
            node.function, [*array_calls.USAGE, *(name.lower() for name in scalar_calls.USAGE)]
        )
        if function in _MINING:
            guess = f"it is asked of a table, as in FROM {_MINING[function]}; "
        hint = f"{guess}there are {of_numbers} of numbers, and {names.upper()} of arrays"
        raise QueryError(f"'{node.function}' is no function over sensors", hint, node.span)
    usage = f"write {array_calls.USAGE[function]}"
    least, most = {"nearest": (2, 2), "distance": (2, 3), "peaks": (2, 3), "without": (4, 4)}[function]
    if node.distinct or node.star or not least <= len(arguments) <= most:
        raise QueryError(f"{function.upper()} does not take these arguments", usage, node.span)
    needed = array_calls.missing(function)
    if needed is not None:
        hint = "install the gateway with what mining needs: pip install 'skerry[mining]'"
        raise QueryError(f"{function.upper()} needs {needed}, which is not installed", hint, node.span)
    array = resolve(arguments[0]).term
    if not array.type.endswith("[]"):
        raise QueryError(f"{function.upper()} is of an array", usage, arguments[0].span)
    rest = (
        _bounds(arguments[1:], usage)
        if function == "peaks"
        else _known(function, arguments[1:], resolve, shapes, usage)
    )
    return Term("CALL", array_calls.RESULTS[function], (array, *rest), function)


def _bounds(arguments: tuple[ast.Expression, ...], usage: str) -> list[Term]:
    for argument in arguments:
        if not isinstance(argument, ast.Number) or argument.unit is not None:
            raise QueryError("a peak's bounds are numbers without a unit", usage, argument.span)
    return [
        Term("literal", plans.DOUBLE, (), float(one.value))
        for one in arguments
        if isinstance(one, ast.Number)
    ]


def _known(
    function: str,
    arguments: tuple[ast.Expression, ...],
    resolve: Callable[[ast.Expression], Resolved],
    shapes: ShapesOf,
    usage: str,
) -> list[Term]:
    table = arguments[0]
    if not isinstance(table, ast.Text):
        raise QueryError("the table of shapes is a text", usage, table.span)
    found = shapes(table)
    if sum(map(len, found.values())) > array_calls.SHAPES_MAXIMUM:
        hint = f"those of one table have at most {array_calls.SHAPES_MAXIMUM} points together"
        raise QueryError(f"the shapes of '{table.text}' are too many", hint, table.span)
    terms = [array_calls.shapes_term(found)]
    if len(arguments) > 1:
        name = arguments[1]
        if not isinstance(name, ast.Text):
            raise QueryError("a shape's name is a text", usage, name.span)
        if name.text not in found:
            hint = f"{did_you_mean(name.text, list(found))}there are {', '.join(found) or 'none'}"
            raise QueryError(f"'{table.text}' has no shape '{name.text}'", hint, name.span)
        terms.append(Term("literal", plans.TEXT, (), name.text))
    if function == "without":
        times = resolve(arguments[2]).term
        if times.type not in plans.NUMBERS:
            raise QueryError("how many times a shape is taken away is a number", usage, arguments[2].span)
        return [*terms, times]
    try:
        Shapes(found)
    except MiningError as error:
        raise QueryError(f"'{table.text}': {error}", "", table.span) from None
    return terms

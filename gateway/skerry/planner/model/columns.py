"""The columns of mote queries: which attributes need one, the format that holds a value, and the field that holds an aggregate."""

from __future__ import annotations

from collections.abc import Sequence

from skerry.expressions import build
from skerry.expressions.expression import Expr
from skerry.planner.model.plans import Column
from skerry_protocol.attributes import BY_NAME, BY_NUMBER, ValueFormat
from skerry_protocol.packets import Aggregate

#: Every row says these anyway: its mote, its epoch, and what its queue made of it.
IN_EVERY_ROW = frozenset(BY_NAME[name].number for name in ("nodeid", "epoch", "combined", "left_out", "via"))
#: Sent when a query asks for nothing else: the cheapest attribute, as a row needs a field.
_CHEAPEST = BY_NAME["level"].number
_SUMS = (Aggregate.SUM, Aggregate.AVG)
_COUNTED = (*_SUMS, Aggregate.COUNT, Aggregate.MIN, Aggregate.MAX, Aggregate.VARIANCE)


def bare_attributes(expr: Expr) -> frozenset[int]:
    """Attributes named outside of aggregates."""
    if expr.aggregate is not Aggregate.NONE:
        return frozenset()
    own = {expr.operand} if expr.is_attribute and expr.operand is not None else set[int]()
    return frozenset(own).union(*map(bare_attributes, expr.args))


def attribute_columns(numbers: frozenset[int]) -> tuple[Column, ...]:
    """A column for each attribute that is not in every row."""
    chosen = sorted(numbers - IN_EVERY_ROW) or [_CHEAPEST]
    return tuple(
        Column(BY_NUMBER[n].name, build.attribute(BY_NUMBER[n]), BY_NUMBER[n].format) for n in chosen
    )


def format_for(low: int, high: int) -> ValueFormat:
    """The shortest format that holds low..high. Raises ValueError beyond 32 bits."""
    for candidate in ValueFormat:
        if candidate.minimum <= low and high <= candidate.maximum:
            return candidate
    raise ValueError(f"{low}..{high} does not fit 32 bits")


def field_of(columns: Sequence[Column], node: Expr) -> int | None:
    """The field whose partial state holds an aggregate; None: there is none."""
    argument = node.args[0] if node.args else None
    for i, column in enumerate(columns):
        same = (column.aggregate, column.cells) == (node.aggregate, node.cells)
        same |= {column.aggregate, node.aggregate} <= set(_SUMS)
        # The state of any aggregate of one cell, and of VARIANCE, holds the count.
        counted = node.aggregate is Aggregate.COUNT and column.aggregate in _COUNTED and argument is not None
        if column.expr == argument and (same or counted):
            return i
    return None

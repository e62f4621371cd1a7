"""The columns of mote queries: which attributes need one, the format that holds a value, and the field that holds an aggregate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from skerry.expressions import build
from skerry.expressions.expression import Expr
from skerry.planner.model.plans import Column, MoteQuery
from skerry_protocol.attributes import BY_NAME, BY_NUMBER, ValueFormat
from skerry_protocol.bytecode import Op
from skerry_protocol.codes import Aggregate

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


@dataclass(frozen=True, slots=True)
class Projection:
    """Where the states of one mote query are among those of another that computes them too.

    ``places``: for each of its columns the other's. ``counts``: the one that counts the rows for which the condition is true, where
    the other's rows and groups are of more than those; None: they are of these rows.
    """

    places: tuple[int, ...]
    counts: int | None


def where_only(node: Expr, where: Expr | None) -> Expr:
    """The aggregate over those rows alone for which a condition is true, as one of a mote query that has no such condition."""
    argument = build.only_where(node.args[0] if node.args else None, where)
    return replace(node, args=() if argument is None else (argument,))


def counted(where: Expr) -> Expr:
    """How many rows there are for which a condition is true, likewise."""
    return where_only(build.aggregate(Aggregate.COUNT, None), where)


def projection(of: MoteQuery, among: MoteQuery) -> Projection | None:
    """Where the states of one are among those of another, of a finer sample period or the same; None: the other lacks some.

    The other has the same condition, or it has none and computes each aggregate for the rows alone for which this one's is true.
    """
    where = of.where if of.where != among.where else None
    if where is not None and among.where is not None:
        return None
    places: list[int] = []
    for column in of.columns:
        if not column.is_field:
            places.append(places[-1] + 1)
            continue
        found = _place(column, among.columns, where)
        if found is None:
            return None
        places.append(found)
    count = None if where is None else field_of(among.columns, counted(where))
    grouped = any(column.aggregate is Aggregate.GROUP for column in of.columns)
    if where is not None and grouped and count is None:
        return None
    return Projection(tuple(places), count)


def _place(column: Column, columns: Sequence[Column], where: Expr | None) -> int | None:
    if column.aggregate is Aggregate.GROUP:
        same = (i for i, c in enumerate(columns) if (c.aggregate, c.expr) == (column.aggregate, column.expr))
        return next(same, None)
    argument = () if column.expr is None else (column.expr,)
    node = Expr(Op.ATTR, argument, aggregate=column.aggregate, cells=column.cells)
    return field_of(columns, where_only(node, where))

"""ORDER BY and LIMIT: which rows of a window, or of a past that ends, come first, and how many of them come at all."""

from __future__ import annotations

from collections.abc import Sequence

from skerry.expressions.expression import Expr, Kind
from skerry.planner.model.ordering import LIMIT_MAXIMUM, Ordering
from skerry.planner.semantics.resolver import Resolver
from skerry.sql import ast
from skerry.sql.errors import QueryError


def ordering_of(select: ast.Select, named: Sequence[tuple[str, Expr]], resolver: Resolver) -> Ordering | None:
    """What ORDER BY and LIMIT say; ``named``: the columns. None: nothing. Raises QueryError."""
    if select.limit is not None and not select.order:
        hint = "say which rows come first, as in ORDER BY 1 DESC LIMIT 3"
        raise QueryError("LIMIT without ORDER BY would keep any rows", hint, select.limit.span)
    if not select.order:
        return None
    keys = tuple((_key(part.expression, named, resolver), part.descending) for part in select.order)
    return Ordering(keys, None if select.limit is None else _limit(select.limit))


def _key(node: ast.Expression, named: Sequence[tuple[str, Expr]], resolver: Resolver) -> Expr:
    """A column by its number or name, or an expression of its own."""
    expr = None
    if isinstance(node, ast.Number) and node.unit is None:
        if node.value != int(node.value) or not 1 <= node.value <= len(named):
            hint = f"the columns are 1 to {len(named)}"
            raise QueryError(f"ORDER BY {node.value:f} names no column", hint, node.span)
        expr = named[int(node.value) - 1][1]
    elif isinstance(node, ast.Name) and node.table is None:
        expr = next((expr for name, expr in named if name.lower() == node.name.lower()), None)
    expr = expr if expr is not None else resolver.expression(node)
    if expr.kind in (Kind.LIST, Kind.TEXT):
        raise QueryError("this cannot be ordered by", "order by numbers and conditions", node.span)
    return expr


def _limit(number: ast.Number) -> int:
    if number.value != int(number.value) or not 1 <= number.value <= LIMIT_MAXIMUM:
        hint = f"write a whole number from 1 to {LIMIT_MAXIMUM:,}"
        raise QueryError(f"LIMIT {number.value:f} is no number of rows", hint, number.span)
    return int(number.value)


def check_ordered(select: ast.Select, bare: Sequence[bool], *, windowed: bool, aggregate: bool) -> None:
    """Raises QueryError where an order has no end, or is by what the rows of a window or an aggregate do not have: ``bare`` says which
    parts are."""
    span = select.order[0].span.to(select.order[-1].span)
    ends = select.history is not None and select.history.only
    if not windowed and not ends:
        hint = "give its aggregates a window, as in AVG(temp, 5 min) … ORDER BY 1 DESC LIMIT 3: each window's rows are ordered"
        hint += ", or end it: HISTORY … ONLY" if select.history is not None else ""
        raise QueryError("an endless stream has no last row, and cannot be ordered as a whole", hint, span)
    for part, is_bare in zip(select.order, bare, strict=True):
        if is_bare and (windowed or aggregate):
            what = select.text[part.expression.span.start : part.expression.span.end]
            epoch = "by epoch, " if windowed else ""
            hint = f"order by aggregates, {epoch}or by what GROUP BY names"
            raise QueryError(f"'{what}' has one value for each mote", hint, part.span)

"""ORDER BY and LIMIT: which rows of a window, or of a past that ends, come first, and how many of them come at all."""

from __future__ import annotations

from collections.abc import Sequence

from skerry.expressions.expression import Expr, Kind
from skerry.expressions.temporal import is_temporal
from skerry.planner.model.ordering import LIMIT_MAXIMUM, Ordering
from skerry.planner.semantics.aggregates import has_bare_attribute, named
from skerry.planner.semantics.draft import Draft
from skerry.planner.semantics.resolver import Resolver
from skerry.sql import ast
from skerry.sql.errors import QueryError


def ordering(draft: Draft) -> Draft:
    """What ORDER BY and LIMIT say of the rows of a window, or of a past."""
    select, plan = draft.select, draft.plan
    if select.limit is not None and not select.order:
        hint = "say which rows come first, as in ORDER BY 1 DESC LIMIT 3"
        raise QueryError("LIMIT without ORDER BY would keep any rows", hint, select.limit.span)
    if not select.order:
        return draft
    columns = [(output.name, output.expr) for output in plan.outputs]
    resolver = Resolver(period_ms=draft.period_ms, scope=draft.columns_scope)
    keys = tuple((_key(part.expression, columns, resolver), part.descending) for part in select.order)
    order = Ordering(keys, None if select.limit is None else _limit(select.limit))
    _check(draft, [has_bare_attribute(expr, named(draft)) for expr in order.exprs()])
    nodes = [node for expr in order.exprs() for node in expr.walk() if node.aggregate]
    if not draft.windowed and any(not plan.aggregate or is_temporal(node) for node in nodes):
        hint = "order by what the rows have: select the aggregate, too"
        raise QueryError("an aggregate does not order single readings", hint, select.order[0].span)
    return draft.planned(order=order)


def _key(node: ast.Expression, columns: Sequence[tuple[str, Expr]], resolver: Resolver) -> Expr:
    """A column by its number or name, or an expression of its own."""
    expr = None
    if isinstance(node, ast.Number) and node.unit is None:
        if node.value != int(node.value) or not 1 <= node.value <= len(columns):
            hint = f"the columns are 1 to {len(columns)}"
            raise QueryError(f"ORDER BY {node.value:f} names no column", hint, node.span)
        expr = columns[int(node.value) - 1][1]
    elif isinstance(node, ast.Name) and node.table is None:
        expr = next((expr for name, expr in columns if name.lower() == node.name.lower()), None)
    expr = expr if expr is not None else resolver.expression(node)
    if expr.kind in (Kind.LIST, Kind.TEXT):
        raise QueryError("this cannot be ordered by", "order by numbers and conditions", node.span)
    return expr


def _limit(number: ast.Number) -> int:
    if number.value != int(number.value) or not 1 <= number.value <= LIMIT_MAXIMUM:
        hint = f"write a whole number from 1 to {LIMIT_MAXIMUM:,}"
        raise QueryError(f"LIMIT {number.value:f} is no number of rows", hint, number.span)
    return int(number.value)


def _check(draft: Draft, bare: Sequence[bool]) -> None:
    """Raises QueryError where an order has no end, or is by what the rows of a window or an aggregate do not have: ``bare`` says which
    parts are."""
    select, windowed = draft.select, draft.windowed
    span = select.order[0].span.to(select.order[-1].span)
    ends = select.history is not None and select.history.only
    if not windowed and not ends:
        hint = "give its aggregates a window, as in AVG(temp, 5 min) … ORDER BY 1 DESC LIMIT 3: each window's rows are ordered"
        hint += ", or end it: HISTORY … ONLY" if select.history is not None else ""
        raise QueryError("an endless stream has no last row, and cannot be ordered as a whole", hint, span)
    for part, is_bare in zip(select.order, bare, strict=True):
        if is_bare and (windowed or draft.plan.aggregate):
            what = select.text[part.expression.span.start : part.expression.span.end]
            epoch = "by epoch, " if windowed else ""
            hint = f"order by aggregates, {epoch}or by what GROUP BY names"
            raise QueryError(f"'{what}' has one value for each mote", hint, part.span)

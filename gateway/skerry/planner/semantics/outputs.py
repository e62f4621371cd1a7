"""The columns that a user sees."""

from __future__ import annotations

from dataclasses import replace

from skerry.expressions import extension_aggregates
from skerry.expressions.expression import MIXED, PLAIN, Expr, Kind
from skerry.expressions.temporal import temporal_nodes
from skerry.expressions.unit_algebra import UTC, is_derived
from skerry.planner.model.plans import Output
from skerry.planner.semantics import aggregate_functions
from skerry.planner.semantics.draft import Draft
from skerry.planner.semantics.resolver import Resolver
from skerry.planner.semantics.time_windows import asks
from skerry.sql import ast
from skerry.sql.errors import QueryError


def _aggregates(select: ast.Select) -> bool:
    """Whether a query aggregates the rows of several motes."""
    known = {*aggregate_functions.NAMES, *extension_aggregates.names()}
    asked = (select.items, select.having, select.order)
    calls = (node for node in ast.walk(asked) if isinstance(node, ast.Call))
    return bool(select.groups) or any(call.function.upper() in known for call in calls)


def outputs(draft: Draft) -> Draft:
    """The columns, each under a name of its own, with what motes compute over time for them."""
    select = draft.select
    windowed = asks(select.items, select.having, select.order)
    draft = replace(draft, windowed=windowed, aggregated=windowed or _aggregates(select))
    scope = draft.columns_scope
    found: list[Output] = []
    resolver = Resolver(period_ms=draft.period_ms, scope=scope)
    for item in select.items:
        if isinstance(item.expression, ast.Star):
            found += [_output(name, expr) for name, expr in scope.star(item.expression)]
            continue
        found.append(_output(_called(item, select.text), resolver.expression(item.expression)))
    names = [output.name for output in found]
    for item in select.items:
        name = _called(item, select.text)
        if names.count(name) > 1:
            raise QueryError(f"two columns are named '{name}'", "name one of them with AS", item.span)
    temporal = tuple(temporal_nodes(output.expr for output in found))
    return draft.planned(outputs=tuple(found), temporal=temporal)


def _called(item: ast.SelectItem, text: str) -> str:
    """What a column is called: as it is written, a name without its quotation marks."""
    expression = item.expression
    if isinstance(expression, ast.Name) and expression.quoted and item.alias is None:
        return expression.name if expression.table is None else f"{expression.table}.{expression.name}"
    return " ".join((item.alias or text[expression.span.start : expression.span.end]).split())


def _output(name: str, expr: Expr) -> Output:
    known = expr.kind is Kind.NUMBER and expr.unit not in (PLAIN, MIXED, UTC) and not is_derived(expr.unit)
    unit = expr.unit if known else ""
    return Output(name, expr, unit, expr.digits)

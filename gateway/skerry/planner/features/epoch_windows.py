"""Aggregates that the gateway computes for each epoch: windows of one sample period.

Motes merge aggregates on the way where they can. Over rows joined with tables, and where the past goes on into the live
stream, only the gateway has all of what is aggregated; and where WHERE is more than a mote can ask, it alone knows of what.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from skerry.expressions import extension_aggregates
from skerry.expressions.assembler import obstacle
from skerry.planner.semantics import aggregate_functions, temporal_aggregates, time_windows
from skerry.planner.semantics.draft import Draft
from skerry.sql import ast
from skerry.sql.errors import QueryError


def epoch_windows(draft: Draft) -> Draft:
    """The query with such windows where motes cannot aggregate."""
    select, period_ms = draft.select, draft.plan.period_ms
    if draft.scope.tables:
        return replace(draft, select=_with_windows(select, period_ms, "tables"))
    if select.history is not None and not select.history.only and not isinstance(select.sampling, ast.Once):
        return replace(draft, select=_with_windows(select, period_ms, "HISTORY that goes on"))
    if _beyond_motes(draft):
        return replace(
            draft, select=_with_windows(select, period_ms, "a condition that motes cannot evaluate")
        )
    return draft


def _beyond_motes(draft: Draft) -> bool:
    """Whether motes cannot ask WHERE, and the gateway can aggregate in their place."""
    select, where = draft.select, draft.plan.where
    if not draft.where_at_gateway and (where is None or obstacle(where) is None):
        return False
    acts = (
        select.event,
        select.into,
        select.queue,
        select.approximate,
        select.history,
        *select.outputs,
        *select.signals,
        *select.nested,
    )
    if (
        any(part is not None for part in acts)
        or draft.scope.sources
        or not isinstance(select.sampling, ast.SamplePeriod)
    ):
        return False
    functions = {call.function.upper() for call in _calls(select)}
    return (
        bool(functions)
        and functions <= set(time_windows.KINDS)
        and not any(call.distinct for call in _calls(select))
    )


def _calls(select: ast.Select) -> list[ast.Call]:
    """Of aggregates over all motes, and over each mote's rows."""
    asked = (select.items, select.having, select.order)
    known = {*aggregate_functions.NAMES, *extension_aggregates.names(), *temporal_aggregates.NAMES}
    return [node for node in ast.walk(asked) if isinstance(node, ast.Call) and node.function.upper() in known]


def _with_windows(select: ast.Select, period_ms: int, what: str) -> ast.Select:
    """The query with a window of one sample period for each aggregate; itself where it has none, or has windows already. Raises
    QueryError for aggregates that have no windows; ``what`` they do not go with."""
    asked = (select.items, select.having, select.order)
    if time_windows.asks(*asked):
        return select
    known = {*aggregate_functions.NAMES, *extension_aggregates.names()}
    calls = [
        node for node in ast.walk(asked) if isinstance(node, ast.Call) and node.function.upper() in known
    ]
    for call in calls:
        if call.function.upper() not in time_windows.KINDS or call.distinct:
            kinds = ", ".join(time_windows.KINDS)
            hint = f"aggregates there are {kinds}: ask for others in another query"
            name = "COUNT(DISTINCT …)" if call.distinct else call.function.upper()
            raise QueryError(f"{name} does not go with {what}", hint, call.span)
    if not calls and select.groups:
        hint = "name an aggregate, as in COUNT(*)"
        raise QueryError(
            f"GROUP BY without an aggregate does not go with {what}", hint, select.groups[0].span
        )

    def windowed(call: ast.Call) -> ast.Call:
        if call.function.upper() not in time_windows.KINDS:
            return call
        period = ast.Number(Decimal(period_ms), "ms", call.span)
        return replace(call, arguments=(*call.arguments, period))

    items, having, order = ast.rewritten(asked, ast.Call, windowed)
    return replace(select, items=items, having=having, order=order)

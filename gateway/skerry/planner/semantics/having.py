"""HAVING: the condition on an aggregate's rows."""

from __future__ import annotations

from skerry.expressions.temporal import temporal_nodes
from skerry.planner.semantics.aggregates import has_bare_attribute, named
from skerry.planner.semantics.draft import Draft
from skerry.planner.semantics.resolver import Resolver
from skerry.sql.errors import QueryError


def having(draft: Draft) -> Draft:
    """The condition, with what motes compute over time for it."""
    node, plan = draft.select.having, draft.plan
    if node is None:
        return draft
    aggregate = plan.aggregate or draft.windowed
    if not aggregate and not plan.temporal:
        hint = "it chooses among the rows of an aggregate: choose among motes' rows with WHERE"
        raise QueryError("HAVING has no meaning without an aggregate or GROUP BY", hint, node.span)
    expr = Resolver(period_ms=draft.period_ms, scope=draft.columns_scope).condition(node, "HAVING")
    if aggregate and has_bare_attribute(expr, named(draft)):
        hint = "HAVING speaks of aggregates and of what GROUP BY names: ask of single motes with WHERE"
        raise QueryError("HAVING names an attribute, which has one value for each mote", hint, node.span)
    return draft.planned(having=expr, temporal=tuple(temporal_nodes([*plan.temporal, expr])))

"""GROUP BY."""

from __future__ import annotations

from skerry.expressions.assembler import obstacle
from skerry.expressions.expression import Expr
from skerry.planner.semantics.aggregates import has_aggregate
from skerry.planner.semantics.draft import Draft
from skerry.planner.semantics.resolver import Resolver
from skerry.sql.errors import QueryError


def groups(draft: Draft) -> Draft:
    """What GROUP BY names: expressions that motes compute, and compare as integers, or, of windows and the past alone, the gateway."""
    select = draft.select
    past_only = select.history is not None and select.history.only
    found: dict[Expr, None] = {}
    for node in select.groups:
        resolver = Resolver(
            "cannot be grouped by: a group is known before it is aggregated", scope=draft.scope
        )
        expr = resolver.expression(node)
        if not draft.windowed and (reason := obstacle(expr, past_only)):
            hint = f"groups are told apart by motes, and {reason}"
            raise QueryError("this cannot be grouped by", hint, node.span)
        found[expr] = None
    aggregates = bool(found) or any(has_aggregate(output.expr) for output in draft.plan.outputs)
    return draft.planned(groups=tuple(found), aggregate=aggregates and not draft.windowed)

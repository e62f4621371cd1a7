"""Aggregates over all motes in an epoch: what may stand beside them, and what motes can compute of them."""

from __future__ import annotations

from collections.abc import Collection

from skerry.expressions import build
from skerry.expressions.assembler import obstacle
from skerry.expressions.expression import Expr
from skerry.planner.model.epoch_facts import FACTS
from skerry.planner.model.frames import is_windowed
from skerry.planner.model.row_time import is_of_row
from skerry.planner.semantics.draft import Draft
from skerry.planner.semantics.resolver import Resolver
from skerry.sql import ast
from skerry.sql.errors import QueryError
from skerry_protocol.attributes import BY_NAME
from skerry_protocol.bytecode import Op
from skerry_protocol.codes import Aggregate
from skerry_protocol.limits import FIELDS_MAXIMUM


def has_aggregate(expr: Expr) -> bool:
    """Whether any is over the rows of one epoch."""
    return any(
        Aggregate.NONE < node.aggregate < Aggregate.WINAVG and not is_windowed(node) for node in expr.walk()
    )


def has_bare_attribute(expr: Expr, groups: Collection[Expr]) -> bool:
    """Whether it names an attribute outside of aggregates and of what is grouped by."""
    if expr.aggregate is not Aggregate.NONE or expr in groups or is_of_row(expr):
        return False
    return (
        expr.is_attribute or expr.op is Op.STORED or any(has_bare_attribute(arg, groups) for arg in expr.args)
    )


def named(draft: Draft) -> tuple[Expr, ...]:
    """What may be named outside of aggregates: groups, and what the row says of itself, of a window's its last epoch."""
    return (*draft.plan.groups, build.attribute(BY_NAME["epoch"]), *FACTS.values())


def check_bare(draft: Draft, groups: Collection[Expr], whom: str) -> None:
    """Raises QueryError where a column names an attribute outside of aggregates and ``groups``."""
    select = draft.select
    for item in select.items:
        star = isinstance(item.expression, ast.Star)
        resolver = Resolver(period_ms=draft.plan.period_ms, scope=draft.columns_scope)
        if isinstance(item.expression, ast.Star) or has_bare_attribute(
            resolver.expression(item.expression), groups
        ):
            what = "*" if star else f"'{select.text[item.span.start : item.span.end]}'"
            raise QueryError(
                f"{what} has one value for each mote, and an aggregate one for {whom}",
                "name it in GROUP BY, or ask for them in two queries",
                item.span,
            )


def aggregates(draft: Draft) -> Draft:
    """What is wrong with aggregates over all motes is told."""
    select, plan = draft.select, draft.plan
    if not plan.aggregate:
        return draft
    check_bare(draft, named(draft), "each group" if plan.groups else "all")
    past_only = select.history is not None and select.history.only
    if plan.where is not None and select.where is not None and (reason := obstacle(plan.where, past_only)):
        hint = f"aggregates are computed by motes, and {reason}"
        raise QueryError("this condition cannot be evaluated by a mote", hint, select.where.span)
    for node in plan.aggregates():
        if node.args and (reason := obstacle(node.args[0], past_only)):
            hint = f"aggregates are computed by motes, and {reason}"
            raise QueryError("this aggregate cannot be computed by a mote", hint, draft.span)
    number = plan.cells() + (select.approximate is not None)
    # Of the past alone, no mote keeps a state.
    if number > FIELDS_MAXIMUM and not past_only:
        hint = f"a partial state has {FIELDS_MAXIMUM}: one for COUNT, SUM, AVG, MIN, MAX and each GROUP BY, more for others"
        raise QueryError(f"these aggregates need {number} cells", hint, draft.span)
    return draft

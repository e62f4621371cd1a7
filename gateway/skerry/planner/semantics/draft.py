"""A query on its way to a plan: what is written, what its names mean, and as much of the plan as is known."""

from __future__ import annotations

from binascii import crc32
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from skerry.catalog.static_attributes import Statics
from skerry.expressions.expression import Expr
from skerry.planner.model.joined_tables import Tables
from skerry.planner.model.plans import QueryPlan
from skerry.planner.model.storage_points import Points
from skerry.planner.semantics.positions import with_axes
from skerry.planner.semantics.scope import Scope, event_value, scope_of
from skerry.planner.semantics.scope_of_motes import scope_of_motes
from skerry.sql import ast


@dataclass(frozen=True, slots=True)
class Draft:
    """A pass takes one and returns one that knows more; it raises QueryError for what it finds to be wrong.

    ``least_ms``: the shortest sample period that it may have; ``stored``: its rows wait on the motes. ``on``: conditions that need a
    table or the time of the sample, which ``plan.where`` lacks. ``windowed``: aggregates are over windows, at the gateway;
    ``aggregated``: there are any over the rows of several motes. ``where_at_gateway``: motes cannot hold WHERE, so that they cannot
    aggregate either.
    """

    select: ast.Select
    scope: Scope
    plan: QueryPlan
    least_ms: int
    stored: bool
    on: tuple[Expr, ...] = ()
    windowed: bool = False
    where_at_gateway: bool = False
    aggregated: bool = False

    def planned(self, **known: Any) -> Draft:
        """The draft with these fields of its plan."""
        return replace(self, plan=replace(self.plan, **known))

    @property
    def period_ms(self) -> int | None:
        """The sample period; None: LIFETIME is to find it."""
        return None if isinstance(self.select.sampling, ast.Lifetime) else self.plan.period_ms

    @property
    def columns_scope(self) -> Scope:
        """What names mean in columns, HAVING and ORDER BY, which may be of an aggregate's row, or of two that motes join."""
        return replace(self.scope, of_aggregate=self.aggregated, of_join=self.select.strategy is not None)

    @property
    def span(self) -> ast.Span:
        """Where its columns stand."""
        return self.select.items[0].span.to(self.select.items[-1].span)

    def exprs(self) -> list[Expr]:
        """All that it reads, clauses apart."""
        plan = self.plan
        conditions = [expr for expr in (plan.where, plan.having) if expr is not None]
        order = plan.order.exprs() if plan.order is not None else ()
        return [*(output.expr for output in plan.outputs), *conditions, *plan.groups, *self.on, *order]


#: A step from what is written to a plan.
Pass = Callable[[Draft], Draft]


def begin(
    select: ast.Select, points: Points, tables: Tables, statics: Statics, least_ms: int, *, stored: bool
) -> Draft:
    """A draft that knows what names mean beside these storage points, tables and users' attributes. Raises QueryError."""
    select = with_axes(select)
    plan = QueryPlan(select.text, 0, None, False, False, (), None, None, frozenset())
    return Draft(select, names(select, points, tables, statics), plan, least_ms, stored)


def names(select: ast.Select, points: Points, tables: Tables, statics: Statics) -> Scope:
    """What names mean in a query. Raises QueryError."""
    recorded = select.history is not None and select.history.only
    found = (
        scope_of(tuple(select.tables), points, tables, statics)
        if select.strategy is None
        else scope_of_motes(select, statics)
    )
    scope = replace(found, recorded=recorded)
    spans = {item.alias.lower(): item.expression.span for item in select.items if item.alias is not None}
    columns = {name: " ".join(select.text[span.start : span.end].split()) for name, span in spans.items()}
    events = select.event.events if select.event is not None else ()
    # Of queries in the same words, which may share what motes do, it is the same; it is told by explain.
    seed = crc32(" ".join(select.text.split()).encode(errors="surrogatepass")) >> 1
    return replace(scope, event_value=event_value(events), columns=columns, seed=seed)

"""One mote query that serves several plans.

Plain queries share the attributes all of them need, at the fastest period, for rows that any of them may
want (:mod:`skerry.planner.physical.row_union`); each user's own condition, expressions and period are applied at the gateway.
Aggregates with equal groups share their fields, at the fastest period; those of several conditions share a program in which each
counts the rows for which its own condition is true.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from skerry.expressions.assembler import obstacle
from skerry.expressions.expression import Expr, render
from skerry.planner.features import snooping
from skerry.planner.features.approximate import representative_column
from skerry.planner.features.concurrent_events import RAISED_BY, is_concurrent
from skerry.planner.model.columns import (
    IN_EVERY_ROW,
    attribute_columns,
    bare_attributes,
    counted,
    field_of,
    format_for,
    where_only,
)
from skerry.planner.model.pairing import NUMBERED
from skerry.planner.model.plans import Column, MoteQuery, QueryPlan
from skerry.planner.physical.program import fits
from skerry.planner.physical.row_union import RowNeed, RowUnion
from skerry_protocol.attributes import ValueFormat
from skerry_protocol.codes import Aggregate
from skerry_protocol.limits import FIELDS_MAXIMUM


def merge(plans: Sequence[QueryPlan]) -> MoteQuery:
    """The mote query for these plans, which are of one kind (plain, or aggregates of equal groups, or a single ONCE). It may be too
    large for a mote: see ``program.check_program``."""
    return _shared(_merged(plans), plans[0])


def _shared(query: MoteQuery, plan: QueryPlan) -> MoteQuery:
    """The query with what all plans of one kind say."""
    query = replace(query, budget=plan.budget, clauses=plan.clauses, at_once=plan.at_once)
    if query.aggregate or plan.columns or not is_concurrent(plan.clauses):
        return query
    # An epoch has a row for each mote whose event it belongs to.
    columns = sorted(query.columns, key=lambda column: column.expr != RAISED_BY)
    return replace(query, columns=tuple(columns), numbered=1)


def _merged(plans: Sequence[QueryPlan]) -> MoteQuery:
    first = plans[0]
    if first.aggregate:
        return _aggregates(plans)
    if first.columns:
        return MoteQuery(
            first.period_ms,
            first.once,
            False,
            first.columns,
            first.where,
            numbered=NUMBERED if first.pairing is not None else len(first.reads),
        )
    if first.once:
        return _once(first)
    if first.temporal:
        return _temporal(plans)
    return RowUnion(RowNeed(plan.attributes, plan.period_ms, plan.mote_where) for plan in plans).query()


def _temporal(plans: Sequence[QueryPlan]) -> MoteQuery:
    """Plans with the same windows over the same rows may still want different attributes beside them."""
    first = plans[0]
    beside = frozenset[int]().union(*(bare_attributes(expr) for plan in plans for expr in _user_exprs(plan)))
    windows = tuple(
        Column(f"w{i}", node, format_for(node.low, node.high), node.aggregate)
        for i, node in enumerate(first.temporal)
    )
    attributes = attribute_columns(beside) if beside - IN_EVERY_ROW else ()
    return MoteQuery(first.period_ms, False, False, (*attributes, *windows), first.where)


def _user_exprs(plan: QueryPlan) -> list[Expr]:
    return [output.expr for output in plan.outputs] + ([plan.having] if plan.having is not None else [])


def _once(plan: QueryPlan) -> MoteQuery:
    """ONCE serves one user: motes compute the expressions themselves where they can and it is not longer."""
    base = MoteQuery(plan.period_ms, True, False, attribute_columns(plan.attributes), plan.mote_where)
    exprs = dict.fromkeys(
        output.expr
        for output in plan.outputs
        if (not output.expr.is_constant and output.expr.operand not in IN_EVERY_ROW | {None})
        or output.expr.args
    )
    if plan.where != plan.mote_where or not exprs or len(exprs) > FIELDS_MAXIMUM or any(map(obstacle, exprs)):
        return base
    columns = tuple(_computed(i, expr) for i, expr in enumerate(exprs))
    computed = replace(base, columns=columns)
    shorter = sum(c.format.size for c in columns) < sum(c.format.size for c in base.columns)
    return computed if shorter and fits(computed) else base


def _computed(index: int, expr: Expr) -> Column:
    if expr.is_attribute and expr.operand is not None:
        return attribute_columns(frozenset({expr.operand}))[0]
    return Column(f"c{index}", expr, format_for(expr.low, expr.high))


def _aggregates(plans: Sequence[QueryPlan]) -> MoteQuery:
    """Aggregates of one condition are of the rows for which it is true; of several, each is of its own, and all are of every row."""
    first, period = plans[0], min(plan.period_ms for plan in plans)
    if all(plan.where == first.where for plan in plans):
        wanted = [node for plan in plans for node in plan.aggregates()]
        columns = _aggregate_columns(wanted, first.groups, representative_column(plans))
        return MoteQuery(period, first.once, True, columns, first.where, snoop=snooping.snoops(plans))
    wanted = [where_only(node, plan.where) for plan in plans for node in plan.aggregates()]
    if first.groups:
        # A group is there for those only who have a row in it.
        wanted += [counted(plan.where) for plan in plans if plan.where is not None]
    return MoteQuery(period, first.once, True, _aggregate_columns(wanted, first.groups, []), None)


def _aggregate_columns(
    nodes: Iterable[Expr], groups: Iterable[Expr], last: Iterable[Column]
) -> tuple[Column, ...]:
    wanted = dict.fromkeys(nodes)
    columns: list[Column] = []
    # COUNT(x) last: the state of any other aggregate over x holds it.
    for node in sorted(wanted, key=lambda n: (n.aggregate is Aggregate.COUNT, render(n))):
        if field_of(columns, node) is None:
            argument = node.args[0] if node.args else None
            columns.append(Column("", argument, ValueFormat.I32, node.aggregate, node.cells))
            columns += [Column("", None, ValueFormat.I32)] * (node.cells - 1)
    keys = [Column("", expr, ValueFormat.I32, Aggregate.GROUP) for expr in groups]
    return tuple(replace(column, name=f"f{i}") for i, column in enumerate([*keys, *columns, *last]))

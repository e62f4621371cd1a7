"""One mote query that serves several plans.

Plain queries share the attributes all of them need, at the fastest period, for rows that any of them may
want; each user's own condition, expressions and period are applied at the gateway. Aggregates with equal
period and condition share their fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from skerry.plan import build
from skerry.plan.assembler import obstacle
from skerry.plan.expression import Expr, render
from skerry.plan.model import Column, MoteQuery, QueryPlan
from skerry.plan.program import fits
from skerry.plan.ranges import condition_of, hull, ranges_of
from skerry_protocol.attributes import ATTRIBUTES, BY_NAME, BY_NUMBER, ValueFormat
from skerry_protocol.bytecode import Op
from skerry_protocol.packets import FIELDS_MAXIMUM, Aggregate

#: Every row says these anyway: its mote, its epoch, and what its queue made of it.
IN_EVERY_ROW = frozenset(BY_NAME[name].number for name in ("nodeid", "epoch", "combined", "left_out"))
#: Sent when a query asks for nothing else: the cheapest attribute, as a row needs a field.
_CHEAPEST = BY_NAME["level"].number
#: More different conditions than this never fit a program (3 bytes each at least).
_CONDITIONS_MAXIMUM = 40


def merge(plans: Sequence[QueryPlan]) -> MoteQuery:
    """The mote query for these plans, which are of one kind (plain, or aggregates of one period and
    condition, or a single ONCE). A single plan's query may be too large: see ``program.check_program``."""
    return replace(_merged(plans), budget=plans[0].budget, clauses=plans[0].clauses)


def _merged(plans: Sequence[QueryPlan]) -> MoteQuery:
    first = plans[0]
    if first.aggregate:
        return MoteQuery(first.period_ms, first.once, True, _aggregate_columns(plans), first.where)
    if first.columns:
        return MoteQuery(
            first.period_ms, first.once, False, first.columns, first.where, numbered=len(first.reads)
        )
    if first.once:
        return _once(first)
    if first.temporal:
        return _temporal(plans)
    return _rows(plans)


def _rows(plans: Sequence[QueryPlan]) -> MoteQuery:
    needed = frozenset[int]().union(*(plan.attributes for plan in plans))
    base = MoteQuery(min(plan.period_ms for plan in plans), False, False, attribute_columns(needed), None)
    conditions = {plan.mote_where for plan in plans}
    if None in conditions:
        return base
    distinct = [condition for condition in conditions if condition is not None]
    if len(distinct) == 1:
        return replace(base, where=distinct[0])
    for where in (_any_of(distinct), _hull_of(distinct)):
        if where is not None and obstacle(where) is None and fits(query := replace(base, where=where)):
            return query
    return base


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


def bare_attributes(expr: Expr) -> frozenset[int]:
    """Attributes named outside of aggregates."""
    if expr.aggregate is not Aggregate.NONE:
        return frozenset()
    own = {expr.operand} if expr.is_attribute and expr.operand is not None else set[int]()
    return frozenset(own).union(*map(bare_attributes, expr.args))


def attribute_columns(numbers: frozenset[int]) -> tuple[Column, ...]:
    chosen = sorted(numbers - IN_EVERY_ROW) or [_CHEAPEST]
    return tuple(
        Column(BY_NUMBER[n].name, build.attribute(BY_NUMBER[n]), BY_NUMBER[n].format) for n in chosen
    )


def _any_of(conditions: list[Expr]) -> Expr | None:
    if len(conditions) > _CONDITIONS_MAXIMUM:
        return None
    # Sorted, so that the order in which users came does not matter.
    return build.join(Op.OR, sorted(conditions, key=render))


def _hull_of(conditions: list[Expr]) -> Expr | None:
    """A range of one attribute around what all conditions ask of it."""
    ranges = [{r.attribute: r for r in ranges_of(condition)} for condition in conditions]
    for entry in ATTRIBUTES:
        if all(entry.number in of_one for of_one in ranges):
            around = hull([of_one[entry.number] for of_one in ranges])
            if around is not None:
                return condition_of(around, build.attribute(entry))
    return None


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


def format_for(low: int, high: int) -> ValueFormat:
    """The shortest format that holds low..high. Raises ValueError beyond 32 bits."""
    for candidate in ValueFormat:
        if candidate.minimum <= low and high <= candidate.maximum:
            return candidate
    raise ValueError(f"{low}..{high} does not fit 32 bits")


def _aggregate_columns(plans: Sequence[QueryPlan]) -> tuple[Column, ...]:
    wanted = dict.fromkeys(node for plan in plans for node in plan.aggregates())
    columns: list[Column] = []
    # COUNT(x) last: the state of any other aggregate over x holds it.
    for node in sorted(wanted, key=lambda n: (n.aggregate is Aggregate.COUNT, render(n))):
        if field_of(columns, node) is None:
            argument = node.args[0] if node.args else None
            columns.append(Column("", argument, ValueFormat.I32, node.aggregate, node.cells))
            columns += [Column("", None, ValueFormat.I32)] * (node.cells - 1)
    # Plans that are merged group by the same.
    groups = [Column("", expr, ValueFormat.I32, Aggregate.GROUP) for expr in plans[0].groups]
    return tuple(replace(column, name=f"f{i}") for i, column in enumerate([*groups, *columns]))


_SUMS = (Aggregate.SUM, Aggregate.AVG)
_COUNTED = (*_SUMS, Aggregate.COUNT, Aggregate.MIN, Aggregate.MAX, Aggregate.VARIANCE)


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

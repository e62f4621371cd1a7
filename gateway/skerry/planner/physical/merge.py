"""One mote query that serves several plans.

Plain queries share the attributes all of them need, at the fastest period, for rows that any of them may
want; each user's own condition, expressions and period are applied at the gateway. Aggregates with equal
period and condition share their fields.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar, cast

from skerry.expressions import build
from skerry.expressions.assembler import obstacle
from skerry.expressions.expression import Expr, render
from skerry.expressions.ranges import RangeFilter, condition_of, ranges_of
from skerry.planner.features import snooping
from skerry.planner.features.approximate import speaker_column
from skerry.planner.features.concurrent_events import RAISED_BY, runs_beside
from skerry.planner.model.columns import (
    IN_EVERY_ROW,
    attribute_columns,
    bare_attributes,
    field_of,
    format_for,
)
from skerry.planner.model.plans import Column, MoteQuery, QueryPlan
from skerry.planner.physical.program import fits
from skerry_protocol.attributes import ATTRIBUTES, ValueFormat
from skerry_protocol.bytecode import Op
from skerry_protocol.packets import FIELDS_MAXIMUM, Aggregate

_Counted = TypeVar("_Counted")
#: More different conditions than this never fit a program (3 bytes each at least).
_CONDITIONS_MAXIMUM = 40


def merge(plans: Sequence[QueryPlan]) -> MoteQuery:
    """The mote query for these plans, which are of one kind (plain, or aggregates of one period and
    condition, or a single ONCE). A single plan's query may be too large: see ``program.check_program``."""
    return _shared(_merged(plans), plans[0])


class Union:
    """Plans of one kind that come and go, and the mote query that :func:`merge` would make of them: of ten thousand plain ones
    without looking at all of them again."""

    def __init__(self, plans: Iterable[QueryPlan] = ()) -> None:
        #: Those that are not plain rows, of each that says something else to :func:`merge` one, and how many.
        self._others: dict[Hashable, tuple[QueryPlan, int]] = {}
        #: Of plain rows: attributes, periods, and conditions with their ranges, and how many have each.
        self._plain: QueryPlan | None = None
        self._attributes: Counter[int] = Counter()
        self._periods: Counter[int] = Counter()
        self._conditions: Counter[Expr | None] = Counter()
        self._ranges: dict[Expr | None, dict[int, RangeFilter]] = {}
        self._bounds: dict[int, tuple[Counter[int | None], Counter[int | None]]] = {}
        for plan in plans:
            self.add(plan)

    def add(self, plan: QueryPlan) -> None:
        """One more."""
        if not _is_plain(plan):
            key = _said(plan)
            self._others[key] = plan, self._others.get(key, (plan, 0))[1] + 1
            return
        self._plain = plan
        self._attributes.update(plan.attributes)
        self._periods[plan.period_ms] += 1
        self._conditions[plan.mote_where] += 1
        if self._conditions[plan.mote_where] == 1:
            self._ranges[plan.mote_where] = {r.attribute: r for r in ranges_of(plan.mote_where)}
            for number, bounds in self._ranges[plan.mote_where].items():
                lows, highs = self._bounds.setdefault(number, (Counter(), Counter()))
                lows[bounds.low] += 1
                highs[bounds.high] += 1

    def remove(self, plan: QueryPlan) -> None:
        """One that was added goes."""
        if not _is_plain(plan):
            key = _said(plan)
            kept, count = self._others.pop(key)
            if count > 1:
                self._others[key] = kept, count - 1
            return
        _take(self._periods, plan.period_ms)
        for number in plan.attributes:
            _take(self._attributes, number)
        _take(self._conditions, plan.mote_where)
        if plan.mote_where not in self._conditions:
            for number, bounds in self._ranges.pop(plan.mote_where).items():
                _take(self._bounds[number][0], bounds.low)
                _take(self._bounds[number][1], bounds.high)

    def merged(self) -> MoteQuery:
        """The mote query that serves all of them."""
        if self._others or self._plain is None:
            return merge([plan for plan, _ in self._others.values()])
        return _shared(self._rows(), self._plain)

    def with_one_more(self, plan: QueryPlan) -> MoteQuery:
        """The same with a plan more."""
        self.add(plan)
        found = self.merged()
        self.remove(plan)
        return found

    def _rows(self) -> MoteQuery:
        needed = frozenset(self._attributes)
        base = MoteQuery(min(self._periods), False, False, attribute_columns(needed), None)
        if None in self._conditions:
            return base
        if len(self._conditions) == 1:
            return replace(base, where=next(iter(self._conditions)))
        for where in (self._any_of(), self._hull()):
            if where is not None and obstacle(where) is None and fits(query := replace(base, where=where)):
                return query
        return base

    def _any_of(self) -> Expr | None:
        if len(self._conditions) > _CONDITIONS_MAXIMUM:
            return None
        # Sorted, so that the order in which users came does not matter.
        conditions = [condition for condition in self._conditions if condition is not None]
        return build.join(Op.OR, sorted(conditions, key=render))

    def _hull(self) -> Expr | None:
        """A range of one attribute around what all conditions ask of it."""
        for entry in ATTRIBUTES:
            lows, highs = self._bounds.get(entry.number, (Counter(), Counter()))
            if lows.total() == len(self._conditions):
                outer = RangeFilter(
                    entry.number,
                    None if None in lows else min(cast("Counter[int]", lows)),
                    None if None in highs else max(cast("Counter[int]", highs)),
                )
                if outer.low is not None or outer.high is not None:
                    return condition_of(outer, build.attribute(entry))
        return None


def _shared(query: MoteQuery, plan: QueryPlan) -> MoteQuery:
    """The query with what all plans of one kind say."""
    query = replace(query, budget=plan.budget, clauses=plan.clauses, at_once=plan.at_once)
    if query.aggregate or plan.columns or not runs_beside(plan.clauses):
        return query
    # An epoch has a row for each mote whose event it belongs to.
    columns = sorted(query.columns, key=lambda column: column.expr != RAISED_BY)
    return replace(query, columns=tuple(columns), numbered=1)


def _take(counts: Counter[_Counted], key: _Counted) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]


def _is_plain(plan: QueryPlan) -> bool:
    return not (plan.aggregate or plan.columns or plan.once or plan.temporal)


def _said(plan: QueryPlan) -> Hashable:
    """What a plan that is not plain says to :func:`merge`, beside what all of one kind share."""
    if plan.aggregate:
        return (*plan.aggregates(), plan.within)
    return plan.text


def _merged(plans: Sequence[QueryPlan]) -> MoteQuery:
    first = plans[0]
    if first.aggregate:
        columns = _aggregate_columns(plans)
        return MoteQuery(
            first.period_ms, first.once, True, columns, first.where, snoop=snooping.snoops(plans)
        )
    if first.columns:
        return MoteQuery(
            first.period_ms, first.once, False, first.columns, first.where, numbered=len(first.reads)
        )
    if first.once:
        return _once(first)
    if first.temporal:
        return _temporal(plans)
    return Union(plans)._rows()


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
    return tuple(
        replace(column, name=f"f{i}") for i, column in enumerate([*groups, *columns, *speaker_column(plans)])
    )

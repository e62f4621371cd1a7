"""One program for all who ask for samples, pulses or their counts at the same fast period: the least that tells all of it.

Samples tell pulses, and pulses tell their counts (:mod:`skerry.ingest.pulses`), so that motes send samples where somebody wants
samples, else pulses where somebody wants pulses, else counts. Fjords 2001, section 6.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from math import lcm

from skerry.expressions.expression import attributes_of, never_changes
from skerry.expressions.temporal import is_pulse, pulse_of, pulses_window
from skerry.planner.model.columns import IN_EVERY_ROW, attribute_columns, bare_attributes, format_for
from skerry.planner.model.plans import Column, MoteQuery, QueryPlan
from skerry.planner.physical.fast_sampling import FRAMES_PER_SECOND, frames_per_second, is_fast
from skerry.sql.errors import QueryError
from skerry_protocol.codes import Aggregate

#: A change of programs waits for the end of windows that are no longer than this.
CUT_STEP_MAXIMUM_MS = 10_000


def family(plan: QueryPlan) -> Hashable | None:
    """Plans with equal families can be served by one program; None: this one is of none."""
    if (
        not is_fast(plan.period_ms)
        or plan.clauses
        or plan.budget
        or plan.once
        or plan.aggregate
        or plan.columns
    ):
        return None
    if plan.where is not None and (plan.where != plan.mote_where or not never_changes(plan.where)):
        return None
    exprs = [output.expr for output in plan.outputs] + ([plan.having] if plan.having is not None else [])
    beside = frozenset[int]().union(*map(bare_attributes, exprs))
    if plan.temporal and not (all(map(is_pulse, plan.temporal)) and beside <= IN_EVERY_ROW):
        return None
    return "fast", plan.period_ms, plan.where


def serve(plans: Sequence[QueryPlan]) -> MoteQuery:
    """The program of a family; it may be too large for a mote. Raises QueryError where a mote's radio cannot carry it."""
    first = plans[0]
    nodes = list(dict.fromkeys(node for plan in plans for node in plan.temporal))
    raw = [plan for plan in plans if not plan.temporal]
    if raw:
        numbers = frozenset[int]().union(*(plan.attributes for plan in raw), *map(attributes_of, nodes))
        query = MoteQuery(first.period_ms, False, False, attribute_columns(numbers), first.where)
        if frames_per_second(query) > FRAMES_PER_SECOND:
            raise QueryError(
                f"samples of all that others ask for too would be {frames_per_second(query):.1f} frames a second, "
                f"and a mote's radio carries {FRAMES_PER_SECOND}",
                "sample less often",
            )
        return query
    alike = len({plan.temporal for plan in plans}) == 1 and len(set(map(pulses_window, nodes))) == 1
    if not alike or any(node.aggregate is Aggregate.PULSE for node in nodes):
        nodes = list(dict.fromkeys(map(pulse_of, nodes)))
    columns = tuple(
        Column(f"w{i}", node, format_for(node.low, node.high), node.aggregate) for i, node in enumerate(nodes)
    )
    return MoteQuery(first.period_ms, False, False, columns, first.where)


def view(plan: QueryPlan, program: MoteQuery) -> MoteQuery | None:
    """What a plan reads in place of the rows of its family's program; None: those rows themselves."""
    if family(plan) is None or not plan.temporal:
        return None
    own = serve([plan])
    return None if own.columns == program.columns else own


def cut_step_ms(plans: Iterable[QueryPlan]) -> int:
    """A change of programs falls between windows of counts at multiples of this; 1 where there are none, or it would wait too long."""
    windows = [
        pulses_window(node) * plan.period_ms
        for plan in plans
        for node in plan.temporal
        if node.aggregate is Aggregate.PULSES
    ]
    step = lcm(*windows)
    return step if step <= CUT_STEP_MAXIMUM_MS else 1

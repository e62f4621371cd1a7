"""Which users' queries share a stream."""

from __future__ import annotations

from collections.abc import Hashable

from skerry.planner.model.plans import QueryPlan
from skerry.planner.physical.fast_sampling import is_fast
from skerry.planner.physical.merge import merge
from skerry.sharing.shared_pulses import family
from skerry_protocol.packets import Aggregate


def key_of(plan: QueryPlan, user: str) -> Hashable:
    """Users with equal keys share a stream."""
    kind = family(plan) or _kind(plan, user)
    # Who wants all sampled at once has it at the cost of sensors that conditions would spare the others.
    return ("at once", kind) if plan.at_once else kind


def _kind(plan: QueryPlan, user: str) -> Hashable:
    if plan.once or _shares_with_nobody(plan):
        return "own", user
    if plan.clauses and all(clause.kind is Aggregate.QUEUE for clause in plan.clauses) and not plan.budget:
        # Users share what a queue makes of rows only where it makes the same of them: all that motes do is equal.
        return "queue", merge([plan])
    if plan.budget or plan.clauses:
        return "alone", plan.text
    if plan.aggregate:
        return "aggregate", plan.period_ms, plan.where, plan.groups
    if plan.temporal:
        # Of one program only: in another, that samples more, windows would begin anew.
        return "temporal", merge([plan])
    return ("fast rows", plan.period_ms) if is_fast(plan.period_ms) else "rows"


def _shares_with_nobody(plan: QueryPlan) -> bool:
    """Whether who came later with the same would not have what he asks for, or take it from those before."""
    if any(clause.kind is Aggregate.STOP_ON for clause in plan.clauses):
        # On some motes the event may have ended it.
        return True
    # A later end takes another program, in which windows begin anew.
    return bool(plan.temporal) and plan.duration_ms is not None

"""Conditions too long for a mote's program: motes ask what fits, and the gateway the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from skerry.expressions import build
from skerry.expressions.assembler import assemble
from skerry.expressions.expression import Expr, conjuncts
from skerry.expressions.ranges import condition_of, outer_range
from skerry.planner.model.plans import QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import fits
from skerry.planner.semantics.conditions import BEFORE_GATEWAY
from skerry.planner.semantics.draft import Draft
from skerry_protocol.attributes import BY_NUMBER
from skerry_protocol.bytecode import Op
from skerry_protocol.limits import PROGRAM_MAXIMUM


def shortened(draft: Draft) -> Draft:
    """The query whose motes ask of long conditions a range around them, as of ``nodeid IN (…)``, or nothing, where rows are
    looked at by the gateway before anything is done with them."""
    plan = draft.plan
    if not _gateway_asks(plan):
        return draft
    parts = conjuncts(plan.mote_where)
    if len(parts) > PROGRAM_MAXIMUM:
        # So many never fit, whatever they are.
        parts = sorted(parts, key=_size)[:PROGRAM_MAXIMUM]
    while sum(map(_size, parts)) > PROGRAM_MAXIMUM:
        parts = _shorter(parts)
    while parts and not fits(merge([replace(plan, mote_where=build.join(Op.AND, parts))])):
        parts = _shorter(parts)
    return draft.planned(mote_where=build.join(Op.AND, parts))


def _gateway_asks(plan: QueryPlan) -> bool:
    on_motes = plan.aggregate or plan.temporal or plan.columns or plan.reads
    return not on_motes and not any(clause.kind in BEFORE_GATEWAY for clause in plan.clauses)


def _shorter(parts: Sequence[Expr]) -> list[Expr]:
    """Without the longest, or with what is around it."""
    longest = max(parts, key=_size)
    others = [_around(part) if part is longest else part for part in parts]
    return [part for part in others if part is not None]


def _size(part: Expr) -> int:
    return len(assemble(part))


def _around(condition: Expr) -> Expr | None:
    """A shorter condition that is true wherever this one is; None: there is none."""
    bounds = outer_range(condition)
    if bounds is None:
        return None
    around = condition_of(bounds, build.attribute(BY_NUMBER[bounds.attribute]))
    return around if _size(around) < _size(condition) else None

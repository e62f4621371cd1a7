"""Queries that the events of several motes run side by side, each around the mote that raised it. Source: TinyDB 2005, 3.5 and 4.3.

The paper joins each tuple of the sensors with all events that are active. Motes do so for queries that say which event a row is
about: such a row exists once for each of them, and ``event.nodeid`` tells them apart. Where nothing depends on the event, its rows
would all be the same, and are made once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from skerry.expressions import build
from skerry.expressions.expression import Expr, attributes_of
from skerry.planner.model.clause import Clause
from skerry.planner.semantics.aggregates import has_aggregate
from skerry.planner.semantics.draft import Draft
from skerry_protocol.attributes import BY_NUMBER, EVENT_ATTRIBUTES, EVENT_BY_NAME
from skerry_protocol.codes import Aggregate, EventFlag

#: The mote that raised the event.
RAISED_BY = build.attribute(EVENT_BY_NAME["event.nodeid"])


def is_of_event(expr: Expr) -> bool:
    """Whether it is what an event says."""
    return expr.is_attribute and BY_NUMBER[expr.operand or 0] in EVENT_ATTRIBUTES


def event_groups(draft: Draft) -> Draft:
    """Aggregates over the rows of an event: one for each event."""
    plan, groups = draft.plan, dict.fromkeys(draft.plan.groups)
    if draft.select.event is not None and any(has_aggregate(output.expr) for output in plan.outputs):
        # Of one event there is one value: it need not be said that rows are grouped by it.
        groups |= dict.fromkeys(
            part for output in plan.outputs for part in _named(output.expr) if is_of_event(part)
        )
    aggregate = bool(groups) or any(has_aggregate(output.expr) for output in plan.outputs)
    exprs = [plan.where, *groups, *(output.expr for output in plan.outputs)]
    if aggregate and _runs_concurrently(draft, exprs):
        # Each event has an aggregate of its own.
        groups.setdefault(RAISED_BY)
    return draft.planned(groups=tuple(groups), aggregate=aggregate and not draft.windowed)


def concurrent_events(draft: Draft) -> Draft:
    """Whether events of several motes run the query side by side, and not only the newest."""
    plan = draft.plan
    acted = [clause.expr for clause in plan.clauses if clause.kind is Aggregate.ACTION]
    if plan.temporal or _passes_on(plan.clauses) or not _runs_concurrently(draft, [*draft.exprs(), *acted]):
        return draft
    return draft.planned(
        clauses=_marked_concurrent(plan.clauses), attributes=plan.attributes | attributes_of(RAISED_BY)
    )


def _named(expr: Expr) -> list[Expr]:
    """A column itself, or what its name stands for, as ``event.time`` does for its network time and the row's."""
    return list(expr.walk()) if expr.final[:1] == ("named",) else [expr]


def _runs_concurrently(draft: Draft, exprs: Iterable[Expr | None]) -> bool:
    """Whether events of several motes run the query side by side; ``exprs``: all that it reads.

    What remembers earlier rows follows the newest event: windows (which the caller knows), queues and joins with storage points.
    """
    select, scope = draft.select, draft.scope
    if select.event is None or select.event.no_overlap or select.queue is not None or scope.sources:
        return False
    if any(event.every is not None for event in select.event.events):
        return False
    return select.event.aligned or any(map(_reads_event, exprs))


def _passes_on(clauses: Iterable[Clause]) -> bool:
    """Whether a SIGNAL says what an event said: motes evaluate it when the row has gone, and know the newest event then."""
    return any(clause.kind is Aggregate.SIGNAL and _reads_event(clause.expr) for clause in clauses)


def _reads_event(expr: Expr | None) -> bool:
    return expr is not None and any(map(is_of_event, expr.walk()))


def _marked_concurrent(clauses: Sequence[Clause]) -> tuple[Clause, ...]:
    """The clauses of a query of which :func:`_runs_concurrently` is true."""
    return tuple(
        replace(clause, values=(clause.values[0], clause.values[1] | EventFlag.EACH, *clause.values[2:]))
        if clause.kind is Aggregate.ON_EVENT
        else clause
        for clause in clauses
    )


def is_concurrent(clauses: Iterable[Clause]) -> bool:
    """Whether they are such a query's."""
    return any(clause.kind is Aggregate.ON_EVENT and clause.values[1] & EventFlag.EACH for clause in clauses)

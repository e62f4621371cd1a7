"""ON EVENT … AT MOTE n: what begins a question among motes. The event's flood asks it, so that nobody sends anything else.

A question of an event is of whoever hears of it, and each counts its time from then on; what they answer is named by the event.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from skerry.expressions import build
from skerry.expressions.assembler import obstacle
from skerry.expressions.expression import Expr
from skerry.planner.features.events_and_actions import ALIGNED_GRID_MS
from skerry.planner.model.clause import Clause
from skerry.planner.model.plans import QueryPlan
from skerry.planner.semantics.resolver import Resolver
from skerry.planner.semantics.scope import Scope
from skerry.sql import ast
from skerry.sql.errors import QueryError
from skerry.sql.units import duration_text
from skerry_protocol.bytecode import Op
from skerry_protocol.codes import Aggregate, EventFlag

#: S for which the answers to a question that is asked ONCE are waited for: ways take some minutes to open.
ONCE_S = 300


def check_event(select: ast.Select) -> None:
    """Raises QueryError for an event that motes cannot agree on."""
    on = select.event
    if on is None:
        if isinstance(select.sampling, ast.Once):
            hint = "write SAMPLE PERIOD 5 min, or ON EVENT name: SELECT …; without AT MOTE an index is asked once"
            raise QueryError("a mote asks each period, or with an event", hint, select.sampling.span)
        return
    timer = next((event for event in on.events if event.every is not None), None)
    if timer is not None:
        hint = "write SAMPLE PERIOD, which says how often a mote asks"
        raise QueryError("a timer is no event that a mote asks with", hint, timer.span)
    if on.aligned:
        hint = "leave ALIGNED out: a mote asks as soon as it has heard of its event"
        raise QueryError("ALIGNED is not for AT MOTE", hint, on.span)
    if any(len(events) > 1 for events in on.alternatives):
        hint = "ask with one event, or with any of several (OR)"
        raise QueryError(
            "motes hear of events in any order, and have to agree on the last one", hint, on.span
        )


def conjuncts(node: ast.Expression | None) -> list[ast.Expression]:
    """What AND joins."""
    if isinstance(node, ast.Binary) and node.operator.upper() == "AND":
        return [*conjuncts(node.left), *conjuncts(node.right)]
    return [] if node is None else [node]


def reads_event(node: ast.Expression) -> bool:
    """Whether it says something of the event."""
    return any(map(_is_of_event, ast.walk(node)))


def reads_nothing_but_the_event(node: ast.Expression) -> bool:
    """Whether the event alone decides it."""
    names = [part for part in ast.walk(node) if isinstance(part, ast.Name)]
    return bool(names) and all(map(_is_of_event, names))


def _is_of_event(node: object) -> bool:
    return isinstance(node, ast.Name) and (node.table or "").lower() == "event"


def mote_condition(node: ast.Expression, scope: Scope) -> Expr:
    """A part of WHERE that motes evaluate. Raises QueryError."""
    resolver = Resolver("is not allowed in WHERE, which is asked of tuples", scope=scope)
    condition = resolver.condition(node, "WHERE")
    if reason := obstacle(condition):
        raise QueryError("this condition cannot be evaluated by a mote", reason, node.span)
    return condition


def with_event(
    plan: QueryPlan, select: ast.Select, asked_of_it: Iterable[ast.Expression], scope: Scope
) -> QueryPlan:
    """The plan of a question, asked with its event, where it has one; ``asked_of_it``: what has to be true of that. Its last epoch ends the
    one before it, and asks nothing. Raises QueryError."""
    if select.event is None:
        lasts = plan.duration_ms
        return plan if lasts is None else replace(plan, duration_ms=lasts + plan.period_ms)
    condition = build.join(Op.AND, [mote_condition(node, scope) for node in asked_of_it])
    step = ONCE_S
    if not isinstance(select.sampling, ast.Once):
        step = plan.period_ms // 1000
        if plan.period_ms % 1000:
            hint = "write a sample period of whole seconds"
            raise QueryError(
                f"{duration_text(plan.period_ms)} is too fine a period", hint, select.sampling.span
            )

    def begun(clause: Clause) -> Clause:
        if clause.kind is not Aggregate.ON_EVENT:
            return clause
        lasts, flags, group, _ = clause.values
        rounds = -(-lasts // step)
        values = (rounds * step + 1, flags | EventFlag.ALIGNED | EventFlag.HEARD, group, step)
        return replace(clause, expr=condition, values=values)

    return replace(plan, clauses=tuple(map(begun, plan.clauses)), period_ms=ALIGNED_GRID_MS)

"""QUEUE: what becomes of a mote's rows that find no room, and how often one leaves it. Source: TinyDB 2005, 6.3.1."""

from __future__ import annotations

from skerry.planner.model.clause import Clause, aligned_ms
from skerry.planner.model.plans import MoteQuery, QueryPlan
from skerry.planner.semantics.draft import Draft
from skerry.sql import ast
from skerry.sql.errors import QueryError, did_you_mean
from skerry.sql.units import duration_text
from skerry_protocol.attributes import BY_NAME, BY_NUMBER, EVENT_BY_NAME
from skerry_protocol.codes import Aggregate, QueuePolicy
from skerry_protocol.limits import PERIOD_MAXIMUM_MS, PERIOD_MINIMUM_MS

#: SIZE, and epochs from one row that leaves a mote to the next.
SIZE_MAXIMUM = 255
EVERY_MAXIMUM = 255
#: Rows that a query without SIZE is taken to have waiting on a mote.
_WAITING = 8
#: Bounds in ms of how long rows are held back to be put in order.
HELD_LEAST_MS, HELD_MOST_MS = 10_000, 600_000
#: Numbers that name something: their average names nothing.
_NAMES = frozenset({BY_NAME["parent"].number, EVENT_BY_NAME["event.nodeid"].number})

_WORDS = {
    QueuePolicy.NAIVE: "new rows are left out",
    QueuePolicy.WINAVG: "the two oldest rows become their average",
    QueuePolicy.DELTA: "the row is left out that differs least from the one sent before it, and the most different goes first",
}


def queueing(draft: Draft) -> Draft:
    """What QUEUE says; without, rows wait first in, first out, as long as there is room."""
    return draft.planned(clauses=(*draft.plan.clauses, *_clauses(draft.select, draft.plan)))


def _clauses(select: ast.Select, plan: QueryPlan) -> tuple[Clause, ...]:
    queue = select.queue
    if queue is None:
        return ()
    policy = _policy(queue)
    for refused, what, hint in _refusals(select, plan, queue):
        if refused:
            raise QueryError(f"QUEUE does not go with {what}", hint, queue.span)
    named = sorted(BY_NUMBER[number].name for number in plan.attributes & _NAMES)
    if policy is QueuePolicy.WINAVG and named:
        hint = f"leave {named[0]} out, or take DELTA"
        raise QueryError(f"the average of {named[0]} means nothing", hint, queue.policy.span)
    size, every = _size(queue), _every(queue, plan.period_ms)
    if policy is QueuePolicy.NAIVE and not size and every < 2 and plan.period_ms >= PERIOD_MINIMUM_MS:
        return ()
    return (Clause(Aggregate.QUEUE, policy.name.lower(), None, (int(policy), size, every)),)


def _policy(queue: ast.Queue) -> QueuePolicy:
    name = queue.policy.name.upper()
    if name not in QueuePolicy.__members__:
        known = [policy.name for policy in QueuePolicy]
        hint = f"{did_you_mean(name.lower(), [one.lower() for one in known])}there are {', '.join(known)}"
        raise QueryError(f"unknown policy '{queue.policy.name}'", hint, queue.policy.span)
    return QueuePolicy[name]


def _refusals(select: ast.Select, plan: QueryPlan, queue: ast.Queue) -> tuple[tuple[bool, str, str], ...]:
    lifetime = isinstance(select.sampling, ast.Lifetime)
    aligned = select.event is not None and select.event.aligned
    return (
        (
            plan.aggregate,
            "aggregates over all motes",
            "their partial states merge where there is no room: leave it out",
        ),
        (plan.window is not None, "windows over all motes", "they are over rows as they were sampled: leave it out"),
        (bool(plan.reads), "storage points", "a join waits until there is room: leave it out"),
        (plan.once, "ONCE", "it gives one row: leave it out"),
        (select.history is not None, "HISTORY", "the past has all rows: ask in two queries"),
        (queue.send is not None and lifetime, "SEND PERIOD and LIFETIME", "say SAMPLE PERIOD, or leave SEND PERIOD out"),
        (queue.send is not None and aligned, "SEND PERIOD and ALIGNED", "leave one of them out"),
    )  # fmt: skip


def _size(queue: ast.Queue) -> int:
    if queue.size is None:
        return 0
    value = queue.size.value
    if value % 1 or not 1 <= value <= SIZE_MAXIMUM:
        raise QueryError(
            f"SIZE {value} is out of range", f"it is a number of rows, 1 to {SIZE_MAXIMUM}", queue.size.span
        )
    return int(value)


def _every(queue: ast.Queue, period_ms: int) -> int:
    """Epochs from one row that may go to the next; 0: no limit."""
    if queue.send is None:
        return 0
    every, rest = divmod(queue.send.milliseconds, period_ms)
    most = min(EVERY_MAXIMUM, PERIOD_MAXIMUM_MS // period_ms)
    if rest or not 1 <= every <= most:
        longest = duration_text(most * period_ms)
        raise QueryError(
            f"SEND PERIOD {duration_text(queue.send.milliseconds)} is out of range",
            f"it is a multiple of the sample period {duration_text(period_ms)}, {longest} at most",
            queue.send.span,
        )
    return int(every)


def describe(clause: Clause, period_ms: int) -> str:
    """The clause in words, for ``explain``."""
    policy, size, every = clause.values
    kept = f"keep at most {size} rows" if size else "keep rows while there is room"
    sent = f", send one each {duration_text(every * period_ms)}" if every > 1 else ""
    return f"queue {clause.name}: {kept}{sent}; beyond that {_WORDS[QueuePolicy(policy)]}"


def _values(query: MoteQuery | QueryPlan) -> tuple[int, int, int] | None:
    """Policy, size, every."""
    for clause in query.clauses:
        if clause.kind is Aggregate.QUEUE:
            policy, size, every = clause.values
            return policy, size, every
    return None


def sent_each(query: MoteQuery | QueryPlan) -> int:
    """Epochs from one row that may leave its mote to the next; 0: no limit."""
    values = _values(query)
    return values[2] if values is not None else 0


def waits_ms(query: MoteQuery | QueryPlan) -> int:
    """How long rows may wait on their mote because of the clause, about; ms."""
    values = _values(query)
    if values is None:
        return 0
    _, size, every = values
    period = aligned_ms(query.clauses) or query.period_ms
    return min(max(1, every) * period * (size or _WAITING), HELD_MOST_MS)


def held_ms(query: MoteQuery | QueryPlan) -> int:
    """How long after its sample time the gateway holds a row back, so that those sampled before it come before it; ms.

    0: its motes send rows in order."""
    values = _values(query)
    if values is None or values[0] != QueuePolicy.DELTA:
        return 0
    return max(waits_ms(query), HELD_LEAST_MS)

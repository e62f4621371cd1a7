"""What a query waits for and does: ON EVENT, STOP ON EVENT, OUTPUT ACTION, SIGNAL. Source: TinyDB 2005, 3.5 and 3.7."""

from __future__ import annotations

from skerry.catalog import actions
from skerry.expressions.assembler import obstacle
from skerry.expressions.expression import Expr, attributes_of, conjuncts, render
from skerry.planner.model.clause import Clause, nested_event
from skerry.planner.model.plans import QueryPlan
from skerry.planner.semantics.draft import Draft
from skerry.planner.semantics.resolver import Resolver
from skerry.planner.semantics.sampling import ONCE_PERIOD_MS
from skerry.planner.semantics.scope import SYNONYMS, Scope, event_parameter, event_value
from skerry.sql import ast
from skerry.sql.errors import QueryError, did_you_mean
from skerry.sql.units import duration_text
from skerry_protocol.attributes import BY_NAME
from skerry_protocol.codes import Aggregate, EventFlag

#: What every event says, so that SIGNAL need not.
_IN_EVERY_EVENT = ("nodeid", "loc", "xpos", "ypos", "time")
#: Events of one ON EVENT: a mote keeps a bit for each.
_EVENTS_MAXIMUM = 8
#: Epochs of ON ALIGNED EVENT lie on this grid.
ALIGNED_GRID_MS = 1000


def events_and_actions(draft: Draft) -> Draft:
    """What the query waits for and does."""
    plan = draft.plan
    lasts_ms = ONCE_PERIOD_MS if plan.once else plan.duration_ms
    found = _clauses(draft.select, plan.aggregate, plan.period_ms, lasts_ms, draft.scope)
    return draft.planned(clauses=(*plan.clauses, *found))


def from_event(draft: Draft) -> Draft:
    """Times that count from an event."""
    event = draft.select.event
    if event is None:
        return draft
    # Its length counts from the event, and its one epoch is the first after it.
    draft = draft.planned(duration_ms=None, once=False)
    # Motes take the epochs of a second's grid that lie whole periods behind the event.
    return draft.planned(period_ms=ALIGNED_GRID_MS) if event.aligned else draft


def _clauses(
    select: ast.Select, aggregate: bool, period_ms: int, lasts_ms: int | None, scope: Scope
) -> tuple[Clause, ...]:
    """What a query waits for and does; ``lasts_ms``: its FOR. Raises QueryError."""
    found = _on_event(select.event, period_ms, lasts_ms) if select.event is not None else []
    found += [_stop(stop, scope) for stop in select.stops]
    spans = [
        *(output.span for output in select.outputs),
        *(signal.span for signal in select.signals),
        *select.nested,
    ]
    if aggregate and spans:
        hint = "motes act on rows of their own: leave the aggregate out"
        raise QueryError("an aggregate is known at the root only", hint, spans[0])
    found += [_action(output, scope) for output in select.outputs]
    found += [_signal(signal, scope) for signal in select.signals]
    found += [Clause(Aggregate.SIGNAL, nested_event(select.text, span)) for span in select.nested]
    raised = [clause for clause in found if clause.kind is Aggregate.SIGNAL]
    if len(raised) > 1:
        hint = "let the query that waits for the event raise the next, or ask twice"
        raise QueryError("a query raises one event", hint, spans[-1])
    return tuple(found)


def _on_event(on: ast.OnEvent, period_ms: int, lasts_ms: int | None) -> list[Clause]:
    if lasts_ms is None:
        hint = "write SAMPLE PERIOD n FOR n, or ONCE"
        raise QueryError("ON EVENT needs to know how long the query runs", hint, on.span)
    if len(on.events) > _EVENTS_MAXIMUM:
        raise QueryError(
            f"{len(on.events)} events are too many", f"a query waits for at most {_EVENTS_MAXIMUM}", on.span
        )
    lasts = max(1, -(-lasts_ms // 1000))
    flags = int(EventFlag.NO_OVERLAP) if on.no_overlap else 0
    step = 0
    if on.aligned:
        flags |= EventFlag.ALIGNED
        step = period_ms // 1000
        if period_ms % 1000:
            hint = "write a sample period of whole seconds, or leave ALIGNED out"
            raise QueryError(
                f"epochs of {duration_text(period_ms)} cannot be aligned with an event", hint, on.span
            )
    found = []
    for group, events in enumerate(on.alternatives):
        for event in events:
            if event.every is not None:
                if on.aligned:
                    hint = "leave ALIGNED out: it begins at multiples of its time"
                    raise QueryError("a timer has no event to be aligned with", hint, event.span)
                if len(on.events) > 1:
                    hint = "ask in two queries"
                    raise QueryError("a timer cannot be joined with events", hint, event.span)
                step, flags = _timer(event.every, lasts), flags | EventFlag.TIMER
            found.append(Clause(Aggregate.ON_EVENT, event.name.name, None, (lasts, flags, group, step)))
    return found


def _timer(every: ast.Duration, lasts: int) -> int:
    """Its period in s."""
    if every.milliseconds % 1000 or every.milliseconds < 1000:
        hint = "write whole seconds, at least 1"
        raise QueryError(f"a timer of {duration_text(every.milliseconds)} is too fine", hint, every.span)
    step = int(every.milliseconds) // 1000
    if lasts > step:
        hint = f"write FOR {step} s or less, or leave ON EVENT out"
        raise QueryError("the query would run longer than its timer takes", hint, every.span)
    if step >= 2**32:
        raise QueryError(
            f"a timer of {duration_text(every.milliseconds)} is too long",
            "network time ends after 136 years",
            every.span,
        )
    return step


def _stop(stop: ast.StopOn, scope: Scope) -> Clause:
    where = None
    # Of the mote alone: when the event comes, there is no row of a storage point.
    own = Scope(scope.sensors or "sensors", event_value=event_value([stop]))
    if stop.where is not None:
        for name in (node for node in ast.walk(stop.where) if isinstance(node, ast.Name)):
            if name.table is not None and name.table.lower() not in ("event", "sensors", own.sensors):
                hint = "compare attributes of sensors, or of the event"
                raise QueryError(
                    f"STOP ON EVENT is asked of the mote, not of rows of '{name.table}'", hint, name.span
                )
        resolver = Resolver("is not allowed here: each mote decides for itself", scope=own)
        where = resolver.condition(stop.where, "STOP ON EVENT")
        if reason := obstacle(where):
            raise QueryError("this condition cannot be evaluated by a mote", reason, stop.where.span)
    return Clause(Aggregate.STOP_ON, stop.event.name, where)


def _signal(signal: ast.Signal, scope: Scope) -> Clause:
    own = [p for p in signal.parameters if not in_every_event(p)]
    if len(own) > 1:
        hint = f"besides {', '.join(_IN_EVERY_EVENT)} an event carries one value"
        raise QueryError("these are too many parameters of an event", hint, own[1].span)
    value = _whole(own[0], "an event", scope, named=True) if own else None
    return Clause(Aggregate.SIGNAL, signal.name.name, value)


def in_every_event(parameter: ast.Expression) -> bool:
    """Whether the event says it anyway; what the event that a row is about said of it is another thing."""
    if not isinstance(parameter, ast.Name) or (parameter.table or "").lower() == "event":
        return False
    name = parameter.name.lower()
    return SYNONYMS.get(name, name) in _IN_EVERY_EVENT


def _action(output: ast.Output, scope: Scope) -> Clause:
    name = output.name.name
    found = actions.find_or_none(name)
    if found is None:
        known = list(actions.known())
        hint = f"{did_you_mean(name.lower(), known)}commands are {', '.join(known)}"
        raise QueryError(f"unknown command '{name}'", hint, output.name.span)
    if found.low is None or found.high is None:
        # The paper's power-on(nodeid): the mote whose row it is.
        own = isinstance(output.argument, ast.Name) and output.argument.name.lower() in ("nodeid", "id")
        if output.argument is not None and not own:
            hint = f"write {found.name}: it acts on the mote whose row it is"
            raise QueryError(f"{found.name} takes no argument", hint, output.argument.span)
        return Clause(Aggregate.ACTION, found.name)
    if output.argument is None:
        raise QueryError(f"{found.name} needs an argument", f"it is {found.takes}", output.span)
    argument = _whole(output.argument, found.name, scope)
    if argument.is_constant and not found.low <= (argument.operand or 0) <= found.high:
        raise QueryError(
            f"{found.name}({render(argument)}) is out of range", f"it is {found.takes}", output.argument.span
        )
    return Clause(Aggregate.ACTION, found.name, argument)


def _whole(node: ast.Expression, of: str, scope: Scope, *, named: bool = False) -> Expr:
    """An expression that a mote can compute: a whole number, or, ``named``, an attribute itself."""
    resolver = Resolver("is not allowed here: a mote acts on its own row", scope=scope)
    argument = resolver.number(node, of)
    attribute = named and isinstance(node, ast.Name) and event_parameter(node) is not None
    fraction = argument.digits and not attribute
    if fraction or (reason := obstacle(argument)):
        reason = "it has to be a whole number" if fraction else reason
        raise QueryError(f"this is no argument of {of}", reason or "", node.span)
    return argument


#: What a mote's queue made of a row.
_OF_QUEUES = {BY_NAME[name].number for name in ("combined", "left_out")}


def check_acting(select: ast.Select, plan: QueryPlan) -> None:
    """What motes do with a row, they do before the gateway has seen it: raises QueryError where only that knows which rows pass."""
    kinds = {clause.kind for clause in plan.clauses}
    acts = not kinds.isdisjoint((Aggregate.ACTION, Aggregate.SIGNAL))
    if not acts and Aggregate.QUEUE not in kinds:
        return
    # What a queue made of rows is known, and may be asked, behind it.
    before = [c for c in conjuncts(plan.where) if not attributes_of(c) & _OF_QUEUES]
    for condition in [plan.where] if acts else before:
        if condition is not None and select.where is not None and (reason := obstacle(condition)):
            does = "act on" if acts else "queue"
            hint = f"motes {does} the rows that pass it, and {reason}"
            raise QueryError("this condition cannot be evaluated by a mote", hint, select.where.span)
    if acts and select.having is not None:
        hint = "use WHERE, or leave the action out"
        raise QueryError(
            "HAVING is asked at the gateway, and motes act before that", hint, select.having.span
        )

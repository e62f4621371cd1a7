"""HISTORY: which queries can be asked of the past, and how far back."""

from __future__ import annotations

from typing import Any

from skerry.expressions.expression import attributes_of, render
from skerry.planner.model.columns import IN_EVERY_ROW
from skerry.planner.model.plans import Past, QueryPlan
from skerry.planner.model.row_time import is_of_row
from skerry.planner.semantics.draft import Draft
from skerry.sql import ast
from skerry.sql.errors import QueryError
from skerry.sql.units import duration_text
from skerry_protocol.attributes import BY_NAME, BY_NUMBER, EVENT_BY_NAME
from skerry_protocol.limits import PERIOD_MINIMUM_MS

#: Longest span, in ms: a hundred years.
_SPAN_MAXIMUM_MS = 100 * 365 * 86_400_000
_EPOCH = BY_NAME["epoch"].number
_OF_EVENTS = frozenset(entry.number for entry in EVENT_BY_NAME.values())


def history(draft: Draft) -> Draft:
    """What HISTORY asks for. Raises QueryError for what the recorded rows cannot answer."""
    asked = draft.select.history
    return draft if asked is None else draft.planned(history=_past(draft.select, asked, draft.plan))


def _past(select: ast.Select, history: ast.History, plan: QueryPlan) -> Past:
    span = history.duration.milliseconds
    if not PERIOD_MINIMUM_MS <= span <= _SPAN_MAXIMUM_MS:
        hint = f"write {duration_text(PERIOD_MINIMUM_MS)} to {duration_text(_SPAN_MAXIMUM_MS)}, as in HISTORY 7 day"
        raise QueryError(f"HISTORY {duration_text(span)} is out of range", hint, history.duration.span)
    recorded = isinstance(select.sampling, ast.Recorded)
    exprs = [output.expr for output in plan.outputs] + [e for e in (plan.where, plan.having) if e is not None]
    exprs += plan.order.exprs() if plan.order is not None else []
    of_times = any(map(is_of_row, (node for expr in exprs for node in expr.walk())))
    if recorded and of_times and plan.aggregate:
        hint = "say SAMPLE PERIOD, which makes epochs"
        raise QueryError(
            "an aggregate over rows as they were recorded has no time of its own", hint, history.span
        )
    if recorded and any(_EPOCH in attributes_of(expr) for expr in (*exprs, *plan.groups)):
        hint = "say SAMPLE PERIOD, which makes epochs"
        raise QueryError("rows as they were recorded have no epoch of yours", hint, history.span)
    for refused, what, hint in _refusals(select, plan, history):
        if refused:
            raise QueryError(f"HISTORY does not go with {what}", hint, history.span)
    return Past(int(span), history.only, recorded)


def explain_past(plan: QueryPlan) -> dict[str, Any]:
    """What a query with HISTORY … ONLY does; ``text``: for people."""
    assert plan.history is not None
    wanted = (
        ", ".join(BY_NUMBER[number].name for number in sorted(plan.attributes - IN_EVERY_ROW))
        or "no attribute"
    )
    each = (
        "of each sample"
        if plan.history.recorded
        else f"of the first sample in each {duration_text(plan.period_ms)}"
    )
    lines = [
        "motes",
        "  nothing",
        "gateway",
        f"  reads {wanted} {each} in the last {duration_text(plan.history.span_ms)}, from its files",
    ]
    lines += [f"  keeps rows where {render(plan.where)}"] if plan.where is not None else []
    lines += (
        ["  aggregates them" + ("" if plan.history.recorded else " in each epoch")] if plan.aggregate else []
    )
    lines += [f"  joins with {probe.table.schema.name} where {probe}" for probe in plan.probes]
    if plan.window is not None:
        lines += [f"  aggregates them over {' and '.join(map(str, plan.window.windows))}"]
    lines += [f"  keeps rows having {render(plan.having)}"] if plan.having is not None else []
    what = "each window's rows" if plan.window is not None else "all rows"
    lines += [f"  orders {what} by {plan.order}"] if plan.order is not None else []
    return {
        "query": plan.text,
        "columns": [
            {"name": o.name, "type": o.type, "unit": o.unit, "digits": o.digits} for o in plan.outputs
        ],
        "history": {"span_ms": plan.history.span_ms, "only": True, "recorded": plan.history.recorded},
        "notes": list(plan.notes),
        "text": "\n".join([*lines, *(f"note: {note}" for note in plan.notes)]),
    }


def _refusals(select: ast.Select, plan: QueryPlan, history: ast.History) -> tuple[tuple[bool, str, str], ...]:
    acts = bool(plan.clauses or plan.starts) or select.event is not None or bool(plan.attributes & _OF_EVENTS)
    return (
        (history.only and plan.at_once, "NO INTERLEAVE", "the past was sampled as it was: leave it out"),
        (plan.once, "ONCE", "write SAMPLE PERIOD, or HISTORY … ONLY without it"),
        (isinstance(select.sampling, ast.Lifetime), "LIFETIME", "write SAMPLE PERIOD"),
        (bool(plan.reads), "storage points", "their past is on the motes: ask for it with ONCE"),
        (
            not history.only and any(probe.table.past_ms is not None for probe in plan.probes),
            "a join of the stream with its own past",
            "end it with ONLY, or leave HISTORY out: each row meets those before it anyway",
        ),
        (select.into is not None, "INTO", "motes keep what they sample, not what the gateway has"),
        (acts, "events and actions", "they are of the present: ask for them in another query"),
        (
            plan.window is not None and isinstance(select.sampling, ast.Recorded),
            "windows over rows as they were recorded",
            "write SAMPLE PERIOD, of which a window has several",
        ),
        (
            bool(plan.temporal),
            "windows that motes compute",
            "aggregate with AVG, MIN, MAX … and SAMPLE PERIOD instead",
        ),
        (
            history.only and plan.duration_ms is not None,
            "FOR",
            "HISTORY … ONLY ends by itself: leave FOR out",
        ),
        (history.only and plan.start_now, "START NOW", "motes have no part in it: leave START NOW out"),
    )

"""Windows over each mote's own rows, which motes compute: what does not go with them."""

from __future__ import annotations

from skerry.expressions.assembler import obstacle
from skerry.expressions.expression import never_changes
from skerry.expressions.temporal import counts_epochs, is_pulse
from skerry.planner.model.columns import bare_attributes
from skerry.planner.model.plans import QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.semantics.draft import Draft
from skerry.planner.semantics.temporal_aggregates import check_slides
from skerry.sql.ast import Span
from skerry.sql.errors import QueryError
from skerry_protocol.attributes import BY_NUMBER
from skerry_protocol.codes import Aggregate
from skerry_protocol.limits import FIELDS_MAXIMUM


def mote_windows(draft: Draft) -> Draft:
    """What is wrong with windows over time that motes compute is told."""
    plan, span = draft.plan, draft.span
    if not plan.temporal:
        return draft
    if plan.aggregate:
        hint = "ask for them in two queries"
        raise QueryError("windows are over each mote's own rows, and aggregates over all motes", hint, span)
    if plan.once:
        raise QueryError("ONCE gives one row, and windows need several", "write SAMPLE PERIOD", span)
    check_slides(plan.temporal, span)
    _check_pulses(plan, span)
    for expr in ([plan.where] if plan.where is not None else []) + [node.args[0] for node in plan.temporal]:
        if reason := obstacle(expr):
            hint = f"windows are computed by motes, and {reason}"
            raise QueryError("a mote cannot compute this", hint, span)
    columns = len(merge([plan]).columns)
    if columns > FIELDS_MAXIMUM:
        hint = f"a row has at most {FIELDS_MAXIMUM}"
        raise QueryError(f"{columns} windows and attributes are too many", hint, span)
    return draft


def windows_of_epochs(draft: Draft) -> Draft:
    """Windows written in times give their row with an epoch whether or not its own readings pass WHERE, or are taken."""
    select, plan, span = draft.select, draft.plan, draft.span
    if not any(map(counts_epochs, plan.temporal)):
        return draft
    rows = f"count rows, as in {plan.temporal[0].aggregate.name}(10, temp)"
    if select.event is not None and select.event.aligned:
        raise QueryError("the epochs of ON ALIGNED EVENT are not those of a clock", rows, span)
    if plan.where is None:
        return draft
    for node in plan.temporal:
        if node.aggregate in (Aggregate.DELTA, Aggregate.ADPDELTA):
            raise QueryError(
                f"{node.aggregate.name} is of an epoch that passes WHERE, and a window of times gives rows in others too",
                rows,
                span,
            )
    told = [clause for clause in plan.clauses if clause.kind in (Aggregate.ACTION, Aggregate.SIGNAL)]
    beside = [*((f"'{output.name}'", output.expr) for output in plan.outputs), ("HAVING", plan.having),
              *((f"what {clause.name} is told", clause.expr) for clause in told)]  # fmt: skip
    for what, expr in beside:
        if expr is not None and any(BY_NUMBER[number].energy for number in bare_attributes(expr)):
            summary = (
                f"{what} is of an epoch that passes WHERE, and a window of times gives rows in others too"
            )
            raise QueryError(summary, f"leave it out, or {rows}", span)
    return draft


def _check_pulses(plan: QueryPlan, span: Span) -> None:
    """A pulse lasts as long as its condition holds in one epoch after the other, so that none may be missing."""
    pulses = [node for node in plan.temporal if is_pulse(node)]
    if not pulses:
        return
    if len(pulses) < len(plan.temporal):
        raise QueryError(
            "pulses and other windows give their rows at different times", "ask for them in two queries", span
        )
    if plan.where is not None and not never_changes(plan.where):
        hint = "say it within PULSE, as in PULSE(accel_x > 0.3 AND accel_y < 0.1); WHERE may choose motes, as in nodeid = 5"
        raise QueryError("WHERE leaves out epochs that pulses are made of", hint, span)

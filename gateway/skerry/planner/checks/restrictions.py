"""What queries cannot be, though they parse: each function raises QueryError at the place of the mistake."""

from __future__ import annotations

from collections.abc import Collection

from skerry.expressions.assembler import obstacle
from skerry.expressions.expression import Expr, attributes_of, conjuncts, never_changes
from skerry.expressions.temporal import counts_epochs, is_pulse
from skerry.planner.model.columns import bare_attributes
from skerry.planner.model.frames import is_windowed
from skerry.planner.model.plans import QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.semantics.resolver import Resolver
from skerry.planner.semantics.scope import Scope
from skerry.planner.semantics.temporal_aggregates import check_slides
from skerry.sql import ast
from skerry.sql.ast import Span
from skerry.sql.errors import QueryError
from skerry.sql.units import duration_text
from skerry_protocol.attributes import ATTRIBUTES, BY_NAME, BY_NUMBER
from skerry_protocol.bytecode import Op
from skerry_protocol.packets import FIELDS_MAXIMUM, PERIOD_MINIMUM_MS, Aggregate

#: What a mote's queue made of a row.
_OF_QUEUES = {BY_NAME[name].number for name in ("combined", "left_out")}


def check_storable(select: ast.Select, plan: QueryPlan, span: Span) -> None:
    """Rows of the query can go to a storage point."""
    if plan.aggregate or plan.window is not None:
        hint = (
            "it is known at the root only: store each mote's own rows, and aggregate them when they are read"
        )
        raise QueryError("an aggregate over all motes cannot be stored on a mote", hint, span)
    if select.queue is not None:
        hint = "they are stored, not sent: leave it out"
        raise QueryError("QUEUE does not go with rows that stay on the motes", hint, select.queue.span)
    if plan.reads:
        hint = "store rows of sensors, and join when they are read"
        raise QueryError("rows of a join cannot go to a storage point", hint, span)
    if select.having is not None:
        raise QueryError(
            "HAVING is asked at the gateway, and these rows stay on the motes",
            "use WHERE",
            select.having.span,
        )
    if plan.where is not None and select.where is not None and (reason := obstacle(plan.where)):
        raise QueryError("this condition cannot be evaluated by a mote", reason, select.where.span)


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


def check_speed(select: ast.Select, period_ms: int, scope: Scope, *, stored: bool) -> None:
    """Raises QueryError where a sensor takes longer than a sample period below a second; it stays powered between the epochs of
    rows that are not stored."""
    resolver = Resolver(period_ms=period_ms, scope=scope)
    nodes = [item.expression for item in select.items if not isinstance(item.expression, ast.Star)]
    nodes += [select.where] if select.where is not None else []
    for node in nodes:
        _check_quick(attributes_of(resolver.expression(node)), period_ms, node.span, stored=stored)


def check_all_speed(select: ast.Select, plan: QueryPlan, *, stored: bool) -> None:
    """The same of what is sampled for ``*``, for clauses behind WHERE, and for what motes do with rows."""
    if plan.period_ms < PERIOD_MINIMUM_MS:
        exprs = [clause.expr for clause in plan.clauses if clause.expr is not None]
        wanted = plan.attributes.union(*map(attributes_of, exprs))
        span = select.items[0].span.to(select.items[-1].span)
        _check_quick(wanted, plan.period_ms, span, stored=stored)


def _check_quick(attributes: Collection[int], period_ms: int, span: Span, *, stored: bool) -> None:
    for number in sorted(attributes):
        entry = BY_NUMBER[number]
        if entry.sample_ms < period_ms if stored else entry.held_ms is not None or not entry.sample_ms:
            continue
        hint = f"its sensor takes {entry.sample_ms:g} ms: sample less often, or leave it out"
        if not stored and entry.sample_ms < period_ms:
            held = [a.name for a in ATTRIBUTES if a.held_ms is not None]
            hint = f"below 1 s it can only be stored, with CREATE STORAGE POINT; {' and '.join(held)} can be reported"
        raise QueryError(f"{entry.name} cannot be sampled each {duration_text(period_ms)}", hint, span)


def has_aggregate(expr: Expr) -> bool:
    """Whether any is over the rows of one epoch."""
    return any(
        Aggregate.NONE < node.aggregate < Aggregate.WINAVG and not is_windowed(node) for node in expr.walk()
    )


def has_bare_attribute(expr: Expr, groups: Collection[Expr]) -> bool:
    """Whether it names an attribute outside of aggregates and of what is grouped by."""
    if expr.aggregate is not Aggregate.NONE or expr in groups:
        return False
    return (
        expr.is_attribute or expr.op is Op.STORED or any(has_bare_attribute(arg, groups) for arg in expr.args)
    )


def check_mote_windows(select: ast.Select, plan: QueryPlan) -> None:
    """Windows over time that motes compute."""
    span = select.items[0].span.to(select.items[-1].span)
    if plan.aggregate:
        hint = "ask for them in two queries"
        raise QueryError("windows are over each mote's own rows, and aggregates over all motes", hint, span)
    if plan.once:
        raise QueryError("ONCE gives one row, and windows need several", "write SAMPLE PERIOD", span)
    check_slides(plan.temporal, span)
    check_pulses(plan, span)
    for expr in ([plan.where] if plan.where is not None else []) + [node.args[0] for node in plan.temporal]:
        if reason := obstacle(expr):
            hint = f"windows are computed by motes, and {reason}"
            raise QueryError("a mote cannot compute this", hint, span)
    columns = len(merge([plan]).columns)
    if columns > FIELDS_MAXIMUM:
        hint = f"a row has at most {FIELDS_MAXIMUM}"
        raise QueryError(f"{columns} windows and attributes are too many", hint, span)


def check_time_windows(select: ast.Select, plan: QueryPlan) -> None:
    """Windows written in times give their row with an epoch whether or not its own readings pass WHERE, or are taken."""
    if not any(map(counts_epochs, plan.temporal)):
        return
    span = select.items[0].span.to(select.items[-1].span)
    rows = f"count rows, as in {plan.temporal[0].aggregate.name}(10, temp)"
    if select.event is not None and select.event.aligned:
        raise QueryError("the epochs of ON ALIGNED EVENT are not those of a clock", rows, span)
    if plan.where is None:
        return
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


def check_pulses(plan: QueryPlan, span: Span) -> None:
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


def check_bare(
    select: ast.Select, plan: QueryPlan, groups: tuple[Expr, ...], whom: str, scope: Scope
) -> None:
    """Raises QueryError where a column names an attribute outside of aggregates and ``groups``."""
    for item in select.items:
        star = isinstance(item.expression, ast.Star)
        resolver = Resolver(period_ms=plan.period_ms, scope=scope)
        if isinstance(item.expression, ast.Star) or has_bare_attribute(
            resolver.expression(item.expression), groups
        ):
            what = "*" if star else f"'{select.text[item.span.start : item.span.end]}'"
            raise QueryError(
                f"{what} has one value for each mote, and an aggregate one for {whom}",
                "name it in GROUP BY, or ask for them in two queries",
                item.span,
            )


def check_aggregates(select: ast.Select, plan: QueryPlan, scope: Scope) -> None:
    """Aggregates over all motes."""
    check_bare(select, plan, plan.groups, "each group" if plan.groups else "all", scope)
    past_only = select.history is not None and select.history.only
    if plan.where is not None and select.where is not None and (reason := obstacle(plan.where, past_only)):
        hint = f"aggregates are computed by motes, and {reason}"
        raise QueryError("this condition cannot be evaluated by a mote", hint, select.where.span)
    for node in plan.aggregates():
        if node.args and (reason := obstacle(node.args[0], past_only)):
            hint = f"aggregates are computed by motes, and {reason}"
            span = select.items[0].span.to(select.items[-1].span)
            raise QueryError("this aggregate cannot be computed by a mote", hint, span)
    number = plan.cells() + (select.approximate is not None)
    # Of the past alone, no mote keeps a state.
    if number > FIELDS_MAXIMUM and not past_only:
        hint = f"a partial state has {FIELDS_MAXIMUM}: one for COUNT, SUM, AVG, MIN, MAX and each GROUP BY, more for others"
        span = select.items[0].span.to(select.items[-1].span)
        raise QueryError(f"these aggregates need {number} cells", hint, span)

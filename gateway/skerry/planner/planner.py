"""Text → plan: what the user sees, and which part of the condition motes can evaluate."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from skerry.expressions import build
from skerry.expressions.assembler import obstacle
from skerry.expressions.expression import MIXED, PLAIN, Expr, Kind, attributes_of, conjuncts
from skerry.expressions.temporal import is_temporal, temporal_nodes
from skerry.planner.checks.admission import check_asked, check_fields, check_filling
from skerry.planner.checks.restrictions import (
    check_aggregates,
    check_bare,
    check_mote_windows,
    check_speed,
    check_storable,
    check_time_windows,
    has_aggregate,
    has_bare_attribute,
)
from skerry.planner.features.approximate import within_of
from skerry.planner.features.concurrent_events import RAISED_BY, beside, is_of_event, passes_on, run_beside
from skerry.planner.features.epoch_windows import with_epochs
from skerry.planner.features.events_and_actions import clauses_of
from skerry.planner.features.history import past_of
from skerry.planner.features.lifetime import afford
from skerry.planner.features.nested_queries import check_started, started
from skerry.planner.features.queueing import queue_clauses
from skerry.planner.features.srt import Srt, Srts, Values, no_values, plan_of
from skerry.planner.features.srt import define as define_srt
from skerry.planner.features.storage_point_joins import from_clauses, joined_columns, matched
from skerry.planner.features.storing import (
    UNFILLED_PERIOD_MS,
    check_period,
    declared_columns,
    define,
    into_clause,
    store_clause,
    stored_columns,
)
from skerry.planner.model.frames import REVISION
from skerry.planner.model.joined_tables import NO_TABLES, Tables
from skerry.planner.model.ordering import Ordering
from skerry.planner.model.plans import Output, QueryPlan
from skerry.planner.model.storage_points import Point, Points
from skerry.planner.physical.fast_sampling import check_fast, is_fast
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import check_program, chosen
from skerry.planner.semantics.ordering import check_ordered, ordering_of
from skerry.planner.semantics.positions import with_axes
from skerry.planner.semantics.resolver import Resolver
from skerry.planner.semantics.sampling import ONCE_PERIOD_MS, when
from skerry.planner.semantics.scope import Scope, event_value, scope_of
from skerry.planner.semantics.table_joins import check_joined, past_attributes, probes_of, split
from skerry.planner.semantics.time_windows import asks, frame_of
from skerry.sql import ast
from skerry.sql.ast import CreatePoint, CreateSrt, DropPoint, DropSrt, Stop
from skerry.sql.errors import QueryError, did_you_mean
from skerry.sql.parser import parse
from skerry_protocol.attributes import BY_NAME
from skerry_protocol.bytecode import Op
from skerry_protocol.packets import (
    PERIOD_FAST_MINIMUM_MS,
    PERIOD_MINIMUM_MS,
    PERIOD_STORED_MINIMUM_MS,
    Aggregate,
)

_EPOCH = BY_NAME["epoch"].number
#: What motes do with rows that pass, which so has to be decided on the mote; no query of another period shares it.
_BEFORE_GATEWAY = (Aggregate.ACTION, Aggregate.SIGNAL, Aggregate.QUEUE)
NO_POINTS: Points = {}
NO_SRTS: Srts = {}
#: Epochs of ON ALIGNED EVENT lie on this grid.
ALIGNED_GRID_MS = 1000


def plan_query(
    text: str, points: Points = NO_POINTS, tables: Tables = NO_TABLES, *, restored: bool = False
) -> QueryPlan | Stop | CreatePoint | DropPoint | CreateSrt | DropSrt:
    """The plan of a query beside these storage points and tables, or a statement that is no query. Raises QueryError for anything
    wrong with it, or, unless it is one that runs already, with those that its rows start.

    A plan that is returned fits a mote: its own mote query assembles within all limits.
    """
    statement = parse(text)
    if not isinstance(statement, ast.Select):
        return statement
    return _checked(text, lambda: _plan(statement, points, tables=tables, restored=restored))


def plan_point(
    statement: CreatePoint, number: int, points: Points = NO_POINTS, *, restored: bool = False
) -> tuple[Point, QueryPlan]:
    """A new storage point beside others, and the query that keeps it, as of :func:`plan_query`. Raises QueryError.

    ``number``: how motes will call it, 1..65535, none of the others'.
    """
    made: list[Point] = []

    def planned() -> QueryPlan:
        point, plan = _plan_point(statement, number, points, restored=restored)
        made.append(point)
        return plan

    plan = _checked(statement.text, planned)
    return made[0], plan


def plan_srt(
    statement: CreateSrt,
    number: int,
    srts: Srts = NO_SRTS,
    values: Values = no_values,
    root: int | None = None,
) -> tuple[Srt, QueryPlan]:
    """A new semantic routing tree beside others, and the query that keeps it. Raises QueryError, as
    :func:`skerry.planner.features.srt.define` says."""
    made: list[Srt] = []

    def planned() -> QueryPlan:
        made.append(define_srt(statement, number, srts.values(), values, root))
        return plan_of(made[0], statement)

    plan = _checked(statement.text, planned)
    return made[0], plan


def _checked(text: str, planned: Callable[[], QueryPlan]) -> QueryPlan:
    try:
        plan = planned()
        if plan.history is None or not plan.history.only:
            check_program(merge([plan]))
    except QueryError as error:
        raise error.within(text) from None
    except RecursionError:
        raise QueryError("the query is nested too deeply", "use fewer operators").within(text) from None
    return plan


def _plan_point(
    statement: CreatePoint, number: int, points: Points, *, restored: bool
) -> tuple[Point, QueryPlan]:
    others = list(points.values())
    if statement.filling is None:
        point = define(statement, None, number, others)
        if not restored:
            check_fields(statement, point)
        # Nothing passes: rows come by INTO.
        return point, QueryPlan(
            statement.text, UNFILLED_PERIOD_MS, None, False, False, (), build.null(), build.null(), frozenset(),
            columns=declared_columns(point), clauses=(store_clause(point),), creates=True, into=point.name.lower(),
        )  # fmt: skip
    filling = statement.filling
    if filling.into is not None:
        hint = "its rows go to the point that is created: leave INTO out"
        raise QueryError("rows cannot go to two storage points", hint, filling.into.span)
    if not restored:
        check_filling(filling)
    plan = _plan(filling, points, least=PERIOD_STORED_MINIMUM_MS, restored=restored)
    check_storable(filling, plan, statement.name.span)
    point = define(statement, plan, number, others)
    if not restored:
        check_fields(statement, point)
    columns = stored_columns(plan.outputs, point, statement.name.span)
    return point, replace(
        plan, text=statement.text, columns=columns, clauses=(*plan.clauses, store_clause(point)), mote_where=plan.where,
        creates=True, into=point.name.lower(),
    )  # fmt: skip


def _plan(
    select: ast.Select,
    points: Points,
    least: int = PERIOD_FAST_MINIMUM_MS,
    tables: Tables = NO_TABLES,
    *,
    restored: bool,
) -> QueryPlan:
    """``least``: the shortest sample period."""
    if select.into is not None or select.queue is not None:
        least = PERIOD_STORED_MINIMUM_MS
    plan = _planned(select, points, least, tables)
    if not restored:
        check_started(select, lambda text: plan_query(text, points, tables))
        stored = least == PERIOD_STORED_MINIMUM_MS
        check_asked(select, plan, _scope(select, points, tables), stored=stored)
    if select.into is None:
        if is_fast(plan.period_ms) and least == PERIOD_FAST_MINIMUM_MS:
            check_fast(select, plan)
        return plan
    point = points.get(select.into.name.lower())
    if point is None:
        known = [point.name for point in points.values()]
        hint = f"{did_you_mean(select.into.name, known)}there are {', '.join(known) or 'none'}: make one with CREATE STORAGE POINT"
        raise QueryError(f"unknown storage point '{select.into.name}'", hint, select.into.span)
    check_storable(select, plan, select.into.span)
    check_period(plan.period_ms, point, select.into.span)
    columns = stored_columns(plan.outputs, point, select.into.span)
    return replace(
        plan,
        columns=columns,
        clauses=(*plan.clauses, into_clause(point)),
        mote_where=plan.where,
        into=point.name.lower(),
    )


def _planned(select: ast.Select, points: Points, least: int, tables: Tables) -> QueryPlan:
    select = with_axes(select)
    scope = matched(select, _scope(select, points, tables))
    period, duration, once = when(select.sampling, least)
    where, on = split(_where(select.where, scope))
    if period < PERIOD_MINIMUM_MS and isinstance(select.sampling, ast.SamplePeriod):
        check_speed(select, period, scope, stored=least == PERIOD_STORED_MINIMUM_MS)
    known = None if isinstance(select.sampling, ast.Lifetime) else period
    select = _by_epoch(select, scope, period)
    shown = replace(scope, windowed=asks(select.items, select.having, select.order))
    outputs = _outputs(select, known, shown)
    groups = _groups(select, known, scope, where, windowed=shown.windowed)
    aggregate = not shown.windowed and (bool(groups) or any(has_aggregate(output.expr) for output in outputs))
    windows = temporal_nodes(output.expr for output in outputs)
    having = _having(
        select, aggregate or shown.windowed, _named(groups, shown.windowed), windows, known, shown
    )
    if having is not None:
        windows = temporal_nodes([*windows, having])
    order = _order(select, outputs, _named(groups, shown.windowed), known, shown, aggregate=aggregate)
    exprs = (
        *(output.expr for output in outputs),
        where,
        having,
        *groups,
        *on,
        *(order.exprs() if order else ()),
    )
    used = past_attributes([expr for expr in exprs if expr], scope.tables).union(
        *(attributes_of(expr) for expr in exprs if expr)
    )
    mote_where = where if aggregate or windows or scope.sources else _for_motes(where)
    plan = QueryPlan(
        select.text, period, duration, once, aggregate, outputs, where, mote_where, used, having, groups,
        tuple(windows), reads=scope.points, order=order,
    )  # fmt: skip
    if shown.windowed:
        plan = _windowed(select, plan, shown)
    if aggregate:
        check_aggregates(select, plan, scope)
    if windows:
        check_mote_windows(select, plan)
    plan = replace(plan, within=within_of(select, plan))
    plan = _with_clauses(select, plan, ONCE_PERIOD_MS if once else duration, exprs, scope)
    check_time_windows(select, plan)
    if plan.window is not None and (plan.clauses or plan.starts):
        span = select.items[0].span.to(select.items[-1].span)
        hint = "give them to a query without windows"
        raise QueryError("events and actions are of motes' own rows, not of windows", hint, span)
    if scope.sources:
        plan = _joined(select, plan, scope)
    if scope.tables:
        check_joined(select, plan, sensors=scope.sensors is not None)
        plan = replace(plan, probes=probes_of(scope.tables, on, select))
    if select.history is not None:
        plan = replace(plan, history=past_of(select, select.history, plan))
    if select.event is not None:
        # Its length counts from the event, and its one epoch is the first after it.
        plan = replace(plan, duration_ms=None, once=False)
        if select.event.aligned:
            # Motes take the epochs of a second's grid that lie whole periods behind the event.
            plan = replace(plan, period_ms=ALIGNED_GRID_MS)
    if isinstance(select.sampling, ast.Lifetime):
        period, budget = afford(select.sampling, chosen(merge([plan])).energy)
        plan = replace(plan, period_ms=period, budget=budget)
    return plan


def _scope(select: ast.Select, points: Points, tables: Tables) -> Scope:
    recorded = select.history is not None and select.history.only
    scope = replace(scope_of(tuple(select.tables), points, tables), recorded=recorded)
    spans = {item.alias.lower(): item.expression.span for item in select.items if item.alias is not None}
    columns = {name: " ".join(select.text[span.start : span.end].split()) for name, span in spans.items()}
    return replace(scope, event_value=event_value(select), columns=columns)


def _with_clauses(
    select: ast.Select, plan: QueryPlan, lasts_ms: int | None, exprs: Iterable[Expr | None], scope: Scope
) -> QueryPlan:
    """The plan with what it waits for and does; ``exprs``: all that it reads besides."""
    clauses = clauses_of(select, plan.aggregate, plan.period_ms, lasts_ms, scope)
    clauses += queue_clauses(select, plan)
    acted = (clause.expr for clause in clauses if clause.kind is Aggregate.ACTION)
    if not plan.temporal and not passes_on(clauses) and beside(select, (*exprs, *acted), scope):
        clauses = run_beside(clauses)
        plan = replace(plan, attributes=plan.attributes | attributes_of(RAISED_BY))
    if plan.mote_where != plan.where and any(clause.kind in _BEFORE_GATEWAY for clause in clauses):
        plan = replace(plan, mote_where=_for_motes(plan.where, epochs=True))
    return replace(plan, clauses=clauses, starts=started(select))


def _named(groups: tuple[Expr, ...], windowed: bool) -> tuple[Expr, ...]:
    """What may be named outside of aggregates: of a window's row its last epoch and revision, too."""
    return (*groups, build.attribute(BY_NAME["epoch"]), REVISION) if windowed else groups


def _windowed(select: ast.Select, plan: QueryPlan, scope: Scope) -> QueryPlan:
    """The plan of a query whose aggregates are over a window, which the gateway computes from motes' rows."""
    span = select.items[0].span.to(select.items[-1].span)
    exprs = [output.expr for output in plan.outputs] + ([plan.having] if plan.having is not None else [])
    exprs += plan.order.exprs() if plan.order is not None else []
    if plan.temporal or any(has_aggregate(expr) for expr in exprs):
        hint = "give each aggregate the window, or ask in two queries"
        raise QueryError("this row has a window, and an aggregate without it", hint, span)
    if scope.sources:
        hint = "take windows of FROM sensors, or aggregate the joined rows of each epoch"
        raise QueryError("windows over time are not over the rows of a join", hint, span)
    if plan.once:
        raise QueryError("ONCE gives one epoch, and windows need several", "write SAMPLE PERIOD", span)
    if select.event is not None:
        hint = "leave ON EVENT out, or aggregate each epoch"
        raise QueryError("windows over time have no beginning in events", hint, span)
    if select.into is not None:
        hint = "it is known at the gateway only: store each mote's own rows"
        raise QueryError("a window over all motes cannot be stored on a mote", hint, span)
    check_bare(select, plan, _named(plan.groups, windowed=True), "a window", scope)
    frame = frame_of(exprs, plan.groups, span, whole=plan.order is not None)
    return replace(plan, window=frame)


def _joined(select: ast.Select, plan: QueryPlan, scope: Scope) -> QueryPlan:
    """The plan of a query that reads storage points, which motes evaluate as a whole."""
    if plan.temporal:
        span = select.items[0].span.to(select.items[-1].span)
        hint = "aggregate the rows of the storage point instead, as in AVG(rl.light)"
        raise QueryError("windows are over each mote's own rows, not over those of a join", hint, span)
    if plan.where is not None and select.where is not None and (reason := obstacle(plan.where)):
        hint = f"joins are computed by motes, and {reason}"
        raise QueryError("this condition cannot be evaluated by a mote", hint, select.where.span)
    clauses = (*plan.clauses, *from_clauses(scope, interpolated=select.interpolate is not None))
    columns = () if plan.aggregate else joined_columns((output.expr for output in plan.outputs), scope)
    return replace(plan, clauses=clauses, columns=columns)


def _where(node: ast.Expression | None, scope: Scope) -> Expr | None:
    if node is None:
        return None
    resolver = Resolver(
        "is not allowed in WHERE, which is asked of each mote before it aggregates",
        scope=scope,
        instead="HAVING chooses by aggregates",
    )
    return resolver.condition(node, "WHERE")


def _by_epoch(select: ast.Select, scope: Scope, period_ms: int) -> ast.Select:
    """The query with windows of one sample period where motes cannot aggregate."""
    if scope.tables:
        return with_epochs(select, period_ms, "tables")
    if select.history is not None and not select.history.only and not isinstance(select.sampling, ast.Once):
        return with_epochs(select, period_ms, "HISTORY that goes on")
    return select


def _groups(
    select: ast.Select, period_ms: int | None, scope: Scope, where: Expr | None, *, windowed: bool
) -> tuple[Expr, ...]:
    """What GROUP BY names: expressions that motes compute, and compare as integers, or, of windows and the past alone, the gateway."""
    past_only = select.history is not None and select.history.only
    groups: dict[Expr, None] = {}
    for node in select.groups:
        resolver = Resolver("cannot be grouped by: a group is known before it is aggregated", scope=scope)
        expr = resolver.expression(node)
        if not windowed and (reason := obstacle(expr, past_only)):
            hint = f"groups are told apart by motes, and {reason}"
            raise QueryError("this cannot be grouped by", hint, node.span)
        groups[expr] = None
    outputs = _outputs(select, period_ms, scope) if select.event is not None else ()
    if any(has_aggregate(output.expr) for output in outputs):
        # Of one event there is one value: it need not be said that rows are grouped by it.
        groups |= {output.expr: None for output in outputs if is_of_event(output.expr)}
    aggregate = bool(groups) or any(has_aggregate(output.expr) for output in outputs)
    if aggregate and beside(select, (where, *groups, *(output.expr for output in outputs)), scope):
        # Each event has an aggregate of its own.
        groups.setdefault(RAISED_BY)
    return tuple(groups)


def _having(
    select: ast.Select,
    aggregate: bool,
    groups: Collection[Expr],
    windows: Collection[Expr],
    period_ms: int | None,
    scope: Scope,
) -> Expr | None:
    """The condition on an aggregate's rows."""
    if select.having is None:
        return None
    if not aggregate and not windows:
        hint = "it chooses among the rows of an aggregate: choose among motes' rows with WHERE"
        raise QueryError("HAVING has no meaning without an aggregate or GROUP BY", hint, select.having.span)
    having = Resolver(period_ms=period_ms, scope=scope).condition(select.having, "HAVING")
    if aggregate and has_bare_attribute(having, groups):
        hint = "HAVING speaks of aggregates and of what GROUP BY names: ask of single motes with WHERE"
        raise QueryError(
            "HAVING names an attribute, which has one value for each mote", hint, select.having.span
        )
    return having


def _order(
    select: ast.Select,
    outputs: tuple[Output, ...],
    named: tuple[Expr, ...],
    period_ms: int | None,
    scope: Scope,
    *,
    aggregate: bool,
) -> Ordering | None:
    """What ORDER BY and LIMIT say of the rows of a window, or of a past."""
    columns = [(output.name, output.expr) for output in outputs]
    order = ordering_of(select, columns, Resolver(period_ms=period_ms, scope=scope))
    if order is not None:
        bare = [has_bare_attribute(expr, named) for expr in order.exprs()]
        check_ordered(select, bare, windowed=scope.windowed, aggregate=aggregate)
        nodes = [node for expr in order.exprs() for node in expr.walk() if node.aggregate]
        if not scope.windowed and any(not aggregate or is_temporal(node) for node in nodes):
            hint = "order by what the rows have: select the aggregate, too"
            raise QueryError("an aggregate does not order single readings", hint, select.order[0].span)
    return order


def _outputs(select: ast.Select, period_ms: int | None, scope: Scope) -> tuple[Output, ...]:
    outputs: list[Output] = []
    resolver = Resolver(period_ms=period_ms, scope=scope)
    for item in select.items:
        if isinstance(item.expression, ast.Star):
            outputs += [_output(name, expr) for name, expr in scope.star()]
            continue
        name = item.alias or select.text[item.expression.span.start : item.expression.span.end]
        outputs.append(_output(" ".join(name.split()), resolver.expression(item.expression)))
    names = [output.name for output in outputs]
    for item in select.items:
        name = item.alias or " ".join(select.text[item.span.start : item.span.end].split())
        if names.count(name) > 1:
            raise QueryError(f"two columns are named '{name}'", "name one of them with AS", item.span)
    return tuple(outputs)


def _output(name: str, expr: Expr) -> Output:
    unit = "" if expr.unit in (PLAIN, MIXED) or expr.kind is not Kind.NUMBER else expr.unit
    return Output(name, expr, unit, expr.digits)


def _for_motes(where: Expr | None, *, epochs: bool = False) -> Expr | None:
    """The conjuncts that motes can evaluate, so that rows which fail are not even sent.

    ``epoch`` counts the user's periods; motes may run a shared query at another one, so that conditions
    on it stay at the gateway, unless motes count the same ``epochs``.
    """
    able = [c for c in conjuncts(where) if (epochs or _EPOCH not in attributes_of(c)) and obstacle(c) is None]
    joined = build.join(Op.AND, able)
    while joined is not None and obstacle(joined) is not None:
        able.pop()
        joined = build.join(Op.AND, able)
    return joined

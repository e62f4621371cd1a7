"""Text → plan: what the user sees, and which part of the condition motes can evaluate."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from skerry.catalog.catalog import Mote
from skerry.catalog.static_attributes import NO_STATICS, Statics
from skerry.expressions import build
from skerry.planner.admission import check_answerable, check_fields, check_filling
from skerry.planner.cost import lifetime
from skerry.planner.features import (
    approximate,
    concurrent_events,
    epoch_windows,
    events_and_actions,
    history,
    mote_joins,
    nested_queries,
    queueing,
    storage_point_joins,
    table_joins,
    waiting,
)
from skerry.planner.features.indexing import Index, with_owners, with_spare
from skerry.planner.features.indexing import define as define_index
from skerry.planner.features.indexing import plan_of as plan_of_index
from skerry.planner.features.nested_queries import check_started
from skerry.planner.features.srt import Srt, Srts, Values, no_values, plan_of
from skerry.planner.features.srt import define as define_srt
from skerry.planner.features.storing import (
    UNFILLED_PERIOD_MS,
    check_period,
    check_sampled,
    check_storable,
    declared_columns,
    define,
    into_clause,
    store_clause,
    stored_columns,
)
from skerry.planner.model.joined_tables import NO_TABLES, Tables
from skerry.planner.model.plans import QueryPlan
from skerry.planner.model.storage_points import Point, Points
from skerry.planner.physical import fast_sampling, mote_windows, shortening
from skerry.planner.physical.fast_sampling import check_fast, is_fast
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import check_program, fits
from skerry.planner.semantics import (
    aggregates,
    attributes,
    conditions,
    frames,
    groups,
    having,
    ordering,
    outputs,
    sampling,
)
from skerry.planner.semantics.assumptions import assumptions
from skerry.planner.semantics.draft import Draft, Pass, begin, names
from skerry.planner.semantics.times_of_epochs import with_times_of_epochs
from skerry.planner.semantics.windows_in_where import with_windows_in_having
from skerry.sql import ast
from skerry.sql.ast import CreatePoint, CreateSrt, DropPoint, DropSrt, Stop
from skerry.sql.errors import QueryError, did_you_mean
from skerry.sql.index_statements import CreateIndex
from skerry.sql.parser import parse
from skerry_protocol.limits import PERIOD_FAST_MINIMUM_MS, PERIOD_STORED_MINIMUM_MS

NO_POINTS: Points = {}
NO_SRTS: Srts = {}
#: From what is written to a plan. What is wrong with a query in two ways is refused for what an earlier one finds.
PASSES: tuple[Pass, ...] = (
    # Which rows are read, and when.
    mote_joins.allowed,
    storage_point_joins.matches,
    sampling.sampling,
    conditions.conditions,
    fast_sampling.fast_sampling,
    # What users see of them.
    epoch_windows.epoch_windows,
    outputs.outputs,
    groups.groups,
    concurrent_events.event_groups,
    having.having,
    ordering.ordering,
    # What of it motes do.
    attributes.attributes,
    conditions.for_motes,
    frames.frames,
    aggregates.aggregates,
    mote_windows.mote_windows,
    approximate.approximate,
    # What motes do besides.
    events_and_actions.events_and_actions,
    queueing.queueing,
    concurrent_events.concurrent_events,
    conditions.for_acting,
    nested_queries.nested_queries,
    mote_windows.windows_of_epochs,
    frames.without_actions,
    # What the rows meet.
    table_joins.table_joins,
    storage_point_joins.joins,
    mote_joins.joins,
    history.history,
    waiting.waiting,
    # When, where that depends on the rest.
    events_and_actions.from_event,
    lifetime.lifetime,
    # What of WHERE fits a mote.
    shortening.shortened,
)


def plan_query(
    text: str,
    points: Points = NO_POINTS,
    tables: Tables = NO_TABLES,
    statics: Statics = NO_STATICS,
    *,
    restored: bool = False,
) -> QueryPlan | Stop | CreatePoint | DropPoint | CreateSrt | DropSrt:
    """The plan of a query beside these storage points, tables and users' attributes, or a statement that is no query. Raises QueryError
    for anything wrong with it, or, unless it is one that runs already, with those that its rows start.

    A plan that is returned fits a mote: its own mote query assembles within all limits.
    """
    statement = parse(text)
    if not isinstance(statement, ast.Select):
        return statement
    plan = _checked(text, lambda: _plan(statement, points, tables=tables, statics=statics, restored=restored))
    return replace(plan, notes=assumptions(statement), statics=_read(statics, plan))


def plan_select(statement: ast.Select, statics: Statics, points: Points = NO_POINTS) -> QueryPlan:
    """The plan of a query over motes that is parsed already, as of :func:`plan_query`. Raises QueryError."""
    return _checked(statement.text, lambda: _plan(statement, points, statics=statics, restored=False))


def plan_point(
    statement: CreatePoint,
    number: int,
    points: Points = NO_POINTS,
    statics: Statics = NO_STATICS,
    *,
    restored: bool = False,
) -> tuple[Point, QueryPlan]:
    """A new storage point beside others, and the query that keeps it, as of :func:`plan_query`. Raises QueryError.

    ``number``: how motes will call it, 1..65535, none of the others'.
    """
    made: list[Point] = []

    def planned() -> QueryPlan:
        point, plan = _plan_point(statement, number, points, statics, restored=restored)
        made.append(point)
        return plan

    plan = _checked(statement.text, planned)
    return made[0], replace(plan, notes=assumptions(statement), statics=_read(statics, plan))


def plan_srt(
    statement: CreateSrt,
    number: int,
    srts: Srts = NO_SRTS,
    values: Values = no_values,
    root: int | None = None,
    statics: Statics = NO_STATICS,
) -> tuple[Srt, QueryPlan]:
    """A new semantic routing tree beside others, and the query that keeps it. Raises QueryError, as
    :func:`skerry.planner.features.srt.define` says."""
    made: list[Srt] = []

    def planned() -> QueryPlan:
        made.append(define_srt(statement, number, srts.values(), values, root, statics))
        return plan_of(made[0], statement)

    plan = _checked(statement.text, planned)
    return made[0], replace(plan, notes=assumptions(statement))


def plan_index(
    statement: CreateIndex, number: int, taken: Collection[str], motes: Sequence[Mote]
) -> tuple[Index, QueryPlan]:
    """A new index, stored by as many motes as a program has room to name, and the query that keeps it. Raises QueryError, as
    :func:`skerry.planner.features.indexing.define` says."""
    made: list[Index] = []

    def planned() -> QueryPlan:
        index = whole = define_index(statement, number, taken, motes)
        count = len(index.storing)
        while not index_fits(with_spare(index), statement.text) and count > 1:
            count -= 1
            index = with_owners(whole, count, statement.weights, statement.name.span)
        made.append(index)
        return plan_of_index(index, statement.text)

    plan = _checked(statement.text, planned)
    return made[0], plan


def index_fits(index: Index, text: str) -> bool:
    """Whether a program has room for it."""
    return fits(merge([plan_of_index(index, text)]))


def _read(statics: Statics, plan: QueryPlan) -> Statics:
    """Those that the plan reads."""
    return {name: entry for name, entry in statics.items() if entry.number in plan.attributes}


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
    statement: CreatePoint, number: int, points: Points, statics: Statics, *, restored: bool
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
        check_sampled(statement)
        check_filling(filling)
    plan = _plan(filling, points, least=PERIOD_STORED_MINIMUM_MS, statics=statics, restored=restored)
    check_storable(filling, plan, statement.name.span)
    point = define(statement, plan, number, others)
    if not restored:
        check_fields(statement, point)
    columns = stored_columns(plan.outputs, point, statement.name.span)
    return point, replace(
        plan, text=statement.text, columns=columns, clauses=(*plan.clauses, store_clause(point)), mote_where=plan.where,
        creates=True, into=point.name.lower(),
    )  # fmt: skip


def _passed(draft: Draft) -> QueryPlan:
    for step in PASSES:
        draft = step(draft)
    return draft.plan


def _plan(
    select: ast.Select,
    points: Points,
    least: int = PERIOD_FAST_MINIMUM_MS,
    tables: Tables = NO_TABLES,
    statics: Statics = NO_STATICS,
    *,
    restored: bool,
) -> QueryPlan:
    """``least``: the shortest sample period."""
    select = with_times_of_epochs(with_windows_in_having(select))
    if select.into is not None or select.queue is not None:
        least = PERIOD_STORED_MINIMUM_MS
    stored = least == PERIOD_STORED_MINIMUM_MS
    draft = begin(select, points, tables, statics, least, stored=stored)
    plan = _passed(draft)
    if plan.aggregate and not fits(merge([plan])):
        plan = _passed(replace(draft, where_at_gateway=True))
    if not restored:
        check_started(select, lambda text: plan_query(text, points, tables, statics))
        check_answerable(select, plan, names(select, points, tables, statics), stored=stored)
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

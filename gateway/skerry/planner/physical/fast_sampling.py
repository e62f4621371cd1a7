"""Sample periods below a second: what motes sample that fast, and what their radio then carries."""

from __future__ import annotations

from collections.abc import Collection

from skerry.expressions.expression import attributes_of, never_changes
from skerry.expressions.temporal import is_pulse
from skerry.planner.model.plans import MoteQuery, QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.semantics.draft import Draft
from skerry.planner.semantics.resolver import Resolver
from skerry.sql import ast
from skerry.sql.ast import Span
from skerry.sql.errors import QueryError
from skerry.sql.units import duration_text
from skerry_protocol.attributes import ATTRIBUTES, BY_NUMBER
from skerry_protocol.limits import PERIOD_MINIMUM_MS, SERIES_BYTES_MAXIMUM

#: Frames that a mote beside the root gets through in its part of each round.
FRAMES_PER_SECOND = 6


def is_fast(period_ms: int) -> bool:
    """Whether rows come more often than rounds of the network, so that several travel in one record."""
    return period_ms < PERIOD_MINIMUM_MS


def frames_per_second(query: MoteQuery) -> float:
    """Frames that a mote sends each second where every epoch gives a row."""
    size = sum(column.format.size for column in query.columns)
    return 1000 / query.period_ms / (SERIES_BYTES_MAXIMUM // size)


def check_fast(select: ast.Select, plan: QueryPlan) -> None:
    """Raises QueryError for what cannot be asked each few milliseconds."""
    span = select.items[0].span.to(select.items[-1].span)
    each = f"each {duration_text(plan.period_ms)}"
    slower = f"write SAMPLE PERIOD {duration_text(PERIOD_MINIMUM_MS)} or more"
    if plan.aggregate or plan.window is not None:
        hint = f"{slower}, or aggregate on each mote, as in PULSES(accel_x > 0.3, 1 s)"
        raise QueryError(f"aggregates over all motes cannot be had {each}", hint, span)
    if plan.reads:
        raise QueryError(f"storage points cannot be joined with {each}", slower, span)
    if plan.clauses or select.event is not None or plan.starts:
        raise QueryError(f"events and actions cannot be had {each}", slower, span)
    if any(is_pulse(node) for node in plan.temporal):
        return
    if plan.mote_where is not None and not never_changes(plan.mote_where):
        return  # rows are as rare as their condition is true; motes count those that find no room
    query = merge([plan])
    frames = frames_per_second(query)
    if not plan.temporal and frames > FRAMES_PER_SECOND:
        size = sum(column.format.size for column in query.columns)
        least = -(-1000 // (FRAMES_PER_SECOND * (SERIES_BYTES_MAXIMUM // size)))
        raise QueryError(
            f"rows of {size} bytes {each} are {frames:.1f} frames a second, and a mote's radio carries {FRAMES_PER_SECOND}",
            f"write SAMPLE PERIOD {least} ms or more, or say which rows you need with WHERE, DELTA or PULSE",
            span,
        )


def fast_sampling(draft: Draft) -> Draft:
    """Raises QueryError where a sensor takes longer than a sample period below a second; it stays powered between the epochs of
    rows that are not stored."""
    select, period_ms = draft.select, draft.plan.period_ms
    if not is_fast(period_ms) or not isinstance(select.sampling, ast.SamplePeriod):
        return draft
    resolver = Resolver(period_ms=period_ms, scope=draft.scope)
    nodes = [item.expression for item in select.items if not isinstance(item.expression, ast.Star)]
    nodes += [select.where] if select.where is not None else []
    for node in nodes:
        _check_quick(attributes_of(resolver.expression(node)), period_ms, node.span, stored=draft.stored)
    return draft


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

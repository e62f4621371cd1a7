"""Sample periods below a second: what motes sample that fast, and what their radio then carries."""

from __future__ import annotations

from skerry.expressions.expression import never_changes
from skerry.expressions.temporal import is_pulse
from skerry.planner.model.plans import MoteQuery, QueryPlan
from skerry.planner.physical.merge import merge
from skerry.sql import ast
from skerry.sql.errors import QueryError
from skerry.sql.units import duration_text
from skerry_protocol.packets import PERIOD_MINIMUM_MS, SERIES_BYTES_MAXIMUM

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

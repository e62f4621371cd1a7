"""The frame of a query whose aggregates are over windows of time: the gateway computes them from motes' rows."""

from __future__ import annotations

from collections.abc import Iterable

from skerry.expressions.expression import Expr
from skerry.planner.model.frames import PANES_MAXIMUM, Frame, windows_of
from skerry.planner.semantics.aggregates import check_bare, has_aggregate, named
from skerry.planner.semantics.draft import Draft
from skerry.sql import ast
from skerry.sql.errors import QueryError
from skerry.sql.units import duration_text


def frames(draft: Draft) -> Draft:
    """The windows that its aggregates are over, at the gateway."""
    select, plan = draft.select, draft.plan
    if not draft.windowed:
        return draft
    exprs = [output.expr for output in plan.outputs] + ([plan.having] if plan.having is not None else [])
    exprs += plan.order.exprs() if plan.order is not None else []
    if plan.temporal or any(has_aggregate(expr) for expr in exprs):
        hint = "give each aggregate the window, or ask in two queries"
        raise QueryError("this row has a window, and an aggregate without it", hint, draft.span)
    if draft.scope.sources:
        hint = "take windows of FROM sensors, or aggregate the joined rows of each epoch"
        raise QueryError("windows over time are not over the rows of a join", hint, draft.span)
    if plan.once:
        raise QueryError("ONCE gives one epoch, and windows need several", "write SAMPLE PERIOD", draft.span)
    if select.event is not None:
        hint = "leave ON EVENT out, or aggregate each epoch"
        raise QueryError("windows over time have no beginning in events", hint, draft.span)
    if select.into is not None:
        hint = "it is known at the gateway only: store each mote's own rows"
        raise QueryError("a window over all motes cannot be stored on a mote", hint, draft.span)
    check_bare(draft, named(draft), "a window")
    return draft.planned(window=frame_of(exprs, draft.span, whole=plan.order is not None))


def without_actions(draft: Draft) -> Draft:
    """Motes act on rows of their own."""
    plan = draft.plan
    if plan.window is not None and (plan.clauses or plan.starts):
        hint = "give them to a query without windows"
        raise QueryError("events and actions are of motes' own rows, not of windows", hint, draft.span)
    return draft


def frame_of(exprs: Iterable[Expr], span: ast.Span, *, whole: bool) -> Frame:
    """The windows of a query. Raises QueryError where they do not end together, or are cut into too many pieces. How many groups they
    have is known when rows come: see :attr:`skerry.planner.model.frames.Frame.groups_maximum`."""
    windows = sorted(windows_of(exprs), key=lambda window: (window.slide_ms, window.length_ms))
    frame = Frame(tuple(windows), whole)
    for window in frame.windows:
        if window.slide_ms % frame.slide_ms:
            slides = f"{duration_text(frame.slide_ms)} and {duration_text(window.slide_ms)}"
            hint = "the shortest divides the others, as in AVG(temp, 5 min), MAX(temp, 1 h), or ask in two queries"
            raise QueryError(f"windows with a row for each {slides} have no rows in common", hint, span)
    longest = max(window.length_ms for window in frame.windows)
    if longest // frame.width_ms > PANES_MAXIMUM:
        hint = (
            f"at most {PANES_MAXIMUM:,}: choose times that divide each other, or ask in queries of their own"
        )
        raise QueryError(
            f"together these windows are cut into {longest // frame.width_ms:,} pieces", hint, span
        )
    return frame

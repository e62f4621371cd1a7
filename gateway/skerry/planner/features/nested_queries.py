"""Queries that the rows of another one start: OUTPUT ACTION (SELECT …). Source: TinyDB 2005, 3.7."""

from __future__ import annotations

from collections.abc import Callable

from skerry.planner.model.clause import nested_event
from skerry.planner.model.plans import QueryPlan
from skerry.planner.semantics.draft import Draft
from skerry.sql import ast
from skerry.sql.ast import Span
from skerry.sql.errors import QueryError


def nested_queries(draft: Draft) -> Draft:
    """The texts of the queries that its rows start."""
    return draft.planned(starts=started(draft.select))


def started(select: ast.Select) -> tuple[str, ...]:
    """Their texts, each waiting for an event of its own."""
    return tuple(_before(select, span) + select.text[span.start : span.end] for span in select.nested)


def check_started(select: ast.Select, planned: Callable[[str], object]) -> None:
    """Plan each of them, so that a query is refused as a whole. Raises QueryError, which speaks of the text that the user wrote."""
    for span, text in zip(select.nested, started(select), strict=True):
        try:
            plan = planned(text)
        except QueryError as error:
            raise _as_written(error, span, len(_before(select, span))) from None
        if not isinstance(plan, QueryPlan):
            hint = "make one first, and write INTO and its name in the inner query"
            raise QueryError("rows cannot start a query that makes a storage point", hint, span)


def _before(select: ast.Select, span: Span) -> str:
    return f"ON EVENT {nested_event(select.text, span)}: "


def _as_written(error: QueryError, span: Span, before: int) -> QueryError:
    """An error of an inner query, at its place in the whole one: the event that it waits for is none that the user wrote."""
    if error.span is not None and error.span.start < before:
        hint = "write SAMPLE PERIOD n FOR n, or ONCE, in the inner query"
        return QueryError("OUTPUT ACTION needs to know how long the query runs that it starts", hint, span)
    moved = span.start - before
    place = span if error.span is None else Span(error.span.start + moved, error.span.end + moved)
    return QueryError(error.message, error.hint.replace("leave ON EVENT out, or ", ""), place)

"""SAMPLE PERIOD, ONCE, LIFETIME: when a query samples, and for how long."""

from __future__ import annotations

from decimal import Decimal

from skerry.planner.semantics.draft import Draft
from skerry.sql import ast
from skerry.sql.ast import Span
from skerry.sql.errors import QueryError
from skerry.sql.units import duration_text
from skerry_protocol.limits import PERIOD_MAXIMUM_MS, PERIOD_MINIMUM_MS

#: Period that a ONCE query is sent with: its single epoch starts at a whole network second.
ONCE_PERIOD_MS = 1000
#: Longest FOR, in ms: network time ends after 2**32 s.
_DURATION_MAXIMUM_MS = 2**31 * 1000


def sampling(draft: Draft) -> Draft:
    """When the query samples, and for how long."""
    period, duration, once = _when(draft.select.sampling, draft.least_ms)
    select = draft.select
    draft = draft.planned(at_once=select.no_interleave, start_now=select.start_now is not None)
    return draft.planned(period_ms=period, duration_ms=duration, once=once)


def _when(
    sampling: ast.SamplePeriod | ast.Once | ast.Lifetime | ast.Recorded, least: int
) -> tuple[int, int | None, bool]:
    """Period and length in ms, and whether it is ONCE; of a lifetime the period is still to be found."""
    if isinstance(sampling, ast.Recorded):
        return PERIOD_MINIMUM_MS, None, False
    if isinstance(sampling, ast.Once):
        return ONCE_PERIOD_MS, None, True
    if isinstance(sampling, ast.Lifetime):
        _check_duration(sampling.duration, PERIOD_MINIMUM_MS, "LIFETIME")
        return (
            PERIOD_MINIMUM_MS,
            _whole(sampling.duration.milliseconds, "LIFETIME", sampling.duration.span),
            False,
        )
    period = sampling.period
    milliseconds = period.milliseconds
    if milliseconds < least:
        raise QueryError(
            f"sample period {duration_text(milliseconds)} is below what the network can do",
            f"the shortest is {duration_text(least)}",
            period.span,
        )
    if milliseconds > PERIOD_MAXIMUM_MS:
        raise QueryError(
            f"sample period {duration_text(milliseconds)} is above what the network can do",
            f"the longest is {duration_text(PERIOD_MAXIMUM_MS)}",
            period.span,
        )
    whole = _whole(milliseconds, "sample period", period.span)
    if sampling.duration is None:
        return whole, None, False
    duration = sampling.duration
    if isinstance(duration, ast.Rounds):
        if duration.count % 1 or duration.count < 1:
            hint = "without a unit, FOR takes a number of sample periods: a whole one, at least 1"
            raise QueryError(f"FOR {duration.count} is no number of sample periods", hint, duration.span)
        duration = ast.Duration(duration.count * whole, duration.span)
    _check_duration(duration, whole, "FOR")
    return whole, _whole(duration.milliseconds, "FOR", duration.span), False


def _check_duration(duration: ast.Duration, least: int, word: str) -> None:
    if duration.milliseconds < least:
        raise QueryError(
            f"{word} {duration_text(duration.milliseconds)} is shorter than one sample period",
            f"write at least {word} {duration_text(least)}",
            duration.span,
        )
    if duration.milliseconds > _DURATION_MAXIMUM_MS:
        hint = f"leave {word} out, and stop the query with STOP QUERY"
        raise QueryError(f"{word} {duration_text(duration.milliseconds)} is too long", hint, duration.span)


def _whole(milliseconds: Decimal, what: str, span: Span) -> int:
    if milliseconds % 1:
        hint = "write whole milliseconds"
        raise QueryError(f"{what} {duration_text(milliseconds)} is too fine", hint, span)
    return int(milliseconds)

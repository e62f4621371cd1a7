"""Windows over a user's rows by event time, aggregated at the gateway: ``AVG(temp, 5 min)``.

``AVG(temp, 5 min)`` gives a row for each 5 min (tumbling), ``AVG(temp, 5 min, 1 min)`` one for each minute over the last
five (sliding), ``AVG(temp, start, 1 min)`` one for each minute over all since the query began (landmark). Windows end
at multiples of their slide of network time. Source for the kinds: the windows of TelegraphCQ (CIDR 2003), section 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from skerry.expressions import build
from skerry.expressions.expression import Expr
from skerry.planner.model.frames import (
    PANES_MAXIMUM,
    SUM_MAXIMUM,
)
from skerry.sql import ast
from skerry.sql.errors import QueryError
from skerry.sql.units import duration_text, time_of
from skerry_protocol.codes import Aggregate

#: Aggregates that a window may have.
KINDS = {kind.name: kind for kind in Aggregate if Aggregate.COUNT <= kind <= Aggregate.MAX}
#: The word in place of a length.
START = "start"
#: Longest window and slide.
_LENGTH_MAXIMUM_MS = 7 * 86_400_000
#: Integers that are summed up lie within this.
_SUMMED_MAXIMUM = 2 * 10**15
_EXAMPLE = "AVG(temp, 5 min), AVG(temp, 5 min, 1 min) or AVG(temp, start, 1 min)"


def is_call(node: ast.Call) -> bool:
    """Whether the call is written with a window: a time, or ``start``, behind what is aggregated."""
    behind = node.arguments if node.star else node.arguments[1:]
    if node.function.upper() not in KINDS or not behind:
        return False
    length = behind[0]
    return _is_start(length) or (isinstance(length, ast.Number) and time_of(length.unit) is not None)


def asks(*nodes: object) -> bool:
    """Whether these parts of a query name a window."""
    return any(isinstance(found, ast.Call) and is_call(found) for found in ast.walk(nodes))


def windowed(node: ast.Call, period_ms: int | None, resolve: Callable[[ast.Expression], Expr]) -> Expr:
    """The aggregate that such a call means; ``resolve`` its argument. Raises QueryError."""
    if node.distinct:
        raise QueryError("DISTINCT has no meaning in a window", "leave it out", node.span)
    if period_ms is None:
        hint = "LIFETIME chooses the sample period: write SAMPLE PERIOD instead"
        raise QueryError("a window needs to know the sample period", hint, node.span)
    length_node, *behind = node.arguments if node.star else node.arguments[1:]
    if len(behind) > 1:
        span = behind[1].span.to(behind[-1].span)
        raise QueryError("a window has a length and a slide", f"write {_EXAMPLE}", span)
    length = 0 if _is_start(length_node) else _time(length_node, period_ms)
    if behind:
        slide = _time(behind[0], period_ms)
    elif length:
        slide = length
    else:
        hint = "say how often, as in AVG(temp, start, 1 min)"
        raise QueryError("a window since the start gives a row for each slide", hint, length_node.span)
    if length and slide > length:
        hint = f"the longest slide is the length, {duration_text(length)}"
        raise QueryError(
            f"with a slide of {duration_text(slide)} rows would be in no window", hint, behind[0].span
        )
    if length and length // math.gcd(length, slide) > PANES_MAXIMUM:
        hint = f"at most {PANES_MAXIMUM:,}: write a longer slide, or a slide that divides the length"
        steps = length // math.gcd(length, slide)
        raise QueryError(f"this window is cut into {steps:,} pieces", hint, node.span)
    if node.star:
        return replace(build.aggregate(Aggregate.COUNT, None), high=2**53, final=("window", length, slide))
    argument = node.arguments[0]
    kind, resolved = KINDS[node.function.upper()], resolve(argument)
    if max(abs(resolved.low), abs(resolved.high)) > _SUMMED_MAXIMUM:
        raise QueryError("the value is too large to be summed up", "scale it down", argument.span)
    made = build.aggregate(kind, resolved)
    if kind is Aggregate.COUNT:
        # Rows of all motes over hours, instead of an epoch's.
        made = replace(made, high=2**53)
    elif kind is Aggregate.SUM:
        made = replace(made, low=-SUM_MAXIMUM, high=SUM_MAXIMUM)
    return replace(made, final=("window", length, slide))


def _is_start(node: ast.Expression) -> bool:
    return isinstance(node, ast.Name) and node.table is None and node.name.lower() == START


def _time(node: ast.Expression, period_ms: int) -> int:
    """A length or slide in ms: a multiple of the sample period."""
    unit = time_of(node.unit) if isinstance(node, ast.Number) else None
    if not isinstance(node, ast.Number) or unit is None:
        raise QueryError("a window's length and slide are times", f"write {_EXAMPLE}", node.span)
    time = node.value * unit
    if time < period_ms or time % period_ms:
        hint = f"write a multiple of the sample period of {duration_text(period_ms)}"
        raise QueryError(f"{duration_text(time)} is no number of sample periods", hint, node.span)
    if time > _LENGTH_MAXIMUM_MS:
        hint = f"the longest is {duration_text(_LENGTH_MAXIMUM_MS)}"
        raise QueryError(f"a window of {duration_text(time)} is too long", hint, node.span)
    return int(time)

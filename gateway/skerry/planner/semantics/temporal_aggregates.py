"""Temporal aggregates: functions of one mote's own rows over time, computed on the mote.

``WINAVG(10, temp)`` is over each mote's last ten rows and gives a row for each; ``WINAVG(10, 5, temp)`` gives one for
each five. Windows count rows that ``WHERE`` lets pass. ``WINAVG(temp, 30 s, 5 s)`` is over the epochs of the last 30 s,
those too whose row ``WHERE`` does not let pass, and gives a row each 5 s. Source: TinyDB 2005, 3.4 and appendix B, and
the language that TinyDB shipped for the names and the constants first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal

from skerry.expressions.build import INT32_MAXIMUM, QUOTIENT_DIGITS
from skerry.expressions.expression import PLAIN, Expr
from skerry.expressions.temporal import (
    PULSE_KINDS,
    PULSES_WINDOW_MAXIMUM,
    Parameters,
    counts_epochs,
    parameters,
    temporal_node,
)
from skerry.sql import ast
from skerry.sql.errors import QueryError
from skerry.sql.units import duration_text, time_of
from skerry_protocol.codes import Aggregate
from skerry_protocol.limits import WINDOW_MAXIMUM

#: Name in a query → aggregate.
NAMES = {kind.name: kind for kind in Aggregate if Aggregate.WINAVG <= kind <= Aggregate.PULSES} | {
    "WINCNT": Aggregate.WINCOUNT
}
_DELTAS = (Aggregate.DELTA, Aggregate.ADPDELTA)
#: Names of those that take a condition.
OF_CONDITIONS = tuple(kind.name for kind in PULSE_KINDS)
_AVERAGED = (Aggregate.WINAVG, Aggregate.EXPAVG, Aggregate.TREND)
_WEIGHT_MAXIMUM = 15
_SLIDE_MAXIMUM = 255
_THRESHOLD_MAXIMUM = 0xFFFF


def with_digits(node: Expr, digits: int, span: ast.Span) -> Expr:
    """The aggregate rounded to so many digits. Raises QueryError where it has not as many, or its reading has more."""
    have = parameters(node)
    reading = node.args[0]
    if not reading.digits <= digits <= reading.digits + have.power:
        hint = f"it has {reading.digits} to {reading.digits + have.power}"
        raise QueryError(f"{node.aggregate.name} cannot be rounded to {digits} decimal places", hint, span)
    return temporal_node(node.aggregate, reading, replace(have, power=digits - reading.digits))


def is_time(argument: ast.Expression) -> bool:
    """Whether a length is written as a time."""
    return isinstance(argument, ast.Number) and time_of(argument.unit) is not None


def _in_epochs(kind: Aggregate, argument: ast.Number, period_ms: int | None) -> ast.Number:
    """A length with its time as a number of epochs."""
    unit = time_of(argument.unit)
    if unit is None:
        return argument
    if period_ms is None:
        hint = f"LIFETIME chooses the sample period: count rows, as in {kind.name}(10, temp)"
        raise QueryError("this window's length in rows is not known", hint, argument.span)
    count = argument.value * unit / period_ms
    if count % 1 or count < 1:
        hint = f"write a multiple of the sample period of {duration_text(period_ms)}"
        raise QueryError(
            f"{kind.name}'s {argument.value:f} {argument.unit} are no whole number of rows",
            hint,
            argument.span,
        )
    return replace(argument, value=count, unit=None)


def temporal(node: ast.Call, period_ms: int | None, resolved: Callable[[ast.Expression], Expr]) -> Expr:
    """A call of one of NAMES in a query of this sample period (None: it is not known). Raises QueryError for arguments
    that cannot be. ``resolved``: an argument, which is a condition of OF_CONDITIONS, else a number."""
    kind = NAMES[node.function.upper()]
    if kind in PULSE_KINDS:
        return _pulse(kind, node, period_ms, resolved)
    constants = [a for a in node.arguments if isinstance(a, ast.Number)]
    others = [a for a in node.arguments if not isinstance(a, ast.Number)]
    most = 1 if kind in (*_DELTAS, Aggregate.EXPAVG) else 2
    if node.distinct or len(others) != 1 or not 1 <= len(constants) <= most:
        raise QueryError(f"{kind.name} does not take these", _form(kind), node.span)
    argument = resolved(others[0])
    if kind in _DELTAS:
        threshold = _threshold(kind, constants[0], resolved(constants[0]), argument)
        return temporal_node(kind, argument, Parameters(threshold & 0xFF, threshold >> 8, 0))
    if kind is Aggregate.EXPAVG:
        weight = _whole(kind, constants[0], "weight", _WEIGHT_MAXIMUM)
        return temporal_node(kind, argument, Parameters(weight, 1, _power(kind, argument)))
    lengths = [_in_epochs(kind, constant, period_ms) for constant in constants]
    if is_time(constants[0]) and lengths[0].value > WINDOW_MAXIMUM and period_ms is not None:
        hint = f"a window has at most {WINDOW_MAXIMUM}, which are {duration_text(WINDOW_MAXIMUM * period_ms)} at this sample period"
        raise QueryError(
            f"{kind.name}'s {constants[0].value:f} {constants[0].unit} are {lengths[0].value:f} rows",
            hint,
            constants[0].span,
        )
    window = _whole(kind, lengths[0], "window", WINDOW_MAXIMUM)
    slide = _whole(kind, lengths[1], "slide", _SLIDE_MAXIMUM) if len(lengths) == 2 else 1
    epochs_ms = (period_ms or 0) if any(map(is_time, constants)) else 0
    return temporal_node(kind, argument, Parameters(window, slide, _power(kind, argument), epochs_ms))


def _pulse(
    kind: Aggregate, node: ast.Call, period_ms: int | None, condition: Callable[[ast.Expression], Expr]
) -> Expr:
    """PULSE(condition); PULSES(n, condition), n at either place."""
    constants = [a for a in node.arguments if isinstance(a, ast.Number)]
    others = [a for a in node.arguments if not isinstance(a, ast.Number)]
    if node.distinct or len(others) != 1 or len(constants) != (kind is Aggregate.PULSES):
        raise QueryError(f"{kind.name} does not take these", _form(kind), node.span)
    lengths = [_in_epochs(kind, constant, period_ms) for constant in constants]
    length = _whole(kind, lengths[0], "window", PULSES_WINDOW_MAXIMUM) if lengths else 0
    return temporal_node(kind, condition(others[0]), Parameters(length & 0xFF, length >> 8, 0))


def _form(kind: Aggregate) -> str:
    if kind is Aggregate.PULSE:
        return "write PULSE(accel_x > 0.3): for how many epochs it was true, when it no longer is"
    if kind is Aggregate.PULSES:
        return "write PULSES(accel_x > 0.3, 1 s): how often it was true and no longer is, in each second"
    if kind in _DELTAS:
        return f"write {kind.name}(0.5, temp): rows that differ by 0.5 degrees from the one before"
    if kind is Aggregate.EXPAVG:
        return "write EXPAVG(3, temp): each reading counts 1/2³"
    return f"write {kind.name}(10, temp), or {kind.name}(10, 5, temp): the last 10 rows, at each fifth"


def _whole(kind: Aggregate, argument: ast.Number, what: str, most: int) -> int:
    if argument.unit is not None or argument.value % 1 or not 1 <= argument.value <= most:
        summary = f"{kind.name} needs a whole number from 1 to {most} as {what}"
        raise QueryError(summary, _form(kind), argument.span)
    return int(argument.value)


def _threshold(kind: Aggregate, argument: ast.Number, constant: Expr, reading: Expr) -> int:
    """In the reading's integers, rounded up."""
    if constant.unit not in (PLAIN, reading.unit):
        raise QueryError(
            f"{kind.name}'s threshold has another unit than its reading", _form(kind), argument.span
        )
    scaled = Decimal(constant.operand or 0).scaleb(reading.digits - constant.digits)
    threshold = int(scaled.to_integral_value("ROUND_CEILING"))
    if not 1 <= threshold <= _THRESHOLD_MAXIMUM:
        least, most = (f"{Decimal(t).scaleb(-reading.digits):f}" for t in (1, _THRESHOLD_MAXIMUM))
        raise QueryError(f"{kind.name}'s threshold goes from {least} to {most}", _form(kind), argument.span)
    return threshold


def _power(kind: Aggregate, argument: Expr) -> int:
    """Digits beyond the reading's: as a quotient's, as far as 32 bits go."""
    largest = max(abs(argument.low), abs(argument.high)) * (2 if kind is Aggregate.TREND else 1)
    fitting = [power for power in range(QUOTIENT_DIGITS + 1) if largest * 10**power <= INT32_MAXIMUM]
    return fitting[-1] if kind in _AVERAGED and fitting else 0


def check_slides(nodes: Sequence[Expr], spans: ast.Span) -> None:
    """All windows of a query give their rows together. Raises QueryError where they cannot."""
    windows = [node for node in nodes if node.aggregate not in (*_DELTAS, *PULSE_KINDS, Aggregate.EXPAVG)]
    if len({counts_epochs(node) for node in windows}) > 1:
        hint = "write all lengths as times, or none"
        raise QueryError("windows of rows and of times do not give their rows together", hint, spans)
    slides = {parameters(node).slide for node in nodes if node.aggregate not in (*_DELTAS, *PULSE_KINDS)}
    if len(slides) > 1:
        hint = "give all windows the same slide, or ask for them in two queries"
        raise QueryError(f"windows that slide by {' and '.join(map(str, sorted(slides)))} rows", hint, spans)

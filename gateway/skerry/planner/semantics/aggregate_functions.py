"""Calls in queries → aggregates: what each function takes, and which state motes keep for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from skerry.expressions import build
from skerry.expressions.aggregate_states import BINS_OF_CELL
from skerry.expressions.expression import Expr, Kind, render
from skerry.expressions.extension_aggregates import ExtensionAggregate
from skerry.expressions.unit_algebra import product_unit
from skerry.sql import ast
from skerry.sql.errors import QueryError
from skerry_protocol.codes import Aggregate
from skerry_protocol.limits import FIELDS_MAXIMUM

#: Aggregates of one cell, by name.
SIMPLE = {kind.name: kind for kind in Aggregate if Aggregate.COUNT <= kind <= Aggregate.MAX}
#: Cells of a state for MEDIAN, QUANTILE and COUNT(DISTINCT …).
SKETCH_CELLS = 8
BINS_MAXIMUM = BINS_OF_CELL * FIELDS_MAXIMUM
_MILLION = 1_000_000
#: Bounds of the integers of an aggregate from outside, so that the gateway can reckon with them.
_OUTSIDE_MAXIMUM = 10**12


def variance(argument: Expr) -> Expr:
    """VARIANCE: of a sample; its unit is the square of the argument's."""
    digits = 2 * argument.digits + build.QUOTIENT_DIGITS
    high = _largest(argument) ** 2 * 10**build.QUOTIENT_DIGITS
    return _state(
        Aggregate.VARIANCE,
        argument,
        2,
        ("variance",),
        digits,
        0,
        high,
        product_unit(argument.unit, argument.unit),
    )


def deviation(argument: Expr) -> Expr:
    """STDDEV: the root of VARIANCE."""
    digits = argument.digits + build.QUOTIENT_DIGITS
    high = _largest(argument) * 10**build.QUOTIENT_DIGITS
    return _state(Aggregate.VARIANCE, argument, 2, ("stddev",), digits, 0, high, argument.unit)


def best(kind: Aggregate, argument: Expr, number: int) -> Expr:
    """TOP and BOTTOM: a list of motes and values."""
    expr = _state(
        kind, argument, number, ("ranking",), argument.digits, argument.low, argument.high, argument.unit
    )
    return replace(expr, kind=Kind.LIST)


def histogram(argument: Expr, low: Expr, high: Expr, bins: int) -> Expr:
    """HISTOGRAM: bins of equal width between two constants; a list of counts."""
    digits = max(argument.digits, low.digits, high.digits)
    argument, low, high = (build.upscale(expr, digits - expr.digits) for expr in (argument, low, high))
    width = build.constant_of((high.operand or 0) - (low.operand or 0))
    scaled = build.multiply(build.integer(build.subtract(argument, low)), build.constant_of(bins))
    bin_of = build.quotient(build.subtract(scaled, build.modulo(scaled, width)), width)
    cells = -(-bins // BINS_OF_CELL)
    expr = _state(Aggregate.HISTOGRAM, bin_of, cells, ("histogram", bins), 0, 0, 0xFFFF, "")
    return replace(expr, kind=Kind.LIST)


def quantile(argument: Expr, share: Decimal, *, recorded: bool = False) -> Expr:
    """QUANTILE: the smallest value that this share of the values does not exceed; between its bounds, in their middle.
    ``recorded``: of values as they are; motes keep 16 bits of each."""
    power = 0
    while not recorded and (argument.high - argument.low) // 10**power > 0xFFFF:
        power += 1
    small = build.downscale(argument, power)
    near = recorded or (small.low >= -0x8000 and small.high <= 0x7FFF)
    middle = 0 if near else (small.low + small.high + 1) // 2
    summarised = (
        build.subtract(build.integer(small), build.constant_of(middle)) if middle else build.integer(small)
    )
    final = ("quantile", int(share * _MILLION), power, middle)
    # A digit more: the middle between two values.
    digits, low, high = argument.digits + 1, argument.low * 10, argument.high * 10
    return _state(Aggregate.QUANTILES, summarised, SKETCH_CELLS, final, digits, low, high, argument.unit)


def distinct(argument: Expr) -> Expr:
    """COUNT(DISTINCT …), estimated."""
    return _state(Aggregate.DISTINCT, argument, SKETCH_CELLS, ("distinct",), 0, 0, 0xFFFFFFFF, "")


def extension_call(one: ExtensionAggregate, argument: Expr) -> Expr:
    """An aggregate from outside this tree; its value has its argument's unit."""
    bound = _OUTSIDE_MAXIMUM
    final = ("extension", one.number)
    return _state(
        Aggregate(one.number),
        argument,
        one.cells,
        final,
        argument.digits + one.digits,
        -bound,
        bound,
        argument.unit,
    )


def error_of(node: ast.Call, inner: Expr) -> Expr:
    """ERROR(…): how far off an estimate may be: half of a quantile's bounds, the standard error of a number of values."""
    match inner.final:
        case ("quantile", *rest):
            high = (inner.high - inner.low) // 2 + 1
            return replace(inner, final=("quantile error", *rest), low=0, high=high)
        case ("distinct",):
            return replace(inner, final=("distinct error",), digits=1, low=0, high=0xFFFFFFFF)
    hint = "it is of MEDIAN, QUANTILE or COUNT(DISTINCT …): the others are exact"
    raise QueryError(
        "ERROR has no meaning here", hint, node.arguments[0].span if node.arguments else node.span
    )


def _state(
    kind: Aggregate, argument: Expr, cells: int, final: tuple[str | int, ...], digits: int, low: int, high: int, unit: str
) -> Expr:  # fmt: skip
    expr = build.state(kind, argument, cells, final)
    return replace(expr, digits=digits, low=low, high=high, unit=unit)


def _largest(expr: Expr) -> int:
    return max(abs(expr.low), abs(expr.high))


#: What a call's constants must be: (name, the least, the most, whole).
_Constant = tuple[str, Decimal, Decimal, bool]
_N: _Constant = ("n", Decimal(1), Decimal(FIELDS_MAXIMUM), True)
_Q: _Constant = ("q", Decimal(0), Decimal(1), False)


def _constant(node: ast.Call, argument: ast.Expression, what: _Constant) -> Decimal:
    name, least, most, whole = what
    value = argument.value if isinstance(argument, ast.Number) and argument.unit is None else None
    if value is None or not least <= value <= most or (whole and value % 1):
        kind = "a whole number" if whole else "a number"
        raise QueryError(
            f"{node.function.upper()} needs {kind} from {least} to {most} as {name}{_given(argument)}",
            _FORMS[node.function.upper()],
            argument.span,
        )
    return value


def _given(argument: ast.Expression) -> str:
    """What stands there instead, where it is a number."""
    return f", not {argument.value}" if isinstance(argument, ast.Number) and argument.unit is None else ""


def with_constants(
    node: ast.Call, number: Callable[[ast.Expression], Expr], *, recorded: bool = False
) -> Expr:
    """TOP, BOTTOM, QUANTILE, HISTOGRAM: one argument is not constant; the constants stand before or behind it. ``recorded``: as of
    :func:`quantile`."""
    name = node.function.upper()
    constants = [a for a in node.arguments if isinstance(a, ast.Number | ast.Unary) and number(a).is_constant]
    others = [a for a in node.arguments if a not in constants]
    wanted = 3 if name == "HISTOGRAM" else 1
    if len(others) != 1 or len(constants) != wanted:
        raise QueryError(f"{name} does not take these", _FORMS[name], node.span)
    argument = number(others[0])
    if name in ("TOP", "BOTTOM"):
        return best(Aggregate[name], argument, int(_constant(node, constants[0], _N)))
    if name == "QUANTILE":
        return quantile(argument, _constant(node, constants[0], _Q), recorded=recorded)
    low, high = number(constants[0]), number(constants[1])
    bins = int(_constant(node, constants[2], ("bins", Decimal(1), Decimal(BINS_MAXIMUM), True)))
    if Decimal(low.operand or 0).scaleb(-low.digits) >= Decimal(high.operand or 0).scaleb(-high.digits):
        raise QueryError(
            f"HISTOGRAM's bins from {render(low)} to {render(high)} have no width",
            _FORMS[name],
            constants[0].span.to(constants[1].span),
        )
    return histogram(argument, low, high, bins)


#: Functions of one argument besides the simple ones.
_OF_ONE: dict[str, Callable[[Expr], Expr]] = {"VARIANCE": variance, "STDDEV": deviation}


def of_one(name: str, argument: Expr, *, recorded: bool = False) -> Expr:
    """One of :data:`OF_ONE`; ``recorded``: as of :func:`quantile`."""
    if name == "MEDIAN":
        return quantile(argument, Decimal("0.5"), recorded=recorded)
    return _OF_ONE[name](argument)


OF_ONE = (*_OF_ONE, "MEDIAN")
#: Functions with constants → how they are written.
_FORMS = {
    "TOP": "write TOP(3, temp)",
    "BOTTOM": "write BOTTOM(3, temp)",
    "QUANTILE": "write QUANTILE(temp, 0.9)",
    "HISTOGRAM": "write HISTOGRAM(temp, 10, 30, 20): from 10 to 30 degrees in 20 bins",
}
WITH_CONSTANTS = frozenset(_FORMS)
NAMES = (*SIMPLE, *OF_ONE, *_FORMS)

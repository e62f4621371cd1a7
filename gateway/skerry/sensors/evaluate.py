"""Terms over columns of Arrow, in SQL's logic of three values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from skerry.joins import functions
from skerry.planner.model import source_plans as plans
from skerry.planner.model.source_plans import SourcePlan, Term
from skerry.sensors import array_calls

#: Decimals have so many places behind the point, exactly; what has more does not fit.
DECIMAL = pa.decimal128(38, 9)
MOMENT = pa.timestamp("us", tz="UTC")
_ARROW = {
    plans.INT: pa.int64(), plans.DECIMAL: DECIMAL, plans.DOUBLE: pa.float64(), plans.TEXT: pa.string(),
    plans.BOOLEAN: pa.bool_(), plans.TIMESTAMP: MOMENT, plans.NULL: pa.string(),
}  # fmt: skip
_COMPARE: dict[str, Callable[..., Any]] = {
    "=": pc.equal, "<>": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal,
}  # fmt: skip
_LOGIC: dict[str, Callable[..., Any]] = {
    "AND": pc.and_kleene, "OR": pc.or_kleene, "NOT": pc.invert, "IS NULL": pc.is_null, "NEGATE": pc.negate,
}  # fmt: skip
_CHECKED: dict[str, Callable[..., Any]] = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
}
_OF_DOUBLES: dict[str, Callable[..., Any]] = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}
#: No integer of 64 bits is further from 0, and a double says so exactly.
_MOST = float(2**63)
#: The years 1 to 9999, in µs since 1970.
_FIRST_US, _LAST_US = -62_135_596_800_000_000, 253_402_300_799_999_999


def arrow_type(kind: str) -> pa.DataType:
    """The type of a column."""
    if kind in (plans.RANKED_INT, plans.RANKED_DOUBLE):
        value = pa.int64() if kind == plans.RANKED_INT else pa.float64()
        return pa.list_(pa.struct([("nodeid", pa.int64()), ("value", value)]))
    if kind.endswith("[]"):
        return pa.list_(pa.int64() if kind == "int[]" else pa.float64())
    return _ARROW[kind]


def literal(term: Term) -> pa.Scalar:
    """A literal's value."""
    value = term.value
    if term.type == plans.DECIMAL and value is not None:
        return pa.scalar(Decimal(str(value)), DECIMAL)
    if term.type == plans.TIMESTAMP and value is not None:
        return pa.scalar(datetime.fromisoformat(str(value)), MOMENT)
    return pa.scalar(value, arrow_type(term.type))


def evaluate(term: Term, columns: Mapping[str, pa.Array], count: int) -> pa.Array:
    """The values of a term in so many rows. A column that is not there, or is another by now, of another type, is NULL in all."""
    found = _value(term, columns, count)
    if isinstance(found, pa.Scalar):
        return pa.repeat(found, count)
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def passes(term: Term | None, columns: Mapping[str, pa.Array], count: int) -> pa.Array:
    """In which rows a condition is true."""
    if term is None:
        return pa.repeat(True, count)
    return pc.fill_null(evaluate(term, columns, count), False)


def _value(term: Term, columns: Mapping[str, pa.Array], count: int) -> Any:
    if term.op == "literal":
        return literal(term)
    if term.op == "column":
        found, kind = columns.get(str(term.value)), arrow_type(term.type)
        return pa.nulls(count, kind) if found is None or found.type != kind else found
    if term.op == "CALL":
        return _called(term, columns, count)
    args = [_value(arg, columns, count) for arg in term.args]
    kinds = [arg.type for arg in term.args]
    if term.op == "LIKE":
        return pc.match_like(args[0], str(term.value))
    if term.op in _COMPARE:
        left, right = _alike(args, kinds)
        return _COMPARE[term.op](left, right)
    return _LOGIC[term.op](*args) if term.op in _LOGIC else _reckoned(term, args)


def _called(term: Term, columns: Mapping[str, pa.Array], count: int) -> pa.Array:
    """Where executors have evaluated a call, its values are there."""
    there = columns.get(array_calls.column_of(term))
    if there is not None:
        return there
    return array_calls.value_of(term, [_value(arg, columns, count) for arg in term.args], count)


def _alike(args: list[Any], kinds: list[str]) -> list[Any]:
    """Both sides of a comparison in one type; of decimals and integers exactly."""
    if plans.NULL in kinds:
        kind = next((kind for kind in kinds if kind != plans.NULL), plans.TEXT)
        return [
            pa.scalar(None, arrow_type(kind)) if own == plans.NULL else arg
            for arg, own in zip(args, kinds, strict=True)
        ]
    return [comparable(arg, kind, *kinds) for arg, kind in zip(args, kinds, strict=True)]


def comparable(value: Any, kind: str, *kinds: str) -> Any:
    """What is of one type as it is compared with another, of two; of decimals and integers exactly."""
    if plans.DOUBLE in kinds:
        return _double(value)
    # An integer of 64 bits fits before the point.
    return value.cast(DECIMAL) if kind == plans.INT and plans.DECIMAL in kinds else value


def _reckoned(term: Term, args: list[Any]) -> Any:  # noqa: PLR0911 (a case for each kind)
    if term.op == "MICROSECONDS":
        return args[0].cast(pa.int64())
    if term.type == plans.TIMESTAMP:
        return _moved(term.op, *args)
    if term.op in ("ABS", "HASH", "DIST"):
        return functions.called(term.op, [_double(arg) for arg in args] if term.op == "DIST" else args)
    if term.type == plans.INT and term.op in _CHECKED:
        try:
            return _CHECKED[term.op](*args)
        except pa.ArrowInvalid:
            # Some row's result is beyond 64 bits: that is NULL there, and right in the others.
            return _each(term.op, args)
    left, right = map(_double, args)
    if term.op in _OF_DOUBLES:
        return _OF_DOUBLES[term.op](left, right)
    # Nothing is divided by 0.
    zero = pc.equal(right, 0.0)
    quotient = pc.divide(left, pc.if_else(zero, pa.scalar(None, pa.float64()), right))
    if term.op == "/":
        return quotient
    rest = pc.subtract(left, pc.multiply(pc.trunc(quotient), right))
    return pc.cast(rest, pa.int64()) if term.type == plans.INT else rest


def _moved(sign: str, time: Any, seconds: Any) -> Any:
    """A time so much later or earlier; NULL where no calendar has it."""
    by = pc.round(pc.multiply(_double(seconds), 1e6 if sign == "+" else -1e6))
    by = pc.if_else(pc.less_equal(pc.abs(by), 2.0**62), by, pa.scalar(None, pa.float64()))
    at = pc.add(time.cast(pa.int64()), by.cast(pa.int64()))
    known = pc.and_(pc.greater_equal(at, _FIRST_US), pc.less_equal(at, _LAST_US))
    return pc.if_else(known, at, pa.scalar(None, pa.int64())).cast(MOMENT)


def _double(value: Any) -> Any:
    """The nearest double. Arrow's own cast of decimals gives 0.6000000000000001 for 0.6."""
    found = value.cast(pa.string()) if pa.types.is_decimal(value.type) else value
    # Of whole numbers beyond 53 bits, too.
    return found.cast(pa.float64(), safe=False)


def _each(operator: str, args: list[Any]) -> pa.Array:
    count = max(len(arg) for arg in args if not isinstance(arg, pa.Scalar))
    sides = [[arg.as_py()] * count if isinstance(arg, pa.Scalar) else arg.to_pylist() for arg in args]
    found: list[int | None] = []
    for left, right in zip(*sides, strict=True):
        value = None
        if left is not None and right is not None:
            value = left + right if operator == "+" else left - right if operator == "-" else left * right
        found.append(value if value is not None and -_MOST <= value < _MOST else None)
    return pa.array(found, pa.int64())


def shown(term: Term, columns: Mapping[str, pa.Array], count: int) -> pa.Array:
    """A term's values as users get them: decimals as doubles."""
    found = evaluate(term, columns, count)
    return _double(found) if pa.types.is_decimal(found.type) else found


def shown_type(kind: str) -> pa.DataType:
    """The type of what :func:`shown` gives."""
    return pa.float64() if kind == plans.DECIMAL else arrow_type(kind)


def schema_of(plan: SourcePlan) -> pa.Schema:
    """Of what a query's user gets."""
    return pa.schema([(output.name, shown_type(output.term.type)) for output in plan.outputs])

"""Conditions of a join over Arrow columns, with SQL's three values: what is unknown is not true.

They are plain values that a planner makes and that executors read from JSON (:func:`encode`, :func:`decode`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from typing import Literal, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from skerry.joins import functions

Constant: TypeAlias = int | float | str | bool | None
#: What a column's values are: by alias and name.
Columns: TypeAlias = Callable[[str, str], pa.Array]

_COMPARED: dict[str, Callable[[pa.Array, pa.Array], pa.Array]] = {
    "=": pc.equal, "<>": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal,
}  # fmt: skip
_CALCULATED: dict[str, Callable[[pa.Array, pa.Array], pa.Array]] = {
    "+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked,
}  # fmt: skip
#: Where whole numbers may be beyond 64 bits.
_EACH: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul,
}  # fmt: skip
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


class Column(msgspec.Struct, frozen=True, tag="column"):
    """A field of an alias's rows; ``time`` and ``number`` are those of the row itself."""

    alias: str
    name: str


class Value(msgspec.Struct, frozen=True, tag="value"):
    """A constant."""

    value: Constant


class Calculated(msgspec.Struct, frozen=True, tag="calculated"):
    """Two operands reckoned with; what is beyond 64 bits, or divided by 0, is NULL. A quotient is a DOUBLE, a remainder has the sign of
    what is divided."""

    operator: Literal["+", "-", "*", "/", "%"]
    left: Operand
    right: Operand


class Called(msgspec.Struct, frozen=True, tag="called"):
    """A function of numbers: see :mod:`skerry.joins.functions`."""

    function: Literal["ABS", "HASH", "DIST"]
    arguments: tuple[Operand, ...]


Operand: TypeAlias = Column | Value | Calculated | Called


class Compared(msgspec.Struct, frozen=True, tag="compared"):
    """Two operands compared; NULL is never equal, nor is NaN."""

    operator: Literal["=", "<>", "<", "<=", ">", ">="]
    left: Operand
    right: Operand


class Known(msgspec.Struct, frozen=True, tag="known"):
    """IS NOT NULL."""

    operand: Operand


class Not(msgspec.Struct, frozen=True, tag="not"):
    """The contrary; of the unknown, unknown."""

    condition: Condition


class AllOf(msgspec.Struct, frozen=True, tag="and"):
    """True where all are."""

    conditions: tuple[Condition, ...]


class AnyOf(msgspec.Struct, frozen=True, tag="or"):
    """True where one is."""

    conditions: tuple[Condition, ...]


Condition: TypeAlias = Compared | Known | Not | AllOf | AnyOf
Node: TypeAlias = Condition | Operand


def evaluate(node: Node, columns: Columns, length: int) -> pa.Array:  # noqa: PLR0911 (a case for each kind)
    """Its values over so many rows."""
    match node:
        case Column(alias, name):
            return columns(alias, name)
        case Value(value):
            return pa.repeat(pa.scalar(value), length)
        case Calculated(sign, left, right):
            return _calculated(sign, *_both(left, right, columns, length))
        case Called(function, arguments):
            return functions.called(function, [evaluate(one, columns, length) for one in arguments])
        case Compared(sign, left, right):
            return _COMPARED[sign](*_both(left, right, columns, length))
        case Known(operand):
            return pc.is_valid(evaluate(operand, columns, length))
        case Not(condition):
            return pc.invert(evaluate(condition, columns, length))
        case AllOf(conditions):
            return reduce(pc.and_kleene, [evaluate(one, columns, length) for one in conditions])
        case AnyOf(conditions):
            return reduce(pc.or_kleene, [evaluate(one, columns, length) for one in conditions])


def _both(left: Operand, right: Operand, columns: Columns, length: int) -> tuple[pa.Array, pa.Array]:
    one, other = evaluate(left, columns, length), evaluate(right, columns, length)
    if pa.types.is_null(one.type) != pa.types.is_null(other.type):
        # Arrow compares NULL without a type with nothing.
        kind = other.type if pa.types.is_null(one.type) else one.type
        one, other = one.cast(kind), other.cast(kind)
    return one, other


def _calculated(sign: str, left: pa.Array, right: pa.Array) -> pa.Array:
    if sign in _CALCULATED:
        try:
            return _CALCULATED[sign](left, right)
        except pa.ArrowInvalid:
            return _each(_EACH[sign], left, right)
    whole = pa.types.is_integer(left.type) and pa.types.is_integer(right.type)
    left, right = (side.cast(pa.float64(), safe=False) for side in (left, right))
    quotient = pc.divide(left, pc.if_else(pc.equal(right, 0.0), pa.scalar(None, pa.float64()), right))
    if sign == "/":
        return quotient
    rest = pc.subtract(left, pc.multiply(pc.trunc(quotient), right))
    return rest.cast(pa.int64(), safe=False) if whole else rest


def _each(reckon: Callable[[int, int], int], left: pa.Array, right: pa.Array) -> pa.Array:
    pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
    found = [None if one is None or other is None else reckon(one, other) for one, other in pairs]
    return pa.array(
        [one if one is not None and _LEAST <= one <= _MOST else None for one in found], pa.int64()
    )


def columns_of(node: Node) -> Iterator[Column]:
    """All columns that it reads."""
    match node:
        case Column():
            yield node
        case Calculated(_, left, right) | Compared(_, left, right):
            yield from columns_of(left)
            yield from columns_of(right)
        case Called(_, arguments):
            for argument in arguments:
                yield from columns_of(argument)
        case Known(operand):
            yield from columns_of(operand)
        case Not(condition):
            yield from columns_of(condition)
        case AllOf(conditions) | AnyOf(conditions):
            for one in conditions:
                yield from columns_of(one)


def aliases_of(node: Node) -> frozenset[str]:
    """Whose columns it reads."""
    return frozenset(column.alias for column in columns_of(node))


def conjuncts(condition: Condition | None) -> list[Condition]:
    """What must all be true."""
    if condition is None:
        return []
    if isinstance(condition, AllOf):
        return reduce(operator.iadd, map(conjuncts, condition.conditions), [])
    return [condition]


def equal_columns(conditions: list[Condition]) -> list[list[Column]]:
    """Columns that these conditions make equal, in groups."""
    groups: list[list[Column]] = []
    for condition in conditions:
        match condition:
            case Compared("=", Column() as left, Column() as right):
                met = [group for group in groups if left in group or right in group]
                groups = [group for group in groups if group not in met]
                groups.append(list(dict.fromkeys([*reduce(operator.iadd, met, []), left, right])))
    return groups


def renamed(condition: Condition, aliases: Mapping[str, str]) -> Condition:
    """The same of aliases that are called otherwise."""
    found: Condition = msgspec.convert(_renamed(msgspec.to_builtins(condition), aliases), Condition)
    return found


def _renamed(value: object, aliases: Mapping[str, str]) -> object:
    if isinstance(value, dict):
        return {
            name: aliases[one] if name == "alias" else _renamed(one, aliases) for name, one in value.items()
        }
    return [_renamed(one, aliases) for one in value] if isinstance(value, list | tuple) else value


def encode(condition: Condition | None) -> bytes:
    """As JSON."""
    return msgspec.json.encode(condition)


def decode(text: bytes) -> Condition | None:
    """From JSON. Raises msgspec.DecodeError."""
    found: Condition | None = msgspec.json.decode(text, type=Condition | None)
    return found

"""Ranges of one attribute inside a condition: what an index over thousands of users can look up."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import inf

from skerry.expressions import build
from skerry.expressions.expression import Expr, Kind, conjuncts, render
from skerry_protocol.attributes import BY_NAME, BY_NUMBER, Attribute
from skerry_protocol.bytecode import Op


@dataclass(frozen=True, slots=True)
class RangeFilter:
    """``low <= attribute <= high`` in the attribute's integers; None: unbounded. NULL never passes."""

    attribute: int
    low: int | None
    high: int | None

    @property
    def name(self) -> str:
        """Name of the attribute, which is the stream's column."""
        return BY_NUMBER[self.attribute].name


_EPOCH = BY_NAME["epoch"].number
_COMPARISONS = (Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE)


@lru_cache(maxsize=65536)
def ranges_of(where: Expr | None) -> tuple[RangeFilter, ...]:
    """For each attribute that AND-joined comparisons with constants bound: the interval left to it.

    ``epoch`` has none: each user counts his own.
    """
    found: dict[int, RangeFilter] = {}
    for condition in conjuncts(where):
        bound = as_range(condition)
        if bound is not None:
            found[bound.attribute] = _intersect(found.get(bound.attribute), bound)
    return tuple(found.values())


@lru_cache(maxsize=65536)
def split_range(where: Expr | None) -> tuple[RangeFilter | None, Expr | None]:
    """``where`` as a range on one attribute and what is left: a row passes if it passes both.

    Ranges bounded on both sides are preferred, then narrower ones. (None, where) when there is none.
    """
    ranges = ranges_of(where)
    if not ranges:
        return None, where
    chosen = min(ranges, key=_width)
    rest = [c for c in conjuncts(where) if (r := as_range(c)) is None or r.attribute != chosen.attribute]
    return chosen, build.join(Op.AND, rest)


def outer_range(condition: Expr) -> RangeFilter | None:
    """A range of one attribute that holds all rows of conditions that OR joins; None: they have none in common, or no bound."""
    found: dict[int, RangeFilter] | None = None
    for one in _disjuncts(condition):
        bounds = {bound.attribute: bound for bound in ranges_of(one)}
        found = (
            bounds if found is None else {n: _hull(found[n], bounds[n]) for n in found.keys() & bounds.keys()}
        )
    bounded = [bound for bound in (found or {}).values() if (bound.low, bound.high) != (None, None)]
    return min(bounded, key=_width, default=None)


def _disjuncts(condition: Expr) -> list[Expr]:
    if condition.op is not Op.OR:
        return [condition]
    return [part for argument in condition.args for part in _disjuncts(argument)]


def _hull(a: RangeFilter, b: RangeFilter) -> RangeFilter:
    low = None if a.low is None or b.low is None else min(a.low, b.low)
    high = None if a.high is None or b.high is None else max(a.high, b.high)
    return RangeFilter(a.attribute, low, high)


def doubt(where: Expr | None) -> str | None:
    """What cannot have been meant by a condition, as far as its AND-joined comparisons with constants tell; None: nothing."""
    never = _never(where)
    if never is not None:
        return f"WHERE is never true: {never}"
    for condition in conjuncts(where):
        bounds = as_range(condition)
        if bounds is None:
            continue
        entry = BY_NUMBER[bounds.attribute]
        value = (bounds.low if bounds.low is not None else bounds.high or 0) / 10**entry.digits
        # So far beyond what there is another unit is meant: voltage < 2700.
        if abs(value) > 10 * max(abs(entry.minimum), abs(entry.maximum)):
            return f"{render(condition)} is always true: {_range_of(entry)}"
    return None


def _range_of(entry: Attribute) -> str:
    return f"{entry.name} is {entry.minimum:.10g} to {entry.maximum:.10g} {entry.unit}".rstrip()


def _never(where: Expr | None) -> str | None:
    """Why it is true of no row; None: it may be."""
    for condition in conjuncts(where):
        if condition.op in _COMPARISONS and any(side.kind is Kind.NULL for side in condition.args):
            return f"{render(condition)} asks of what is unknown: write IS NULL"
    for bounds in ranges_of(where):
        entry = BY_NUMBER[bounds.attribute]
        low = -inf if bounds.low is None else bounds.low / 10**entry.digits
        high = inf if bounds.high is None else bounds.high / 10**entry.digits
        if low > high:
            return f"it leaves no value of {entry.name}"
        if low > entry.maximum or high < entry.minimum:
            return _range_of(entry)
    return None


def condition_of(bounds: RangeFilter, attribute: Expr) -> Expr:
    """The condition that a range stands for."""
    tests = [
        build.compare(op, attribute, _exact(value, attribute.digits))
        for op, value in ((Op.GE, bounds.low), (Op.LE, bounds.high))
        if value is not None
    ]
    joined = build.join(Op.AND, tests)
    assert joined is not None
    return joined


def _exact(value: int, digits: int) -> Expr:
    return build.number(value, digits)


def as_range(condition: Expr) -> RangeFilter | None:
    """The range that a comparison of an attribute with a constant leaves; None for any other condition."""
    if len(condition.args) != 2:
        return None
    attribute, constant = condition.args
    if not (attribute.is_attribute and constant.is_constant) or attribute.operand in (None, _EPOCH):
        return None
    number, value = attribute.operand, constant.operand
    assert number is not None
    assert value is not None
    match condition.op:
        case Op.EQ:
            return RangeFilter(number, value, value)
        case Op.GT | Op.GE:
            return RangeFilter(number, value + (condition.op is Op.GT), None)
        case Op.LT | Op.LE:
            return RangeFilter(number, None, value - (condition.op is Op.LT))
        case _:
            return None


def _intersect(a: RangeFilter | None, b: RangeFilter) -> RangeFilter:
    if a is None:
        return b
    lows = [value for value in (a.low, b.low) if value is not None]
    highs = [value for value in (a.high, b.high) if value is not None]
    return RangeFilter(b.attribute, max(lows, default=None), min(highs, default=None))


def _width(bounds: RangeFilter) -> tuple[int, int]:
    if bounds.low is None or bounds.high is None:
        return 1, 0
    return 0, bounds.high - bounds.low

"""An index as a table that queries are asked of: what of a condition the motes are told, and the tuples that they bring."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa

from skerry.index.code import NULL
from skerry.index.questions import Names, Points, coarse, point
from skerry.planner.features.indexing import Axis, Index
from skerry.planner.model import source_plans as plans
from skerry.planner.model.source_plans import SourcePlan, Term
from skerry.sensors import values
from skerry.sensors.answers import answer
from skerry.sensors.definitions import TIME, Column, SensorTable

#: The range of a bound, in integers as motes send them.
_LEAST, _MOST = EVERY = -(2**31), 2**31 - 1
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


@dataclass(frozen=True, slots=True)
class StoredTuple:
    """A tuple as a mote sent it. ``session``: the lower 16 bits of the root's; ``values``: None for NULL."""

    node: int
    session: int
    epoch: int
    values: tuple[int | None, ...]


def table_of(index: Index) -> SensorTable:
    """What users ask."""
    own = (Column("nodeid", plans.INT), Column(TIME, plans.TIMESTAMP), Column("epoch", plans.INT))
    kinds = [plans.DECIMAL if axis.entry.digits else plans.INT for axis in index.axes]
    of = tuple(Column(x.entry.name, kind, x.entry.unit) for x, kind in zip(index.axes, kinds, strict=True))
    return SensorTable(index.name, "", 0, (*own, *of))


def question_of(plan: SourcePlan, index: Index) -> tuple[Points | None, frozenset[int], Names]:
    """What a query asks of an index: its points, the columns that it needs, by their place, and which tuples."""
    names = [axis.entry.name for axis in index.axes]
    read = {name for term in plan.read_terms() for name in term.columns()}
    needed = frozenset(names.index(name) for name in read if name in names)
    return box_of(plan.where, index), needed, names_of(plan.where)


def names_of(where: Term | None) -> Names:
    """The tuples that a condition lets pass, at most, by mote and epoch."""
    first, last, nodes = 0, Names().last, None
    for name, operator, value in compared(where):
        least, most = bounds_of(operator, value)
        if name == "epoch":
            first, last = max(first, least), min(last, most)
        if name == "nodeid" and least == most:
            nodes = frozenset({least})
    return Names(first, last, nodes) if first <= last and (nodes is None or min(nodes) >= 0) else Names()


def bounds_of(operator: str, value: Decimal) -> tuple[int, int]:
    """The integers that compare so."""
    if operator == ">":
        return math.floor(value) + 1, _MOST
    if operator == "<":
        return _LEAST, math.ceil(value) - 1
    return (
        _LEAST if operator == "<=" else math.ceil(value),
        _MOST if operator == ">=" else math.floor(value),
    )


def box_of(where: Term | None, index: Index) -> Points | None:
    """The points that a condition asks for, at least, of each attribute; None: there are no such."""
    names = [axis.entry.name for axis in index.axes]
    bounds = {name: [_LEAST, _MOST] for name in names}
    limited = set[str]()
    for name, operator, value in compared(where):
        if name not in bounds:
            continue
        scaled = value.scaleb(index.axes[names.index(name)].entry.digits)
        limited.add(name)
        least, most = bounds_of(operator, scaled)
        bounds[name] = [max(least, bounds[name][0]), min(most, bounds[name][1])]
    if any(least > most for least, most in bounds.values()):
        return None
    box = []
    for axis, name in zip(index.axes, names, strict=True):
        low, high = bounds[name]
        points = point(axis.low, axis.high, low), point(axis.low, axis.high, high)
        box.append(points if name in limited else (0, NULL))
    return coarse(box)


def compared(
    where: Term | None, types: Sequence[str] = (plans.INT, plans.DECIMAL, plans.DOUBLE)
) -> Iterator[tuple[str, str, Decimal]]:
    """Of what AND joins, comparisons of a column with a number of one of the types."""
    if where is None:
        return
    if where.op == "AND":
        for arg in where.args:
            yield from compared(arg, types)
        return
    if where.op not in _TURNED:
        return
    left, right = where.args
    operator = where.op
    if left.op == "literal":
        left, right, operator = right, left, _TURNED[operator]
    if left.op == "column" and right.op == "literal" and right.type in types:
        yield str(left.value), operator, Decimal(str(right.value))


def answered(
    plan: SourcePlan, index: Index, tuples: Sequence[StoredTuple], utc: Callable[[StoredTuple], float | None]
) -> pa.RecordBatch:
    """The answer to a query over so many tuples; ``utc``: when one was sampled, in s; None: that is not known."""
    rows = []
    for one in tuples:
        moment = utc(one)
        text = None if moment is None else datetime.fromtimestamp(moment, UTC).isoformat()
        rows.append((one.node, text, one.epoch, *map(_kept, one.values, index.axes)))
    return answer(plan, values.columns(table_of(index).columns, rows), len(rows))


def _kept(value: int | None, axis: Axis) -> values.Kept:
    digits = axis.entry.digits
    if value is None:
        return None
    return str(Decimal(value).scaleb(-digits)) if digits else value

"""States of aggregates over rows of sensors, put together exactly, and the values that they come to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from skerry.planner.model import source_plans as plans
from skerry.planner.model import source_windows as windows
from skerry.planner.model.source_plans import Term
from skerry.planner.model.source_windows import SourceAggregate, SourceGrouping, State
from skerry.sensors import value_aggregates
from skerry.sensors.evaluate import arrow_type, evaluate, passes
from skerry.sensors.folding import POINT, folded, normal

_CONTEXT = Context(prec=100)
_PLACES = 9
#: A DECIMAL is below this, in units of its last place.
_DECIMAL_MAXIMUM = 10**38
#: A state's value in memory: numbers of rows, exact sums in integers, least and greatest values, sets.
Value = Any


def read(states: Sequence[State], table: pa.Table) -> list[list[Value]]:
    """Column by column, the states that :func:`skerry.sensors.folding.folded` made."""
    found = []
    for i, state in enumerate(states):
        values: list[Any] = table.column(f"s{i}").to_pylist()
        if state.what == windows.SUM and state.argument is not None:
            values = [_total(value, state.argument.type) for value in values]
        elif state.what == windows.DISTINCT:
            values = [frozenset(value or ()) for value in values]
        found.append(values)
    return found


def _total(value: Any, kind: str) -> int | float:
    if value is None:
        return 0
    if kind == plans.DOUBLE:
        return float(value) if value in ("inf", "-inf", "nan") else int(value, 16)
    return int(value if kind == plans.INT else _CONTEXT.scaleb(value, _PLACES))


def _added(one: Any, other: Any) -> Any:
    # What is infinite is a double, and no integer as others are.
    if isinstance(one, float):
        return one + other if isinstance(other, float) else one
    return other if isinstance(other, float) else one + other


def _least(one: Any, other: Any) -> Any:
    return other if one is None else one if other is None else min(one, other)


def _greatest(one: Any, other: Any) -> Any:
    return other if one is None else one if other is None else max(one, other)


JOIN: dict[str, Callable[[Any, Any], Any]] = {
    windows.ROWS: int.__add__, windows.COUNT: int.__add__, windows.SUM: _added, windows.LEAST: _least, windows.GREATEST: _greatest,
    windows.DISTINCT: frozenset.union, windows.LISTED: list.__add__,
}  # fmt: skip


def joined(states: Sequence[State], one: Sequence[Value], other: Sequence[Value]) -> tuple[Value, ...]:
    """What both have."""
    return tuple(JOIN[state.what](a, b) for state, a, b in zip(states, one, other, strict=True))


def nothing(states: Sequence[State]) -> tuple[Value, ...]:
    """Of no rows."""
    empty: dict[str, Value] = {
        windows.LEAST: None,
        windows.GREATEST: None,
        windows.DISTINCT: frozenset(),
        windows.LISTED: [],
    }
    return tuple(empty.get(state.what, 0) for state in states)


def value(aggregate: SourceAggregate, known: Mapping[State, Value]) -> Any:
    """An aggregate, as a column of its type takes it."""
    if aggregate.is_listed:
        return value_aggregates.value(aggregate, known)
    first = known[aggregate.states[0]]
    if aggregate.kind == "COUNT":
        return len(first) if aggregate.distinct else first
    if aggregate.kind in ("MIN", "MAX"):
        return first
    count = known[aggregate.states[1]]
    if not count:
        return None
    return first if isinstance(first, float) else _of_sum(aggregate, first, count)


def _of_sum(aggregate: SourceAggregate, total: int, count: int) -> Any:
    """SUM and AVG, of an exact sum."""
    assert aggregate.argument is not None
    kind = aggregate.argument.type
    point = {plans.DOUBLE: 1 << POINT, plans.DECIMAL: 10**_PLACES}.get(kind, 1)
    if aggregate.kind == "AVG":
        return _quotient(total, count * point)
    if kind == plans.DOUBLE:
        return _quotient(total, point)
    if kind == plans.INT:
        return total if -(2**63) <= total < 2**63 else None
    return _CONTEXT.scaleb(Decimal(total), -_PLACES) if abs(total) < _DECIMAL_MAXIMUM else None


def _quotient(total: int, by: int) -> float:
    """The nearest double."""
    try:
        return total / by
    except OverflowError:
        return float("inf") if total > 0 else float("-inf")


def columns(
    grouping: SourceGrouping, groups: Sequence[tuple[Any, ...]], aggregated: Sequence[Sequence[Any]]
) -> dict[str, pa.Array]:
    """What is grouped by and aggregated, of each row of an answer; ``aggregated``: by aggregate."""
    kinds = grouping.types()
    found: dict[str, list[Any]] = {
        f"{windows.GROUP}{i}": [group[i] for group in groups] for i in range(len(grouping.groups))
    }
    found |= {f"{windows.AGGREGATE}{i}": list(values) for i, values in enumerate(aggregated)}
    return {name: pa.array(values, arrow_type(kinds[name])) for name, values in found.items()}


class Merging:
    """Rows by group, some at a time: what comes of them in the end is of all, whatever their order."""

    def __init__(self, grouping: SourceGrouping, where: Term | None) -> None:
        self._grouping, self._fold = grouping, grouping.fold(where)
        self._known: dict[tuple[Any, ...], tuple[Value, ...]] = {}
        if not grouping.groups:
            self._known[()] = nothing(self._fold.states)

    def add(self, own: Mapping[str, pa.Array], count: int) -> None:
        """So many rows with these columns."""
        places = pc.indices_nonzero(passes(self._fold.where, own, count))
        taken = {name: column.take(places) for name, column in own.items()}
        rows, states = len(places), self._fold.states
        keys = {f"g{i}": normal(evaluate(term, taken, rows)) for i, term in enumerate(self._fold.groups)}
        table = folded({"": pa.repeat(0, rows), **keys}, states, taken, rows)
        groups = list(zip(*(table.column(name).to_pylist() for name in keys), strict=True))
        for group, found in zip(
            groups or [()] * table.num_rows, zip(*read(states, table), strict=True), strict=True
        ):
            had = self._known.get(group)
            self._known[group] = found if had is None else joined(states, had, found)

    def __len__(self) -> int:
        """How many groups there are."""
        return len(self._known)

    def columns(self) -> tuple[dict[str, pa.Array], int]:
        """What is grouped by and aggregated, by group in order, and how many groups there are; without groups it is one."""
        groups = sorted(self._known, key=in_order)
        states = [dict(zip(self._fold.states, self._known[group], strict=True)) for group in groups]
        aggregated = [[value(one, known) for known in states] for one in self._grouping.aggregates]
        found = columns(self._grouping, groups, aggregated)
        return found or {"": pa.nulls(len(groups))}, len(groups)


def in_order(group: Sequence[Any]) -> tuple[tuple[bool, Any], ...]:
    """By which groups are in order: NULL comes last."""
    return tuple((one is None, 0 if one is None else one) for one in group)

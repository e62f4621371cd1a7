"""Groups that the engine has folded → the rows of an aggregate's answer, and what SQL has not: quantiles, rankings, users' own aggregates.

Values are the integers that motes send, so that what is made of them equals what is made of the states that come from the network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from skerry.execution.residual import to_array, type_of
from skerry.expressions import aggregate_states, build, extension_aggregates
from skerry.expressions.aggregate_values import list_type
from skerry.expressions.evaluate import Evaluator, Vector, averages
from skerry.expressions.expression import Expr, Kind
from skerry.expressions.values_at import at_share
from skerry.planner.model.epoch_facts import MOTES, REVISION
from skerry.planner.model.plans import QueryPlan
from skerry.planner.model.row_time import TIME
from skerry.storage.history.engine.selects import (
    BEGAN,
    KEYS,
    LAST,
    MOTE,
    ROWS,
    TIMES,
    VALUE,
    functions_of,
    group_names,
    is_extension,
    is_spread,
)
from skerry.storage.history.layout import Int64
from skerry.storage.history.sorting import check_room, sequence
from skerry_protocol.codes import Aggregate

#: Sums are exact up to here after a multiplication with a quotient's power of ten.
_INT64_MAXIMUM = 2**63 - 1
#: Rows, with their numbers in the log.
Numbered = tuple[Int64, pa.RecordBatch]


class Groups:
    """The groups of one plan. ``table``: a row for each; ``names``: by argument and function, which column has what was folded; ``motes``:
    how many there are in each epoch, ``values``: how often each value is in each group, in ascending order, both where they are needed."""

    def __init__(
        self,
        plan: QueryPlan,
        table: pa.Table,
        names: Mapping[tuple[Expr, str], str],
        motes: pa.Table | None,
        values: Mapping[Expr, pa.Table],
        most: int,
    ) -> None:
        """``most``: rows that may be put in order."""
        self._plan, self._names, self._motes, self._values, self._most = plan, names, motes, values, most
        self._keys = [*KEYS, *group_names(plan)]
        self._table = table.sort_by(LAST)

    def rows(self, last: int) -> Numbered:
        """The rows of the answer, in the order of their numbers. ``last``: number of the one over no rows at all. Raises QueryError."""
        plan, table = self._plan, self._table
        assert plan.history is not None
        if not table.num_rows:
            # Over all rows there is one answer, even when there are none.
            nothing = plan.history.recorded and not plan.groups
            return (
                self._over_nothing(last)
                if nothing
                else self._projected(Evaluator({}, _NONE), {}, _NONE, _NONE)
            )
        epochs = table.column("epoch").to_numpy()
        columns: dict[Expr, Vector] = {
            expr: _vector(table.column(name))
            for name, expr in zip(group_names(plan), plan.groups, strict=True)
        }
        if BEGAN in table.column_names:
            columns[TIME] = _vector(table.column(BEGAN))
        columns[REVISION] = np.zeros(table.num_rows, np.int64), np.ones(table.num_rows, np.bool_)
        if self._motes is not None:
            columns[MOTES] = self._motes_of(self._motes)
        evaluate = Evaluator(columns, epochs * plan.period_ms)
        lists: dict[Expr, pa.Array] = {}
        for node in plan.aggregates():
            if not node.args or functions_of(node):
                evaluate.add(node, self._folded(node))
                continue
            found = self._of_keys(self._values[node])
            if node.kind is Kind.LIST:
                lists[node] = pa.array([_list(node, pairs) for pairs in found], list_type(node))
            else:
                evaluate.add(node, _numbers([_final(node, pairs) for pairs in found]))
        passing = np.flatnonzero(evaluate.truth(plan.having, plan.period_ms))
        numbers = table.column(LAST).to_numpy()
        if plan.order is not None:
            passing = passing[self._ordered(evaluate.at(passing), len(passing))]
            # Who stops among them begins again: all have the number of the last row there is.
            numbers = np.full(len(numbers), last, np.int64)
        return self._projected(evaluate, lists, numbers, passing)

    def _motes_of(self, motes: pa.Table) -> Vector:
        """How many motes are in the epoch of each group. Nothing is late in the past."""
        keys = zip(*(motes.column(name).to_pylist() for name in KEYS), strict=True)
        counts = dict(zip(keys, motes.column("motes").to_pylist(), strict=True))
        mine = zip(*(self._table.column(name).to_pylist() for name in KEYS), strict=True)
        return _numbers([counts.get(key, 0) for key in mine])

    def _ordered(self, evaluate: Evaluator, rows: int) -> Int64:
        """Groups tell apart what the query's own order does not, then epochs."""
        plan, order = self._plan, self._plan.order
        assert order is not None
        check_room(order, rows, self._most)
        groups = replace(order, keys=(*order.keys, *((group, False) for group in plan.groups)))
        return sequence(groups, [evaluate(expr, plan.period_ms) for expr in groups.exprs()])

    def _projected(
        self, evaluate: Evaluator, lists: Mapping[Expr, pa.Array], numbers: Int64, passing: Int64
    ) -> Numbered:
        arrays = []
        schema = pa.schema([(output.name, type_of(output)) for output in self._plan.outputs])
        if not len(numbers):
            return numbers, pa.RecordBatch.from_arrays(
                [pa.array([], kind) for kind in schema.types], schema=schema
            )
        for output in self._plan.outputs:
            if output.expr in lists:
                arrays.append(lists[output.expr].take(pa.array(passing)))
            else:
                values, known = evaluate(output.expr, self._plan.period_ms)
                arrays.append(to_array(values[passing], known[passing], output))
        return numbers[passing], pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _over_nothing(self, last: int) -> Numbered:
        evaluate = Evaluator({MOTES: _numbers([0]), REVISION: _numbers([0])}, np.zeros(1, np.int64))
        lists = {}
        for node in self._plan.aggregates():
            if node.kind is Kind.LIST:
                lists[node] = pa.array([_list(node, [])], list_type(node))
            else:
                counts = node.aggregate is Aggregate.COUNT or node.final == ("distinct",)
                nothing = _final(node, []) if is_extension(node) else None
                evaluate.add(node, _numbers([0 if counts else nothing]))
        passing = np.flatnonzero(evaluate.truth(self._plan.having, self._plan.period_ms))
        return self._projected(evaluate, lists, np.array([last]), passing)

    def _folded(self, node: Expr) -> Vector:
        if not node.args:
            return _vector(self._table.column(ROWS))
        named = [self._table.column(self._names[node.args[0], function]) for function in functions_of(node)]
        if is_spread(node):
            root = node.final == ("stddev",)
            cells = zip(*(column.to_pylist() for column in named), strict=True)
            return _numbers(
                [
                    None if count < 2 else _spread(count, int(total), int(squares), root=root)
                    for count, total, squares in cells
                ]
            )
        if node.final == ("distinct error",):
            return _numbers([0] * self._table.num_rows)
        if node.aggregate is not Aggregate.AVG:
            return _vector(named[0])
        counts, _ = _vector(named[0])
        totals, known = _vector(named[1])
        # Those of few rows have room in 64 bits as they are.
        if len(totals) and int(np.abs(totals).max()) // np.maximum(counts, 1).min() < _INT64_MAXIMUM // 2000:
            return averages(totals, counts), known
        factor = 10**build.QUOTIENT_DIGITS
        pairs = zip(totals.tolist(), counts.tolist(), known.tolist(), strict=True)
        return _numbers(
            [
                build.rounded_quotient(total * factor, count) if there else None
                for total, count, there in pairs
            ]
        )

    def _of_keys(self, values: pa.Table) -> list[list[tuple[int, ...]]]:
        """(value, times) or (value, times, mote) of each group, in ascending order of the values."""
        found: dict[tuple[Any, ...], list[tuple[int, ...]]] = {}
        names = [VALUE, TIMES, *([MOTE] if MOTE in values.column_names else [])]
        pairs = zip(*(values.column(name).to_pylist() for name in names), strict=True)
        for key, pair in zip(self._key_rows(values), pairs, strict=True):
            found.setdefault(key, []).append(pair)
        return [found.get(key, []) for key in self._key_rows(self._table)]

    def _key_rows(self, table: pa.Table) -> list[tuple[Any, ...]]:
        return list(zip(*(table.column(name).to_pylist() for name in self._keys), strict=True))


_NONE = np.empty(0, np.int64)


def _vector(column: pa.ChunkedArray) -> Vector:
    if pa.types.is_decimal(column.type):
        return _numbers([None if value is None else int(value) for value in column.to_pylist()])
    known = column.is_valid().to_numpy()
    return column.fill_null(0).to_numpy().astype(np.int64), known


def _numbers(found: Sequence[int | None]) -> Vector:
    known = [value is not None and abs(value) <= _INT64_MAXIMUM for value in found]
    values = [value if there and value is not None else 0 for value, there in zip(found, known, strict=True)]
    return np.array(values, np.int64), np.array(known, np.bool_)


def _final(node: Expr, pairs: Sequence[tuple[int, ...]]) -> int | None:
    """What a summary comes to that has seen each value so many times; see :mod:`skerry.expressions.aggregate_values`."""
    if is_extension(node):
        aggregate = extension_aggregates.by_number(node.aggregate)
        return aggregate.evaluate(aggregate.over(pairs))
    match node.final:
        case ("quantile", int(share), int(power), int(middle)):
            value = at_share(pairs, share)
            return None if value is None else (2 * value + 2 * middle) * 5 * 10**power
        case ("quantile error", int(share), int(power), _):
            return None if at_share(pairs, share) is None else (power > 0) * 5 * 10**power
    raise ValueError(f"{node.final} is nothing that values can be asked for")


def _spread(count: int, total: int, squares: int, *, root: bool) -> int:
    """VARIANCE of a sample, or its root."""
    numerator, denominator = count * squares - total * total, count * (count - 1)
    if root:
        return aggregate_states.rounded_root(numerator * 10 ** (2 * build.QUOTIENT_DIGITS), denominator)
    return aggregate_states.rounded(numerator * 10**build.QUOTIENT_DIGITS, denominator)


def _list(node: Expr, pairs: Sequence[tuple[int, ...]]) -> list[Any]:
    if node.aggregate is Aggregate.HISTOGRAM:
        bins = int(node.final[1])
        counts = [0] * bins
        for value, times in pairs:
            counts[min(max(value, 0), bins - 1)] += times
        return counts
    scale = 10.0**node.digits if node.digits else 1
    sign = -1 if node.aggregate is Aggregate.TOP else 1
    ranked = sorted(
        ((sign * value, mote) for value, times, mote in pairs for _ in range(min(times, node.cells)))
    )
    return [
        {"nodeid": mote, "value": sign * value / scale if node.digits else sign * value}
        for value, mote in ranked[: node.cells]
    ]

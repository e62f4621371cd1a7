"""The gateway's part of each user's query, over batches of a stream.

    rows = Rows(batch, mote_query)              # once per batch; what users share is computed once
    residual = Residual(plan)                   # once per user
    indices = residual.select(rows, feed)       # the user's rows among them
    table = residual.project(rows, indices)     # his columns, in SI

Where an index over ``residual.filter.range`` has found candidates already, give them to ``select``; it then
evaluates ``residual.filter.rest`` instead of the whole condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skerry.execution.filters import Filter, Indices
from skerry.expressions import build
from skerry.expressions.aggregate_code import Cell
from skerry.expressions.aggregate_values import final_vector, list_array, list_type
from skerry.expressions.evaluate import (
    REMEMBERED,
    Evaluator,
    Mask,
    Values,
    Vector,
    averages,
    rounded_quotients,
)
from skerry.expressions.expression import Expr, Kind
from skerry.planner.model.columns import field_of
from skerry.planner.model.epoch_facts import FACTS
from skerry.planner.model.plans import Feed, MoteQuery, Output, QueryPlan
from skerry.planner.model.row_time import TIME
from skerry.planner.model.waits import EVERYBODY
from skerry.storage.log import record
from skerry_protocol.attributes import BY_NAME
from skerry_protocol.codes import Aggregate


class Rows:
    """A batch of one mote query's stream (schema: :mod:`skerry.planner.model.plans`), ready to be evaluated."""

    def __init__(self, batch: pa.RecordBatch, query: MoteQuery) -> None:
        self.batch = batch
        self.query = query
        epochs, _ = column_vector(batch, "epoch")
        self.sample_ms: Values = epochs * query.period_ms
        columns = _epoch_columns(batch, query) if query.aggregate else _row_columns(batch, query)
        if "utc_ms" in batch.schema.names:
            columns[TIME] = column_vector(batch, "utc_ms")
        self.evaluate = Evaluator(columns, self.sample_ms)
        self._shared: dict[str, pa.RecordBatch] = {}
        #: Their numbers in the log and sessions, for those who join them with the past.
        self.numbers: Values | None = None
        self.sessions: Values | None = None
        #: What joins remember: places (by their identity, too) sorted by an expression: its values, and where they stand.
        self.sorted: dict[tuple[int, Expr, int], tuple[Indices, Values, Values]] = {}

    @property
    def utc_ms(self) -> Values:
        """When each row was sampled, UTC in ms. Raises KeyError where the batch does not say."""
        return column_vector(self.batch, "utc_ms")[0]

    def told(self, by: int, revises: bool) -> Mask:
        """Which rows of an aggregate a query is told (``by``: :func:`skerry.planner.model.waits.told_by`); ``revises``: and those
        that revise others."""
        kinds, waits = (column_vector(self.batch, name)[0] for name in ("kind", "wait"))
        mine: Mask = (waits == EVERYBODY) | (waits == by)
        return mine if revises else mine & (kinds == record.Kind.TOLD)

    def column(self, name: str) -> Vector:
        """An attribute's integers, and where they are known."""
        return self.evaluate(build.attribute(BY_NAME[name]), self.query.period_ms)

    def shared(self, residual: Residual) -> pa.RecordBatch | None:
        """All rows as the user sees them, made once for all users with the same columns; None where a column has to be
        computed, which is done for the user's rows only."""
        found = self._shared.get(residual.layout)
        if found is None:
            plan = residual.plan
            if not all(o.expr.is_attribute or self.evaluate.brings(o.expr) for o in plan.outputs):
                return None
            arrays = [self.array(o, self.evaluate, plan.period_ms) for o in plan.outputs]
            found = pa.RecordBatch.from_arrays(arrays, schema=residual.schema())
            if len(self._shared) < REMEMBERED:
                self._shared[residual.layout] = found
        return found

    def array(self, output: Output, evaluate: Evaluator, period_ms: int) -> pa.Array:
        """A column, of the rows that ``evaluate`` has."""
        return to_array(*evaluate(output.expr, period_ms), output)

    def prepare(self, aggregates: Iterable[Expr]) -> None:
        """Make sure that they are there."""
        for node in aggregates:
            if node.kind is Kind.NUMBER and not self.evaluate.brings(node):
                if node.final:
                    vector = final_vector(node, self.states(node, np.arange(len(self.sample_ms))))
                else:
                    vector = _aggregate(self.batch, self.query, node)
                self.evaluate.add(node, vector)

    def states(self, node: Expr, indices: Indices) -> list[list[Cell]]:
        """An aggregate's state in each of these rows. Raises KeyError for one that the stream lacks."""
        first = field_of(self.query.columns, node)
        if first is None:
            raise KeyError(f"this stream has no field for {node}")
        cells = []
        for i in range(first, first + node.cells):
            values, known = column_vector(self.batch, f"value_{i}")
            counts, _ = column_vector(self.batch, f"count_{i}")
            of_rows = zip(
                counts[indices].tolist(), values[indices].tolist(), known[indices].tolist(), strict=True
            )
            cells.append([(count, value if there else None) for count, value, there in of_rows])
        return [list(state) for state in zip(*cells, strict=True)]


#: See :meth:`Residual.rows`.
Join = Callable[[Rows, Indices], tuple[Indices, pa.RecordBatch]]


class Residual:
    """One user's condition (``filter``) and columns."""

    def __init__(self, plan: QueryPlan) -> None:
        self.plan, self.filter = plan, Filter.of(plan)
        self._aggregates = plan.aggregates()
        #: The same for users with the same columns.
        self.layout = repr((plan.outputs, plan.period_ms))
        #: What makes his rows of those selected, where they are joined with tables: their places, and his columns.
        self.join: Join | None = None
        self._schema = pa.schema([(output.name, type_of(output)) for output in plan.outputs])

    def select(self, rows: Rows, feed: Feed, candidates: Indices | None = None) -> Indices:
        """See :meth:`skerry.execution.filters.Filter.select`."""
        return self.filter.select(rows, feed, candidates)

    def rows(self, rows: Rows, places: Indices) -> tuple[Indices, pa.RecordBatch]:
        """What the user sees of these rows: their places, of a join some several times or not at all, and his columns."""
        return (places, self.project(rows, places)) if self.join is None else self.join(rows, places)

    def project(self, rows: Rows, indices: Indices) -> pa.RecordBatch:
        """The user's columns for these rows: decimals as float64, rounded at their digits; NULL as null."""
        rows.prepare(self._aggregates)
        shared = rows.shared(self)
        if shared is not None:
            # A single row, as most users have of a small batch, is there without copying.
            return shared.slice(int(indices[0]), 1) if len(indices) == 1 else shared.take(pa.array(indices))
        mine = rows.evaluate.at(indices)
        arrays = [
            list_array(output.expr, rows.states(output.expr, indices))
            if output.expr.kind is Kind.LIST
            else rows.array(output, mine, self.plan.period_ms)
            for output in self.plan.outputs
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def schema(self) -> pa.Schema:
        """Schema of :meth:`project`."""
        return self._schema


def type_of(output: Output) -> pa.DataType:
    """Arrow's type of a column."""
    return list_type(output.expr) if output.expr.kind is Kind.LIST else _TYPES[output.type]


#: Of moments.
TIMESTAMP = pa.timestamp("us", tz="UTC")
_TYPES = {
    "integer": pa.int64(), "decimal": pa.float64(), "boolean": pa.bool_(), "text": pa.string(), "timestamp": TIMESTAMP,
}  # fmt: skip


#: Decimal places of a timestamp's seconds.
_MICROSECONDS = 6
#: Integers up to this one are doubles, too.
_EXACT_DOUBLES = 2**53


def to_array(values: Values, known: Mask, output: Output) -> pa.Array:
    """Integers of an output as the SI values users see."""
    if output.type == "timestamp":
        return _timestamps(values, known, output.digits)
    result: NDArray[np.generic] = values
    if output.expr.kind is Kind.CONDITION:
        result = values != 0
    elif output.digits:
        # Division by an exact power of ten rounds once: the nearest double to the decimal number.
        result = values / 10.0**output.digits
        for i in np.flatnonzero(np.abs(values) > _EXACT_DOUBLES):
            result[i] = int(values[i]) / 10**output.digits
    return pa.array(result, _TYPES[output.type], mask=~known)


def _timestamps(values: Values, known: Mask, digits: int) -> pa.Array:
    """Seconds of UTC with so many decimal places."""
    if digits > _MICROSECONDS:
        values = rounded_quotients(values, np.full(1, 10 ** (digits - _MICROSECONDS), np.int64))
    return pa.array(values * 10 ** max(0, _MICROSECONDS - digits), pa.int64(), mask=~known).cast(TIMESTAMP)


def column_vector(batch: pa.RecordBatch, name: str) -> Vector:
    """A column of integers. Raises KeyError where the batch has none of that name."""
    array = batch.column(name)
    known = ~array.is_null().to_numpy(zero_copy_only=False)
    filled = array.fill_null(0) if array.null_count else array
    return filled.cast(pa.int64()).to_numpy(zero_copy_only=False), known


def _row_columns(batch: pa.RecordBatch, query: MoteQuery) -> dict[Expr, Vector]:
    names = [name for name in ("nodeid", "combined", "left_out", "via") if name in batch.schema.names]
    columns = {build.attribute(BY_NAME[name]): column_vector(batch, name) for name in names}
    for column in query.columns:
        if column.expr is not None:
            columns[column.expr] = column_vector(batch, column.name)
    return columns


def _epoch_columns(batch: pa.RecordBatch, query: MoteQuery) -> dict[Expr, Vector]:
    """What the rows say of their epochs, and what they are grouped by. Without any reading in it: the group of NULL."""
    columns = {expr: column_vector(batch, name) for name, expr in FACTS.items()}
    for i, column in enumerate(query.columns):
        if column.aggregate is Aggregate.GROUP and column.expr is not None:
            values, _ = column_vector(batch, f"value_{i}")
            columns[column.expr] = values, column_vector(batch, f"count_{i}")[0] > 0
    return columns


def _aggregate(batch: pa.RecordBatch, query: MoteQuery, node: Expr) -> Vector:
    """An aggregate from the partial states that arrived. Without any value: NULL, and COUNT 0."""
    index = field_of(query.columns, node)
    if index is None:
        raise KeyError(f"this stream has no field for {node}")
    count, _ = column_vector(batch, f"count_{index}")
    if node.aggregate is Aggregate.COUNT:
        return count, np.ones(len(count), np.bool_)
    value, known = column_vector(batch, f"value_{index}")
    known = known & (count > 0)
    if node.aggregate is Aggregate.AVG:
        value = averages(value, count)
    return value, known

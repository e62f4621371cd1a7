"""Rows of a stream joined with tables: what a query makes of the pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from skerry.execution.filters import Indices
from skerry.execution.joined import Pairs
from skerry.execution.residual import Rows, to_array, type_of
from skerry.expressions.evaluate import Evaluator, Vector
from skerry.expressions.expression import Expr, Kind
from skerry.planner.model.plans import QueryPlan
from skerry.tables.pairs import Earlier, Int64, Pairing, column_in, texts_of
from skerry.tables.store import Table
from skerry.tables.versions import TableVersions


class Joiner:
    """One query's join; its arguments are those of :class:`skerry.tables.pairs.Pairing`."""

    def __init__(
        self,
        plan: QueryPlan,
        tables: Callable[[str], Table],
        past: Mapping[str, Earlier] | None = None,
        versions: TableVersions | None = None,
    ) -> None:
        self._plan, self._versions = plan, versions
        self._pairing = Pairing.of(plan, tables, past, versions)
        self._exprs = [output.expr for output in plan.outputs]
        self._schema = pa.schema([(output.name, type_of(output)) for output in plan.outputs])

    @property
    def names(self) -> Sequence[str]:
        """The tables that it is joined with and that change: the stream's past does not."""
        return self._pairing.names

    def in_executors(self) -> str | None:
        """What executors need to find the pairs; None: they cannot."""
        return None if self._versions is None else self._pairing.to_text()

    def readings(self, first: int, end: int) -> dict[str, list[tuple[int, Table]]]:
        """By what tables are called: from which of rows ``first`` .. ``end`` - 1 of the log on which reading is met. Raises TableError."""
        probes = [probe for probe in self._pairing.probes if probe.table.past_ms is None]
        return {probe.table.called: self._pairing.readings(probe, first, end) for probe in probes}

    def check(self) -> None:
        """Raises TableError when a table is not there for the rows that come next, or has not the columns any more that the query was
        planned with."""
        self._pairing.check()

    def join(self, rows: Rows, places: Indices) -> tuple[Indices, pa.RecordBatch]:
        """Rows of the stream (their places, some several times, in the same order) and the query's columns for each pair.

        Raises TableError.
        """
        found = []
        for at, piece in self._pairing.pieces(rows, places):
            left, chosen = self._pairing.pairs(rows, piece, at)
            found.append((left, self._project(rows, left, chosen)))
        return _together(found)

    def rows(self, rows: Rows, pairs: Iterable[Pairs]) -> tuple[Indices, pa.RecordBatch]:
        """The same where executors have found the pairs. Raises ReadingGoneError."""
        assert self._versions is not None
        found = []
        for one in pairs:
            tables = [self._versions.reading(version) for version in one.versions]
            chosen = {
                probe.table.called: (table, at)
                for probe, table, at in zip(self._pairing.probes, tables, one.found, strict=False)
            }
            found.append((one.left, self._project(rows, one.left, chosen)))
        return _together(found)

    def columns(
        self, rows: Rows, places: Indices, exprs: Sequence[Expr]
    ) -> tuple[Int64, list[Vector | list[str | None]]]:
        """The same places, and what expressions are for each pair. Raises TableError."""
        found = [self._columns(rows, piece, at, exprs) for at, piece in self._pairing.pieces(rows, places)]
        if len(found) == 1:
            return found[0]
        columns = [_concatenated([part[1][i] for part in found]) for i in range(len(exprs))]
        return np.concatenate([left for left, _ in found]), columns

    def _columns(
        self, rows: Rows, places: Indices, at: int | None, exprs: Sequence[Expr]
    ) -> tuple[Int64, list[Vector | list[str | None]]]:
        left, chosen = self._pairing.pairs(rows, places, at)
        evaluate = self._pairing.evaluator(rows, left, chosen, list(exprs))
        found: list[Vector | list[str | None]] = []
        for expr in exprs:
            text = None
            if expr.kind is Kind.TEXT:
                text = texts_of(expr, chosen, len(left)).to_pylist()
            found.append(evaluate(expr, self._plan.period_ms) if text is None else text)
        return left, found

    def _project(self, rows: Rows, left: Int64, chosen: dict[str, tuple[Table, Int64]]) -> pa.RecordBatch:
        arrays = []
        evaluate: Evaluator | None = None
        for output in self._plan.outputs:
            expr = output.expr
            if expr.final[:1] == ("table",):
                column, at = column_in(chosen, expr)
                if column.text is not None:
                    arrays.append(column.text.take(pa.array(at)))
                else:
                    values, known = column.vector(expr.digits)
                    arrays.append(to_array(values[at], known[at], output))
            elif expr.is_attribute:
                values, known = rows.evaluate(expr, self._plan.period_ms)
                arrays.append(to_array(values[left], known[left], output))
            else:
                evaluate = evaluate or self._pairing.evaluator(rows, left, chosen, self._exprs)
                arrays.append(to_array(*evaluate(expr, self._plan.period_ms), output))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _together(found: list[tuple[Indices, pa.RecordBatch]]) -> tuple[Indices, pa.RecordBatch]:
    if len(found) == 1:
        return found[0]
    [batch] = pa.Table.from_batches([batch for _, batch in found]).combine_chunks().to_batches() or [
        found[0][1]
    ]
    return np.concatenate([left for left, _ in found]), batch


def _concatenated(parts: Sequence[Vector | list[str | None]]) -> Vector | list[str | None]:
    texts = [text for part in parts if isinstance(part, list) for text in part]
    vectors = [part for part in parts if not isinstance(part, list)]
    if not vectors:
        return texts
    return np.concatenate([values for values, _ in vectors]), np.concatenate([known for _, known in vectors])

"""What table functions mine in the past: its rows go through the operators that mine those which come now, so that both find the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skerry.execution.mined_rows import NUMBER, PLACES, MinedGroup, mined_of, selected
from skerry.execution.mining_buckets import MiningBucket
from skerry.execution.range_index import Int64
from skerry.execution.source_rows import SourceRows
from skerry.mining.errors import MiningError
from skerry.planner.model import source_plans as plans
from skerry.planner.model.source_plans import SourcePlan
from skerry.sensors.definitions import TIME
from skerry.sensors.evaluate import MOMENT, passes, schema_of, shown
from skerry.sql.errors import QueryError
from skerry.storage.history.engine.finishing import Numbered
from skerry.storage.history.engine.messages import Question
from skerry.storage.history.engine.source_past import SourcePast
from skerry.storage.history.engine.stream_past import StreamPast

#: Rows of the log, by number, with their columns; in order, and all of a number at once.
Rows = Iterable[tuple[Int64, Mapping[str, pa.Array]]]
_HINT = "ask for less with WHERE, a shorter HISTORY, or less often with EVERY"


class MinedPast(SourcePast):
    """One question about sources that are no motes."""

    def __init__(self, question: Question, ends: Callable[[], bool]) -> None:
        super().__init__(question, ends)
        group = _group(self._plan)
        terms = [*group.terms, *([group.where] if group.where is not None else [])]
        read = {name: kind for term in terms for name, kind in term.typed_columns()}
        self._columns = {**read, **group.kept, plans.SOURCE: plans.INT}
        self._stream = int(group.spec["number"])

    def whole(self) -> Numbered:
        """The answer, under the number of the last row that there is."""
        rows = ((found.numbers, found.columns) for found in self._rows(-1))
        found = mined(self._plan, rows, self._question.most)
        return np.full(found.num_rows, self._number, np.int64), found

    def _rows(self, position: int) -> Iterator[SourceRows]:
        past = StreamPast(self._question.sources, self._stream, self._columns, self._check)
        return past.rows(position)


def mined(plan: SourcePlan, rows: Rows, most: int) -> pa.RecordBatch:
    """All that is found, in the order in which it comes; at most so many rows. Raises QueryError."""
    group = _group(plan)
    bucket, found, count = MiningBucket(group, None), list[pa.Table](), 0
    try:
        for numbers, columns in rows:
            table = mined_of(group, _numbered(numbers), columns)
            came = bucket.add(table) if table is not None else []
            found, count = found + came, count + sum(map(len, came))
            if count > most:
                raise QueryError(f"more than {most:,} rows are found in this past", _HINT)
        found += bucket.end()
    except MiningError as error:
        raise QueryError(str(error), _HINT) from None
    schema = schema_of(plan)
    if not found:
        return pa.RecordBatch.from_pylist([], schema=schema)
    whole = pa.concat_tables(found)
    whole = whole.take(pc.sort_indices(whole, sort_keys=[(NUMBER, "ascending")]))
    columns = {name: values.combine_chunks() for name, values in selected(group, whole).items()}
    columns[plans.TIME] = whole["time"].combine_chunks().cast(MOMENT)
    places = pc.indices_nonzero(passes(plan.where, columns, whole.num_rows))
    taken = {name: column.take(places) for name, column in columns.items()}
    arrays = [shown(output.term, taken, len(places)) for output in plan.outputs]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def of_motes(numbers: Int64, rows: pa.RecordBatch) -> tuple[Int64, dict[str, pa.Array]]:
    """What a question to motes brings, with their times, as rows of a stream."""
    columns = {
        f"{plans.MOTES}.{name}": column.cast(pa.int64() if pa.types.is_integer(column.type) else pa.float64())
        for name, column in zip(rows.schema.names, rows.columns, strict=True)
        if name != TIME
    }
    columns[plans.SOURCE] = rows.column("nodeid").cast(pa.int64())
    columns[plans.TIME] = rows.column(TIME).cast(MOMENT)
    return numbers, columns


def _group(plan: SourcePlan) -> MinedGroup:
    assert plan.join is not None
    return MinedGroup("", plan.join.executed(), 0)


def _numbered(numbers: Int64) -> Int64:
    """Of rows of records each its own number."""
    begins = np.searchsorted(numbers, numbers)
    found: Int64 = (numbers << PLACES) + np.arange(len(numbers), dtype=np.int64) - begins
    return found

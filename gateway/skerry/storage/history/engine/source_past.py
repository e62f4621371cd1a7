"""Questions about the past of sources that are no motes. Rows are chosen and aggregated as those are that come now, so that both give the
same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skerry.execution.source_folding import folded_rows
from skerry.execution.source_rows import SourceRows
from skerry.planner.model.source_plans import SourcePlan
from skerry.sensors.aggregate_states import Merging
from skerry.sensors.answers import finished
from skerry.sensors.evaluate import evaluate, passes, schema_of, shown
from skerry.sql.errors import QueryError
from skerry.storage.history.engine.finishing import Numbered
from skerry.storage.history.engine.messages import Question
from skerry.storage.history.engine.stream_past import StreamPast
from skerry.tables.versions import DIRECTORY as TABLES
from skerry.tables.versions import TableVersions
from skerry.windows.source_panes import SourcePanes, TooManyError, records_of
from skerry.windows.source_windows import TOO_MANY, SourceWindowPart, SourceWindowView

#: Longer than windows may wait: of the past all is there, in whatever order.
_FOREVER_MS = 1 << 50
#: Rows that are put in order at a time, where there is a LIMIT.
_ORDERED_ROWS = 65_536
HINT = "ask for fewer with WHERE or a shorter HISTORY"


class SourcePast:
    """One question. ``ends``: whether nobody waits for its answer any more, or it takes too long."""

    def __init__(self, question: Question, ends: Callable[[], bool]) -> None:
        assert question.plan.sources is not None
        self._question, self._plan, self._ends = question, question.plan.sources, ends
        self._columns = self._plan.read_columns()
        tables = Path(question.sources.log).parent / TABLES
        self._readings = TableVersions(tables) if self._plan.lookups is not None else None
        self._number = max(question.sources.end - 1, 0)

    def whole(self) -> Numbered | None:
        """The answer of a query that aggregates or orders, under the number of the last row that there is; None: it has rows one by one."""
        plan = self._plan
        if plan.windowed:
            found = self._windows()
        elif plan.grouping is not None:
            found = self._groups()
        elif plan.order or plan.limit is not None:
            found = self._ordered()
        else:
            return None
        return np.full(found.num_rows, self._number, np.int64), found

    def piece(self) -> tuple[Numbered, int, bool]:
        """The next rows, in the order of the log, the position reached, and whether more may follow."""
        plan, parts, numbers, count = self._plan, list[pa.RecordBatch](), list[np.ndarray](), 0
        for came in self._rows(self._question.position):
            rows = came.with_tables(plan.lookups)
            places = pc.indices_nonzero(passes(plan.where, rows.columns, len(rows.numbers)))
            taken = {name: column.take(places) for name, column in rows.columns.items()}
            arrays = [shown(output.term, taken, len(places)) for output in plan.outputs]
            parts.append(pa.RecordBatch.from_arrays(arrays, schema=schema_of(plan)))
            numbers.append(rows.numbers[places.to_numpy()])
            count += len(places)
            if count >= self._question.piece:
                return (np.concatenate(numbers), joined(plan, parts)), int(came.numbers[-1]), True
        found = np.concatenate([np.empty(0, np.int64), *numbers])
        return (found, joined(plan, parts)), max(self._number, self._question.position), False

    # ---- what is made of all rows ----

    def _groups(self) -> pa.RecordBatch:
        assert self._plan.grouping is not None
        merging = Merging(self._plan.grouping, self._plan.where)
        for came in self._rows(-1):
            rows = came.with_tables(self._plan.lookups)
            merging.add(rows.columns, len(rows.numbers))
            if len(merging) > self._question.most:
                raise QueryError(f"this past has more than {self._question.most:,} groups", HINT)
        return finished(self._plan, *merging.columns())

    def _windows(self) -> pa.RecordBatch:
        grouping, since_ms = self._plan.grouping, self._question.since_ms
        assert grouping is not None
        assert grouping.frame is not None
        fold, slide = grouping.fold(self._plan.where, self._plan.lookups), grouping.frame.slide_ms
        panes = SourcePanes(fold, _FOREVER_MS, None)
        key = panes.want(grouping.frame, 0 if grouping.frame.is_bounded else -(-since_ms // slide) * slide)
        try:
            for rows in self._rows(-1):
                panes.take(records_of(fold, folded_rows(fold, rows)))
        except TooManyError:
            raise QueryError(TOO_MANY, HINT) from None
        part = SourceWindowPart(key, grouping, panes.rest(key, self._number))
        found = part.delivery(SourceWindowView(self._plan, since_ms - 1, -1)) if len(part.numbers) else None
        return joined(self._plan, [] if found is None else [found.columns])

    def _ordered(self) -> pa.RecordBatch:
        plan, kept_rows, count = self._plan, list[pa.Table](), 0
        names = [f"o{i}" for i in range(len(plan.outputs))]
        for came in self._rows(-1):
            rows = came.with_tables(plan.lookups)
            places = pc.indices_nonzero(passes(plan.where, rows.columns, len(rows.numbers)))
            taken = {name: column.take(places) for name, column in rows.columns.items()}
            by = {f"by{i}": evaluate(term, taken, len(places)) for i, (term, _) in enumerate(plan.order)}
            own = [shown(output.term, taken, len(places)) for output in plan.outputs]
            # Of equal rows that comes first which came first.
            order = pa.array(np.arange(count, count + len(places)))
            kept_rows.append(pa.table([*by.values(), order, *own], [*by, "came", *names]))
            count += len(places)
            if sum(table.num_rows for table in kept_rows) > max(_ORDERED_ROWS, 2 * (plan.limit or 0)):
                kept_rows = [self._first(pa.concat_tables(kept_rows))]
        if not kept_rows:
            return joined(plan, [])
        table = self._first(pa.concat_tables(kept_rows)).select(names).combine_chunks()
        return joined(plan, [pa.RecordBatch.from_arrays(
            [column.combine_chunks() for column in table.columns], schema=schema_of(plan)
        )])  # fmt: skip

    def _first(self, table: pa.Table) -> pa.Table:
        """In order, as many as are asked for. Raises QueryError."""
        ways = [
            (f"by{i}", "descending" if descending else "ascending")
            for i, (_, descending) in enumerate(self._plan.order)
        ]
        limit, most = self._plan.limit, self._question.most
        if min(limit if limit is not None else table.num_rows, table.num_rows) > most:
            hint = f"add LIMIT {most}, or {HINT}"
            raise QueryError(f"this past has more than {most:,} rows, and so many can be ordered", hint)
        places = pc.sort_indices(table, sort_keys=[*ways, ("came", "ascending")])
        return table.take(places if limit is None else places.slice(0, limit))

    def _rows(self, position: int) -> Iterator[SourceRows]:
        """Those behind a row of the log, in order; a record's are in one part."""
        assert self._plan.stream is not None
        past = StreamPast(
            self._question.sources, self._plan.stream, self._columns, self._check, self._readings
        )
        return past.rows(position)

    def _check(self) -> None:
        if self._ends():
            raise duckdb.InterruptException("its answer is not waited for any longer")


def joined(plan: SourcePlan, parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """All parts as one."""
    table = pa.Table.from_batches(parts, schema_of(plan)).combine_chunks()
    batches = table.to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=schema_of(plan))

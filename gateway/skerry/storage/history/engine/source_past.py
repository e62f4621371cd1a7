"""Questions about the past of sources that are no motes: of the files of their table the row groups and columns that matter, and what the
log has behind them. Rows are chosen and aggregated as those are that come now, so that both give the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skerry.execution.source_folding import folded_rows
from skerry.execution.source_rows import SourceRows
from skerry.planner.model import source_plans as plans
from skerry.planner.model.source_plans import SourcePlan
from skerry.sensors.aggregate_states import Merging
from skerry.sensors.answers import finished
from skerry.sensors.evaluate import MOMENT, arrow_type, evaluate, passes, schema_of, shown
from skerry.sql.errors import QueryError
from skerry.storage.history.damaged_files import naming
from skerry.storage.history.engine.finishing import Numbered
from skerry.storage.history.engine.messages import Question, SourceFile
from skerry.storage.history.source_layout import ROW, TIME, kept, rows_of_log
from skerry.storage.log import stream_log
from skerry.windows.source_panes import SourcePanes, TooManyError, records_of
from skerry.windows.source_windows import TOO_MANY, SourceWindowPart, SourceWindowView

#: Records of the log read at a time.
_STEP = 8192
#: Longer than windows may wait: of the past all is there, in whatever order.
_FOREVER_MS = 1 << 50
#: Rows that are put in order at a time, where there is a LIMIT.
_ORDERED_ROWS = 65_536
_HINT = "ask for fewer with WHERE or a shorter HISTORY"


class SourcePast:
    """One question. ``ends``: whether nobody waits for its answer any more, or it takes too long."""

    def __init__(self, question: Question, ends: Callable[[], bool]) -> None:
        assert question.plan.sources is not None
        self._question, self._plan, self._ends = question, question.plan.sources, ends
        terms = [*self._plan.read_terms()]
        self._columns = {name: kind for term in terms for name, kind in term.typed_columns()}
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
        for rows in self._rows(self._question.position):
            places = pc.indices_nonzero(passes(plan.where, rows.columns, len(rows.numbers)))
            taken = {name: column.take(places) for name, column in rows.columns.items()}
            arrays = [shown(output.term, taken, len(places)) for output in plan.outputs]
            parts.append(pa.RecordBatch.from_arrays(arrays, schema=schema_of(plan)))
            numbers.append(rows.numbers[places.to_numpy()])
            count += len(places)
            if count >= self._question.piece:
                return (np.concatenate(numbers), _joined(plan, parts)), int(rows.numbers[-1]), True
        found = np.concatenate([np.empty(0, np.int64), *numbers])
        return (found, _joined(plan, parts)), max(self._number, self._question.position), False

    # ---- what is made of all rows ----

    def _groups(self) -> pa.RecordBatch:
        assert self._plan.grouping is not None
        merging = Merging(self._plan.grouping, self._plan.where)
        for rows in self._rows(-1):
            merging.add(rows.columns, len(rows.numbers))
            if len(merging) > self._question.most:
                raise QueryError(f"this past has more than {self._question.most:,} groups", _HINT)
        return finished(self._plan, *merging.columns())

    def _windows(self) -> pa.RecordBatch:
        grouping, since_ms = self._plan.grouping, self._question.since_ms
        assert grouping is not None
        assert grouping.frame is not None
        fold, slide = grouping.fold(self._plan.where), grouping.frame.slide_ms
        panes = SourcePanes(fold, _FOREVER_MS, None)
        key = panes.want(grouping.frame, 0 if grouping.frame.is_bounded else -(-since_ms // slide) * slide)
        try:
            for rows in self._rows(-1):
                panes.take(records_of(fold, folded_rows(fold, rows)))
        except TooManyError:
            raise QueryError(TOO_MANY, _HINT) from None
        part = SourceWindowPart(key, grouping, panes.rest(key, self._number))
        found = part.delivery(SourceWindowView(self._plan, since_ms - 1, -1)) if len(part.numbers) else None
        return _joined(self._plan, [] if found is None else [found.columns])

    def _ordered(self) -> pa.RecordBatch:
        plan, kept_rows, count = self._plan, list[pa.Table](), 0
        names = [f"o{i}" for i in range(len(plan.outputs))]
        for rows in self._rows(-1):
            places = pc.indices_nonzero(passes(plan.where, rows.columns, len(rows.numbers)))
            taken = {name: column.take(places) for name, column in rows.columns.items()}
            by = {f"by{i}": evaluate(term, taken, len(places)) for i, (term, _) in enumerate(plan.order)}
            own = [shown(output.term, taken, len(places)) for output in plan.outputs]
            # Of equal rows that comes first which came first.
            came = pa.array(np.arange(count, count + len(places)))
            kept_rows.append(pa.table([*by.values(), came, *own], [*by, "came", *names]))
            count += len(places)
            if sum(table.num_rows for table in kept_rows) > max(_ORDERED_ROWS, 2 * (plan.limit or 0)):
                kept_rows = [self._first(pa.concat_tables(kept_rows))]
        if not kept_rows:
            return _joined(plan, [])
        table = self._first(pa.concat_tables(kept_rows)).select(names).combine_chunks()
        return _joined(plan, [pa.RecordBatch.from_arrays(
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
            hint = f"add LIMIT {most}, or {_HINT}"
            raise QueryError(f"this past has more than {most:,} rows, and so many can be ordered", hint)
        places = pc.sort_indices(table, sort_keys=[*ways, ("came", "ascending")])
        return table.take(places if limit is None else places.slice(0, limit))

    # ---- rows ----

    def _rows(self, position: int) -> Iterator[SourceRows]:
        """Those behind a row of the log, in order; a record's are in one part."""
        sources = self._question.sources
        for files in _apart(sources.files):
            if max(file.last for file in files) > position:
                for table in self._of_files(files, position):
                    yield from self._recent(table)
        assert self._plan.stream is not None
        log, begin = Path(sources.log), max(sources.compacted, position + 1)
        for at in range(begin, sources.end, _STEP):
            self._check()
            upto = min(at + _STEP, sources.end)
            records = stream_log.read(log, at, upto)
            found = rows_of_log(
                log, np.arange(at, at + len(records), dtype=np.int64), records, self._plan.stream
            )
            if found is not None:
                there = [name for name in self._columns if name in found.columns]
                table = pa.table(
                    [
                        pa.array(found.numbers),
                        found.columns[plans.TIME],
                        *(found.columns[name] for name in there),
                    ],
                    [ROW, TIME, *map(kept, there)],
                )
                yield from self._recent(table)

    def _of_files(self, files: Sequence[SourceFile], position: int) -> Iterator[pa.Table]:
        """Rows of files; of several, whose rows lie between each other's, all at once."""
        tables = (table for file in files for table in self._of_file(file, position))
        if len(files) > 1:
            whole = pa.concat_tables(tables, promote_options="default")
            yield whole.take(pc.sort_indices(whole.append_column("", pa.array(np.arange(whole.num_rows))), sort_keys=[
                (ROW, "ascending"), ("", "ascending")
            ]))  # fmt: skip
            return
        left: pa.Table | None = None
        for table in tables:
            both = table if left is None else pa.concat_tables([left, table])
            numbers = both.column(ROW).to_numpy()
            # The last record may go on in the next row group.
            end = int(numbers.searchsorted(numbers[-1])) if len(numbers) else 0
            left = both.slice(end)
            if end:
                yield both.slice(0, end)
        if left is not None and left.num_rows:
            yield left

    def _of_file(self, file: SourceFile, position: int) -> Iterator[pa.Table]:
        compacted = self._question.sources.compacted
        with naming(Path(file.path)), pq.ParquetFile(file.path) as opened:
            schema = opened.schema_arrow
            names = [ROW, TIME, *(
                kept(name) for name, kind in self._columns.items()
                if kept(name) in schema.names and schema.field(kept(name)).type == arrow_type(kind)
            )]  # fmt: skip
            place = schema.get_field_index(ROW)
            for group in range(opened.num_row_groups):
                self._check()
                bounds = opened.metadata.row_group(group).column(place).statistics
                if bounds.max > position and bounds.min < compacted:
                    table = opened.read_row_group(group, columns=list(dict.fromkeys(names)))
                    rows = table.column(ROW)
                    yield table.filter(pc.and_(pc.greater(rows, position), pc.less(rows, compacted)))

    def _recent(self, table: pa.Table) -> Iterator[SourceRows]:
        """Those of the span, as the stream's batches have them."""
        since = pa.scalar(self._question.sources.since_us, pa.int64()).cast(MOMENT)
        table = table.filter(pc.greater_equal(table.column(TIME), since))
        if table.num_rows:
            columns = {
                name: table.column(kept(name)) for name in self._columns if kept(name) in table.column_names
            }
            columns[plans.TIME] = table.column(TIME)
            flat = {name: pa.concat_arrays(column.chunks) for name, column in columns.items()}
            yield SourceRows(table.column(ROW).to_numpy(), flat)

    def _check(self) -> None:
        if self._ends():
            raise duckdb.InterruptException("its answer is not waited for any longer")


def _apart(files: Sequence[SourceFile]) -> Iterator[list[SourceFile]]:
    """Files in the order of their rows; together are those whose rows lie between each other's."""
    found: list[SourceFile] = []
    for file in sorted(files, key=lambda one: (one.first, one.path)):
        if found and file.first > max(other.last for other in found):
            yield found
            found = []
        found.append(file)
    if found:
        yield found


def _joined(plan: SourcePlan, parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    table = pa.Table.from_batches(parts, schema_of(plan)).combine_chunks()
    batches = table.to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=schema_of(plan))

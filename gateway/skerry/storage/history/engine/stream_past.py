"""The past of one stream that is no motes': of the files of its table the row groups and columns that matter, and what the log has behind
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skerry.execution.source_rows import SourceRows
from skerry.planner.model import source_plans as plans
from skerry.sensors.evaluate import MOMENT, arrow_type
from skerry.sensors.readings import Readings
from skerry.storage.history.damaged_files import naming
from skerry.storage.history.engine.messages import SourceFile, Sources
from skerry.storage.history.source_layout import ROW, TIME, begins, kept, rows_of_log
from skerry.storage.log import stream_log

#: Records of the log read at a time.
_STEP = 8192


class StreamPast:
    """``columns``: with their types those of the stream's batches that are wanted; ``check``: raises what it likes when nobody waits any
    longer; ``readings``: of the tables that rows are joined with."""

    def __init__(
        self,
        sources: Sources,
        stream: int,
        columns: Mapping[str, str],
        check: Callable[[], None],
        readings: Readings | None = None,
    ) -> None:
        self._sources, self._stream, self._check, self._readings = sources, stream, check, readings
        # The rows' own time is read in any case.
        self._columns = {name: kind for name, kind in columns.items() if name != plans.TIME}
        begin = begins(stream)
        self._files = [file for file in sources.files if Path(file.path).parent.name.startswith(begin)]

    def rows(self, position: int) -> Iterator[SourceRows]:
        """Those behind a row of the log, in order; a record's are in one part."""
        sources = self._sources
        for files in _apart(self._files):
            if max(file.last for file in files) > position:
                for table in self._of_files(files, position):
                    yield from self._recent(table)
        log, begin = Path(sources.log), max(sources.compacted, position + 1)
        for at in range(begin, sources.end, _STEP):
            self._check()
            upto = min(at + _STEP, sources.end)
            records = stream_log.read(log, at, upto)
            found = rows_of_log(log, np.arange(at, at + len(records), dtype=np.int64), records, self._stream)
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
        compacted = self._sources.compacted
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
        since = pa.scalar(self._sources.since_us, pa.int64()).cast(MOMENT)
        table = table.filter(pc.greater_equal(table.column(TIME), since))
        if table.num_rows:
            columns = {
                name: table.column(kept(name)) for name in self._columns if kept(name) in table.column_names
            }
            columns[plans.TIME] = table.column(TIME)
            flat = {name: pa.concat_arrays(column.chunks) for name, column in columns.items()}
            yield SourceRows(table.column(ROW).to_numpy(), flat, self._readings)


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

"""Rows of sources that are no motes, read out of the log: by stream, as columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from skerry.execution.range_index import Int64
from skerry.planner.model.table_lookups import Lookups
from skerry.sensors.looking_up import looked_up
from skerry.sensors.readings import Readings
from skerry.storage.log.record import Records
from skerry.storage.log.source_batches import SourceFiles

#: Rows that are joined with tables at a time: each may have many partners.
JOINED_ROWS = 4096


@dataclass(frozen=True, slots=True)
class SourceRows:
    """Rows of one stream in the order of the log; columns that a batch lacks, as they came later, are NULL. ``readings``: of the tables
    that they are joined with, where anybody may ask for that."""

    numbers: Int64
    columns: Mapping[str, pa.Array]
    readings: Readings | None = None

    def parts(self, rows: int) -> Iterator[SourceRows]:
        """The same in parts of so many rows, or of one record with more; one at least."""
        begin, count = 0, len(self.numbers)
        while not begin or begin < count:
            end = count
            if begin + rows < count:
                cut = self.numbers[begin + rows]
                end = int(self.numbers.searchsorted(cut))
                end = end if end > begin else int(self.numbers.searchsorted(cut, "right"))
            columns = {name: column.slice(begin, end - begin) for name, column in self.columns.items()}
            yield SourceRows(self.numbers[begin:end], columns, self.readings)
            if end == count:
                return
            begin = end

    def with_tables(self, lookups: Lookups | None) -> SourceRows:
        """Joined with these tables: each as often as it has partners."""
        if lookups is None:
            return self
        numbers, columns = looked_up(lookups, self.numbers, self.columns, self.readings)
        return SourceRows(numbers, columns, self.readings)


def read(files: SourceFiles, numbers: Int64, records: Records) -> dict[int, SourceRows]:
    """The rows of some records by their stream."""
    tables: dict[int, list[tuple[int, pa.Table]]] = {}
    for number, stream, table in files.tables(numbers, records):
        tables.setdefault(stream, []).append((number, table))
    found = {}
    for stream, parts in tables.items():
        counts = [table.num_rows for _, table in parts]
        whole = together([table for _, table in parts]).combine_chunks()
        columns = {name: _whole(whole.column(name)) for name in whole.column_names}
        numbers = np.repeat(np.array([number for number, _ in parts], np.int64), counts)
        found[stream] = SourceRows(numbers, columns, files.readings)
    return found


def together(batches: Sequence[pa.Table]) -> pa.Table:
    """Batches of one stream. A column that was dropped and came again with another type is another column: what was before it is NULL."""
    types = {field.name: field.type for batch in batches for field in batch.schema}
    kept = [
        batch.select([field.name for field in batch.schema if field.type == types[field.name]])
        for batch in batches
    ]
    return pa.concat_tables(kept, promote_options="default")


def _whole(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    return pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found

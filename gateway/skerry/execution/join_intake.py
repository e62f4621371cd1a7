"""Rows of the log → what the operators of window joins get: those of a group's sources, with the columns that its joins need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skerry.execution.join_motes import MoteRows
from skerry.execution.join_sets import JoinGroup
from skerry.execution.mined_rows import PLACES
from skerry.execution.range_index import Int64
from skerry.execution.source_rows import SourceRows, read
from skerry.execution.stream_rows import StreamRows
from skerry.planner.model import source_plans as plans
from skerry.storage.log.record import Records
from skerry.storage.log.source_batches import SourceFiles

#: By the log's stream.
Streams = Mapping[int, StreamRows]


def rows_of(files: SourceFiles, numbers: Int64, records: Records, streams: set[int]) -> Streams:
    """Those of some streams among some records."""
    wanted = np.isin(records["stream"], list(streams))
    return {stream: numbered(rows) for stream, rows in read(files, numbers[wanted], records[wanted]).items()}


def numbered(rows: SourceRows) -> StreamRows:
    """A stream's rows, each named by its batch's number and its place in that."""
    begins = np.searchsorted(rows.numbers, rows.numbers)
    places = np.arange(len(rows.numbers), dtype=np.int64) - begins
    return StreamRows((rows.numbers << PLACES) + places, rows.columns)


def tables_of(
    group: JoinGroup, streams: Streams, motes: Mapping[str, MoteRows], numbers: Int64, records: Records
) -> dict[str, pa.Table]:
    """A group's rows by its streams' names, as :class:`skerry.joins.intake.Intake` takes them; {}: there are none. ``motes``: by its
    streams of motes, which of the records are theirs."""
    found = {}
    for name, of_motes in motes.items():
        rows = of_motes.among(numbers, records) if len(records) else None
        if rows is not None:
            found[name] = StreamRows(rows[0] << PLACES, rows[1]).chosen(None, group.since << PLACES)
    for name, (number, chosen) in group.streams.items():
        if number in streams:
            found[name] = streams[number].chosen(chosen, group.since << PLACES)
    return {name: _table(group, name, rows) for name, rows in found.items() if len(rows)}


def _table(group: JoinGroup, name: str, rows: StreamRows) -> pa.Table:
    made = {
        "number": pa.array(rows.numbers),
        "time": rows.column(plans.TIME, pa.int64()),
        "source": rows.columns[plans.SOURCE],
    }
    fields = {field for need in group.group.needs.values() for field in need.fields}
    for field in group.group.schemas[name]:
        if field.name in fields:
            made[field.name] = rows.column(field.name, field.type)
    return pa.table(made)


def greatest(tables: Mapping[str, pa.Table]) -> dict[str, int]:
    """By stream the greatest time of a group's rows."""
    return {
        name: int(pc.max(table.column("time")).as_py()) for name, table in tables.items() if table.num_rows
    }


def whole_rows(pieces: list[tuple[int, Records]]) -> Iterator[tuple[Int64, Records]]:
    """Pieces of the log with the numbers of their records."""
    for first, records in pieces:
        yield np.arange(first, first + len(records), dtype=np.int64), records

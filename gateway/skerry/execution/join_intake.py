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
from skerry.planner.model import source_plans as plans
from skerry.sensors.evaluate import evaluate, passes
from skerry.sensors.join_conditions import calculated, type_of
from skerry.storage.log.record import Records
from skerry.storage.log.source_batches import SourceFiles

#: Rows by the log's stream: columns of batches, and the number of each row.
Streams = Mapping[int, tuple[Int64, Mapping[str, pa.Array]]]


def rows_of(files: SourceFiles, numbers: Int64, records: Records, streams: set[int]) -> Streams:
    """Those of some streams among some records."""
    wanted = np.isin(records["stream"], list(streams))
    return {stream: numbered(rows) for stream, rows in read(files, numbers[wanted], records[wanted]).items()}


def numbered(rows: SourceRows) -> tuple[Int64, Mapping[str, pa.Array]]:
    """A stream's rows, each named by its batch's number and its place in that."""
    begins = np.searchsorted(rows.numbers, rows.numbers)
    places = np.arange(len(rows.numbers), dtype=np.int64) - begins
    return (rows.numbers << PLACES) + places, rows.columns


def tables_of(
    group: JoinGroup, streams: Streams, motes: Mapping[str, MoteRows], numbers: Int64, records: Records
) -> dict[str, pa.Table]:
    """A group's rows by its streams' names, as :class:`skerry.joins.intake.Intake` takes them; {}: there are none. ``motes``: by its
    streams of motes, which of the records are theirs."""
    found = {}
    for name, of_motes in motes.items():
        rows = of_motes.among(numbers, records) if len(records) else None
        if rows is None:
            continue
        own, taken = rows
        mine = own >= group.since
        if mine.any():
            kept = {column: values.filter(pa.array(mine)) for column, values in taken.items()}
            found[name] = _table(group, name, own[mine] << PLACES, kept)
    for name, (number, chosen) in group.streams.items():
        if number not in streams:
            continue
        rows_numbers, columns = streams[number]
        mine = passes(chosen, columns, len(rows_numbers)).to_numpy(zero_copy_only=False)
        mine &= rows_numbers >= group.since << PLACES
        if not mine.any():
            continue
        places = pa.array(np.flatnonzero(mine))
        taken = {column: values.take(places) for column, values in columns.items()}
        found[name] = _table(group, name, rows_numbers[mine], taken)
    return found


def _table(group: JoinGroup, name: str, numbers: Int64, columns: Mapping[str, pa.Array]) -> pa.Table:
    made = {
        "number": pa.array(numbers),
        "time": columns[plans.TIME].cast(pa.int64()),
        "source": columns[plans.SOURCE],
    }
    fields = {field for need in group.group.needs.values() for field in need.fields}
    for field in group.group.schemas[name]:
        if field.name in fields:
            made[field.name] = _column(field.name, field.type, columns, len(numbers))
    return pa.table(made)


def _column(name: str, kind: pa.DataType, columns: Mapping[str, pa.Array], count: int) -> pa.Array:
    known = calculated(name)
    if known is None:
        found = columns.get(name)
        return pa.nulls(count, kind) if found is None or found.type != kind else found
    values = evaluate(known[1], columns, count)
    if pa.types.is_decimal(values.type) and not pa.types.is_decimal(kind):
        # By way of text, which is exact.
        values = values.cast(pa.string())
    elif kind == pa.string() and not pa.types.is_string(values.type):
        values = values.cast(type_of(plans.DECIMAL)).cast(pa.string())
    return values.cast(kind)


def greatest(tables: Mapping[str, pa.Table]) -> dict[str, int]:
    """By stream the greatest time of a group's rows."""
    return {
        name: int(pc.max(table.column("time")).as_py()) for name, table in tables.items() if table.num_rows
    }


def whole_rows(pieces: list[tuple[int, Records]]) -> Iterator[tuple[Int64, Records]]:
    """Pieces of the log with the numbers of their records."""
    for first, records in pieces:
        yield np.arange(first, first + len(records), dtype=np.int64), records

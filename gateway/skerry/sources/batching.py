"""Rows of several sources of one table → a batch for the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from skerry.planner.model import source_plans as plans
from skerry.sensors import values
from skerry.sensors.definitions import SensorTable
from skerry.sensors.evaluate import MOMENT, arrow_type
from skerry.sources.decoding import columns_of
from skerry.sources.messages import Brought
from skerry.sources.reading import Arrived, Reading
from skerry.storage.log.source_batches import POSITIONS, SourceBatch
from skerry.storage.log.source_positions import Position, to_text

#: Batches with more rows are packed.
_PACKED_ROWS = 256
#: Kinds of columns that have a least value and a greatest.
_ORDERED = pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_timestamp
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one source, where it goes on behind them, and which of its values is the last of them."""

    reading: Reading
    rows: list[Arrived]
    position: Position | None
    last: int


def batch_of(table: SensorTable, parts: Sequence[Part]) -> tuple[SourceBatch, Brought]:
    """Rows with the static values of their tuples: the columns of :mod:`skerry.planner.model.source_plans`; and what is counted of them."""
    stream = table.stream
    assert stream is not None
    rows = [row for part in parts for row in part.rows]
    own = [row.values for part in parts for row in part.rows]
    positions = {part.reading.number: part.position for part in parts if part.position is not None}
    arrays = {
        plans.SOURCE: pa.array([part.reading.number for part in parts for _ in part.rows], pa.int64()),
        plans.TIME: pa.array([row.time_us for row in rows], MOMENT),
        plans.ARRIVAL: pa.array([row.arrival_us for row in rows], MOMENT),
        **values.columns(table.columns, own),
    }
    fields = columns_of((row.fields for row in rows), len(stream.fields))
    for field, column in zip(stream.fields, fields, strict=True):
        arrays[f"{stream.name.lower()}.{field.name.lower()}"] = pa.array(column, arrow_type(field.full_type))
    made = pa.table(arrays)
    if positions:
        made = made.replace_schema_metadata({POSITIONS: to_text(positions)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(
        sink, made.schema, options=_OPTIONS if len(rows) > _PACKED_ROWS else None
    ) as writer:
        writer.write_table(made)
    brought = {
        part.reading.number: (
            len(part.rows),
            min(row.time_us for row in part.rows),
            max(row.time_us for row in part.rows),
        )
        for part in parts
    }
    batch = SourceBatch(
        table.stream_number,
        len(rows),
        max(row.time_us for row in rows),
        max(row.arrival_us for row in rows),
        bytes(sink.getvalue()),
        positions=positions,
    )
    del arrays[plans.SOURCE], arrays[plans.TIME], arrays[plans.ARRIVAL]
    return batch, Brought(table.number, brought, _columns(arrays))


def sifted(table: SensorTable, part: Part) -> tuple[Part, list[tuple[Arrived, str]]]:
    """A part without the rows that no batch can have, and these with the reason: as where a text has half of a pair of surrogates."""
    fitting, others = list[Arrived](), list[tuple[Arrived, str]]()
    for row in part.rows:
        try:
            batch_of(table, [replace(part, rows=[row])])
            fitting.append(row)
        except Exception as error:
            others.append((row, f"it cannot be stored, {' '.join(str(error).split())}"))
    return replace(part, rows=fitting), others


def end_of(stream: int, query: int, at_us: int) -> SourceBatch:
    """That all sources of a query have ended, as a batch without rows of the stream that it is of."""
    made = pa.table({plans.TIME: pa.array([], MOMENT)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, made.schema) as writer:
        writer.write_table(made)
    return SourceBatch(stream, 0, 0, at_us, bytes(sink.getvalue()), ends=query)


def _columns(arrays: Mapping[str, pa.Array]) -> dict[str, tuple[int, Any, Any]]:
    """Of each the bytes, and the least and the greatest of its values."""
    return {name: (column.nbytes, *_bounds(column)) for name, column in arrays.items()}


def _bounds(column: pa.Array) -> tuple[Any, Any]:
    if not any(test(column.type) for test in _ORDERED):
        return None, None
    found = pc.min_max(column)
    if pa.types.is_timestamp(column.type):
        found = pc.min_max(column.cast(pa.timestamp("us", "UTC")))
    least, greatest = found["min"].as_py(), found["max"].as_py()
    return (None, None) if least is None else (least, greatest)

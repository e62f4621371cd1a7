"""Blocks: how what executors have matched travels through Spark, and lies in files (:mod:`skerry.storage.block_files`). Knows nothing of
Spark itself, as the gateway's process does not load it.

Each block is what a partition of a batch gave of one stream: Spark moves rows one by one, at a cost for every column, so that columns of
many rows are one value. The first block of a partition says what there was to match, and may have nothing of any stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from skerry.execution.block_columns import COLUMNS
from skerry.execution.joined import Joined
from skerry.execution.matched import HIT, Matched, MatchedBatch
from skerry.execution.partial_panes import CELL, MOTE, STEP, PartialPanes, groups_of_array, groups_to_array
from skerry.storage.log.record import Int64

_SCHEMA = pa.schema(list(COLUMNS.items()))
_ROW = "row"
_PANES = ["facts", "steps", "cells", "motes", "groups", "states"]
_INTEGERS = np.dtype(np.int64)
_KINDS: list[np.dtype[Any]] = [_INTEGERS, STEP, CELL, MOTE, _INTEGERS, _INTEGERS]
#: How the rows' columns are packed: most are all alike.
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


@dataclass(frozen=True, slots=True)
class Extent:
    """What a partition of a batch had: see :data:`COLUMNS`."""

    first: int
    end: int
    whole: int
    part: int
    count: int
    version: int


def blocks_of(
    extent: Extent, streams: Int64, parts: list[Matched], folded: list[tuple[int, PartialPanes]]
) -> Iterator[pa.RecordBatch]:
    """A partition's blocks, of the rows of these streams: what :meth:`skerry.execution.users_index.UsersIndex.match` gave."""
    known: dict[str, Any] = {
        "first": extent.first, "end": extent.end, "whole": extent.whole, "part": extent.part, "count": extent.count,
        "version": extent.version, "streams": streams.astype(np.int64).tobytes(),
    }  # fmt: skip
    yield pa.RecordBatch.from_pylist([known], schema=_SCHEMA)
    for part in parts:
        of_rows = pa.RecordBatch.from_arrays(
            [pa.array(part.numbers), *part.batch.columns], [_ROW, *part.batch.schema.names]
        )
        found = {
            "stream": part.stream, "rows": to_bytes(pa.Table.from_batches([of_rows]), _OPTIONS),
            "places": part.places.astype(np.int32).tobytes(), "hits": part.hits.tobytes(), "joined": None,
        }  # fmt: skip
        if part.joined:
            found["joined"] = to_bytes(pa.Table.from_batches([part.joined.to_batch()]), _OPTIONS)
        yield pa.RecordBatch.from_pylist([known | {"count": None} | found], schema=_SCHEMA)
    for entry, panes in folded:
        found = {"count": None, "windows": entry, "panes": to_bytes(_packed(panes), _OPTIONS)}
        yield pa.RecordBatch.from_pylist([known | found], schema=_SCHEMA)


def batch_of(table: pa.Table) -> MatchedBatch | None:
    """A batch of the stream; None: it has no rows. Raises ValueError if some of them are not there, or come twice."""
    blocks = table.to_batches()
    if not table.num_rows:
        return None
    extents = table.filter(table.column("count").is_valid()).select(
        ["first", "end", "whole", "part", "count", "version", "streams"]
    )
    first, end, whole = (extents.column(name)[0].as_py() for name in ("first", "end", "whole"))
    numbers, came = extents.column("part").to_pylist(), sum(extents.column("count").to_pylist())
    if came != whole or len({*numbers}) < len(numbers):
        raise ValueError(
            f"the batch that begins at row {first} is not whole: {came} of {whole} rows came, in parts {sorted(numbers)}"
        )
    streams = [np.frombuffer(found, np.int64).tolist() for found in extents.column("streams").to_pylist()]
    parts = [part for block in blocks for part in _parts(block)]
    parts.sort(key=lambda part: (part.stream, int(part.numbers[0])))
    # Of executors that could not see the same, what all have seen counts.
    version = min(extents.column("version").to_pylist())
    folded = tuple(known for block in blocks for known in _folded(block))
    return MatchedBatch(
        first, end, version, frozenset(n for found in streams for n in found), tuple(parts), folded
    )


def rows_of(table: pa.Table) -> tuple[int, int]:
    """Which rows of the log a batch is of, that has any: the first, and the one behind the last."""
    return table.column("first")[0].as_py(), table.column("end")[0].as_py()


def _parts(block: pa.RecordBatch) -> Iterator[Matched]:
    for i in range(block.num_rows):
        stream = block.column("stream")[i].as_py()
        if stream is None:
            continue
        rows, places, hits = (block.column(name)[i].as_buffer() for name in ("rows", "places", "hits"))
        joined = block.column("joined")[i].as_buffer()
        [batch] = from_bytes(rows).combine_chunks().to_batches()
        numbers = batch.column(_ROW).to_numpy(zero_copy_only=False)
        columns = pa.RecordBatch.from_arrays(batch.columns[1:], batch.schema.names[1:])
        yield Matched(
            stream,
            numbers,
            columns,
            np.frombuffer(places, np.int32),
            np.frombuffer(hits, HIT),
            Joined.of([]) if joined is None else Joined.from_batch(from_bytes(joined).to_batches()[0]),
        )


def _folded(block: pa.RecordBatch) -> Iterator[tuple[int, PartialPanes]]:
    for i in range(block.num_rows):
        entry = block.column("windows")[i].as_py()
        if entry is not None:
            yield entry, _unpacked(from_bytes(block.column("panes")[i].as_buffer()))


def _packed(panes: PartialPanes) -> pa.Table:
    states = np.concatenate([np.empty(0, np.int64), *panes.states])
    facts = np.array([panes.last, panes.least_ms, len(panes.groups), len(panes.states)], np.int64)
    arrays = (facts, panes.steps, panes.cells, panes.motes, groups_to_array(panes.groups), states)
    return pa.table([pa.array([array.tobytes()], pa.binary()) for array in arrays], _PANES)


def _unpacked(table: pa.Table) -> PartialPanes:
    arrays = [
        np.frombuffer(column.chunk(0)[0].as_buffer(), kind)
        for column, kind in zip(table.columns, _KINDS, strict=True)
    ]
    facts, steps, cells, motes, groups, states = arrays
    last, least_ms, count, width = facts.tolist()
    columns = tuple(states.reshape(width, len(cells)))
    return PartialPanes(steps, cells, columns, motes, groups_of_array(groups, count), last, least_ms)


def to_bytes(table: pa.Table, options: pa.ipc.IpcWriteOptions | None = None) -> bytes:
    """A table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def from_bytes(data: bytes | pa.Buffer) -> pa.Table:
    """The table of an Arrow IPC stream."""
    return pa.ipc.open_stream(data).read_all()

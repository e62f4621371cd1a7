"""Rows of the log as the batches that :mod:`skerry.plan.residual` evaluates."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skerry.streams.ingest import Stream

Int64 = npt.NDArray[np.int64]


def stream_batch(table: pa.Table | pa.RecordBatch, stream: Stream) -> pa.RecordBatch:
    """Rows of one stream, all of it, with the columns that :mod:`skerry.plan.model` describes."""
    nulls = column(table, "nulls")
    names, arrays = ["epoch"], [pa.array(column(table, "epoch"))]
    if stream.mote_query.aggregate:
        names.append("motes")
        arrays.append(pa.array(column(table, "motes")))
    else:
        names.append("nodeid")
        arrays.append(pa.array(column(table, "node")))
    taken = set(names)
    for i, definition in enumerate(stream.mote_query.columns):
        value = pa.array(column(table, f"value{i}"), mask=(nulls >> i & 1).astype(bool))
        if stream.mote_query.aggregate:
            names += [f"count_{i}", f"value_{i}"]
            arrays += [pa.array(column(table, f"count{i}")), value]
        elif definition.name not in taken:
            names.append(definition.name)
            arrays.append(value)
    return pa.RecordBatch.from_arrays(arrays, names)


def column(table: pa.Table | pa.RecordBatch, name: str) -> Int64:
    """A column as int64."""
    return np.asarray(table.column(name).to_numpy(), dtype=np.int64)

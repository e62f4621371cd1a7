"""Records of the log as the batches that :mod:`skerry.execution.residual` evaluates."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skerry.storage.log.record import Records
from skerry.streams.stream import Stream

Int64 = npt.NDArray[np.int64]


def stream_batch(records: Records, stream: Stream) -> pa.RecordBatch:
    """Rows of one stream, all of it, with the columns that :mod:`skerry.planner.model.plans` describes."""
    nulls = _wide(records["nulls"])
    values, counts = records["value"], records["count"]
    names = ["epoch", "utc_ms"]
    arrays = [pa.array(_wide(records["epoch"])), pa.array(_wide(records["sample"]) // 1000)]
    if stream.mote_query.aggregate:
        facts = ("motes", "kind", "wait", "revision")
        names += facts
        arrays += [pa.array(_wide(records[fact])) for fact in facts]
    else:
        names += ["nodeid", "combined", "left_out", "via"]
        # Rows that an older gateway stored say 0, and were never combined.
        combined = np.maximum(_wide(records["motes"]), 1)
        via = np.full(len(records), stream.root, np.int64)
        columns = _wide(records["node"]), combined, _wide(records["revision"]), via
        arrays += [pa.array(column) for column in columns]
    taken = set(names)
    for i, definition in enumerate(stream.mote_query.columns):
        missing = (nulls >> i & 1).astype(bool)
        value = pa.array(_wide(values[:, i]), mask=missing if missing.any() else None)
        if stream.mote_query.aggregate:
            names += [f"count_{i}", f"value_{i}"]
            arrays += [pa.array(_wide(counts[:, i])), value]
        elif definition.name not in taken:
            names.append(definition.name)
            arrays.append(value)
    return pa.RecordBatch.from_arrays(arrays, names)


def _wide(column: npt.NDArray[np.generic]) -> Int64:
    """A field of the records as int64, contiguous, of its own memory."""
    return column.astype(np.int64)

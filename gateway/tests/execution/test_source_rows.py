"""Rows of sources as columns, where a table has changed between them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from skerry.execution.source_rows import read
from skerry.planner.model.source_plans import INT, TEXT, Term
from skerry.sensors.evaluate import evaluate
from skerry.storage.log.source_batches import SourceBatch, SourceWriter

STREAM = (1 << 31) + 7


def batch(**columns: pa.Array) -> SourceBatch:
    table, sink = pa.table(columns), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return SourceBatch(STREAM, table.num_rows, 0, 0, sink.getvalue().to_pybytes())


def test_a_column_that_came_again_with_another_type_is_another_column(tmp_path: Path) -> None:
    """DROP and ADD between two batches that are read at once: neither the one query nor the other stops for all."""
    writer = SourceWriter(tmp_path)
    records = writer.write(
        [
            batch(level=pa.array(["high", "low"]), gas=pa.array(["CO", None])),
            batch(level=pa.array([3], pa.int64()), gas=pa.array(["NO"])),
            batch(gas=pa.array(["O3"])),
        ],
        0,
    )
    rows = read(writer.files, np.arange(3, dtype=np.int64), records)[STREAM]
    assert rows.numbers.tolist() == [0, 0, 1, 2]
    assert rows.columns["level"].to_pylist() == [None, None, 3, None]
    assert rows.columns["gas"].to_pylist() == ["CO", None, "NO", "O3"]
    # Who asked for the former column has NULL from then on.
    found = {
        kind: evaluate(Term("column", kind, (), "level"), rows.columns, 4).to_pylist() for kind in (INT, TEXT)
    }
    assert found == {INT: [None, None, 3, None], TEXT: [None] * 4}

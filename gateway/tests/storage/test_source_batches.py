"""Batches of sources in the log: in one order with motes' rows, over crashes, damage and retention."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from skerry.execution.blocks import to_bytes
from skerry.storage.log import source_batches, stream_log
from skerry.storage.log.record import RECORD, Block
from skerry.storage.log.source_batches import SourceBatch, SourceFiles, rows_of
from skerry.storage.log.stream_log import StreamLog

STREAM = 1 << 31


def batch(*values: int) -> SourceBatch:
    return SourceBatch(STREAM + 1, len(values), max(values), 5, to_bytes(pa.table({"value": list(values)})))


def found(log: StreamLog, first: int = 0) -> list[tuple[int, list[int]]]:
    """Record numbers with the values of their batches."""
    first, records = stream_log.read_there(log.path, first, log.rows)
    numbers = np.arange(first, first + len(records), dtype=np.int64)
    return [
        (number, table.column("value").to_pylist())
        for number, _, table in SourceFiles(log.path).tables(numbers, records)
    ]


def mote() -> np.ndarray:
    record = np.zeros(1, RECORD)
    record["stream"] = 1
    return record


def test_one_order_with_rows_of_motes_over_a_restart_and_torn_bytes(tmp_path: Path) -> None:
    log = StreamLog(tmp_path)
    log.append(mote())
    assert log.append_sources([batch(1, 2), batch(3)]) == 1
    log.append(mote())
    log.close()
    # What a crash leaves of rows whose record was not written.
    [file] = SourceFiles(log.path).begins()
    with SourceFiles(log.path).file(file).open("ab") as torn:
        torn.write(b"torn")
    log = StreamLog(tmp_path)
    assert log.append_sources([batch(4)]) == 4
    assert found(log) == [(1, [1, 2]), (2, [3]), (4, [4])]
    records = stream_log.read(log.path, 0, log.rows)
    assert rows_of(records).tolist() == [1, 2, 1, 1, 1]
    assert [number for number, _, _ in Block(0, records).streams()] == [1], (
        "motes' work knows of no other streams"
    )
    log.close()


def test_a_batch_that_the_disk_has_changed_hides_no_other(tmp_path: Path) -> None:
    log = StreamLog(tmp_path)
    log.append_sources([batch(1), batch(2), batch(3)])
    [file] = SourceFiles(log.path).begins()
    path = SourceFiles(log.path).file(file)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert found(log) == [(0, [1]), (2, [3])]
    log.close()


def test_files_go_with_the_records_that_they_are_of(tmp_path: Path, monkeypatch: object) -> None:
    monkeypatch.setattr(source_batches, "FILE_BYTES", 1)  # type: ignore[attr-defined]
    log = StreamLog(tmp_path, segment_rows=2)
    for value in range(7):
        log.append_sources([batch(value)])
    assert SourceFiles(log.path).begins() == list(range(7))
    assert log.drop_before(5) > 0
    assert (log.first, SourceFiles(log.path).begins()) == (4, [4, 5, 6])
    assert found(log) == [(4, [4]), (5, [5]), (6, [6])]
    log.close()

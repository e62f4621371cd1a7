"""The stream log on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from skerry.streams.log import StreamLog, length, read
from skerry.streams.record import RECORD
from skerry.streams.source import COLUMNS, LogPartition, LogReader, batch_of


def records(first: int, count: int) -> np.ndarray:  # type: ignore[type-arg]
    made = np.zeros(count, RECORD)
    made["epoch"] = np.arange(first, first + count)
    made["value"][:, 0] = made["epoch"] * 3
    made["count"][:, 1] = 2
    return made


def test_rows_are_numbered_by_their_place(tmp_path: Path) -> None:
    log = StreamLog(tmp_path)
    assert log.append(records(0, 5)) == 0
    assert log.append(records(5, 3)) == 5
    assert log.rows == length(log.path) == 8
    assert read(log.path, 4, 7)["epoch"].tolist() == [4, 5, 6]


def test_a_torn_tail_is_cut_off(tmp_path: Path) -> None:
    log = StreamLog(tmp_path)
    log.append(records(0, 5))
    log.close()
    path = tmp_path / "rows.log"
    data = path.read_bytes()
    path.write_bytes(data[: -RECORD.itemsize] + data[-RECORD.itemsize : -30])
    again = StreamLog(tmp_path)
    assert again.rows == 4
    again.append(records(4, 1))
    assert read(path, 0, 9)["epoch"].tolist() == [0, 1, 2, 3, 4]


def test_a_record_of_garbage_at_the_end_is_cut_off(tmp_path: Path) -> None:
    log = StreamLog(tmp_path)
    log.append(records(0, 2))
    log.close()
    with (tmp_path / "rows.log").open("ab") as file:
        file.write(b"\x5a" * RECORD.itemsize)
    assert StreamLog(tmp_path).rows == 2


def test_reading_a_range_twice_gives_the_same(tmp_path: Path) -> None:
    log = StreamLog(tmp_path)
    log.append(records(0, 1000))
    reader = LogReader(str(log.path))
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    assert (start, end) == ({"row": 0}, {"row": 1000})
    [partition] = reader.partitions(start, end)
    assert isinstance(partition, LogPartition)
    once, twice = list(reader.read(partition)), list(reader.read(partition))
    assert once == twice
    assert once[0].column("row").to_pylist() == list(range(1000))
    assert once[0].column("value0").to_pylist() == [3 * i for i in range(1000)]


def test_a_large_range_is_shared_by_two_workers(tmp_path: Path) -> None:
    reader = LogReader(str(tmp_path / "rows.log"))
    parts = reader.partitions({"row": 10}, {"row": 200_010})
    assert [(p.start, p.end) for p in parts if isinstance(p, LogPartition)] == [
        (10, 100_010),
        (100_010, 200_010),
    ]


def test_batches_have_all_columns() -> None:
    assert batch_of(records(0, 3), 7).schema.names == list(COLUMNS)

"""The stream log on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.state import DataError
from skerry.streams.log import RowsGoneError, StreamLog, length, read, segment, segments
from skerry.streams.record import RECORD, Block
from skerry.streams.source import BLOCK, LogPartition, LogReader, UnreadableError, block_of


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
    path = segment(log.path, 0)
    data = path.read_bytes()
    path.write_bytes(data[: -RECORD.itemsize] + data[-RECORD.itemsize : -30])
    again = StreamLog(tmp_path)
    assert again.rows == 4
    again.append(records(4, 1))
    assert read(log.path, 0, 9)["epoch"].tolist() == [0, 1, 2, 3, 4]


def test_a_record_of_garbage_at_the_end_is_cut_off(tmp_path: Path) -> None:
    log = StreamLog(tmp_path)
    log.append(records(0, 2))
    log.close()
    with segment(log.path, 0).open("ab") as file:
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
    block = block_of(pa.Table.from_batches(once))
    assert (block.first, block.end) == (0, 1000)
    assert block.records["value"][:, 0].tolist() == [3 * i for i in range(1000)]


def test_a_large_range_is_shared_by_two_workers(tmp_path: Path) -> None:
    reader = LogReader(str(tmp_path / "log"))
    parts = reader.partitions({"row": 10}, {"row": 200_010})
    assert [(p.start, p.end) for p in parts if isinstance(p, LogPartition)] == [
        (10, 100_010),
        (100_010, 200_010),
    ]


def test_blocks_come_together_in_order(tmp_path: Path) -> None:
    log = StreamLog(tmp_path)
    log.append(records(0, 2 * BLOCK + 10))
    reader = LogReader(str(log.path))
    batches = list(reader.read(LogPartition(5, log.rows)))
    assert [batch.num_rows for batch in batches] == [1, 1, 1]
    block = block_of(pa.Table.from_batches(batches[::-1]))
    assert (block.first, block.end) == (5, log.rows)
    assert block.records["epoch"].tolist() == list(range(5, log.rows))


def test_a_batch_with_a_gap_or_a_repetition_is_refused(tmp_path: Path) -> None:
    log = StreamLog(tmp_path)
    log.append(records(0, 3 * BLOCK))
    first, second, third = LogReader(str(log.path)).read(LogPartition(0, log.rows))
    for parts in ([first, third], [first, first, second]):
        with pytest.raises(ValueError, match="row 0 is not whole"):
            block_of(pa.Table.from_batches(parts))


def test_a_worker_that_sees_fewer_rows_than_were_planned_fails(tmp_path: Path) -> None:
    log = StreamLog(tmp_path)
    log.append(records(0, 10))
    with pytest.raises(UnreadableError, match=r"rows 10 to 14 of .* same path"):
        list(LogReader(str(log.path)).read(LogPartition(5, 15)))
    with pytest.raises(UnreadableError, match="rows 5 to 14"):
        list(LogReader(str(tmp_path / "elsewhere")).read(LogPartition(5, 15)))


def test_a_block_behind_a_row_and_by_stream() -> None:
    made = records(0, 10)
    made["stream"] = [1, 2] * 5
    block = Block(100, made)
    assert block.behind(100) is block
    assert [(n, rows.tolist()) for n, rows, _ in block.behind(104).streams()] == [
        (1, [104, 106, 108]),
        (2, [105, 107, 109]),
    ]
    assert block.behind(200).streams() == []


@settings(max_examples=50)
@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=30),
    segment_rows=st.integers(1, 20),
    ranges=st.lists(st.tuples(st.integers(0, 280), st.integers(0, 280)), max_size=20),
    reopen=st.sets(st.integers(0, 29)),
    drop=st.integers(0, 300),
)
def test_a_log_cut_into_segments_reads_as_one(
    tmp_path_factory: pytest.TempPathFactory,
    sizes: list[int],
    segment_rows: int,
    ranges: list[tuple[int, int]],
    reopen: set[int],
    drop: int,
) -> None:
    data = tmp_path_factory.mktemp("data")
    log = StreamLog(data, segment_rows)
    for i, size in enumerate(sizes):
        if i in reopen:
            log.close()
            log = StreamLog(data, segment_rows)
        assert log.append(records(log.rows, size)) == sum(sizes[:i])
    total = sum(sizes)
    assert log.rows == length(log.path) == total
    assert len(segments(log.path)) <= 1 + total // segment_rows
    before = log.first
    log.drop_before(drop)
    first = log.first
    assert before == 0 <= first <= min(drop, total)
    for start, end in ranges:
        if start < first and end > start:
            with pytest.raises(RowsGoneError, match=f"begins at row {first}"):
                read(log.path, start, end)
        else:
            assert read(log.path, start, end)["epoch"].tolist() == list(range(start, min(end, total)))
    assert log.tail(10)["epoch"].tolist() == list(range(max(first, total - 10), total))
    log.close()
    again = StreamLog(data, segment_rows)
    assert (again.first, again.rows) == (first, total)


def test_dropping_keeps_the_segment_that_grows(tmp_path: Path) -> None:
    log = StreamLog(tmp_path, 4)
    log.append(records(0, 4))
    log.append(records(4, 2))
    assert log.drop_before(6) == 4 * RECORD.itemsize
    assert (log.first, log.rows) == (4, 6)
    log.append(records(6, 1))
    assert LogReader(str(log.path)).initialOffset() == {"row": 4}


def test_spark_goes_on_where_the_log_begins(tmp_path: Path) -> None:
    log = StreamLog(tmp_path, 4)
    for first in range(0, 12, 4):
        log.append(records(first, 4))
    log.drop_before(8)
    reader = LogReader(str(log.path))
    for end, rows in ((10, 2), (8, 0), (5, 0)):
        parts = reader.partitions({"row": 2}, {"row": end})
        found = [row for part in parts for batch in reader.read(part) for row in batch.column("records")]
        assert sum(len(row.as_py()) for row in found) == rows * RECORD.itemsize


def test_a_segment_that_a_crash_left_empty_is_filled(tmp_path: Path) -> None:
    log = StreamLog(tmp_path, 4)
    log.append(records(0, 4))
    log.close()
    segment(log.path, 4).touch()
    again = StreamLog(tmp_path, 4)
    assert again.rows == length(log.path) == 4
    assert again.append(records(4, 1)) == 4
    assert segments(log.path) == [0, 4]


def test_a_log_of_another_layout_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.log").touch()
    with pytest.raises(DataError, match="older skerry"):
        StreamLog(tmp_path)

"""The stream log on disk."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.tests.logs import STREAMS, plan_of
from skerry.execution.blocks import batch_of
from skerry.execution.filters import Filter
from skerry.execution.matched import MatchedBatch
from skerry.execution.matching import View
from skerry.planner.model.plans import Feed
from skerry.spark.index_file import IndexFile
from skerry.spark.log_source import SHARED, LogPartition, LogReader
from skerry.spark.unreadable import UnreadableError
from skerry.storage.log.record import RECORD, Block, Records, seal
from skerry.storage.log.segments import Segments
from skerry.storage.log.stream_log import RowsGoneError, StreamLog, length, read

EVERYTHING = View.of(
    Filter.of(plan_of("SELECT nodeid FROM sensors SAMPLE PERIOD 5 s")), Feed("u", 1, 5000, 5000, 0)
)


def records(first: int, count: int) -> Records:
    made = np.zeros(count, RECORD)
    made["epoch"] = np.arange(first, first + count)
    made["value"][:, 0] = made["epoch"] * 3
    made["count"][:, 1] = 2
    return made


def reader_of(log: StreamLog, streams: Sequence[int] = (1,)) -> LogReader:
    """Of somebody who wants all rows of these streams."""
    index, changes = IndexFile(log.path.parent), []
    for number in streams:
        stream = replace(STREAMS[1], number=number)
        entry = [2 * number, "entry", number, EVERYTHING.to_list()]
        changes += [[2 * number - 1, "stream", stream.to_dict()], entry]
    index.append(changes, changes)
    index.close()
    return LogReader(str(log.path), str(index.path))


def matched(reader: LogReader, start: int, end: int) -> MatchedBatch | None:
    """A batch, whose partitions come in any order."""
    parts = reader.partitions({"row": start, "version": 0}, {"row": end, "version": 1000})
    blocks = [block for part in parts[::-1] for block in reader.read(part)]
    return batch_of(pa.Table.from_batches(blocks)) if blocks else None


def epochs(batch: MatchedBatch | None) -> dict[int, tuple[int, int]]:
    """Stream and epoch by row."""
    assert batch is not None
    return {
        row: (part.stream, epoch)
        for part in batch.parts
        for row, epoch in zip(part.numbers.tolist(), part.batch.column("epoch").to_pylist(), strict=True)
    }


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
    path = Segments(log.path).segment(0)
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
    with Segments(log.path).segment(0).open("ab") as file:
        file.write(b"\x5a" * RECORD.itemsize)
    assert StreamLog(tmp_path).rows == 2


@example(set(range(5)), 0, [])
@given(
    st.sets(st.integers(0, 19), min_size=1),
    st.integers(0, RECORD.itemsize - 1),
    st.lists(st.tuples(st.integers(0, 21), st.integers(0, 21)), max_size=10),
)
def test_rows_that_a_disk_has_changed_are_nobodys_and_hide_no_others(
    tmp_path_factory: pytest.TempPathFactory,
    changed: set[int],
    byte: int,
    ranges: list[tuple[int, int]],
) -> None:
    """Whichever byte of a record it is."""
    log = StreamLog(tmp_path_factory.mktemp("data"), 7)
    for first in range(0, 21, 3):
        mixed = records(first, 3)
        mixed["stream"] = [1, 1, 2]
        log.append(mixed)
    log.close()
    whole = read(log.path, 0, 21)
    segments = Segments(log.path)
    for begin in segments.begins():
        file = segments.segment(begin)
        data = bytearray(file.read_bytes())
        for place in range(len(data) // RECORD.itemsize):
            if begin + place in changed:
                data[place * RECORD.itemsize + byte] ^= 0x40
        file.write_bytes(data)
    assert length(log.path) == 21
    for start, end in [(0, 21), *ranges]:
        found = read(log.path, start, end)
        kept = [row not in changed for row in range(start, min(end, 21))]
        assert (found["stream"] > 0).tolist() == kept
        assert found[kept].tobytes() == whole[start:end][kept].tobytes()
    batch = matched(reader_of(log, (1, 2)), 0, 21)
    assert batch is not None
    assert (batch.first, batch.end) == (0, 21)
    assert epochs(batch) == {
        row: (int(whole[row]["stream"]), int(whole[row]["epoch"])) for row in range(21) if row not in changed
    }


def test_reading_a_range_twice_gives_the_same(tmp_path: Path) -> None:
    log = StreamLog(tmp_path)
    made = records(0, 1000)
    made["stream"] = 1
    log.append(made)
    reader = reader_of(log)
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    assert (start, end) == ({"row": 0, "version": 0}, {"row": 1000, "version": 2})
    assert reader.latestOffset(end, reader.getDefaultReadLimit()) == end
    [partition] = reader.partitions(start, end)
    assert isinstance(partition, LogPartition)
    once, twice = list(reader.read(partition)), list(reader.read(partition))
    assert once == twice
    batch = batch_of(pa.Table.from_batches(once))
    assert batch is not None
    assert (batch.first, batch.end, batch.version) == (0, 1000, 2)
    assert epochs(batch) == {row: (1, row) for row in range(1000)}
    first = STREAMS[1].mote_query.columns[0].name
    assert batch.parts[0].batch.column(first).to_pylist() == [3 * i for i in range(1000)]


def test_users_who_come_and_go_are_no_batch(tmp_path: Path) -> None:
    log = StreamLog(tmp_path)
    log.append(records(0, 10))
    reader = reader_of(log)
    done = {"row": 10, "version": 1}
    assert reader.latestOffset(done, reader.getDefaultReadLimit()) == done


def test_a_large_range_is_shared_by_two_workers(tmp_path: Path) -> None:
    log = StreamLog(tmp_path)
    made = records(0, 80_010)
    made["stream"] = 1
    log.append(made)
    reader = reader_of(log)
    parts = reader.partitions({"row": 10, "version": 0}, {"row": 80_010, "version": 2})
    assert [(p.start, p.end, p.count, p.whole) for p in parts if isinstance(p, LogPartition)] == [
        (10, 40_010, 40_000, 80_000),
        (40_010, 80_010, 40_000, 80_000),
    ]
    batch = matched(reader, 10, 80_010)
    assert batch is not None
    assert [int(part.numbers[0]) for part in batch.parts] == [10, 40_010]
    assert epochs(batch) == {row: (1, row) for row in range(10, 80_010)}


def test_a_batch_with_a_gap_or_a_repetition_is_refused(tmp_path: Path) -> None:
    log = StreamLog(tmp_path)
    log.append(records(0, 2 * SHARED))
    reader = reader_of(log)
    parts = reader.partitions({"row": 0, "version": 0}, {"row": log.rows, "version": 2})
    first, second = ([*reader.read(part)] for part in parts)
    for blocks in (first, [*first, *first], [*second, *second]):
        with pytest.raises(ValueError, match="row 0 is not whole"):
            batch_of(pa.Table.from_batches(blocks))
    assert batch_of(pa.Table.from_batches([*second, *first])) is not None


def test_a_worker_that_sees_fewer_rows_than_were_planned_fails(tmp_path: Path) -> None:
    log = StreamLog(tmp_path)
    log.append(records(0, 10))
    reader, ends = reader_of(log), ({"row": 5, "version": 0}, {"row": 10, "version": 2})
    [planned] = reader.partitions(*ends)
    file = Segments(log.path).segment(0)
    file.write_bytes(file.read_bytes()[: 8 * RECORD.itemsize])
    with pytest.raises(
        UnreadableError, match=r"of rows 5 to 9 5 are in .*, and 3 of them there .* same path"
    ):
        list(reader.read(planned))
    log.path.rename(tmp_path / "elsewhere")
    for away in reader.partitions(*ends):
        with pytest.raises(UnreadableError, match="and 0 of them there"):
            list(reader.read(away))


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
    assert len(Segments(log.path).begins()) <= 1 + total // segment_rows
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
    assert reader_of(log).initialOffset() == {"row": 4, "version": 0}


def test_spark_goes_on_where_the_log_begins(tmp_path: Path) -> None:
    log = StreamLog(tmp_path, 4)
    for first in range(0, 12, 4):
        log.append(records(first, 4))
    log.drop_before(8)
    reader = reader_of(log)
    batch = matched(reader, 2, 10)
    assert batch is not None
    assert (batch.first, batch.end) == (8, 10)
    assert [matched(reader, 2, end) for end in (8, 5)] == [None, None]


def test_a_segment_that_a_crash_left_empty_is_filled(tmp_path: Path) -> None:
    log = StreamLog(tmp_path, 4)
    log.append(records(0, 4))
    log.close()
    Segments(log.path).segment(4).touch()
    again = StreamLog(tmp_path, 4)
    assert again.rows == length(log.path) == 4
    assert again.append(records(4, 1)) == 4
    assert Segments(log.path).begins() == [0, 4]


@settings(max_examples=60, deadline=None)
@given(
    appended=st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=9), min_size=1, max_size=25),
    segment_rows=st.integers(1, 12),
    happening=st.dictionaries(
        st.integers(0, 24), st.sampled_from(["reopen", "torn", "drop", "full", "lost"])
    ),
    ranges=st.lists(st.tuples(st.integers(0, 230), st.integers(0, 230)), max_size=10),
)
def test_rows_of_several_roots_are_one_sequence(
    tmp_path_factory: pytest.TempPathFactory,
    appended: list[list[int]],
    segment_rows: int,
    happening: dict[int, str],
    ranges: list[tuple[int, int]],
) -> None:
    """Whatever befalls the log; rows that it has lost are nobody's."""
    data = tmp_path_factory.mktemp("data")
    log = StreamLog(data, segment_rows)
    #: Epoch and stream; of rows that are lost 0.
    expected: list[tuple[int, int]] = []
    for i, streams in enumerate(appended):
        match happening.get(i):
            case "reopen" | "torn" as what:
                log.close()
                if what == "torn" and expected:
                    with max(log.path.iterdir()).open("ab") as file:
                        file.write(seal(records(0, 1))[:50])
                log = StreamLog(data, segment_rows)
            case "drop":
                log.drop_before(len(expected) // 2)
            case "lost":
                log.go_on_at(len(expected) + 5)
                expected += [(0, 0)] * 5
            case "full":
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(os, "fdatasync", lambda _: _no_room())
                    with pytest.raises(OSError, match="no room"):
                        log.append(records(len(expected), len(streams)))
                assert log.rows == length(log.path) == len(expected)
        made = records(len(expected), len(streams))
        made["stream"] = streams
        assert log.append(made) == len(expected)
        expected += zip(made["epoch"].tolist(), streams, strict=True)
    assert log.rows == length(log.path) == len(expected)
    reader, first = reader_of(log, range(1, 5)), log.first
    for low, high in ranges:
        start, end = max(low, first), min(high, len(expected))
        if start >= end:
            continue
        stored = read(log.path, start, end)
        assert (
            list(zip(stored["epoch"].tolist(), stored["stream"].tolist(), strict=True)) == expected[start:end]
        )
        there = {
            row: (stream, epoch) for row, (epoch, stream) in enumerate(expected[start:end], start) if stream
        }
        batch = matched(reader, start, end)
        assert (batch is not None) == bool(there)
        if batch is not None:
            assert (batch.first, batch.end) == (start, end)
            assert epochs(batch) == there


def _no_room() -> None:
    raise OSError("no room")

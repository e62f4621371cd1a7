"""Blocks of the past's files: each mote's rows stand together in those that are complete, and no answer shows it."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

from gateway.tests.pasts import past_engine, plain_records, plan_of, rows_behind, shuffled, stream_of
from skerry.storage.history import compaction
from skerry.storage.history.answer import Answer
from skerry.storage.history.day_files import BLOCK_GROUPS
from skerry.storage.history.reader import Reader
from skerry.storage.history.store import History
from skerry.storage.log.stream_log import StreamLog
from skerry.streams.stream import Stream

QUESTIONS = (
    "SELECT nodeid, time, temp FROM sensors HISTORY 7 day ONLY WHERE nodeid = 3",
    "SELECT nodeid, epoch, temp FROM sensors HISTORY 7 day ONLY SAMPLE PERIOD 30 s",
    "SELECT nodeid, AVG(temp), MEDIAN(temp), COUNT(*) FROM sensors GROUP BY nodeid HISTORY 7 day ONLY",
    "SELECT time, nodeid, AVG(temp, 5 min), COUNT(*, 5 min) FROM sensors GROUP BY nodeid HISTORY 7 day ONLY SAMPLE PERIOD 1 s",
    "SELECT epoch, motes, MAX(temp, 1 h, 10 min), MIN(temp, 30 min) FROM sensors WHERE temp > 10 HISTORY 7 day ONLY SAMPLE PERIOD 5 s",
    "SELECT nodeid, temp FROM sensors ORDER BY temp LIMIT 50 HISTORY 7 day ONLY",
)  # fmt: skip
STREAMS: list[Stream] = [
    stream_of(1, "SELECT temp FROM sensors SAMPLE PERIOD 5 s", 0, 3_000_000),
    stream_of(2, "SELECT temp FROM sensors SAMPLE PERIOD 2 min", 3_000_001),
    stream_of(3, "SELECT temp FROM sensors SAMPLE PERIOD 7 s", session=2),
]


def past_of(directory: Path) -> tuple[StreamLog, History]:
    """Rows of two sessions, some of them late, by a few of them too late for windows; compacted in several passes."""
    log, history = StreamLog(directory), History(directory)
    epochs = (range(20, 320), range(30, 130), range(20, 220))
    parts = [
        plain_records(stream, of, range(1, 6), stream.number)
        for stream, of in zip(STREAMS, epochs, strict=True)
    ]
    records = shuffled(parts)
    places = np.arange(len(records))
    places[1500:1520] += 700
    log.append(records[np.argsort(places, kind="stable")])
    for upto in (700, 1900, log.rows - 50):
        history.compact(log.path, upto, STREAMS)
    return log, history


def answers(log: StreamLog, history: History) -> list[object]:
    found: list[object] = []
    for sql in QUESTIONS:
        plan = plan_of(sql)
        reader = Reader(history, log.path, STREAMS, plan.attributes, 0)
        answer, position, more = Answer(plan, reader, log.rows, past_engine()), -1, True
        while more:
            rows, position, more = rows_behind(answer, position)
            found += rows
    return found


def test_no_answer_shows_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = answers(*past_of(tmp_path / "whole"))
    assert len(whole) > 1500
    monkeypatch.setattr(compaction, "GROUP_ROWS", 10)
    log, history = past_of(tmp_path / "blocks")
    assert answers(log, history) == whole
    monkeypatch.setattr("skerry.storage.history.answer.PIECE_ROWS", 100)
    assert answers(log, history) == whole
    samples = Reader(history, log.path, STREAMS, plan_of(QUESTIONS[0]).attributes, 0).read(100, 900)
    assert np.all(np.diff(samples.numbers) > 0)


def test_one_motes_rows_are_in_few_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "GROUP_ROWS", 10)
    _, history = past_of(tmp_path)
    [name, *_] = sorted(history.manifest.of("sensors"))
    path = history.path / name
    rows = pq.read_table(path, columns=["row", "nodeid"])
    block = 10 * BLOCK_GROUPS
    complete = rows.num_rows // block * block
    assert complete > 5 * block
    numbers = rows.column("row").to_numpy()
    motes = rows.column("nodeid").to_numpy()
    for begin in range(0, complete, block):
        keys = list(zip(motes[begin : begin + block], numbers[begin : begin + block], strict=True))
        assert keys == sorted(keys)
        assert numbers[begin : begin + block].max() < numbers[begin + block :].min(initial=2**62)
    assert np.all(np.diff(numbers[complete:]) > 0)
    there = pq.ParquetFile(path).metadata
    place = there.schema.to_arrow_schema().get_field_index("nodeid")
    bounds = [there.row_group(i).column(place).statistics for i in range(there.num_row_groups)]
    having = sum(bound.min <= 3 <= bound.max for bound in bounds)
    assert having < there.num_row_groups / 2
    with duckdb.connect() as connection:
        counted = connection.execute(f"SELECT count(*) FROM '{path}' WHERE nodeid = 3").fetchall()
    assert counted == [(int(np.count_nonzero(motes == 3)),)]

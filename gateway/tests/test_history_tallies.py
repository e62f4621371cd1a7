"""What motes' queues did to rows, and the root that they came through, in the past: against DuckDB over the files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from gateway.tests.pasts import ORIGIN, ended, plain_records, plan_of, shuffled, stream_of
from skerry.history.answer import Answer
from skerry.history.reader import Reader
from skerry.history.store import History
from skerry.streams.log import StreamLog

NOW = ORIGIN + 700_000_000


@pytest.mark.parametrize("compacted", [0, 200, 480])
@pytest.mark.parametrize("condition", ["nodeid < 9", "left_out > 30000 OR combined = 1", "via = 100"])
def test_combined_left_out_and_via_are_kept(tmp_path: Path, compacted: int, condition: str) -> None:
    queue = "SELECT temp FROM sensors SAMPLE PERIOD 5 s QUEUE WINAVG"
    here, there = stream_of(1, queue), stream_of(2, queue, session=100 << 16 | 1)
    rng = np.random.default_rng(7)
    parts = [plain_records(stream, range(120), [1, 2], seed=stream.number) for stream in (here, there)]
    records = shuffled(parts)
    records["sample"] = ORIGIN + records["epoch"].astype(np.int64) * 5_000_000
    records["motes"] = rng.integers(0, 9, len(records))
    records["revision"] = rng.integers(0, 65536, len(records))
    log, history = StreamLog(tmp_path, 50, {1: 0, 2: 100}.__getitem__), History(tmp_path)
    for start in range(0, len(records), 40):
        log.append(records[start : start + 40].copy())
    history.compact(log.path, compacted, [here, there])
    plan = plan_of(
        f"SELECT nodeid, temp, combined, left_out, via FROM sensors WHERE {condition} HISTORY 1 day ONLY"
    )
    reader = Reader(history, log.path, [here, there], plan.attributes, ORIGIN)
    rows: list[Any] = []
    position, more = -1, True
    while more:
        found, position, more = Answer(plan, reader, log.rows).after(position)
        rows += [(number, *row.values()) for number, row in found]
    history.compact(log.path, log.rows, [here, there])
    expected = duckdb.sql(
        "WITH s AS (SELECT *, session >> 16 & 65535 AS via "
        f"FROM '{history.path}/sensors/*.parquet') SELECT row, nodeid, temp, combined, left_out, via FROM s WHERE {condition} ORDER BY row"
    ).fetchall()
    assert rows == expected
    assert len(rows) > 100
    stored = np.sort(records["revision"].astype(int))
    kept = duckdb.sql(f"SELECT left_out, combined FROM '{history.path}/sensors/*.parquet' ORDER BY left_out")
    assert [left for left, _ in kept.fetchall()] == stored.tolist()


def test_files_from_before_they_were_kept_say_null(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = ended(stream_of(1, "SELECT temp FROM sensors SAMPLE PERIOD 5 s"), 10_000_000)
    log, history = StreamLog(tmp_path), History(tmp_path)
    log.append(plain_records(stream, range(30), [1]))
    with monkeypatch.context() as before:
        before.setattr("skerry.history.layout.TALLIES", {})
        history.compact(log.path, 10, [stream])
    for compacted in (10, 20):
        history.compact(log.path, compacted, [stream])
        plan = plan_of("SELECT combined, left_out FROM sensors HISTORY 1 day ONLY")
        reader = Reader(history, log.path, [stream], plan.attributes, 0)
        rows, _, _ = Answer(plan, reader, 30).after(-1)
        assert [tuple(row.values()) for _, row in rows] == [(None, None)] * 10 + [(1, 0)] * 20

"""What motes' queues did to rows, and the root that they came through, in the past: against DuckDB over the files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from gateway.tests.pasts import (
    ORIGIN,
    ended,
    past_engine,
    plain_records,
    plan_of,
    rows_behind,
    shuffled,
    stream_of,
)
from skerry.planner.model.plans import QueryPlan
from skerry.storage.history.answer import Answer
from skerry.storage.history.reader import Reader
from skerry.storage.history.store import History
from skerry.storage.log.record import Records
from skerry.storage.log.stream_log import StreamLog
from skerry.streams.stream import Stream

NOW = ORIGIN + 700_000_000


class Kept:
    """Rows of two motes behind each of two roots, their tallies any; some in files. The rest goes there with :meth:`compact`."""

    def __init__(self, directory: Path, compacted: int) -> None:
        self.streams, self.records, self.log, self.history = _kept(directory)
        self.history.compact(self.log.path, compacted, self.streams)

    def reader(self, plan: QueryPlan) -> Reader:
        return Reader(self.history, self.log.path, self.streams, plan.attributes, ORIGIN)

    def compact(self) -> str:
        """Returns what DuckDB shall read."""
        self.history.compact(self.log.path, self.log.rows, self.streams)
        files = f"{self.history.path}/sensors/*.parquet"
        return f"(SELECT *, session >> 16 & 65535 AS via FROM '{files}')"


def _kept(directory: Path) -> tuple[list[Stream], Records, StreamLog, History]:
    queue = "SELECT temp FROM sensors SAMPLE PERIOD 5 s QUEUE WINAVG"
    here, there = stream_of(1, queue), stream_of(2, queue, session=100 << 16 | 1)
    rng = np.random.default_rng(7)
    parts = [plain_records(stream, range(120), [1, 2], seed=stream.number) for stream in (here, there)]
    records = shuffled(parts)
    records["sample"] = ORIGIN + records["epoch"].astype(np.int64) * 5_000_000
    records["motes"] = rng.integers(0, 9, len(records))
    records["revision"] = rng.integers(0, 65536, len(records))
    log, history = StreamLog(directory, 50), History(directory)
    for start in range(0, len(records), 40):
        log.append(records[start : start + 40].copy())
    return [here, there], records, log, history


@pytest.mark.parametrize("compacted", [0, 200, 480])
@pytest.mark.parametrize("condition", ["nodeid < 9", "left_out > 30000 OR combined = 1", "via = 100"])
def test_combined_left_out_and_via_are_kept(tmp_path: Path, compacted: int, condition: str) -> None:
    kept = Kept(tmp_path, compacted)
    plan = plan_of(
        f"SELECT nodeid, temp, combined, left_out, via FROM sensors WHERE {condition} HISTORY 1 day ONLY"
    )
    reader = kept.reader(plan)
    rows: list[Any] = []
    position, more = -1, True
    while more:
        found, position, more = rows_behind(Answer(plan, reader, kept.log.rows, past_engine()), position)
        rows += [(number, *row.values()) for number, row in found]
    source = kept.compact()
    expected = duckdb.sql(
        f"SELECT row, nodeid, temp, combined, left_out, via FROM {source} WHERE {condition} ORDER BY row"
    ).fetchall()
    assert rows == expected
    assert len(rows) > 100
    stored = np.sort(kept.records["revision"].astype(int))
    told = duckdb.sql(f"SELECT left_out, combined FROM {source} ORDER BY left_out")
    assert [left for left, _ in told.fetchall()] == stored.tolist()


@pytest.mark.parametrize("compacted", [0, 200, 480])
@pytest.mark.parametrize(
    ("select", "rest", "period_s"),
    [
        ("COUNT(*), SUM(left_out), MIN(combined), MAX(left_out)", "", None),
        ("COUNT(*), SUM(left_out)", "WHERE left_out > 30000 AND combined < 5", None),
        ("via, COUNT(*), SUM(left_out), MAX(combined)", "GROUP BY via", None),
        (
            "via, combined, COUNT(temp), COUNT(DISTINCT left_out), SUM(combined + left_out)",
            "GROUP BY via, combined",
            None,
        ),
        ("via, nodeid, COUNT(*)", "WHERE via = 100 GROUP BY via, nodeid", None),
        ("combined, COUNT(*)", "GROUP BY combined HAVING SUM(left_out) > 1500000", None),
        ("via, SUM(left_out), COUNT(*)", "GROUP BY via", 10),
        ("via, SUM(left_out, {0}), COUNT(*, {0})", "GROUP BY via", 60),
    ],
)
def test_aggregates_of_what_became_of_rows(
    tmp_path: Path, compacted: int, select: str, rest: str, period_s: int | None
) -> None:
    kept = Kept(tmp_path, compacted)
    windowed = "{0}" in select
    period = f"SAMPLE PERIOD {5 if windowed else period_s} s" if period_s else ""
    shown = f"epoch, {select.format('1 min')}" if windowed else select
    asked = f"SELECT {shown} FROM sensors {rest} HISTORY 1 day ONLY {period}"
    plan = plan_of(asked)
    answer = Answer(plan, kept.reader(plan), kept.log.rows, past_engine(), ORIGIN, by_utc=True)
    found, _, more = rows_behind(answer)
    assert not more
    # The first sample in each of the query's epochs, as the present has it.
    source = kept.compact()
    slot = f"epoch_us(time) // {(period_s or 1) * 1_000_000}"
    if period_s and not windowed:
        source = (
            f"(SELECT * FROM {source} QUALIFY row_number() OVER (PARTITION BY nodeid, via, network_ms // {period_s * 1000} "
            "ORDER BY network_ms) = 1)"
        )
    keys = f"{rest} {',' if 'GROUP' in rest else 'GROUP BY'} {slot}" if period_s else rest
    oracle = duckdb.sql(f"SELECT {select.replace(', {0}', '')} FROM {source} {keys}").fetchall()
    rows = [tuple(row.values()) for _, row in found]
    if windowed:
        # Late rows revise them; the last ones are not over yet.
        newest = {(epoch, via): (via, *rest) for epoch, via, *rest in rows}
        assert 0 <= len(oracle) - len(newest) <= 2
        assert not Counter(newest.values()) - Counter(oracle)
        return
    assert sorted(rows, key=repr) == sorted(oracle, key=repr)
    assert rows


def test_files_from_before_they_were_kept_say_null(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = ended(stream_of(1, "SELECT temp FROM sensors SAMPLE PERIOD 5 s"), 10_000_000)
    log, history = StreamLog(tmp_path), History(tmp_path)
    log.append(plain_records(stream, range(30), [1]))
    with monkeypatch.context() as before:
        before.setattr("skerry.storage.history.layout.TALLIES", {})
        history.compact(log.path, 10, [stream])
    for compacted in (10, 20):
        history.compact(log.path, compacted, [stream])
        plan = plan_of("SELECT combined, left_out FROM sensors HISTORY 1 day ONLY")
        reader = Reader(history, log.path, [stream], plan.attributes, 0)
        rows, _, _ = rows_behind(Answer(plan, reader, 30, past_engine()))
        assert [tuple(row.values()) for _, row in rows] == [(None, None)] * 10 + [(1, 0)] * 20
        counted = plan_of(
            "SELECT combined, COUNT(*), SUM(left_out) FROM sensors GROUP BY combined HISTORY 1 day ONLY"
        )
        reader = Reader(history, log.path, [stream], counted.attributes, 0)
        rows, _, _ = rows_behind(Answer(counted, reader, 30, past_engine()))
        assert [tuple(row.values()) for _, row in rows] == [(None, 10, None), (1, 20, 0)]

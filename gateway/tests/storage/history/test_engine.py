"""The past's engine: its process may die and take too much, and it reads what it needs."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from gateway.tests.pasts import ORIGIN, endless_past, plain_records, plan_of, rows_behind, stream_of
from gateway.tests.process import wait_for
from skerry.sql.errors import QueryError
from skerry.storage.history import compaction
from skerry.storage.history.answer import Answer
from skerry.storage.history.engine.engine import EngineError, PastEngine
from skerry.storage.history.engine.messages import Limits, Timing
from skerry.storage.history.engine.selects import Range, columns_needed, group_selects, rows_select
from skerry.storage.history.engine.sources import open_past, open_readings
from skerry.storage.history.engine.waiting import GivenUpError, Waiting
from skerry.storage.history.reader import Reader
from skerry.storage.history.store import History
from skerry.storage.log.stream_log import StreamLog
from skerry.streams.stream import Stream

Endless = Callable[[PastEngine], Answer]
COUNTED = "SELECT COUNT(*) AS n, SUM(temp) FROM sensors HISTORY 7 day ONLY"


class Kept:
    """Three days of one mote query, with a row group for each 100 rows."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(compaction, "GROUP_ROWS", 100)
        self.streams: list[Stream] = [
            stream_of(n, "SELECT temp FROM sensors SAMPLE PERIOD 5 s", session=n) for n in (1, 2, 3)
        ]
        self.log, self.history = StreamLog(directory), History(directory)
        for stream in self.streams:
            self.log.append(plain_records(stream, range(200, 700), [1, 2], seed=stream.number))
        self.history.compact(self.log.path, self.log.rows - 500, self.streams)

    def reader(self, sql: str, since_us: int = 0) -> Reader:
        return Reader(self.history, self.log.path, self.streams, plan_of(sql).attributes, since_us)

    def answered(self, sql: str, engine: PastEngine) -> list[tuple[int, dict[str, Any]]]:
        return rows_behind(Answer(plan_of(sql), self.reader(sql), self.log.rows, engine))[0]


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kept:
    return Kept(tmp_path / "data", monkeypatch)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[PastEngine]:
    found = PastEngine(tmp_path / "engine")
    yield found
    found.stop()


def test_it_runs_when_it_is_first_asked_until_it_is_stopped(kept: Kept, engine: PastEngine) -> None:
    assert engine.pid is None
    [(number, row)] = kept.answered(COUNTED, engine)
    assert (number, row["n"]) == (2999, 3000)
    pid = engine.pid
    assert pid is not None
    engine.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(EngineError, match="the gateway stops"):
        kept.answered(COUNTED, engine)


def test_who_asks_while_it_dies_is_answered_by_the_next_one(kept: Kept, engine: PastEngine) -> None:
    whole = kept.answered(COUNTED, engine)
    first = engine.pid
    assert first is not None
    # It does nothing until it is killed.
    os.kill(first, signal.SIGSTOP)
    found: list[Any] = []
    waiting = [
        threading.Thread(target=lambda: found.append(kept.answered(COUNTED, engine))) for _ in range(3)
    ]
    for thread in waiting:
        thread.start()
    os.kill(first, signal.SIGKILL)
    for thread in waiting:
        thread.join()
    assert found == [whole] * 3
    assert engine.pid not in (None, first)


def test_pieces_go_on_in_another_process(
    kept: Kept, engine: PastEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skerry.storage.history.answer.PIECE_ROWS", 300)
    for sql in (
        "SELECT nodeid, temp FROM sensors HISTORY 7 day ONLY WHERE temp > 20",
        "SELECT nodeid, epoch, temp FROM sensors HISTORY 7 day ONLY SAMPLE PERIOD 10 s",
    ):
        answer = Answer(plan_of(sql), kept.reader(sql), kept.log.rows, engine)
        pieces, position, more = [], -1, True
        while more:
            found, position, more = rows_behind(answer, position)
            assert len(found) <= 300
            pieces += found
            if len(pieces) == len(found):
                os.kill(engine.pid or 0, signal.SIGKILL)
        numbers = [number for number, _ in pieces]
        assert numbers == sorted(set(numbers))
        with monkeypatch.context() as patch:
            patch.setattr("skerry.storage.history.answer.PIECE_ROWS", 100_000)
            assert kept.answered(sql, engine) == pieces
        assert len(pieces) > 700


def test_one_that_dies_again_and_again_is_told(
    kept: Kept, engine: PastEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(EngineError, match="its engine ended twice while it answered: exit code 1"):
        kept.answered(COUNTED, engine)


def test_what_needs_more_than_it_may_take_is_told(kept: Kept, tmp_path: Path) -> None:
    narrow = PastEngine(tmp_path / "narrow", Limits(threads=1, memory=2**20, disk=0, seconds=60))
    needs = r"needs more than 1 MiB of memory and 0 MiB of temporary files, the most that questions about the past"
    with pytest.raises(QueryError, match=needs) as refused:
        kept.answered("SELECT nodeid, epoch, temp FROM sensors SAMPLE PERIOD 5 s HISTORY 7 day ONLY", narrow)
    assert refused.value.hint == "ask for a shorter HISTORY, for fewer rows with WHERE, or for fewer groups"
    narrow.stop()


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Endless:
    """A question whose answer takes minutes, of an engine."""
    data = tmp_path_factory.mktemp("endless")
    rows = endless_past(data).rows
    plan = plan_of(COUNTED)
    reader = Reader(History(data), data / "log", [], plan.attributes, 0)
    return partial(Answer, plan, reader, rows)


def test_an_answer_that_takes_too_long_is_told_so(endless: Endless, tmp_path: Path) -> None:
    hasty = PastEngine(tmp_path / "hasty", Limits(threads=1, memory=2**30, disk=0, seconds=0.25))
    with pytest.raises(
        QueryError, match=r"takes longer than 0\.25 s, the most that one about the past may take"
    ):
        endless(hasty).after(-1)
    assert hasty.answering == 0
    hasty.stop()


def test_what_nobody_waits_for_is_given_up(endless: Endless, engine: PastEngine, kept: Kept) -> None:
    """Of two who ask the same, one goes; then all of the answer is forgotten. Others are answered by the same process."""
    answer, first, second = endless(engine), Waiting(), Waiting()
    assert kept.answered(COUNTED, engine)
    pid = engine.pid
    with ThreadPoolExecutor() as pool:
        one, other = pool.submit(answer.after, -1, first), pool.submit(answer.after, -1, second)
        wait_for(lambda: engine.answering == 2)
        first.go()
        with pytest.raises(GivenUpError):
            one.result(60)
        assert engine.answering == 1
        assert kept.answered(COUNTED, engine)
        answer.forget()
        with pytest.raises(GivenUpError):
            other.result(60)
    assert (engine.answering, engine.pid) == (0, pid)
    with pytest.raises(GivenUpError):
        answer.after(-1, first)


def test_files_and_row_groups_without_its_rows_are_not_read(kept: Kept) -> None:
    """One of three days by its file; of that day's ten row groups those of some rows, and those with values that can be meant."""
    sql = "SELECT nodeid, temp FROM sensors HISTORY 7 day ONLY WHERE temp > 20.5"
    assert [Path(file.path).name for file in kept.reader(sql).sources(3000).files] == [
        "2026-11-20.parquet", "2026-11-21.parquet", "2026-11-22.parquet",
    ]  # fmt: skip
    sources = kept.reader(sql, ORIGIN + 2 * 86_400_000_000).sources(3000)
    assert [Path(file.path).name for file in sources.files] == ["2026-11-22.parquet"]
    plan = plan_of(sql)
    text = rows_select(plan, Range(2150, 2250), 3000, Timing()).sql("duckdb")
    assert scanned(sources, plan, text) == (2, 5)
    never = plan_of(sql.replace("20.5", "300"))
    assert scanned(sources, never, rows_select(never, Range(0, 3000), 3000, Timing()).sql("duckdb"))[0] == 0
    counted = plan_of("SELECT COUNT(*) FROM sensors WHERE temp < -50 HISTORY 7 day ONLY")
    text = group_selects(counted, 3000, Timing()).groups.sql("duckdb")
    assert scanned(sources, counted, text)[0] == 0


def scanned(sources: Any, plan: Any, text: str) -> tuple[int, int]:
    """How many row groups a question reads, and how many there are."""
    with duckdb.connect() as connection:
        open_past(connection, sources, columns_needed(plan))
        [(_, told)] = connection.execute(f"EXPLAIN (ANALYZE, FORMAT json) {text}").fetchall()
    scans = [node for node in operators(json.loads(told)["operator"]) if "row_groups_scanned" in node]
    return sum(s["row_groups_scanned"] for s in scans), sum(s["total_row_groups_to_scan"] for s in scans)


def operators(nodes: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for node in nodes:
        yield node
        yield from operators(node.get("children", []))


def test_first_readings_are_looked_for_only_where_an_epoch_may_have_two(
    tmp_path: Path, engine: PastEngine
) -> None:
    """A mote's samples lie farther apart in each file; one epoch has one at the end of a day, and one at the beginning of the next."""
    streams = [
        stream_of(1, "SELECT temp FROM sensors SAMPLE PERIOD 7 s", until_ms=599_999),
        stream_of(2, "SELECT temp FROM sensors SAMPLE PERIOD 10 s", since_ms=600_000),
        stream_of(3, "SELECT temp FROM sensors SAMPLE PERIOD 3 s", session=3),
    ]
    epochs = (range(1, 86), range(60, 160), range(10, 60))
    records = np.concatenate(
        [
            plain_records(stream, of, [1, 2], seed=stream.number)
            for stream, of in zip(streams, epochs, strict=True)
        ]
    )
    log, history = StreamLog(tmp_path / "data"), History(tmp_path / "data")
    log.append(records)
    history.compact(log.path, log.rows - 10, streams)
    described = [
        (file.apart, file.sessions) for file in history.manifest.of("sensors").values() if file.rows > 100
    ]
    assert described == [(7000, ((1, 7000, 595_000),)), (10_000, ((1, 600_000, 1_590_000),))]
    plan = plan_of("SELECT nodeid, epoch, temp FROM sensors HISTORY 7 day ONLY SAMPLE PERIOD 7 s")
    reader = Reader(history, log.path, streams, plan.attributes, 0)
    sources = reader.sources(log.rows)
    with duckdb.connect() as connection:
        open_readings(connection, sources, columns_needed(plan), plan.period_ms)
        counts = [connection.sql(f"SELECT count(*) FROM {name}").fetchall() for name in ("alone", "others")]
    # The last row of the first day of each mote, and the first of the second; all of those that are sampled each 3 s.
    assert counts == [[(370 - 4,)], [(4 + 100,)]]
    rows = rows_behind(Answer(plan, reader, log.rows, engine))[0]
    period = np.array([0, 7000, 10_000, 3000])[records["stream"]]
    keys = zip(
        records["stream"] // 3, records["node"], records["epoch"].astype(int) * period // 7000, strict=True
    )
    first: dict[tuple[int, ...], int] = {}
    for number, key in enumerate(keys):
        first.setdefault(tuple(map(int, key)), number)
    assert [number for number, _ in rows] == sorted(first.values())
    assert len(rows) < log.rows - 40


def test_rows_that_come_more_than_an_hour_late_are_in_no_window(tmp_path: Path, engine: PastEngine) -> None:
    """And each window comes with the first row an hour behind its end."""
    stream = stream_of(1, "SELECT temp FROM sensors SAMPLE PERIOD 1 min")
    records = plain_records(stream, range(10, 1500), [1, 2], nulls=0)
    rng = np.random.default_rng(5)
    places = np.arange(len(records)) + np.where(
        rng.random(len(records)) < 0.05, rng.integers(0, 400, len(records)), 0
    )
    records = records[np.argsort(places, kind="stable")]
    log, history = StreamLog(tmp_path / "data"), History(tmp_path / "data")
    log.append(records)
    history.compact(log.path, log.rows - 300, [stream])
    plan = plan_of(
        "SELECT epoch, COUNT(*, 10 min) AS n, MAX(temp, 10 min) AS t FROM sensors HISTORY 7 day ONLY SAMPLE PERIOD 1 min"
    )
    reader = Reader(history, log.path, [stream], plan.attributes, 0)
    rows = rows_behind(Answer(plan, reader, log.rows, engine))[0]
    times = records["epoch"].astype(np.int64) * 60_000
    now = np.maximum.accumulate(times)
    fresh = times >= now - 3_600_000
    assert np.count_nonzero(~fresh) > 50
    expected = []
    for end in range(600_000, int(now[-1]) - 60_000 + 1, 600_000):
        inside = fresh & (times >= end - 600_000) & (times < end)
        behind = np.flatnonzero(now >= end + 3_600_000)
        number = int(behind[0]) if len(behind) else len(records) - 1
        if inside.any():
            best = records["value"][inside, 0].max() / 100
            expected.append((number, [end // 60_000 - 1, np.count_nonzero(inside), best]))
    assert [(number, list(row.values())) for number, row in rows] == expected

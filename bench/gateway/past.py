"""Questions about the past of simulated motes, against plain SQL in DuckDB, over HTTP, and what live rows notice of them."""

from __future__ import annotations

import os
import queue
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.measuring.gateways import gateway_and_root
from bench.runner.benchmark import Benchmark, OptionError, SeedOptions, option
from bench.runner.recorder import Recorder
from gateway.tests.pasts import plan_of, stream_of
from gateway.tests.peer import RootPeer
from gateway.tests.process import Daemon, queue_rows, wait_for
from skerry.storage.history import layout
from skerry.storage.history.answer import Answer
from skerry.storage.history.compaction import written
from skerry.storage.history.day_files import DAY_US, FILE_ROWS, day_text
from skerry.storage.history.engine.engine import PastEngine
from skerry.storage.history.manifest import DayFile, Manifest, path_of
from skerry.storage.history.reader import Reader
from skerry.storage.history.store import History

DAYS, MOTES = 7, 500
LIVE = "SELECT nodeid, temp FROM sensors SAMPLE PERIOD 1 s"
#: What is asked, and plain SQL over the files ({files}) with the same rows.
QUESTIONS = {
    "AVG by mote and 5 min, in windows": (
        "SELECT nodeid, AVG(temp, 5 min), COUNT(*, 5 min) FROM sensors GROUP BY nodeid HISTORY 8 day ONLY SAMPLE PERIOD 1 s",
        "SELECT nodeid, network_ms // 300000, avg(temp), count(*), max(row) FROM {files} GROUP BY ALL",
    ),
    "AVG by mote": (
        "SELECT nodeid, AVG(temp), COUNT(*) FROM sensors GROUP BY nodeid HISTORY 8 day ONLY",
        "SELECT nodeid, avg(temp), count(*), max(row) FROM {files} GROUP BY ALL",
    ),
    "full scan with a filter": (
        "SELECT COUNT(*), MIN(temp), MAX(light) FROM sensors WHERE temp > 25.5 AND light < 1000 HISTORY 8 day ONLY",
        "SELECT count(*), min(temp), max(light), max(row) FROM {files} WHERE temp > 25.5 AND light < 1000",
    ),
}
#: Run in a process of its own, as the engine is: seconds until the answer is an Arrow table.
PLAIN = """
import duckdb, sys, time
with duckdb.connect(config={"threads": int(sys.argv[2])}) as connection:
    connection.execute("SET parquet_metadata_cache = true; SET enable_progress_bar = false")
    for _ in range(int(sys.argv[3])):
        began = time.perf_counter()
        connection.sql(sys.argv[1]).to_arrow_table()
        print(time.perf_counter() - began)
"""


@dataclass(frozen=True)
class Past(SeedOptions):
    rows: int = option(100_000_000, f"rows of the past, of {MOTES} motes in {DAYS} days")
    rounds: int = option(5, "how often each is asked; the median counts")
    day: int = option(20, "how often one mote's day is asked for over HTTP")
    live: int = option(40, "live rows whose latency is taken, without and with a question that runs")

    def __post_init__(self) -> None:
        if self.rows < DAYS * MOTES:
            raise OptionError(f"rows={self.rows}: expected at least {DAYS * MOTES}, one of each mote and day")


def measure(options: Past, recorder: Recorder) -> None:
    """All figures, in one data directory."""
    with gateway_and_root() as (daemon, root):
        daemon.start()
        query = daemon.client().query(LIVE).id
        wait_for(root.programs)
        daemon.kill()
        write(daemon.data, options, recorder)
        compare(daemon.data, options, recorder)
        daemon.start()
        over_http(daemon, options, recorder)
        with_live_rows(daemon, root, query, options, recorder)


def write(data: Path, options: Past, recorder: Recorder) -> None:
    """The history of motes that have all been sampled at the same moments until now, written as compaction writes it."""
    rng, schema = np.random.default_rng(options.seed), layout.sensors_schema()
    moments = options.rows // MOTES
    step_ms = DAYS * 86_400_000 // moments
    begin_us = (time.time_ns() // 1000 - moments * step_ms * 1000) // 1000 * 1000
    days = (begin_us + np.arange(moments) * step_ms * 1000) // DAY_US
    files: dict[str, DayFile] = {}
    for day in np.unique(days).tolist():
        at = np.flatnonzero(days == day)
        parts = np.array_split(at, -(-len(at) * MOTES // FILE_ROWS))
        for number, part in enumerate(parts, 1):
            recorder.progress(f"writing {day_text(day)}, file {number} of {len(parts)}")
            name = path_of(layout.SENSORS, day_text(day), number)
            (data / "history").mkdir(parents=True, exist_ok=True)
            rows = _rows(part, begin_us, step_ms, rng, schema)
            files[name] = written(data / "history" / name, None, int(part[0]) * MOTES, rows)
    Manifest(moments * MOTES, files, {layout.SENSORS: layout.MEANINGS[layout.SENSORS]}).save(data / "history")


def _rows(
    moments: np.ndarray[Any, Any], begin_us: int, step_ms: int, rng: np.random.Generator, schema: pa.Schema
) -> pa.Table:
    moment = np.repeat(moments, MOTES)
    count = len(moment)
    time_us = begin_us + moment * step_ms * 1000
    columns = {
        "row": moment * MOTES + np.tile(np.arange(MOTES), len(moments)), "time": time_us, "arrival": time_us + 200_000,
        "session": np.full(count, 1), "stream": np.full(count, 1), "network_ms": moment * step_ms,
        "nodeid": np.tile(np.arange(1, MOTES + 1), len(moments)), "combined": np.full(count, 1), "left_out": np.zeros(count, np.int64),
        "light": rng.integers(0, 4000, count), "temp": rng.integers(-1000, 5000, count) / 100,
    }  # fmt: skip
    arrays = [
        pa.array(columns[field.name]).cast(field.type)
        if field.name in columns
        else pa.nulls(count, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def compare(data: Path, options: Past, recorder: Recorder) -> None:
    """The engine against plain SQL, in turns."""
    history = History(data)
    stream, engine = (
        stream_of(1, "SELECT temp, light FROM sensors SAMPLE PERIOD 1 s"),
        PastEngine(data / "engine"),
    )
    end = history.manifest.rows
    files = f"'{data}/history/sensors/*.parquet'"
    for name, (sql, plain) in recorder.steps(list(QUESTIONS.items())):
        plan, took, direct, rows = plan_of(sql), [], [], 0
        for _ in range(options.rounds + 1):
            direct.append(in_duckdb(plain.format(files=files))[-1])
            began = time.perf_counter()
            answer = Answer(plan, Reader(history, data / "log", [stream], plan.attributes, 0), end, engine)
            rows = _rows_of(answer)
            took.append(time.perf_counter() - began)
            answer.forget()
        mine, theirs = statistics.median(took[1:]), statistics.median(direct[1:])
        recorder.figure(f"{name}: {rows:,} rows", mine, " s", ".2f")
        recorder.figure(f"{name}: plain SQL in DuckDB", theirs, " s", ".2f")
        recorder.figure(
            f"{name}: times the plain SQL", mine / theirs, "", ".2f", better="less", goal=1.3, main=True
        )
    engine.stop()


def _rows_of(answer: Answer) -> int:
    rows, position, more = 0, -1, True
    while more:
        deliveries, position, more = answer.after(position)
        rows += sum(len(delivery.numbers) for delivery in deliveries)
    return rows


def in_duckdb(sql: str, rounds: int = 2) -> list[float]:
    """Seconds that it takes, the first time and again."""
    threads = str(len(os.sched_getaffinity(0)))
    found = subprocess.run(
        [sys.executable, "-c", PLAIN, sql, threads, str(rounds)], check=True, capture_output=True, text=True
    )
    return [float(line) for line in found.stdout.split()]


def over_http(daemon: Daemon, options: Past, recorder: Recorder) -> None:
    """One mote's day, as an Arrow table at the client."""
    client, took, rows = daemon.client(), [], 0
    for _ in range(options.day + 1):
        began = time.perf_counter()
        query = client.query("SELECT time, temp, light FROM sensors WHERE nodeid = 7 HISTORY 1 day ONLY")
        rows = query.to_arrow().num_rows
        took.append(time.perf_counter() - began)
        query.stop()
    recorder.figure(
        f"one mote's day over HTTP, Arrow, warm: {rows:,} rows", statistics.median(took[1:]) * 1000, " ms", ".0f",
        better="less", goal=100, main=True,
    )  # fmt: skip


def with_live_rows(daemon: Daemon, root: RootPeer, query: str, options: Past, recorder: Recorder) -> None:
    """Latency of live rows from the root to the client, without and with a question that all of the past is read for."""
    [(number, program)] = root.programs().items()
    arrived: queue.Queue[int] = queue.Queue()
    rows = daemon.client().resume(query)

    def read() -> None:
        for row in rows:
            arrived.put(row["nodeid"])

    threading.Thread(target=read, daemon=True).start()
    node = 0

    def latencies() -> list[float]:
        nonlocal node
        found = []
        for _ in range(options.live):
            node += 1
            epoch = int(time.monotonic() - root.began)
            began = time.perf_counter()
            queue_rows(root, number, range(epoch, epoch + 1), program, range(node, node + 1))
            while arrived.get(timeout=120) != node:
                pass
            found.append(time.perf_counter() - began)
            time.sleep(0.1)
        return found

    latencies()
    alone = statistics.median(latencies())
    with asking(daemon, QUESTIONS["AVG by mote and 5 min, in windows"][0]):
        busy = statistics.median(latencies())
    recorder.figure("a live row from the root to the client, median", alone * 1000, " ms", ".0f")
    recorder.figure("the same while all of the past is read", busy * 1000, " ms", ".0f")
    recorder.figure("times as long", busy / alone, "", ".2f", better="less", goal=1.5, main=True)


@contextmanager
def asking(daemon: Daemon, sql: str) -> Iterator[None]:
    """While a question is asked again and again."""
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            with daemon.client().query(sql) as query:
                query.to_arrow()

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


BENCHMARK = Benchmark(measure, quick=Past(rows=350_000, rounds=1, day=3, live=5), minutes=20)

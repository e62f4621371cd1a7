"""Drawn window joins, by each algorithm that may run them, against DuckDB's plain SQL; and rows a second of the operator by itself.

A third are LEFT and ASOF joins. Drawn are streams with silences, late rows and rows ahead of their clock, windows of time and of rows,
conditions, and where the log is cut.
The figures of speed are of one process, without Spark: three streams of 1,000 rows/s of event time each, equal items, about one answer a
row, LATENESS 10 s; rows of the first window's length are not counted.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import duckdb
import numpy as np

from bench.measuring.joined_items import ALIASES, SCHEMA, batch_of, items_join, items_of
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column
from gateway.tests.joins.drawn import admitted, algorithms_of, answered, cuts_of, draw_any, expected, listed
from skerry.joins.single import SingleJoin


@dataclass(frozen=True)
class Options(SeedOptions):
    drawn: int = option(3_000, "joins that are held against DuckDB's answer")
    windows: tuple[float, ...] = option((1.0, 3_600.0), "windows whose speed is measured, in s")
    batch: int = option(100_000, "rows of a stream in a batch")
    batches: int = option(8, "batches that are measured once the window is full")


def compare(options: Options, recorder: Recorder) -> None:
    """Each drawn join against DuckDB."""
    connection = duckdb.connect()
    first, answers, runs = options.seed * 1_000_000, 0, 0
    began = time.monotonic()
    for seed in recorder.steps(range(first, first + options.drawn), "drawn joins"):
        case = draw_any(seed)
        right = expected(case, connection)
        answers += len(right)
        _, late, ahead = admitted(case)
        for algorithm in algorithms_of(case.join):
            found, running = answered(case, algorithm, cuts_of(seed, case.length))
            counted = running.intake.progress.late, running.intake.progress.ahead
            if listed(found) != right or counted != (late, ahead):
                recorder.problem(f"seed {seed}, {algorithm}: not what DuckDB answers")
            runs += 1
    recorder.figure("drawn joins as DuckDB answers", options.drawn, main=True)
    recorder.figure("runs of them by an algorithm", runs)
    recorder.figure("answers of them", answers)
    recorder.figure("time for them", time.monotonic() - began, "s", ",.0f")


def measure(options: Options, recorder: Recorder) -> None:
    """Right answers first."""
    compare(options, recorder)
    rng = np.random.default_rng(options.seed)
    table = recorder.table(
        "speed",
        [
            Column("window", "s", "g"), Column("rows/s", "", ",.0f", better="more"),
            Column("rows a second of processor time", "", ",.0f"), Column("answers a row", "", ".2f"),
            Column("rows kept", form=","), Column("bytes kept", form=","),
        ],
    )  # fmt: skip
    for window in options.windows:
        running, items = (
            SingleJoin(items_join(window), dict.fromkeys([f"stream_{a}" for a in ALIASES], SCHEMA), "HW"),
            items_of(window),
        )
        filling = -(-int(1_000 * (window + 10)) // options.batch) + 1
        took, busy, answers = 0.0, 0.0, 0
        for step in recorder.steps(range(filling + options.batches), f"window of {window:g} s"):
            rows = batch_of(step * options.batch, options.batch, items, rng)
            began, busy_before = time.perf_counter(), time.process_time()
            found = running.feed(rows)
            if step >= filling:
                took += time.perf_counter() - began
                busy += time.process_time() - busy_before
                answers += found.num_rows
        count = options.batch * options.batches
        rate = len(ALIASES) * count / took
        table.row(
            window,
            rate,
            len(ALIASES) * count / busy,
            answers / count,
            running.operator.rows,
            running.operator.bytes,
        )
        recorder.figure(
            f"rows/s of three streams, windows of {window:g} s, the operator by itself", rate, "/s", ",.0f", better="more",
            goal=400_000 if window < 60 else 100_000, main=True,
        )  # fmt: skip


BENCHMARK = Benchmark(measure, quick=Options(drawn=10, windows=(1.0,), batch=20_000, batches=2), minutes=9)

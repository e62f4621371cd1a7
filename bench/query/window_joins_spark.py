"""Window joins of three drawn streams on Spark, beside a cascade of Spark's own stream-stream joins; and with a window of an hour.

Item equal, 1,000 rows/s of event time each, about one answer a row, watermarks and LATENESS of 10 s, two cores. A rate is of the batches
that come once a window is full and Java has compiled what is used: the median of the later half.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.measuring.joined_items import ALIASES, CASCADE, OURS
from bench.runner.benchmark import Benchmark, Options, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column, Spread

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Streams(Options):
    rows: int = option(2_000_000, "rows of each stream, windows of 1 s")
    batches: int = option(10, "batches of them")
    long_rows: int = option(4_800_000, "rows of each stream with the long window; 0: it is left out")
    long_window: float = option(3_600.0, "the long window, in s")
    long_batch: int = option(200_000, "rows of a stream in its batches")


def measured(way: str, window_s: float, rows: int, batch: int) -> dict[str, Any]:
    """One way in a process of its own."""
    with tempfile.TemporaryDirectory() as directory:
        words = [way, str(window_s), str(rows), str(batch), directory]
        ran = subprocess.run(
            [sys.executable, "-m", "bench.measuring.spark_joins", *words],
            cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True,
        )  # fmt: skip
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


def measure(options: Streams, recorder: Recorder) -> None:
    """Both ways with windows of 1 s, ours with the long one."""
    table = recorder.table(
        "joins",
        [
            Column("join"), Column("window", "s", "g"), Column("rows/s", "", ",.0f", better="more"), Column("answers", form=","),
            Column("rows kept", form=","), Column("bytes kept", form=","),
        ],
        labels=2,
    )  # fmt: skip
    batch = options.rows // options.batches
    runs = [(way, 1.0, options.rows, batch) for way in (OURS, CASCADE)]
    if options.long_rows:
        runs.append((OURS, options.long_window, options.long_rows, options.long_batch))
    rates: dict[tuple[str, float], float] = {}
    answers = []
    for way, window, rows, size in recorder.steps(runs, "ways"):
        found = measured(way, window, rows, size)
        # The last batch tells that streams have ended.
        took = found["took"][len(found["took"]) // 2 : -1] or found["took"]
        spread = Spread.of(len(ALIASES) * size / (ms / 1_000) for ms in took)
        rates[way, window] = len(ALIASES) * size / (median(took) / 1_000)
        kept = (found["rows"], found["bytes"]) if way == OURS else (None, None)
        table.row(way, window, spread, found["answers"], *kept)
        if window == 1.0:
            answers.append(found["answers"])
    if len(set(answers)) > 1:
        recorder.problem(f"both ways have {answers} answers")
    recorder.figure(
        "rows/s of three streams on Spark, 1 s, ÷ those of Spark's own cascade", rates[OURS, 1.0] / rates[CASCADE, 1.0], "×", ".1f",
        better="more", goal=5, main=True,
    )  # fmt: skip
    for (way, window), rate in rates.items():
        if way == OURS:
            recorder.figure(
                f"rows/s of three streams on Spark, windows of {window:g} s", rate, "/s", ",.0f", better="more",
                goal=400_000 if window < 60 else 100_000, main=True,
            )  # fmt: skip


BENCHMARK = Benchmark(measure, quick=Streams(rows=40_000, batches=4, long_rows=0), minutes=8)

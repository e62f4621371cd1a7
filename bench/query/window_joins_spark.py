"""Window joins of three drawn streams on Spark, beside a cascade of Spark's own stream-stream joins; and with a window of an hour.

Item equal, 1,000 rows/s of event time each, about one answer a row, watermarks and LATENESS of 10 s, two cores. A rate is of the batches
that come once a window is full and Java has compiled what is used: the median of the later half. Latencies are of both ways at half of the
rate that the cascade had.
"""

from __future__ import annotations

import json
import os
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
from skerry.spark.environment import environment, make_spark_home

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Streams(Options):
    rows: int = option(2_000_000, "rows of each stream, windows of 1 s")
    batches: int = option(10, "batches of them")
    long_rows: int = option(4_800_000, "rows of each stream with the long window; 0: it is left out")
    long_window: float = option(3_600.0, "the long window, in s")
    long_batch: int = option(200_000, "rows of a stream in its batches")
    paced: float = option(40.0, "s at half of the cascade's full load, windows of 1 s; 0: they are left out")


def measured(module: str, way: str, window_s: float, rows: int, each: float) -> dict[str, Any]:
    """One way in a process of its own. ``each``: rows of a stream in a batch, or in a second."""
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        words = [way, str(window_s), str(rows), str(each), directory]
        ran = subprocess.run(
            [sys.executable, "-m", f"bench.measuring.{module}", *words],
            cwd=ROOT, env=environment(os.environ, "local[2]", home, make_spark_home(home)), stdout=subprocess.PIPE, check=True, text=True,
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
        found = measured("spark_joins", way, window, rows, size)
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
    if options.paced:
        pace(options, recorder, rates[CASCADE, 1.0] / 2)


def pace(options: Streams, recorder: Recorder, rate: float) -> None:
    """How late answers come, both ways at so many rows/s of all streams."""
    table = recorder.table(
        "latencies",
        [
            Column("join"), Column("rows/s", "", ",.0f"), Column("answers", form=","),
            Column("median", "ms", ",.0f", better="less"), Column("95 %", "ms", ",.0f", better="less"),
        ],
        title="Latency of answers at half of the cascade's full load",
    )  # fmt: skip
    each, late = rate / len(ALIASES), {}
    for way in recorder.steps((OURS, CASCADE), "latencies"):
        found = measured("paced_joins", way, 1.0, int(each * options.paced), each)
        late[way] = found["late"]
        table.row(way, rate, found["answers"], 1e3 * found["median"], 1e3 * found["late"])
    recorder.figure(
        "95 % of answers come after, ÷ of Spark's own cascade, at half of its full load", late[OURS] / late[CASCADE], "×", ".2f",
        better="less", goal=1, main=True,
    )  # fmt: skip


BENCHMARK = Benchmark(measure, quick=Streams(rows=40_000, batches=4, long_rows=0, paced=10.0), minutes=10)

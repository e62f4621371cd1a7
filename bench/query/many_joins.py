"""A hundred different joins over ten streams beside one join of all ten: rows a second of Spark's streaming query over a log.

One join is of the even streams with the odd ones, so that all rows are joined, as with the hundred. The hundred are measured in two
ways: of the same even and odd streams with a window and conditions of their own, so that they share an operator; and of two or three
streams drawn for each, so that nearly each has an operator of its own. Items are equal, rows are 1 ms apart on a stream. Rows that a
query reads count, whatever they come to; batches are as the gateway's query cuts them, and the first two are not counted, if there are
more.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.measuring.joins_of_log import STREAMS
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column, Spread
from skerry.spark.environment import environment, make_spark_home

ROOT = Path(__file__).resolve().parents[2]
#: Conditions of which some are in each join that shares an operator, and seconds of its window at most.
OWN = ("a.value < 0.8", "b.value > 0.1", "a.value < b.value", "b.item % 3 = 0", "a.value + b.value > 0.5")
LONGEST_S = 5
_NOT_COUNTED = 2


@dataclass(frozen=True)
class Joins(SeedOptions):
    joins: int = option(100, "different joins")
    rows: int = option(2_600_000, "rows of all streams together")


def one() -> str:
    """The even streams with the odd ones."""
    halves = (", ".join(map(str, range(first, STREAMS, 2))) for first in (0, 1))
    ids = [f"{alias}.id IN ({half})" for alias, half in zip("ab", halves, strict=True)]
    where = f"{' AND '.join(ids)} AND a.item = b.item"
    return f"SELECT a.item, a.value, b.value AS other FROM streams a, b WINDOW {LONGEST_S} s WHERE {where} LATENESS 10 s"


def sharing(chance: random.Random, count: int) -> list[str]:
    """Of the same streams; no two are the same."""
    found: dict[str, None] = {}
    while len(found) < count:
        own = " AND ".join(chance.sample(OWN, chance.randint(1, 2)))
        window = f"WINDOW {chance.randrange(100, 1000 * LONGEST_S)} ms"
        found[one().replace(f"WINDOW {LONGEST_S} s", window).replace(" LATENESS", f" AND {own} LATENESS")] = (
            None
        )
    return list(found)


def drawn(chance: random.Random, count: int) -> list[str]:
    """Of two or three streams each; no two are the same."""
    found: dict[str, None] = {}
    while len(found) < count:
        streams = chance.sample(range(STREAMS), chance.choice([2, 3]))
        aliases = "abc"[: len(streams)]
        where = [f"{alias}.id = {stream}" for alias, stream in zip(aliases, streams, strict=True)]
        where += [f"a.item = {alias}.item" for alias in aliases[1:]] + chance.sample(
            OWN, chance.randint(0, 1)
        )
        window = f"WINDOW {chance.randrange(100, 1000 * LONGEST_S)} ms"
        tables = ", ".join(f"streams {alias}" for alias in aliases)
        found[
            f"SELECT a.item, a.value, b.value AS other FROM {tables} {window} WHERE {' AND '.join(where)} LATENESS 10 s"
        ] = None
    return list(found)


def measured(queries: list[str], rows: int) -> dict[str, Any]:
    """In a process of its own."""
    with tempfile.TemporaryDirectory(prefix="skerry-bench-") as directory:
        home = Path(directory)
        ran = subprocess.run(
            [sys.executable, "-m", "bench.measuring.joins_of_log", str(rows), directory],
            cwd=ROOT, env=environment(os.environ, "local[2]", home, make_spark_home(home)), input="\n".join(queries),
            stdout=subprocess.PIPE, check=True, text=True,
        )  # fmt: skip
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


def measure(options: Joins, recorder: Recorder) -> None:
    """One, then both kinds of hundred."""
    table = recorder.table(
        "joins",
        [
            Column("joins"), Column("operators", form=","), Column("rows/s", "", ",.0f", better="more"), Column("answers", form=","),
            Column("rows kept", form=","), Column("bytes kept", form=","),
        ],
    )  # fmt: skip
    sets = {
        "one of all streams": [one()],
        f"{options.joins} of the same streams": sharing(random.Random(options.seed), options.joins),
        f"{options.joins} of two or three": drawn(random.Random(options.seed), options.joins),
    }
    rates: list[float] = []
    for name, queries in recorder.steps(list(sets.items()), "ways"):
        found = measured(queries, options.rows)
        batches = found["batches"]
        counted = batches[_NOT_COUNTED:] or batches[-1:]
        each = [rows / (ms / 1_000) for rows, ms in counted]
        rates.append(median(each))
        table.row(name, found["groups"], Spread.of(each), found["answers"], found["rows"], found["bytes"])
    for name, rate in zip(list(sets)[1:], rates[1:], strict=True):
        recorder.figure(
            f"rows/s of {name} ÷ those of one join",
            rate / rates[0],
            "×",
            ".2f",
            better="more",
            goal=0.5,
            main=True,
        )


BENCHMARK = Benchmark(measure, quick=Joins(joins=10, rows=60_000), minutes=10)

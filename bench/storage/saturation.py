"""What a query costs as more and more are asked and caches fill: figure 7 of DIM 2004, by a model.

Redwood tuples, exponential ranges; each point is the mean of all queries so far, from cold caches on, insertion apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bench.measuring.parallel import on_all_cores
from bench.measuring.storage_load import queries_of, tuples_of
from bench.measuring.storage_network import Network
from bench.measuring.storage_series import SERIES, Asker
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column, Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEPS = 14
LINES = tuple(series.name for series in SERIES)


@dataclass(frozen=True)
class Options(SeedOptions):
    motes: int = option(100, "motes of the network")
    queries: int = option(3500, "in all")


@dataclass(frozen=True)
class Job:
    """A line: bytes a query, of each step's alone."""

    options: Options
    series: str


def run(job: Job) -> list[float]:
    """All steps of a series."""
    options = job.options
    rng = np.random.default_rng(options.seed)
    network = Network.drawn(options.motes, rng)
    points = tuples_of("redwood", rng)
    queries = queries_of("uniform", "exponential", options.queries, options.motes, rng)
    series = next(one for one in SERIES if one.name == job.series)
    asker = Asker(network, points, series, states=False, seed=options.seed)
    size = len(queries) // STEPS
    return [asker.ask(queries[step * size : (step + 1) * size]) for step in range(STEPS)]


def measure(options: Options, recorder: Recorder) -> None:
    """A column for each series."""
    jobs = [Job(options, name) for name in LINES]
    lines = dict(zip(LINES, recorder.steps(on_all_cores(run, jobs), "series", total=len(jobs)), strict=True))
    table = recorder.table(
        "queries",
        [Column("queries"), *(Column(name, "B", ",.0f") for name in LINES)],
        title="Bytes sent a query, mean of all so far",
    )
    size = options.queries // STEPS
    for step in range(1, STEPS + 1):
        table.row(step * size, *(sum(lines[name][:step]) / step for name in LINES))
    recorder.figure(
        "bytes a query of the last part ÷ of the first, best order",
        lines["best"][-1] / lines["best"][0],
        "×",
        ".2f",
    )
    cheaper = next(
        (
            step * size
            for step in range(1, STEPS + 1)
            if sum(lines["best"][:step]) <= sum(lines["single"][:step])
        ),
        None,
    )
    recorder.figure(
        "queries after which the decomposed index has cost less than the single one, cold caches included",
        cheaper if cheaper is not None else f"more than {options.queries:,}", main=True,
    )  # fmt: skip
    recorder.figure(
        "single ÷ decomposed, the last part's queries",
        lines["single"][-1] / lines["best"][-1],
        "×",
        ".2f",
        main=True,
    )


def draw(result: Result) -> Figure:
    """The paper's figure."""
    from bench.runner.charts import lines  # noqa: PLC0415 (what measures does without)

    return lines(result, "queries", "queries", LINES, "bytes a query, mean of all so far")


BENCHMARK = Benchmark(measure, quick=Options(motes=50, queries=56), minutes=2, chart=draw)

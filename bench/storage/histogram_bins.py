"""How much a coarse histogram costs: orders of joins planned with 10, 5 and 1 bins beside the best, figure 6 of DIM 2004, by a model.

The best order is that of equation 1 with the tuples that really match; energy is what the queries then take from cold caches on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bench.measuring.parallel import on_all_cores
from bench.measuring.storage_load import Data, queries_of, tuples_of
from bench.measuring.storage_model import DECOMPOSED, Caches, Index
from bench.measuring.storage_network import Meter, Network
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column, Result
from skerry.index.declaration import learned

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DATA: dict[str, Data] = {"uniform": "uniform", "Gaussian": "independent", "correlated": "gaussian"}
BINS = (10, 5, 1)


@dataclass(frozen=True)
class Options(SeedOptions):
    motes: int = option(100, "motes of the network")
    queries: int = option(400, "of each data set")


@dataclass(frozen=True)
class Job:
    """A data set with caches or without: by bins, share of orders that are not the best, and bytes that they cost more, both %."""

    options: Options
    data: str
    cached: bool


def run(job: Job) -> dict[int, tuple[float, float]]:
    """All numbers of bins."""
    options = job.options
    rng = np.random.default_rng(options.seed)
    network = Network.drawn(options.motes, rng)
    points = tuples_of(DATA[job.data], rng)
    queries = queries_of("uniform", "exponential", options.queries, options.motes, rng)
    index = Index(network, points, DECOMPOSED)
    box = index.code.box
    costs, wrong = {}, {}
    for bins in (0, *BINS):
        histogram = learned(index.code, points.tolist(), points.shape[1], bins) if bins else None
        meter, caches = Meter(network), Caches(len(points)) if job.cached else None
        wrong[bins] = 0
        for query in queries:
            visits = index.visits(query, cached=job.cached)
            known = index.known(index.plan(query, visits, states=False, cached=job.cached), visits)
            least, order = known.best()
            if histogram is not None:
                plan = index.plan(query, visits, states=False, cached=job.cached)
                _, order = plan.estimate(histogram, box(points.shape[1], query.limits)).best()
                wrong[bins] += known.cost(order) > least
            index.run(query, visits, order, meter, caches, states=False)
        costs[bins] = meter.total
    return {bins: (100 * wrong[bins] / len(queries), 100 * (costs[bins] / costs[0] - 1)) for bins in BINS}


def measure(options: Options, recorder: Recorder) -> None:
    """A row for each data set."""
    jobs = [Job(options, data, cached) for cached in (True, False) for data in DATA]
    found = dict(
        zip(jobs, recorder.steps(on_all_cores(run, jobs), "data sets", total=len(jobs)), strict=True)
    )
    table = recorder.table(
        "bins",
        [
            Column("data"), Column("caches"), Column("bins"), Column("orders that are not the best", "%", ".1f"),
            Column("more bytes", "%", "+.2f"),
        ],
        title="Orders planned by a histogram against the best ones",
        labels=3,
    )  # fmt: skip
    for job, outcome in found.items():
        for bins, (wrong, more) in outcome.items():
            table.row(job.data, job.cached, bins, wrong, more)
    for bins in BINS:
        recorder.figure(
            f"bytes above those of the best order, {bins} bins an attribute, the worst data",
            max(outcome[bins][1] for outcome in found.values()), "%", "+.1f", better="less", goal=5 if bins == 5 else None,
            main=bins == 5,
        )  # fmt: skip


def draw(result: Result) -> Figure:
    """Both halves of the paper's figure, with caches."""
    from matplotlib.figure import Figure as Chart  # noqa: PLC0415 (what measures does without)

    from bench.runner.charts import dress  # noqa: PLC0415

    figure = Chart(figsize=(9, 3.6), layout="constrained")
    rows = [row for row in result.table("bins").rows if row[1]]
    for axes, (at, label) in zip(
        figure.subplots(1, 2), ((3, "orders that are not the best, %"), (4, "more bytes, %")), strict=True
    ):
        for place, bins in enumerate(BINS):
            heights = [row[at] for row in rows if row[2] == bins]
            axes.bar(np.arange(len(DATA)) + 0.27 * (place - 1), heights, 0.25, label=f"{bins} bins")
        axes.set_xticks(range(len(DATA)), list(DATA))
        dress(axes, "data", label, cut=True)
    return figure


BENCHMARK = Benchmark(measure, quick=Options(motes=50, queries=20), minutes=2, chart=draw)

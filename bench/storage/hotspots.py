"""What the most loaded mote of an index sends and receives, by a model.

Queries of uniform attributes from motes at random; matching tuples travel. Insertion is not counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench.measuring.parallel import on_all_cores
from bench.measuring.storage_load import Data, queries_of, tuples_of
from bench.measuring.storage_network import Network
from bench.measuring.storage_series import SERIES, Asker
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column, Spread

DATA: tuple[Data, ...] = ("uniform", "gaussian")
SHOWN = tuple(series for series in SERIES if series.name in ("single", "best", "joint", "uncached"))


@dataclass(frozen=True)
class Options(SeedOptions):
    motes: int = option(100, "motes of the network")
    queries: int = option(200, "of each network")
    seeds: int = option(3, "networks, tuples and queries drawn anew")


@dataclass(frozen=True)
class Job:
    """A network with tuples of a kind."""

    options: Options
    data: Data
    seed: int


def run(job: Job) -> dict[str, tuple[float, float, float]]:
    """By series: bytes a query of the most loaded mote from cold caches on, and when the same is asked again; and how many times the
    mean mote's that is."""
    rng = np.random.default_rng([job.seed, DATA.index(job.data)])
    network = Network.drawn(job.options.motes, rng)
    points = tuples_of(job.data, rng)
    queries = queries_of("uniform", "uniform", job.options.queries, len(network), rng)
    found = {}
    for series in SHOWN:
        asker = Asker(network, points, series, states=False, seed=job.seed)
        hottest = []
        for _ in range(2):
            asker.meter.clear()
            asker.ask(queries)
            hottest.append(asker.meter.hottest / len(queries))
        mean = float((asker.meter.sent + asker.meter.received).mean()) / len(queries)
        found[series.name] = hottest[0], hottest[1], hottest[1] / mean
    return found


def measure(options: Options, recorder: Recorder) -> None:
    """A row for each series."""
    jobs = [
        Job(options, data, seed)
        for data in DATA
        for seed in range(options.seed, options.seed + options.seeds)
    ]
    found = dict(zip(jobs, recorder.steps(on_all_cores(run, jobs), "networks", total=len(jobs)), strict=True))
    table = recorder.table(
        "motes",
        [
            Column("data"), Column("series"), Column("cold caches", "B", ",.0f"), Column("the same again", "B", ",.0f"),
            Column("times the mean mote's", "×", ".1f"),
        ],
        title="Bytes sent and received a query by the most loaded mote",
        labels=2,
    )  # fmt: skip
    for data in DATA:
        of = [outcome for job, outcome in found.items() if job.data == data]
        for series in SHOWN:
            table.row(
                data, series.name, *(float(np.mean([one[series.name][at] for one in of])) for at in range(3))
            )
        recorder.figure(
            f"most loaded mote, {data}: single ÷ decomposed, the same again",
            Spread.mean(one["single"][1] / one["best"][1] for one in of), "×", ".2f", better="more", goal=2,
            reference="the paper: 4×", main=True,
        )  # fmt: skip


BENCHMARK = Benchmark(measure, quick=Options(motes=50, queries=20, seeds=1), minutes=1)

"""An index, each mote's own storage or all to the gateway: which costs least, by inserts a query, by a model.

Averages over ranges, asked at the gateway in the field's corner; partial states travel wherever a query does. "Each mote's own": nothing
is sent to store, a query is flooded and all motes' states gathered (TinyDB's storage points). "All to the gateway": every tuple goes
there, and queries cost nothing. Indexes are taken with warm caches: the same queries again. Queries are wide (as the paper draws them,
exponential) or narrow: every attribute in a fifth of its range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bench.measuring.parallel import on_all_cores
from bench.measuring.storage_load import Query, queries_of, tuples_of
from bench.measuring.storage_model import NAME, QUERY, STATE, VALUE
from bench.measuring.storage_network import HEADER, Meter, Network
from bench.measuring.storage_series import SERIES, Asker
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column, Result
from skerry.index.code import LAST

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INDEXES = {"single": "index, single", "best": "index, decomposed", "joint": "index, joint"}
OWN, ALL = "each mote's own", "all to the gateway"
WAYS = (*INDEXES.values(), OWN, ALL)
LOADS = ("wide", "narrow")
RATIOS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)


@dataclass(frozen=True)
class Options(SeedOptions):
    motes: int = option(100, "motes of the network")
    queries: int = option(200, "that are asked")
    seeds: int = option(3, "networks, tuples and queries drawn anew")


@dataclass(frozen=True)
class Job:
    """A network, and which queries."""

    options: Options
    load: str
    seed: int


def run(job: Job) -> dict[str, tuple[float, float]]:
    """By way: bytes an insert, and bytes a query."""
    rng = np.random.default_rng(job.seed)
    network = Network.drawn(job.options.motes, rng)
    points = tuples_of("gaussian", rng)
    gateway = network.nearest(0, 0)
    drawn = queries_of("uniform", "exponential", job.options.queries, len(network), rng)
    if job.load == "narrow":
        lows = (rng.random((len(drawn), points.shape[1])) * 0.8 * LAST).astype(int)
        ranges = [{a: (int(low), int(low) + LAST // 5) for a, low in enumerate(row)} for row in lows]
    else:
        ranges = [query.limits for query in drawn]
    queries = [Query(limits, query.measured, gateway) for limits, query in zip(ranges, drawn, strict=True)]
    found = {}
    for series in SERIES:
        if series.name in INDEXES:
            asker, meter = Asker(network, points, series, states=True), Meter(network)
            asker.index.insert(meter, np.random.default_rng(job.seed))
            asker.ask(queries)
            found[INDEXES[series.name]] = meter.total / len(points), asker.ask(queries)
    states = float(np.mean([len(query.measured) for query in queries]))
    flooded = len(network) * (HEADER + QUERY) + (len(network) - 1) * (HEADER + STATE * states)
    found[OWN] = 0.0, flooded
    found[ALL] = float(network.hops[gateway].mean()) * (HEADER + NAME + VALUE * points.shape[1]), 0.0
    return found


def measure(options: Options, recorder: Recorder) -> None:
    """What each costs, and which wins at which ratio."""
    jobs = [
        Job(options, load, seed)
        for load in LOADS
        for seed in range(options.seed, options.seed + options.seeds)
    ]
    found = dict(zip(jobs, recorder.steps(on_all_cores(run, jobs), "networks", total=len(jobs)), strict=True))
    costs = recorder.table(
        "costs", [Column("queries"), Column("way"), Column("an insert", "B", ",.0f"), Column("a query", "B", ",.0f")], labels=2
    )  # fmt: skip
    means = {}
    for load in LOADS:
        of = [outcome for job, outcome in found.items() if job.load == load]
        means[load] = mean = {
            way: [float(np.mean([one[way][at] for one in of])) for at in (0, 1)] for way in WAYS
        }
        for way, both in mean.items():
            costs.row(load, way, *both)
    for load, mean in means.items():
        table = recorder.table(
            load, [Column("inserts a query", form="g"), *(Column(way, "B", ",.0f") for way in WAYS), Column("least")],
            title=f"Bytes sent for a {load} query and the inserts before it",
        )  # fmt: skip
        for ratio in RATIOS:
            sums = {way: both[0] * ratio + both[1] for way, both in mean.items()}
            table.row(ratio, *sums.values(), min(sums, key=lambda way: sums[way]))
        single = mean[INDEXES["single"]]
        own, sent = mean[OWN][1], mean[ALL][0]
        recorder.figure(
            f"inserts a query above which each mote's own storage costs less than a single index, {load}",
            (own - single[1]) / single[0], "", ".0f", main=True,
        )  # fmt: skip
        recorder.figure(
            f"inserts a query below which all to the gateway costs less than a single index, {load}",
            single[1] / (sent - single[0]) if sent > single[0] else "any", "", ".0f", main=True,
        )  # fmt: skip


def draw(result: Result) -> Figure:
    """Costs by the ratio."""
    from bench.runner.charts import lines  # noqa: PLC0415 (what measures does without)

    figure = lines(result, "narrow", "inserts a query", WAYS, "bytes a narrow query and its inserts")
    (axes,) = figure.axes
    axes.set_xscale("log")
    axes.set_yscale("log")
    return figure


BENCHMARK = Benchmark(measure, quick=Options(motes=50, queries=20, seeds=1), minutes=0.5, chart=draw)

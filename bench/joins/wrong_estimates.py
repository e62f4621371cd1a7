"""What joins take whose estimates are wrong, and what learning makes of that: Aspen's figures 4, 8, 10 and 11, by a model.

Hosts of query 0, whose pairs share no motes, are chosen as the gateway does it, by what all cost; queries 1 and 2 have groups with
collapsed ways. Estimates are of the five ratios σs : σt, each against each; σst is what it is. Where it is learnt, pairs are placed anew by
the planner's own code.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from bench.measuring.join_learning import learned
from bench.measuring.join_meter import Metered, Readings
from bench.measuring.join_network import Field
from bench.measuring.join_series import PLACED, RATIOS, placed_by, priced, ratio_text
from bench.measuring.parallel import on_all_cores
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column, Result
from skerry.joins.placement.estimates import Estimates, Rates

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: By query σst, as the figures have it.
QUERIES = {"query 0": 0.2, "query 1": 0.05, "query 2": 0.1}
#: The true estimate is the best one, or costs so much more than that at most, in so many of 25 cells.
NEAR, CELLS = 3.0, 23
#: Learnt estimates cost so much more than right ones at most, in the last epochs of a run; where both shares are a half.
LEARNT, HALVES = 10.0, 20.0
LAST = 100


@dataclass(frozen=True)
class Options(SeedOptions):
    motes: int = option(100, "motes of the network")
    epochs: int = option(100, "sample periods of 10 s without learning")
    learning: int = option(800, "sample periods with it")
    seeds: int = option(3, "networks and readings drawn anew")


@dataclass(frozen=True)
class Job:
    """A query in a network."""

    options: Options
    query: str
    seed: int


@dataclass(frozen=True)
class Cost:
    """Of one ratio with the estimates of another, in bytes: of the short run; of the last epochs of the long one and of all of it, as it
    was placed and as it has learnt; how often pairs moved."""

    short: float
    last: float
    learnt: float
    whole: float
    whole_learnt: float
    changes: int


#: By the true ratio and the estimated one.
Costs = dict[tuple[int, int], Cost]


def run(job: Job) -> Costs:
    """All cells."""
    options, share, placed = job.options, QUERIES[job.query], PLACED[job.query]
    rng = np.random.default_rng([job.seed, options.motes])
    field = Field.drawn("7", options.motes, rng)
    asked, price, window = placed.of(field, rng), priced("bytes"), placed.window
    planned = placed_by(asked, placed.strategy, price)
    first = [planned(Rates(Estimates(s, t, share, window))) for s, t in RATIOS]
    found: Costs = {}
    for true, (s, t) in enumerate(RATIOS):
        readings = Readings.drawn(len(field), options.learning, s, t, share, rng)
        metered = Metered(len(field), readings, window)
        for told, plan in enumerate(first):
            assumed = Rates(Estimates(*RATIOS[told], share, window))
            long = learned(asked, metered, planned, assumed, price)
            end, last = options.learning, max(0, options.learning - LAST)
            found[true, told] = Cost(
                metered.load(plan, slice(0, options.epochs)).total,
                metered.load(plan, slice(last, end)).total,
                long.load(last, end).total,
                metered.load(plan).total,
                long.load(0, end).total,
                long.changes,
            )
    return found


def measure(options: Options, recorder: Recorder) -> None:
    """A table for each figure and query."""
    jobs = [
        Job(options, query, seed)
        for query in QUERIES
        for seed in range(options.seed, options.seed + options.seeds)
    ]
    outcomes = dict(
        zip(jobs, recorder.steps(on_all_cores(run, jobs), "networks", total=len(jobs)), strict=True)
    )
    for query in QUERIES:
        _query(query, [costs for job, costs in outcomes.items() if job.query == query], options, recorder)


def _query(query: str, of: list[Costs], options: Options, recorder: Recorder) -> None:
    ratios = [ratio_text(ratio) for ratio in RATIOS]
    share, strategy = QUERIES[query], PLACED[query].strategy

    def mean(name: str, true: int, told: int) -> float:
        return fmean(getattr(costs[true, told], name) for costs in of)

    title = f"{query}, {strategy}, σst {share:.0%}"
    tables = {
        name: recorder.table(
            f"{query}, {text}", [Column("σs : σt"), *(Column(f"by {one}", "kB", ".1f") for one in ratios)],
            title=f"{title}: {text}",
        )
        for name, text in {
            "short": f"bytes in {options.epochs} epochs by estimates",
            "last": f"bytes in the last {LAST} of {options.learning} epochs, nothing learnt",
            "learnt": f"bytes in the last {LAST} of {options.learning} epochs, learnt",
            "whole_learnt": f"bytes in {options.learning} epochs, learnt, changes included",
        }.items()
    }  # fmt: skip
    right: list[float] = []
    halves: list[float] = []
    best = 0
    for true, ratio in enumerate(ratios):
        for name, table in tables.items():
            table.row(ratio, *(mean(name, true, told) / 1e3 for told in range(len(ratios))))
        short = [mean("short", true, told) for told in range(len(ratios))]
        best += sum(short[true] <= (1 + NEAR / 100) * one for one in short)
        above = [
            100 * (mean("learnt", true, told) / mean("last", true, true) - 1) for told in range(len(ratios))
        ]
        (halves if RATIOS[true] == (1 / 2, 1 / 2) else right).append(max(above))
    recorder.figure(
        f"{query}: cells in which the true estimate costs at most {NEAR:g} % more than another one, of {len(ratios) ** 2}", best, "", "d",
        better="more", goal=CELLS, main=True,
    )  # fmt: skip
    recorder.figure(
        f"{query}: learnt estimates above right ones in the last {LAST} of {options.learning} epochs, the worst cell", max(right), "%",
        "+.1f", better="less", goal=LEARNT, main=True,
    )  # fmt: skip
    recorder.figure(
        f"{query}: … where both shares are a half",
        max(halves),
        "%",
        "+.1f",
        better="less",
        goal=HALVES,
        main=True,
    )
    recorder.figure(
        f"{query}: changes of places in {options.learning} epochs, mean and most",
        f"{fmean(one.changes for costs in of for one in costs.values()):.1f}, "
        f"{max(one.changes for costs in of for one in costs.values())}",
    )  # fmt: skip


def draw(result: Result) -> Figure:
    """By query: each ratio's bytes by each estimate, at once and learnt."""
    from matplotlib.figure import Figure as Chart  # noqa: PLC0415 (what measures does without)

    from bench.runner.charts import dress  # noqa: PLC0415

    chart = Chart(figsize=(11, 9), layout="constrained")
    for row, query in zip(chart.subplots(len(QUERIES), 2), QUERIES, strict=True):
        for axes, kind in zip(row, ("nothing learnt", "learnt"), strict=True):
            table = next(
                one for one in result.tables if one.name.startswith(f"{query}, bytes in the last") and one.name.endswith(f", {kind}")
            )  # fmt: skip
            names = [str(cells[0]) for cells in table.rows]
            for place, column in enumerate(table.columns[1:]):
                at = [x + (place - 2) * 0.15 for x in range(len(names))]
                right = [2.0 if x == place else 0.0 for x in range(len(names))]
                axes.bar(
                    at, table.column(column.name), 0.15, label=column.name, edgecolor="black", linewidth=right
                )
            axes.set_xticks(range(len(names)), names, fontsize="x-small")
            dress(axes, "σs : σt, as it is", "kB", f"{query}, {kind}")
    return chart


BENCHMARK = Benchmark(
    measure, quick=Options(motes=60, epochs=100, learning=200, seeds=1), minutes=2, chart=draw
)

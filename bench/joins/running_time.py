"""From how many sample periods on a strategy is worth what it takes before the first row: Aspen's figure 9, by a model.

Query 2, σs : σt 1/2 : 1/2 and 1/10 : 1, initiation, trees and summaries included.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from bench.measuring.join_meter import Metered, Readings
from bench.measuring.join_network import Field
from bench.measuring.join_series import PAIR_SHARES, PLACED, formation, initiation, plans, priced, ratio_text
from bench.measuring.parallel import on_all_cores
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column, Result
from skerry.joins.placement.estimates import Estimates, Rates
from skerry.joins.placement.pair import BASE
from skerry.joins.placement.strategies import COLLAPSED, GROUPED, NAIVE, PAIRWISE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

QUERY = PLACED["query 2"]
RATIOS = ((1 / 2, 1 / 2), (1 / 10, 1.0))
SERIES = (NAIVE, BASE, PAIRWISE, GROUPED, COLLAPSED)
#: Strategies for which partners are searched by summaries.
SEARCHED = (PAIRWISE, GROUPED, COLLAPSED)
CYCLES = (10, 30, 60, 120, 240, 500, 1000)


@dataclass(frozen=True)
class Options(SeedOptions):
    motes: int = option(100, "motes of the network")
    seeds: int = option(3, "networks and readings drawn anew")


@dataclass(frozen=True)
class Job:
    """A network."""

    motes: int
    seed: int


#: By ratio, σst and strategy: bytes before the first row, and of each period from there on, on average.
Costs = dict[tuple[int, float, str], tuple[float, float]]


def run(job: Job) -> Costs:
    """All series."""
    rng = np.random.default_rng([job.seed, job.motes])
    field = Field.drawn("7", job.motes, rng)
    asked = QUERY.of(field, rng)
    formed, found = formation(asked), Costs()
    for at, (s, t) in enumerate(RATIOS):
        for share in PAIR_SHARES:
            readings = Readings.drawn(len(field), CYCLES[-1], s, t, share, rng)
            metered = Metered(len(field), readings, QUERY.window)
            rates = Rates(Estimates(s, t, share, QUERY.window))
            for name, plan in plans(asked, rates, priced("bytes")).items():
                before = initiation(asked, plan).total + (formed if name in SEARCHED else 0)
                found[at, share, name] = before, metered.load(plan).total / CYCLES[-1]
    return found


def measure(options: Options, recorder: Recorder) -> None:
    """By time, and by σst after the longest."""
    jobs = [Job(options.motes, seed) for seed in range(options.seed, options.seed + options.seeds)]
    of = list(recorder.steps(on_all_cores(run, jobs), "networks", total=len(jobs)))

    def bytes_in(cycles: int, key: tuple[int, float, str]) -> float:
        return fmean(costs[key][0] + cycles * costs[key][1] for costs in of)

    for at, ratio in enumerate(RATIOS):
        text = ratio_text(ratio)
        table = recorder.table(
            f"{text}, by time", [Column("sample periods"), *(Column(one, "kB", ".1f") for one in SERIES), Column("least")],
            title=f"Figure 9 (a): {QUERY.name}, {text}, σst 10 %, bytes in all",
        )  # fmt: skip
        for cycles in CYCLES:
            costs = {one: bytes_in(cycles, (at, 0.1, one)) for one in SERIES}
            least = min(SERIES, key=lambda one, costs=costs: costs[one])  # type: ignore[misc]
            table.row(cycles, *(costs[one] / 1e3 for one in SERIES), least)
        table = recorder.table(
            f"{text}, by σst", [Column("σst", "%", ".0f"), *(Column(one, "kB", ".1f") for one in SERIES)],
            title=f"Figure 9 (b): {QUERY.name}, {text}, bytes in {CYCLES[-1]} sample periods",
        )  # fmt: skip
        for share in sorted(PAIR_SHARES):
            table.row(100 * share, *(bytes_in(CYCLES[-1], (at, share, one)) / 1e3 for one in SERIES))
        for one in SERIES[1:]:
            recorder.figure(
                f"{text}: sample periods after which {one} has cost less than naive", _even(of, at, one), "", ".0f",
                reference="the paper: 30 to 240" if one == COLLAPSED else "", main=one == COLLAPSED,
            )  # fmt: skip


def _even(of: list[Costs], at: int, name: str) -> float | str:
    before, each = (fmean(costs[at, 0.1, name][place] for costs in of) for place in (0, 1))
    naive = fmean(costs[at, 0.1, NAIVE][1] for costs in of)
    return before / (naive - each) if each < naive else "never"


def draw(result: Result) -> Figure:
    """Bytes in each sample period so far, by time."""
    from matplotlib.figure import Figure as Chart  # noqa: PLC0415 (what measures does without)

    from bench.runner.charts import dress  # noqa: PLC0415

    chart = Chart(figsize=(11, 4), layout="constrained")
    for axes, ratio in zip(chart.subplots(1, len(RATIOS)), map(ratio_text, RATIOS), strict=True):
        table = result.table(f"{ratio}, by time")
        for series in SERIES:
            total, cycles = (np.array(table.column(one), float) for one in (series, "sample periods"))
            axes.plot(cycles, total / cycles, marker="o", label=series)
        dress(axes, "sample periods", "kB in each so far", f"{QUERY.name}, {ratio}, σst 10 %")
        axes.set_xscale("log")
    return chart


BENCHMARK = Benchmark(measure, quick=Options(motes=60, seeds=1), minutes=1, chart=draw)

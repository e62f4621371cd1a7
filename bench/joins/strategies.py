"""What strategies send and take, queries 1 and 2: figures 2, 3 and 5 of Aspen (VLDB 2010), by a model of one network.

All of a seed's strategies have the same network, readings and searches. Places are chosen by bytes where bytes are told, by energy where
energy is. A model: frames are docs/routing.md's and docs/network.md's, none is lost, and no mote runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Literal

import numpy as np

from bench.measuring.join_meter import Metered, Readings
from bench.measuring.join_network import Field
from bench.measuring.join_series import (
    BASIC,
    FIGURES,
    NAMES,
    PAIR_SHARES,
    RATIOS,
    formation,
    initiation,
    plans,
    priced,
    ratio_text,
)
from bench.measuring.parallel import on_all_cores
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column, Result
from skerry.joins.placement.estimates import Estimates, Rates
from skerry.joins.placement.pair import BASE
from skerry.joins.placement.strategies import COLLAPSED, GROUPED, NAIVE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Motes with most to send and to receive, as figure 5 has them.
LOADED = 15
#: The least may be undercut by so much less, in so many of 30 cells; nowhere by more than the second.
NEAR, FAR, CELLS = 3.0, 10.0, 27


@dataclass(frozen=True)
class Options(SeedOptions):
    motes: int = option(100, "motes of the network")
    topology: Literal["6", "7", "8", "13", "grid", "lab"] = option("7", "neighbours on average, or which")
    epochs: int = option(100, "sample periods of 10 s")
    seeds: int = option(3, "networks and readings drawn anew")


@dataclass(frozen=True)
class Job:
    """A network."""

    options: Options
    figure: str
    seed: int


@dataclass
class Cost:
    """Of one strategy, cell and seed."""

    total: float
    root: float
    most: float
    joules: float
    before: float
    loads: list[float]


#: By ratio, share of pairs and strategy.
Costs = dict[tuple[int, float, str], Cost]


def run(job: Job) -> tuple[Costs, float, int]:
    """All cells; bytes of trees and summaries, and how many pairs there are."""
    rng = np.random.default_rng([job.seed, job.options.motes])
    field = Field.drawn(job.options.topology, job.options.motes, rng)
    asking = FIGURES[job.figure]
    asked = asking.of(field, rng)
    found: Costs = {}
    for at, (s, t) in enumerate(RATIOS):
        for pair in PAIR_SHARES:
            readings = Readings.drawn(len(field), job.options.epochs, s, t, pair, rng)
            metered = Metered(len(field), readings, asking.window)
            rates = Rates(Estimates(s, t, pair, asking.window))
            of_energy = plans(asked, rates, priced("energy"))
            for name, plan in plans(asked, rates, priced("bytes")).items():
                load = metered.load(plan)
                found[at, pair, name] = Cost(
                    load.total, load.root, load.most, metered.load(of_energy[name]).joules, initiation(asked, plan).total,
                    sorted(load.by_mote.tolist(), reverse=True)[:LOADED],
                )  # fmt: skip
    return found, formation(asked), len(asked.query.pairs)


def measure(options: Options, recorder: Recorder) -> None:
    """A table for each figure."""
    jobs = [
        Job(options, figure, seed)
        for figure in FIGURES
        for seed in range(options.seed, options.seed + options.seeds)
    ]
    outcomes = dict(
        zip(jobs, recorder.steps(on_all_cores(run, jobs), "networks", total=len(jobs)), strict=True)
    )
    above: list[float] = []
    energies: list[float] = []
    even: list[float] = []
    for figure, asking in FIGURES.items():
        of = [outcomes[job] for job in jobs if job.figure == figure]
        _figure(figure, asking.name, of, recorder, above, energies, even)
    even = [one * options.epochs for one in even]
    near = sum(one <= NEAR for one in above)
    recorder.figure(
        f"cells in which groups with collapsing are at most {NEAR:g} % above the least of the five basic strategies, of {len(above)}", near,
        "", "d", better="more", goal=CELLS, reference="27 of 30", main=True,
    )  # fmt: skip
    recorder.figure(
        "groups with collapsing above the least of the basic strategies, the worst cell", max(above), "%", "+.1f", better="less",
        goal=FAR, main=True,
    )  # fmt: skip
    recorder.figure(
        "epochs after which groups with collapsing have cost less than naive, initiation included", f"{min(even):.0f} to {max(even):.0f}",
        reference="the paper: 30 to 240", main=True,
    )  # fmt: skip
    recorder.figure(
        "energy of the whole network, groups with collapsing ÷ at base, least to most of all cells",
        f"{min(energies):.2f} to {max(energies):.2f}", "×", main=True,
    )  # fmt: skip


def _figure(
    figure: str, query: str, of: list[tuple[Costs, float, int]], recorder: Recorder, above: list[float], energies: list[float],
    even: list[float],
) -> None:  # fmt: skip
    """Its cells: what is told of all of them goes to the lists."""
    units = {"total": ("bytes in all", "kB", 1e3), "root": ("bytes at the root", "kB", 1e3), "most": ("the most loaded mote", "kB", 1e3),
             "joules": ("energy of all", "J", 1.0)}  # fmt: skip
    tables = {
        name: recorder.table(
            f"{figure}, {text}",
            [Column("σs : σt"), Column("σst", "%", ".0f"), *(Column(one, unit, ".1f") for one in NAMES)],
            title=f"{figure.capitalize()}: {query}, {text}, {unit}",
            labels=2,
        )
        for name, (text, unit, _) in units.items()
    }
    for at, shares in enumerate(RATIOS):
        for pair in PAIR_SHARES:
            means = {
                name: {
                    one: fmean(getattr(costs[at, pair, one], name) for costs, _, _ in of) / units[name][2]
                    for one in NAMES
                }
                for name in units
            }
            for name, table in tables.items():
                table.row(ratio_text(shares), 100 * pair, *means[name].values())
            total = means["total"]
            above.append(100 * (total[COLLAPSED] / min(total[one] for one in BASIC) - 1))
            energies.append(means["joules"][COLLAPSED] / means["joules"][BASE])
            for costs, formed, _ in of:
                grouped, naive = costs[at, pair, COLLAPSED], costs[at, pair, NAIVE]
                if naive.total > grouped.total:
                    even.append((grouped.before + formed) / (naive.total - grouped.total))
    loads = recorder.table(
        f"{figure}, loads", [Column("rank"), *(Column(one, "kB", ".1f") for one in NAMES)],
        title=f"Figure 5: the {LOADED} most loaded motes, {query}, 1/2 : 1/2, σst 10 %, the root included",
    )  # fmt: skip
    for rank in range(LOADED):
        loads.row(
            rank + 1, *(fmean(costs[2, 0.1, one].loads[rank] for costs, _, _ in of) / 1e3 for one in NAMES)
        )
    first = recorder.table(
        f"{figure}, initiation", [Column("strategy"), Column("before the first row", "kB", ".1f")],
        title=f"Bytes before the first row, {query}, 1/2 : 1/2, σst 10 %; trees and summaries, if there are none, take "
        f"{fmean(formed for _, formed, _ in of) / 1e3:.1f} kB more; {fmean(pairs for _, _, pairs in of):.0f} pairs",
    )  # fmt: skip
    for one in (*NAMES[:5], GROUPED, COLLAPSED):
        first.row(one, fmean(costs[2, 0.1, one].before for costs, _, _ in of) / 1e3)


def draw(result: Result) -> Figure:
    """Both figures, bytes in all."""
    from matplotlib.figure import Figure as Chart  # noqa: PLC0415 (what measures does without)

    from bench.runner.charts import dress  # noqa: PLC0415

    chart = Chart(figsize=(11, 8), layout="constrained")
    for axes, (figure, asking) in zip(chart.subplots(2, 1), FIGURES.items(), strict=True):
        table = result.table(f"{figure}, bytes in all")
        names = [f"{row[0]}\n{row[1]:.0f} %" for row in table.rows]
        for place, one in enumerate(NAMES):
            at = [x + (place - len(NAMES) / 2) * 0.1 for x in range(len(names))]
            axes.bar(at, table.column(one), 0.1, label=one)
        axes.set_xticks(range(len(names)), names, fontsize="x-small")
        dress(axes, "σs : σt, σst", "kB", f"{figure}: {asking.name}")
    return chart


BENCHMARK = Benchmark(measure, quick=Options(motes=60, epochs=30, seeds=1), minutes=1, chart=draw)

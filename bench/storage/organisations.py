"""What queries cost of a single index, of decomposed ones and of joint ones: figure 4 of DIM 2004, by a model.

Each panel's queries are asked of cold caches, then the same once more, then others of the same kind. "The paper's" accounting has matching
tuples travel to the middle of the last range, "ours" partial states. A model counts bytes on shortest ways; frames are not lost, radios do
not listen. "Best, equation 1 alone" ends where the paper's equation does, in the middle of the next range: there is no such network, as
nobody in the middle knows which of the range's motes has a tuple's other values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from bench.measuring.parallel import on_all_cores
from bench.measuring.storage_load import PANELS, Panel, queries_of, tuples_of
from bench.measuring.storage_network import Meter, Network
from bench.measuring.storage_series import SERIES, Asker
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column, Result, Spread

if TYPE_CHECKING:
    from matplotlib.figure import Figure


ACCOUNTINGS = {"the paper's": False, "ours": True}
#: Times that the decomposed index is to cost less than the single one, once caches are warm, by the paper's accounting.
GOAL = 1.5


@dataclass(frozen=True)
class Options(SeedOptions):
    motes: tuple[int, ...] = option((50, 100), "sizes of networks")
    seeds: int = option(1, "networks, tuples and queries drawn anew")
    queries: float = option(1.0, "share of the paper's queries")


@dataclass(frozen=True)
class Job:
    """A network with tuples and queries."""

    panel: Panel
    motes: int
    seed: int
    queries: int


#: Bytes a query of each accounting and series: insertion's share, cold, the same again, others; then what a planner expects of cold caches,
#: and of warm ones.
Costs = dict[tuple[str, str], tuple[float, ...]]
#: What a planner chooses among, for a load that it is told: queries of the kind, and whether they are asked again.
CHOICES = ("single", "best", "joint")
DECLARED = 50


def run(job: Job) -> Costs:
    """All series."""
    rng = np.random.default_rng([job.seed, job.motes, PANELS.index(job.panel)])
    network = Network.drawn(job.motes, rng)
    points = tuples_of(job.panel.data, rng)
    first, other = (
        queries_of(job.panel.attributes, job.panel.sizes, job.queries, job.motes, rng) for _ in range(2)
    )
    declared = queries_of(job.panel.attributes, job.panel.sizes, DECLARED, job.motes, rng)
    found: Costs = {}
    for accounting, states in ACCOUNTINGS.items():
        for series in SERIES:
            asker = Asker(network, points, series, states=states, seed=job.seed)
            inserted = Meter(network)
            asker.index.insert(inserted, np.random.default_rng(job.seed))
            costs = [asker.ask(queries) for queries in (first, first, other)]
            expected = (asker.expected(declared, warm=warm) for warm in (False, True))
            found[accounting, series.name] = (inserted.total / job.queries, *costs, *expected)
    return found


def drawn_jobs(options: Options) -> Iterator[Job]:
    """The largest first, so that all cores end at about the same time."""
    for motes in sorted(options.motes, reverse=True):
        for panel in reversed(PANELS):
            for seed in range(options.seed, options.seed + options.seeds):
                yield Job(panel, motes, seed, max(2, round(panel.queries * options.queries)))


def measure(options: Options, recorder: Recorder) -> None:
    """A table for each accounting."""
    jobs = list(drawn_jobs(options))
    found = dict(zip(jobs, recorder.steps(on_all_cores(run, jobs), "networks", total=len(jobs)), strict=True))
    for accounting in ACCOUNTINGS:
        _choices(found, accounting, recorder)
        table = recorder.table(
            accounting,
            [
                Column("panel"), Column("motes"), Column("series"), Column("insertion", "B", ",.0f"), Column("first", "B", ",.0f"),
                Column("the same again", "B", ",.0f"), Column("other queries then", "B", ",.0f"),
                Column("single ÷ it, again", "×", ".2f"), Column("single ÷ it, other", "×", ".2f"),
            ],
            title=f"Bytes sent a query, {accounting} accounting",
            labels=3,
        )  # fmt: skip
        for panel in PANELS:
            ratios: dict[str, list[float]] = {"again": [], "other": []}
            for motes in options.motes:
                of = [costs for job, costs in found.items() if (job.panel, job.motes) == (panel, motes)]
                for series in SERIES:
                    mean = [fmean(one[accounting, series.name][at] for one in of) for at in range(4)]
                    gains = [
                        [one[accounting, "single"][at] / one[accounting, series.name][at] for one in of]
                        for at in (2, 3)
                    ]
                    table.row(panel.name, motes, series.name, *mean, *map(Spread.mean, gains))
                    if series.name == "best":
                        ratios["again"] += gains[0]
                        ratios["other"] += gains[1]
            paper = accounting == "the paper's"
            for asked, gains_of in ratios.items():
                recorder.figure(
                    f"{panel.name}: single ÷ decomposed, {accounting} accounting, "
                    + ("the same queries again" if asked == "again" else "other queries of the kind"),
                    Spread.mean(gains_of), "×", ".2f", better="more", goal=GOAL if paper else None,
                    reference="the paper: 4×" if paper else "", main=paper,
                )  # fmt: skip


def _choices(found: dict[Job, Costs], accounting: str, recorder: Recorder) -> None:
    """What a planner that is told the load would have chosen."""
    table = recorder.table(
        f"chosen, {accounting}",
        [
            Column("panel"), Column("motes"), Column("seed"), Column("asked"), Column("chosen"), Column("cheapest"),
            Column("more than the cheapest", "%", ".0f"),
        ],
        title=f"What a planner chooses for a load that it is told, {accounting} accounting",
        labels=4,
    )  # fmt: skip
    most = 0.0
    for job, costs in found.items():
        of = {name: costs[accounting, name] for name in CHOICES}
        for asked, measured, expected in (("first", 1, 4), ("again", 2, 5)):
            _, chosen = min((of[name][expected], name) for name in CHOICES)
            least, cheapest = min((of[name][measured], name) for name in CHOICES)
            more = 100 * (of[chosen][measured] / least - 1)
            most = max(most, more)
            table.row(job.panel.name, job.motes, job.seed, asked, chosen, cheapest, more)
    recorder.figure(
        f"what a planner chooses against the cheapest, {accounting} accounting, the worst", most, "%", "+.0f", better="less",
        goal=10 if accounting == "ours" else None, main=accounting == "ours",
    )  # fmt: skip


def draw(result: Result) -> Figure:
    """The paper's figure: its accounting, insertion included, once the same is asked again."""
    from matplotlib.figure import Figure as Chart  # noqa: PLC0415 (what measures does without)

    from bench.runner.charts import dress  # noqa: PLC0415

    figure = Chart(figsize=(11, 4), layout="constrained")
    table = result.table("the paper's")
    names = [column.name for column in table.columns]
    for axes, panel in zip(figure.subplots(1, len(PANELS)), PANELS, strict=True):
        for series in SERIES[:-1]:
            rows = [row for row in table.rows if (row[0], row[2]) == (panel.name, series.name)]
            again = names.index("the same again")
            axes.plot([row[1] for row in rows], [row[again] for row in rows], label=series.name, marker="o")
        axes.set_yscale("log")
        dress(axes, "motes", "bytes a query, asked again", panel.name, cut=True)
    return figure


BENCHMARK = Benchmark(measure, quick=Options(motes=(50,), seeds=1, queries=0.2), minutes=2, chart=draw)

"""What learning makes of shares that differ from mote to mote, or change in the midst: Aspen's figure 12, by a model.

Sel1 is σs 10 %, σt 100 %, σst 5 %, Sel2 σs 100 %, σt 10 %, σst 20 %. Where shares are skewed, half of the motes are of one kind, half of
the other; where they change, all are of the first kind for half of the time and then of the second. "Full knowledge" knows each mote's
shares, and places pairs anew when they change. What learning would come to if windows were handed over, which motes do not do, is
reckoned beside it: two plans then run until answers of rows under way are there.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from bench.measuring.join_learning import Learned, learned
from bench.measuring.join_meter import Load, Metered, Readings
from bench.measuring.join_network import Field
from bench.measuring.join_series import PLACED, flooded, placed_by, priced
from bench.measuring.parallel import on_all_cores
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column, Result
from skerry.joins.placement.estimates import Estimates, Rates
from skerry.planner.model.pairing import answered_ms
from skerry_protocol.codes import PairsWay

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: σs, σt, σst.
SEL = ((0.1, 1.0, 0.05), (1.0, 0.1, 0.2))
PERIOD_MS = 10_000
SKEWED, CHANGING = "skewed", "changing"
SERIES = ("Sel1", "Sel2", "full knowledge", "Sel1, learnt", "Sel2, learnt")
#: Epochs in which answers of a row are there, and both plans run, if windows are handed over.
BOTH = ceil(answered_ms(PERIOD_MS, PairsWay.SENT) / PERIOD_MS)
#: Learnt places cost so much more than those of who knows everything, at most.
ABOVE = 15.0


@dataclass(frozen=True)
class Options(SeedOptions):
    motes: int = option(100, "motes of the network")
    epochs: int = option(800, "sample periods of 10 s")
    seeds: int = option(3, "networks and readings drawn anew")


@dataclass(frozen=True)
class Job:
    """A query over one kind of data in a network."""

    options: Options
    query: str
    kind: str
    seed: int


@dataclass(frozen=True)
class Cost:
    """Of one series: bytes, how often pairs moved, and what of it plans took that another one had taken over from."""

    total: float
    root: float
    most: float
    changes: int = 0
    twice: float = 0.0
    #: All, if windows were handed over.
    handed: float = 0.0

    @classmethod
    def of(cls, load: Load) -> Cost:
        """Of places that stay, or change when nothing is in windows."""
        return cls(load.total, load.root, load.most, handed=load.total)

    @classmethod
    def learnt(cls, long: Learned) -> Cost:
        """Of places that are learnt."""
        epochs = long.metered.readings.epochs
        load, handed = long.load(0, epochs), long.handed_over(BOTH).load(0, epochs)
        return cls(load.total, load.root, load.most, long.changes, long.twice().total, handed.total)


def run(job: Job) -> dict[str, Cost]:
    """All series."""
    options, placed, half = job.options, PLACED[job.query], job.options.epochs // 2
    rng = np.random.default_rng([job.seed, options.motes])
    field = Field.drawn("7", options.motes, rng)
    asked, price, window = placed.of(field, rng), priced("bytes"), placed.window
    planned = placed_by(asked, placed.strategy, price)
    told = [Rates(Estimates(*shares, window)) for shares in SEL]
    if job.kind == SKEWED:
        of = rng.integers(0, len(SEL), len(field))
        s, t, pair = (np.array(shares)[of] for shares in zip(*SEL, strict=True))
        readings = Readings.drawn(len(field), options.epochs, s, t, pair, rng)
        # Values of two kinds are drawn from ranges of two sizes: they match as often as those of the larger one.
        known = Rates(
            told[0].usual,
            dict(enumerate(s.tolist())),
            dict(enumerate(t.tolist())),
            {(one, other): float(min(pair[one], pair[other])) for one, other in asked.query.pairs},
        )
        metered = Metered(len(field), readings, window)
        full = metered.load(planned(known))
    else:
        first, second = (Readings.drawn(len(field), half, *shares, rng) for shares in SEL)
        metered = Metered(len(field), first.then(second), window)
        full = metered.load(planned(told[0]), slice(0, half)) + metered.load(
            planned(told[1]), slice(half, None)
        )
        full += flooded(asked)
    found = {}
    for name, start in zip(SERIES, told, strict=False):
        found[name] = Cost.of(metered.load(planned(start)))
        long = learned(asked, metered, planned, start, price)
        found[f"{name}, learnt"] = Cost.learnt(long)
    return {**found, "full knowledge": Cost.of(full)}


def measure(options: Options, recorder: Recorder) -> None:
    """A table for each query and kind of data."""
    jobs = [
        Job(options, query, kind, seed)
        for query in PLACED
        for kind in (SKEWED, CHANGING)
        for seed in range(options.seed, options.seed + options.seeds)
    ]
    outcomes = dict(
        zip(jobs, recorder.steps(on_all_cores(run, jobs), "networks", total=len(jobs)), strict=True)
    )
    for query in PLACED:
        for kind in (SKEWED, CHANGING):
            _table(
                query,
                kind,
                [found for job, found in outcomes.items() if (job.query, job.kind) == (query, kind)],
                recorder,
            )


def _table(query: str, kind: str, of: list[dict[str, Cost]], recorder: Recorder) -> None:
    table = recorder.table(
        f"{query}, {kind}",
        [
            Column("series"),
            Column("all", "kB", ".1f"),
            Column("at the root", "kB", ".1f"),
            Column("most loaded mote", "kB", ".1f"),
            Column("changes", "", ".1f"),
            Column("of it while two ran", "kB", ".1f"),
            Column("above full knowledge", "%", "+.1f"),
            Column("were windows handed over", "%", "+.1f"),
        ],
        title=f"{query}, {PLACED[query].strategy}: shares that are {kind}, changes included",
    )
    full = fmean(one["full knowledge"].total for one in of)
    for name in SERIES:
        total, root, most, changes, twice, handed = (
            fmean(getattr(one[name], what) for one in of)
            for what in ("total", "root", "most", "changes", "twice", "handed")
        )
        above, without = (100 * (whole / full - 1) for whole in (total, handed))
        table.row(name, total / 1e3, root / 1e3, most / 1e3, changes, twice / 1e3, above, without)
        if name.endswith("learnt"):
            recorder.figure(
                f"{query}, {kind}: {name}, above full knowledge", above, "%", "+.1f", better="less", goal=ABOVE,
                main=True,
            )  # fmt: skip


def draw(result: Result) -> Figure:
    """Bytes of all series."""
    from matplotlib.figure import Figure as Chart  # noqa: PLC0415 (what measures does without)

    from bench.runner.charts import dress  # noqa: PLC0415

    chart = Chart(figsize=(11, 7), layout="constrained")
    for axes, table in zip(chart.subplots(3, 2).flat, result.tables, strict=True):
        for place, column in enumerate(("all", "most loaded mote", "at the root")):
            at = [x + (place - 1) * 0.25 for x in range(len(SERIES))]
            axes.bar(at, table.column(column), 0.25, label=column)
        axes.set_xticks(range(len(SERIES)), SERIES, fontsize="x-small")
        dress(axes, "", "kB", table.name)
    return chart


BENCHMARK = Benchmark(measure, quick=Options(motes=60, epochs=400, seeds=1), minutes=2, chart=draw)

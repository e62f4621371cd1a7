"""How good ways are that searches find, and what they take: Aspen's figures 6, 7, 16 and 18, by a model.

Ten motes at random each search for another one (query 0), by one, two and three trees, with the motes' own C (``firmware/join``); the
shortest way that is found is taken. Beside that: ways of the tree to the root alone, geographic ones (GPSR), and shortest ones, which a
planner takes that knows all links. With σs = σt = 1 and σst = 0, bytes of a pair are as many as its way has hops (figure 7).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from bench.measuring.join_meter import Load, searched
from bench.measuring.join_network import TOPOLOGIES, Field, Searches, Topology
from bench.measuring.join_queries import PAIRS, query_0
from bench.measuring.join_series import NOMINATION
from bench.measuring.parallel import on_all_cores
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column, Result
from skerry.joins.placement.estimates import Pair
from skerry.joins.placement.trees import Path, links_of
from skerry.planner.cost.join_prices import FRAME_BYTES, RECORD_BYTES, ROOM

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Trees that searches have.
TREES = (1, 2, 3)
ONE_TREE, GEOGRAPHIC, SHORTEST = "the tree to the root", "geographic", "shortest"
SERIES = (ONE_TREE, *(f"searches, {trees} tree{'s' * (trees > 1)}" for trees in TREES), GEOGRAPHIC, SHORTEST)
BEST = SERIES[len(TREES)]
#: Figure 18's sizes.
SIZES = (50, 100, 150, 200)
#: Of figure 7: hops above shortest ways, the mean of all topologies and the worst of them.
MEAN, WORST = 3.0, 10.0
#: Of what a mote tells a planner in the middle: itself and four attributes, and each neighbour with how well it is heard.
OWN_BYTES, NEIGHBOUR_BYTES = 10, 3


@dataclass(frozen=True)
class Options(SeedOptions):
    motes: int = option(100, "motes of the network")
    seeds: int = option(9, "networks of each topology drawn anew")


@dataclass(frozen=True)
class Job:
    """A network."""

    topology: Topology
    motes: int
    seed: int


@dataclass(frozen=True)
class Outcome:
    """By series how many pairs have a way, as a search's has room for 20 motes; hops of all ways of the ``pairs`` that each has one for,
    and how many of them lead by the mote that most lead by. Of initiation by searches and in the middle the bytes at the root, the bytes of
    all, and frames one after the other."""

    pairs: int
    found: dict[str, int]
    hops: dict[str, int]
    most: dict[str, int]
    initiation: tuple[tuple[float, float, int], tuple[float, float, int]]


def run(job: Job) -> Outcome:
    """All series."""
    rng = np.random.default_rng([job.seed, job.motes])
    field = Field.drawn(job.topology, job.motes, rng)
    # The same pairs for all numbers of trees.
    drawn = rng.integers(1 << 32)
    asked = {trees: query_0(field, np.random.default_rng(drawn), trees) for trees in TREES}
    pairs = asked[TREES[0]].query.pairs
    ways: dict[str, dict[Pair, Path]] = {
        ONE_TREE: {pair: field.tree.between(*pair) for pair in pairs},
        GEOGRAPHIC: {pair: field.geographic(*pair) for pair in pairs},
        SHORTEST: {pair: field.shortest(*pair) for pair in pairs},
    }
    for name, trees in zip(SERIES[1:], TREES, strict=False):
        ways[name] = {pair: those[0] for pair, those in asked[trees].network.paths.items()}
    found = {name: len(those) for name, those in ways.items()}
    common = [pair for pair in pairs if all(pair in those for those in ways.values())]
    taken = {name: [those[pair] for pair in common] for name, those in ways.items()}
    by_mote = {
        name: np.bincount([mote for way in those for mote in way], minlength=len(field))
        for name, those in taken.items()
    }
    searches = asked[TREES[-1]].searches
    return Outcome(
        len(common),
        found,
        {name: sum(len(links_of(way)) for way in those) for name, those in taken.items()},
        {name: int(counts.max()) for name, counts in by_mote.items()},
        (
            _by_searches(field, searches, [*ways[BEST].values()]),
            _in_the_middle(field, [*ways[SHORTEST].values()]),
        ),
    )


def _by_searches(field: Field, searches: Searches, ways: list[Path]) -> tuple[float, float, int]:
    """Trees and summaries, searches, and a nomination along each way and back; the longest chain of frames."""
    network = searches.network
    load = searched(len(field), searches.sent, searches.received, searches.path_motes, ())
    # Each mote tells where it stands in each tree, and what is below, about as often as the next one.
    load.sent += (sum(network.formed[1:]) + network.told) / len(field) * (FRAME_BYTES + 12)
    for way in ways:
        for link in (*pairwise(way), *pairwise(way[::-1])):
            load.frames(link, 1, NOMINATION, FRAME_BYTES)
    longest = max(len(links_of(way)) for way in ways)
    return load.root, load.total, searches.hops + 2 * longest


def _in_the_middle(field: Field, ways: list[Path]) -> tuple[float, float, int]:
    """Each mote tells the root what it is and whom it hears; records share frames. The plan is told to both motes of each way. The root
    takes one frame after the other."""
    load, below = Load.none(len(field)), np.zeros(len(field))
    for mote in range(1, len(field)):
        size = RECORD_BYTES + OWN_BYTES + NEIGHBOUR_BYTES * len(field.neighbours[mote])
        for one, _ in links_of(field.tree.way(mote)):
            below[one] += size
    frames = np.ceil(below / ROOM)
    for mote in range(1, len(field)):
        load.frames((mote, field.tree.parents[mote]), float(frames[mote]), float(below[mote]), FRAME_BYTES)
    told = 0
    for way in ways:
        for mote in (way[0], way[-1]):
            down = links_of(field.tree.way(mote)[::-1])
            told += 1
            for link in down:
                load.frames(link, ceil(NOMINATION / ROOM), NOMINATION, FRAME_BYTES)
    at_root = sum(int(frames[mote]) for mote, parent in field.tree.parents.items() if parent == 0)
    return load.root, load.total, at_root + told + max(field.tree.hops(mote) for mote in range(len(field)))


def measure(options: Options, recorder: Recorder) -> None:
    """A table by topology, one by size, and initiation."""
    seeds = range(options.seed, options.seed + options.seeds)
    here = [topology for topology in TOPOLOGIES if topology != "lab"]
    jobs = [Job(topology, options.motes, seed) for topology in here for seed in seeds]
    jobs += [Job("7", motes, seed) for motes in SIZES if motes != options.motes for seed in seeds]
    outcomes = dict(
        zip(jobs, recorder.steps(on_all_cores(run, jobs), "networks", total=len(jobs)), strict=True)
    )
    by_topology = {
        f"{topology} neighbours" if topology.isdigit() else topology: [
            outcome
            for job, outcome in outcomes.items()
            if (job.topology, job.motes) == (topology, options.motes)
        ]
        for topology in here
    }
    by_size = {
        f"{motes} motes": [
            outcome for job, outcome in outcomes.items() if (job.topology, job.motes) == ("7", motes)
        ]
        for motes in sorted({*SIZES, options.motes})
    }
    above = _ways(
        f"Figure 16: ways between {PAIRS} pairs of {options.motes} motes", "topology", by_topology, recorder
    )
    _ways("Figure 18: the same by the network's size, 7 neighbours", "motes", by_size, recorder)
    recorder.figure(
        "figure 7: hops of ways by searches in three trees above shortest ones, mean of all topologies", fmean(above), "%", "+.1f",
        better="less", goal=MEAN, main=True,
    )  # fmt: skip
    recorder.figure(
        "figure 7: … the worst topology", max(above), "%", "+.1f", better="less", goal=WORST, main=True
    )
    _initiation(by_size, recorder)


def _ways(title: str, label: str, of: dict[str, list[Outcome]], recorder: Recorder) -> list[float]:
    """How much longer than shortest ones ways by three trees are, %."""
    found, hops, most = (
        recorder.table(
            f"{label}, {what}", [Column(label), *(Column(name, unit, form) for name in SERIES)], title=f"{title}: {text}"
        )
        for what, text, unit, form in (
            ("found", "pairs that have a way", "%", ".0f"), ("hops", "hops of a way, mean of pairs that each has one for", "", ".2f"),
            ("load", "ways by the mote that most lead by, mean", "", ".1f"),
        )
    )  # fmt: skip
    above = []
    for name, outcomes in of.items():
        count = sum(one.pairs for one in outcomes)
        hops.row(name, *(sum(one.hops[series] for one in outcomes) / count for series in SERIES))
        found.row(name, *(100 * fmean(one.found[series] for one in outcomes) / PAIRS for series in SERIES))
        most.row(name, *(fmean(one.most[series] for one in outcomes) for series in SERIES))
        above.append(
            100 * (sum(one.hops[BEST] for one in outcomes) / sum(one.hops[SHORTEST] for one in outcomes) - 1)
        )
    return above


def _initiation(of: dict[str, list[Outcome]], recorder: Recorder) -> None:
    table = recorder.table(
        "initiation",
        [
            Column("motes"),
            *(
                Column(f"{what}, {how}", unit, form)
                for what, unit, form in (("at the root", "kB", ".2f"), ("all", "kB", ".1f"), ("frames one after the other", "", ".0f"))
                for how in ("searched", "in the middle")
            ),
        ],
        title="Figure 6: what it takes until pairs know where they are joined, trees and summaries included",
    )  # fmt: skip
    for name, outcomes in of.items():
        cells = []
        for what, scale in ((0, 1e3), (1, 1e3), (2, 1.0)):
            cells += [fmean(one.initiation[how][what] for one in outcomes) / scale for how in (0, 1)]
        table.row(name, *cells)
        recorder.figure(
            f"figure 6: bytes at the root, searched ÷ in the middle, {name}", cells[0] / cells[1], "×", ".2f", better="less", goal=0.5,
            main=name == "100 motes",
        )  # fmt: skip
        recorder.figure(
            f"figure 6: frames one after the other, searched ÷ in the middle, {name}", cells[4] / cells[5], "×", ".2f", better="less",
            goal=1.0, main=name == "100 motes",
        )  # fmt: skip


def draw(result: Result) -> Figure:
    """Hops and load, by topology and by size."""
    from matplotlib.figure import Figure as Chart  # noqa: PLC0415 (what measures does without)

    from bench.runner.charts import dress  # noqa: PLC0415

    chart = Chart(figsize=(11, 8), layout="constrained")
    for row, label in zip(chart.subplots(2, 2), ("topology", "motes"), strict=True):
        for axes, (what, unit) in zip(row, (("hops", "hops"), ("load", "ways")), strict=True):
            table = result.table(f"{label}, {what}")
            names = [str(cells[0]) for cells in table.rows]
            for place, series in enumerate(SERIES):
                at = [x + (place - len(SERIES) / 2) * 0.13 for x in range(len(names))]
                axes.bar(at, table.column(series), 0.13, label=series)
            axes.set_xticks(range(len(names)), names, fontsize="x-small")
            dress(axes, label, unit, what)
    return chart


BENCHMARK = Benchmark(measure, quick=Options(motes=50, seeds=1), minutes=2, chart=draw)

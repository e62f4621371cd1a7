"""How a field falls in zones, and how evenly they fill: the motes' own C over a field of motes at random.

The chart is one network's: four parts of a decomposed index, each halved until every mote is alone. Where a half holds nobody,
motes of the other half have what belongs there; the chart hatches these.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bench.measuring.storage_load import Data, tuples_of
from bench.measuring.storage_model import DECOMPOSED, SINGLE, Index
from bench.measuring.storage_network import Network
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Cell, Column, Result, Spread
from skerry.index.code import BITS, Zone

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DATA: tuple[Data, ...] = ("uniform", "gaussian", "redwood")
INDEXES = {"single": SINGLE, "decomposed": DECOMPOSED}
#: Halvings of a zone in the chart.
DEEPEST = 5
NAMES = ("light", "temp", "humidity", "voltage")


@dataclass(frozen=True)
class Options(SeedOptions):
    motes: int = option(100, "motes of the networks")
    seeds: int = option(5, "networks and tuples drawn anew")
    drawn: int = option(28, "motes of the network in the chart")


def rectangles(index: Index) -> list[tuple[Cell, ...]]:
    """Part, mote, zone, its four sides as shares of the field, and whether nobody is in it."""
    found: list[tuple[Cell, ...]] = []
    for number, placed in enumerate(index.parts):
        for mote, owned in zip(placed.motes, placed.owned, strict=True):
            length = index.code.zone_of_owner(owned).length
            turns = [
                (owned.code >> (BITS - 1 - bit) & 1,) if not owned.any >> (BITS - 1 - bit) & 1 else (0, 1)
                for bit in range(length)
            ]
            for bits in itertools.product(*turns):
                text = "".join(map(str, bits))
                zone = Zone(int(text.ljust(BITS, "0"), 2), length)
                sides = (
                    side / index.network.side for side in index.code.zone_area(placed.part.area, zone).sides
                )
                empty = f"{owned.code:032b}"[:length] != text
                found.append((NAMES[number], mote, text, *sides, empty))
    return found


def _drawn(options: Options) -> tuple[Network, Index]:
    """The first network whose zones are all large enough to be seen."""
    rng = np.random.default_rng(options.seed)
    while True:
        network = Network.drawn(options.drawn, rng)
        index = Index(network, tuples_of("uniform", rng, 1), DECOMPOSED)
        owned = [one for placed in index.parts for one in placed.owned]
        if max(index.code.zone_of_owner(one).length for one in owned) <= DEEPEST:
            return network, index


def measure(options: Options, recorder: Recorder) -> None:
    """Zones of one network, and tuples of the fullest mote of many."""
    table = recorder.table(
        "tuples",
        [
            Column("tuples"),
            Column("index"),
            Column("tuples of the fullest mote ÷ of the mean one", "×", ".1f"),
        ],
        title=f"4,000 tuples on {options.motes} motes",
        labels=2,
    )
    for data in recorder.steps(DATA):
        for name, parts in INDEXES.items():
            ratios = []
            for seed in range(options.seed, options.seed + options.seeds):
                rng = np.random.default_rng(seed)
                network = Network.drawn(options.motes, rng)
                index = Index(network, tuples_of(data, rng), parts)
                counts = sum(np.bincount(placed.homes, minlength=len(network)) for placed in index.parts)
                ratios.append(float(np.max(counts) / np.mean(counts)))
            table.row(data, name, Spread.mean(ratios))
            recorder.figure(
                f"fullest mote ÷ mean mote, {data} tuples, {name} index", Spread.mean(ratios), "×", ".1f",
                main=data == "redwood",
            )  # fmt: skip
    network, index = _drawn(options)
    zones = recorder.table(
        "zones",
        [
            Column("part"), Column("mote"), Column("zone"), *(Column(side, form=".3f") for side in ("left", "bottom", "right", "top")),
            Column("nobody is in it"),
        ],
        title=f"Zones of {options.drawn} motes in four parts, as shares of the field's sides",
        labels=3,
    )  # fmt: skip
    for row in rectangles(index):
        zones.row(*row)
    places = recorder.table(
        "motes", [Column("mote"), Column("x", form=".3f"), Column("y", form=".3f")], title="Its motes"
    )
    for mote, (x, y) in enumerate(network.places / network.side):
        places.row(mote, float(x), float(y))


def draw(result: Result) -> Figure:
    """The field."""
    from matplotlib.figure import Figure as Chart  # noqa: PLC0415 (what measures does without)
    from matplotlib.patches import Rectangle  # noqa: PLC0415

    figure = Chart(figsize=(7.5, 7.5), layout="constrained")
    axes = figure.subplots()
    colours = dict(zip(NAMES, ("#fff3c4", "#ffd9cc", "#d3e8f8", "#dcefd4"), strict=True))
    for part, mote, zone, left, bottom, right, top, empty in result.table("zones").rows:
        assert isinstance(left, float)
        assert isinstance(bottom, float)
        assert isinstance(right, float)
        assert isinstance(top, float)
        axes.add_patch(
            Rectangle(
                (left, bottom), right - left, top - bottom, facecolor=colours[str(part)], edgecolor="#444444",
                hatch="///" if empty else None, linewidth=0.8,
            )
        )  # fmt: skip
        axes.text(left + 0.006, top - 0.006, f"{zone}", fontsize=6, va="top")
        if empty:
            axes.text((left + right) / 2, (bottom + top) / 2, f"{mote}'s", fontsize=6, ha="center")
    for mote, x, y in result.table("motes").rows:
        assert isinstance(x, float)
        assert isinstance(y, float)
        axes.plot([x], [y], "ko", markersize=4)
        axes.annotate(str(mote), (x, y), (4, -3), textcoords="offset points", fontsize=8)
    for part, colour in colours.items():
        axes.plot([], [], "s", color=colour, markeredgecolor="#444444", label=f"part of {part}")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_xticks([])
    axes.set_yticks([])
    figure.legend(loc="outside lower center", ncols=4, fontsize="small")
    return figure


BENCHMARK = Benchmark(measure, quick=Options(motes=50, seeds=1), minutes=0.5, chart=draw)

"""From how far from the root on joining two motes out there takes less energy than at the base, by a model.

On one branch both stand at the end of a line of motes, so that the mote next to them is above both. On two branches each stands at the end
of its own, the ends hear each other, and only the root is above both: there a way of its own has to pay for its listeners. The tree's
listeners are there whatever is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bench.measuring.join_meter import Metered, Readings
from bench.measuring.join_network import Field
from bench.measuring.join_queries import S, T
from bench.measuring.join_series import priced
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column, Result
from skerry.joins.placement import strategies
from skerry.joins.placement.estimates import Estimates, Rates
from skerry.joins.placement.pair import BASE, IN_NETWORK
from skerry.joins.placement.plans import with_ways

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEPTHS = (2, 4, 8, 12, 16, 24, 32)
ONE_BRANCH, TWO_BRANCHES = "one branch", "two branches"
#: σst of rows that all pass.
SHARES = (0.01, 0.1)
WINDOW = 1
#: The place of a pair by its strategy.
SERIES = (BASE, strategies.ANCESTORS, IN_NETWORK)


@dataclass(frozen=True)
class Options(SeedOptions):
    epochs: int = option(1000, "sample periods of 10 s")


def branches(shape: str, depth: int) -> tuple[Field, tuple[int, int]]:
    """A root and a line of motes with two at its end, or two lines whose ends hear each other; and the pair."""
    if shape == ONE_BRANCH:
        links = [(mote, mote + 1) for mote in range(depth)]
        links.append((depth - 1, depth + 1))
        pair = depth, depth + 1
    else:
        links = [(0, 1), (0, depth + 1), (depth, 2 * depth)]
        links += [(mote, mote + 1) for first in (1, depth + 1) for mote in range(first, first + depth - 1)]
        pair = depth, 2 * depth
    count = 1 + max(mote for link in links for mote in link)
    heard = np.zeros((count, count), bool)
    for one, other in links:
        heard[one, other] = heard[other, one] = True
    field = Field.of(np.zeros((count, 2)), heard)
    assert field is not None
    return field, pair


def measure(options: Options, recorder: Recorder) -> None:
    """A table for each shape and σst."""
    for shape in (ONE_BRANCH, TWO_BRANCHES):
        for share in SHARES:
            _table(shape, share, options, recorder)


def _table(shape: str, share: float, options: Options, recorder: Recorder) -> None:
    table = recorder.table(
        f"{shape}, {share:.0%}",
        [
            Column("hops from the root"),
            *(Column(f"{name}, bytes", "kB", ".1f") for name in SERIES),
            *(Column(f"{name}, energy", "J", ".3f") for name in SERIES),
            Column("taken by energy"),
        ],
        title=f"{shape.capitalize()}, σst {share:.0%}, all rows pass: what {options.epochs} sample periods take",
    )  # fmt: skip
    won: dict[str, int] = {}
    for depth in DEPTHS:
        field, pair = branches(shape, depth)
        rng = np.random.default_rng([options.seed, depth])
        metered = Metered(
            len(field), Readings.drawn(len(field), options.epochs, 1.0, 1.0, share, rng), WINDOW
        )
        query = strategies.Query((pair,), {pair[0]: S, pair[1]: T})
        network = strategies.Network(field.tree, {pair: [field.shortest(*pair)]}, field.neighbours)
        rates = Rates(Estimates(1.0, 1.0, share, WINDOW))
        loads = {}
        for unit in ("bytes", "energy"):
            forced = strategies.placed(query, network, rates, priced(unit), forced=True)
            plans = {
                BASE: strategies.base(query, network),
                strategies.ANCESTORS: strategies.ancestors(query, network),
                IN_NETWORK: with_ways(IN_NETWORK, forced.places, forced.ways, field.tree, multicast=True),
            }
            loads[unit] = {name: metered.load(plan, tree=field.tree) for name, plan in plans.items()}
        # Plans are those of energy, which came last.
        costs = [(plans[name].cost(rates, priced("energy"), field.tree), name) for name in SERIES]
        taken = min(costs, key=lambda one: one[0])[1]
        table.row(
            depth, *(loads["bytes"][name].total / 1e3 for name in SERIES), *(loads["energy"][name].joules for name in SERIES), taken
        )  # fmt: skip
        for unit, cost in (("bytes", "total"), ("energy", "joules")):
            of = {name: getattr(loads[unit][name], cost) for name in SERIES}
            if unit not in won and min(of.values()) < of[BASE]:
                won[unit] = depth
    for unit in ("bytes", "energy"):
        recorder.figure(
            f"{shape}, σst {share:.0%}: hops from which the base takes more {unit} than another place",
            won.get(unit, "none"), main=unit == "energy",
        )  # fmt: skip


def draw(result: Result) -> Figure:
    """Energy by depth."""
    from matplotlib.figure import Figure as Chart  # noqa: PLC0415 (what measures does without)

    from bench.runner.charts import dress  # noqa: PLC0415

    chart = Chart(figsize=(11, 7), layout="constrained")
    for axes, table in zip(chart.subplots(2, 2).flat, result.tables, strict=True):
        for name in SERIES:
            axes.plot(
                table.column("hops from the root"), table.column(f"{name}, energy"), marker="o", label=name
            )
        dress(axes, "hops from the root", "J", table.title)
    return chart


BENCHMARK = Benchmark(measure, quick=Options(epochs=100), minutes=1, chart=draw)

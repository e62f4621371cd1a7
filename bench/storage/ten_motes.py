"""Ten motes in two parts, as on the motes of DIM 2004 in section 6, by a model.

Zones are those of its figure 10; 50 tuples of light and temperature are drawn. It says "several simple SQL queries": here the four that the
paper writes of these two attributes, each asked ten times by motes at random. Matching tuples travel. Insertion is not in the sums.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench.measuring.storage_load import Points, Query
from bench.measuring.storage_network import Network
from bench.measuring.storage_series import Asker, Series
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column, Spread
from skerry.index.code import LAST

#: Middles of zones 000, 0010, 0011, 010, 011 and 1000, 1001, 101, 110, 111, in eighths of a side.
PLACES = ((1, 2), (3, 1), (3, 3), (1, 6), (3, 6), (5, 1), (5, 3), (7, 2), (5, 6), (7, 6))
SIDE = 8000
#: So far that the network is four hops wide, as theirs was.
REACH = 3100
SERIES = (
    Series("2-D", ((0, 1),), cached=False),
    Series("decomposed", ((0,), (1,))),
    Series("decomposed, equation 1 alone", ((0,), (1,)), fan_out=False),
    Series("decomposed, uncached", ((0,), (1,)), cached=False),
)
#: Light is attribute 0, temperature 1.
ASKED: dict[str, tuple[dict[int, tuple[float, float]], tuple[int, ...]]] = {
    "avg(t) where 0.25 <= t < 0.5": ({1: (0.25, 0.5)}, (1,)),
    "avg(l) where 0.25 <= l < 0.75 and 0.5 <= t < 0.75": ({0: (0.25, 0.75), 1: (0.5, 0.75)}, (0,)),
    "avg(l)": ({}, (0,)),
    "avg(l), avg(t) where 0 <= l < 0.5": ({0: (0, 0.5)}, (0, 1)),
}


@dataclass(frozen=True)
class Options(SeedOptions):
    seeds: int = option(20, "times that tuples and askers are drawn anew")
    tuples: int = option(50, "that are stored")
    times: int = option(10, "that each query is asked")


def network() -> Network:
    """The ten motes."""
    places = np.array(PLACES) * SIDE // 8
    found = Network.of(places, SIDE, REACH)
    assert found is not None
    assert found.hops.max() == 4
    return found


def measure(options: Options, recorder: Recorder) -> None:
    """A row for each query, and their sum."""
    motes = network()
    sums: dict[str, dict[str, list[float]]] = {
        series.name: {name: [] for name in (*ASKED, "all")} for series in SERIES
    }
    for seed in recorder.steps(range(options.seed, options.seed + options.seeds), "tuples"):
        rng = np.random.default_rng(seed)
        points: Points = (rng.random((options.tuples, 2)) * LAST).astype(np.int64)
        issuers = rng.integers(len(motes), size=(len(ASKED), options.times))
        for series in SERIES:
            asker = Asker(motes, points, series, states=False)
            total = 0.0
            for (name, (limits, measured)), by in zip(ASKED.items(), issuers, strict=True):
                box = {a: (int(low * LAST), int(high * LAST) - 1) for a, (low, high) in limits.items()}
                cost = asker.ask([Query(box, frozenset(measured), int(issuer)) for issuer in by])
                sums[series.name][name].append(cost * options.times)
                total += cost * options.times
            sums[series.name]["all"].append(total)
    table = recorder.table(
        "queries",
        [Column("query"), *(Column(series.name, "B", ",.0f") for series in SERIES), Column("2-D ÷ decomposed", "×", ".2f")],
        title=f"Bytes sent for each query {options.times} times, mean of all tuples drawn",
    )  # fmt: skip
    for name in (*ASKED, "all"):
        means = [float(np.mean(sums[series.name][name])) for series in SERIES]
        table.row(name, *means, means[0] / means[1])
    ratios = [a / b for a, b in zip(sums["2-D"]["all"], sums["decomposed"]["all"], strict=True)]
    recorder.figure(
        "2-D ÷ decomposed, sum of all queries", Spread.mean(ratios), "×", ".2f", better="more", goal=2.7,
        reference="the paper, on its motes", main=True,
    )  # fmt: skip


BENCHMARK = Benchmark(measure, quick=Options(seeds=2), minutes=0.5)

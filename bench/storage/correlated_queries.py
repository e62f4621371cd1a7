"""Joint indexes where ranges go together, and caches that are small: figure 5 of DIM 2004, by a model.

Redwood tuples; each query measures temperature and humidity where both are in a range. With the probability that is drawn across, both
ranges cover the same quantiles, else each is drawn by itself. Caches are what one mote has room for, of the most that any came to need.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bench.measuring.parallel import on_all_cores
from bench.measuring.storage_load import Points, Query, drawn_range, tuples_of
from bench.measuring.storage_model import DECOMPOSED, JOINT, SINGLE
from bench.measuring.storage_network import Network
from bench.measuring.storage_series import Asker, Series
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column, Result
from skerry.index.code import LAST

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOUR, TWO, ONE = Series("4-D", SINGLE, cached=False), Series("2-D", JOINT), Series("decomposed", DECOMPOSED)
PROBABILITIES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
SHARES = (0, 5, 10, 20, 40, 60, 80, 100)
#: Of queries whose ranges go together, where caches are small.
CORRELATED = 0.7
WITHOUT_LIMIT = 1 << 40


@dataclass(frozen=True)
class Options(SeedOptions):
    motes: int = option(100, "motes of the network")
    queries: int = option(200, "for each point")


def queries_of(
    points: Points, probability: float, count: int, motes: int, rng: np.random.Generator
) -> list[Query]:
    """Ranges of two attributes."""
    sorted_points = np.sort(points[:, :2], axis=0)

    def of(attribute: int, quantiles: tuple[int, int]) -> tuple[int, int]:
        low, high = (
            sorted_points[min(len(points) - 1, q * len(points) // LAST), attribute] for q in quantiles
        )
        return int(low), int(high)

    found = []
    for _ in range(count):
        first = drawn_range("exponential", rng)
        second = first if rng.random() < probability else drawn_range("exponential", rng)
        limits = {0: of(0, first), 1: of(1, second)}
        found.append(Query(limits, frozenset((0, 1)), int(rng.integers(motes))))
    return found


@dataclass(frozen=True)
class Job:
    """A point of a line: bytes a query by series."""

    options: Options
    probability: float
    #: Of the cache that would be needed, %; None: no limit.
    share: int | None = None


def run(job: Job) -> dict[str, float]:
    """All series."""
    rng = np.random.default_rng(job.options.seed)
    network = Network.drawn(job.options.motes, rng)
    points = tuples_of("redwood", rng)
    queries = queries_of(points, job.probability, job.options.queries, len(network), rng)
    found = {}
    for series in (FOUR, TWO, ONE):
        room = None
        if job.share is not None and series.cached:
            free = Asker(network, points, series, states=False, room=WITHOUT_LIMIT)
            free.ask(queries)
            assert free.caches is not None
            room = free.caches.fullest * job.share // 100
        asker = Asker(network, points, series, states=False, room=room)
        found[series.name] = asker.ask(queries)
    return found


def measure(options: Options, recorder: Recorder) -> None:
    """Both halves of the figure."""
    names = [series.name for series in (FOUR, TWO, ONE)]
    left = [Job(options, probability) for probability in PROBABILITIES]
    right = [Job(options, p, share) for p in (0.0, CORRELATED) for share in SHARES]
    found = dict(
        zip(
            left + right,
            recorder.steps(on_all_cores(run, left + right), "points", total=len(left + right)),
            strict=True,
        )
    )
    columns = [Column(name, "B", ",.0f") for name in names]
    correlated = recorder.table(
        "correlated",
        [Column("both ranges the same, %"), *columns],
        title="Bytes sent a query, from cold caches on",
    )
    for job in left:
        correlated.row(round(100 * job.probability), *(found[job][name] for name in names))
    small = recorder.table(
        "small caches", [Column("both ranges the same, %"), Column("cache, %"), *columns],
        title="The same with caches of so much of what is needed", labels=2,
    )  # fmt: skip
    for job in right:
        small.row(round(100 * job.probability), job.share, *(found[job][name] for name in names))
    gain = [found[left[at]][ONE.name] / found[left[at]][TWO.name] for at in (0, -1)]
    for text, ratio in zip(("drawn by themselves", "the same"), gain, strict=True):
        recorder.figure(f"decomposed ÷ 2-D, ranges {text}", ratio, "×", ".2f", main=True)
    for probability in (0.0, CORRELATED):
        for name in (ONE.name, TWO.name):
            enough = [
                job.share for job in right
                if job.probability == probability and found[job][name] <= found[job][FOUR.name]
            ]  # fmt: skip
            recorder.figure(
                f"cache with which {name} costs no more than 4-D, {probability:.0%} of ranges the same",
                enough[0] if enough else "none", "%" if enough else "", reference="the paper: 20 %", main=name == ONE.name,
            )  # fmt: skip


def draw(result: Result) -> Figure:
    """The left half."""
    from bench.runner.charts import lines  # noqa: PLC0415 (what measures does without)

    names = [series.name for series in (FOUR, TWO, ONE)]
    return lines(result, "correlated", "both ranges the same, %", names, "bytes a query")


BENCHMARK = Benchmark(measure, quick=Options(motes=50, queries=20), minutes=2, chart=draw)

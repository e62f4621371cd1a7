"""Where motes join pairs, on emulated motes: queries 1 and 2 of Aspen (VLDB 2010) in each way that motes have, and the model's figures.

Each cell has one formation of a network, which all strategies have in turn; pairs are placed where a strategy says even where
the base would be cheaper, as far as motes have room. Bytes are those of frames with rows and answers, from preamble to FCS with
acknowledgements and repetitions, from the first sample to the last answer, less those of the idle network; ways are open and the query is
known before. Energy is the radio's, of all motes but the root, above the idle network's, of a sample period once windows are full. The
model's are of the same rows, in the same tree. Latency is from the later sample of two to their answer at the gateway, of naive to the
later row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean, median
from typing import Literal

import numpy as np

from bench.measuring.join_series import ratio_text
from bench.measuring.joins_on_motes import STRATEGIES, Bench, Cell, Measured, Query, Question
from bench.measuring.parallel import on_all_cores
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column

#: Corners of the paper's figures 2 and 3, and their middle: how often rows pass as s, and σst in %.
CELLS = {
    "few-5": Cell(1 / 10, 1.0, 0.05),
    "few-20": Cell(1 / 10, 1.0, 0.2),
    "half-10": Cell(1 / 2, 1 / 2, 0.1),
    "many-5": Cell(1.0, 1 / 10, 0.05),
}
QUERIES: dict[int, Query] = {1: "query 1", 2: "query 2"}
#: Virtual s in which the idle network is looked at.
IDLE_S = 200


@dataclass(frozen=True)
class Options(SeedOptions):
    network: Literal["grid12", "lab", "7"] = option(
        "grid12", "12 motes on a grid, the lab's 54, or 100 with 7 neighbours on average"
    )
    queries: tuple[Literal[1, 2], ...] = option((1, 2), "of the paper's table 2")
    cells: tuple[Literal["few-5", "few-20", "half-10", "many-5"], ...] = option(
        ("few-5", "half-10"), "how often rows pass as s, and as t as in the paper, and σst in %"
    )
    epochs: int = option(20, "sample periods of 10 s")
    alone: bool = option(
        False, "hosts pass no rows on to others: each mote's go to each host by a way of their own"
    )


@dataclass(frozen=True)
class Job:
    """A network that forms once, for one cell."""

    options: Options
    query: Query
    cell: str


Found = list[tuple[str, Measured]]


def run(job: Job) -> Found:
    """All strategies."""
    options = job.options
    bench = Bench.formed(options.network, options.seed, IDLE_S, passes_on=not options.alone)
    question = Question(job.query, len(bench.motes))
    at = list(CELLS).index(job.cell)
    return [
        (
            strategy,
            # All have the same rows.
            bench.run(
                question, strategy, CELLS[job.cell], options.epochs, np.random.default_rng([options.seed, at])
            ),
        )
        for strategy in STRATEGIES
    ]


def measure(options: Options, recorder: Recorder) -> None:
    """A table, and how far the model is off."""
    jobs = [Job(options, QUERIES[query], cell) for query in options.queries for cell in options.cells]
    table = recorder.table(
        "strategies",
        [
            Column("query"), Column("σs : σt"), Column("σst", "%", ".0f"), Column("strategy"), Column("pairs at motes"),
            Column("bytes", "kB", ".2f"), Column("bytes ÷ model", form=".2f"), Column("at the root", "kB", ".2f"),
            Column("root ÷ model", form=".2f"), Column("most loaded mote", "kB", ".2f"), Column("most loaded ÷ model", form=".2f"),
            Column("radio a period", "mJ", ".1f"), Column("radio ÷ model", form=".2f"), Column("all a period", "mJ", ".1f"),
            Column("answers of DuckDB's", "%", ".1f"), Column("latency, median", "s", ".1f"), Column("latency, 95 %", "s", ".1f"),
            Column("tree stayed"),
        ],
        title=f"{options.network}: energy and bytes above the idle network's, beside each the ratio to the model's figure",
        labels=4,
    )  # fmt: skip
    ratios: dict[str, list[tuple[float, float]]] = {}
    wrong = come = asked = 0
    for job, found in zip(
        jobs, recorder.steps(on_all_cores(run, jobs), "networks", total=len(jobs)), strict=True
    ):
        for strategy, one in found:
            cell = CELLS[job.cell]
            late = one.latencies
            model = one.model
            table.row(
                job.query, ratio_text((cell.s, cell.t)), 100 * cell.pair, strategy.lower(), f"{one.hosted} of {one.pairs}",
                one.air.total / 1e3, _times(one.air.total, model.total), one.air.root / 1e3, _times(one.air.root, model.root),
                one.air.most / 1e3, _times(one.air.most, model.most), 1e3 * one.radio_j, _times(one.radio_j, one.model_radio),
                1e3 * one.all_j, 100 * one.answers / one.of if one.of else None, median(late) if late else None,
                late[int(0.95 * (len(late) - 1))] if late else None, one.stayed,
            )  # fmt: skip
            wrong, come, asked = wrong + one.wrong, come + one.answers, asked + one.of
            ratios.setdefault(strategy, []).append(
                (one.air.total / model.total, one.radio_j / one.model_radio)
            )
    for strategy, both in _means(ratios):
        recorder.figure(f"bytes ÷ the model's, {strategy.lower()}", both[0], "×", ".2f")
        recorder.figure(f"energy of the radio ÷ the model's, {strategy.lower()}", both[1], "×", ".2f")
    recorder.figure("answers that are DuckDB's, of its own", 100 * come / asked, "%", ".2f", main=True)
    recorder.figure("answers that are not", wrong, "", "d", better="less", goal=0, main=True)


def _means(ratios: dict[str, list[tuple[float, float]]]) -> Iterator[tuple[str, tuple[float, float]]]:
    for strategy, both in ratios.items():
        yield strategy, (fmean(one for one, _ in both), fmean(other for _, other in both))


def _times(measured: float, model: float) -> float | None:
    return measured / model if model else None


BENCHMARK = Benchmark(measure, quick=Options(queries=(2,), cells=("few-5",), epochs=12), minutes=30)

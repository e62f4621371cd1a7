"""Window joins a row at a time beside the adapted ripple join and XJoin, on the sales of a shop: figure 7 of STEAM 2002.

The United Kingdom's rows are dealt to 2, 3 and 4 stores by a hash of their invoice; sales of one item within 60 minutes of each other in
all stores are joined. A comparison is a row that is looked at; times are those of thousand rows each, as in the paper, and the
processor's, which the machine's other work is no part of.
"""

from __future__ import annotations

import time
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import duckdb
import numpy as np

from bench.measuring.paper_joins import JOINS, RowJoin
from bench.runner.benchmark import Benchmark, Options, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column, Result, number
from hil_tests.datasets import data

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WINDOW_MIN = 60
#: Of so many rows times and comparisons are averaged.
EACH = 1_000
#: The curves have about so many points.
POINTS = 15
PAIRS = (("NLW", "ripple", 10, 5), ("HW", "XJoin", 2, 1))


@dataclass(frozen=True)
class Shops(Options):
    stores: tuple[int, ...] = option((2, 3, 4), "stores to which rows are dealt")
    rows: int = option(292_858, "rows of the United Kingdom's")


def sales(stores: int, rows: int) -> list[tuple[int, int, str]]:
    """Store, minute and item of each sale, in the order of time."""
    path = data("retail.parquet")
    found = duckdb.execute(
        f"SELECT invoice, epoch(time)::BIGINT // 60, item FROM '{path}' "
        f"WHERE country = 'United Kingdom' ORDER BY time, invoice, item LIMIT {rows}"
    ).fetchall()
    return [(zlib.crc32(invoice.encode()) % stores, minute, item) for invoice, minute, item in found]


def measured(join: RowJoin, rows: list[tuple[int, int, str]]) -> tuple[list[float], list[float]]:
    """The processor's microseconds and comparisons a row, over :data:`EACH` rows each."""
    took, compared = [], []
    for start in range(0, len(rows), EACH):
        part, before = rows[start : start + EACH], join.comparisons
        began = time.process_time()
        for row in part:
            join.offer(*row)
        took.append((time.process_time() - began) * 1e6 / len(part))
        compared.append((join.comparisons - before) / len(part))
    return took, compared


def measure(options: Shops, recorder: Recorder) -> None:
    """All five over the same rows; they must have as many answers."""
    totals = recorder.table(
        "joins",
        [
            Column("stores"), Column("join"), Column("a row", "µs", ",.2f", better="less"),
            Column("comparisons a row", "", ",.2f", better="less"), Column("answers", form=","),
        ],
        title="Mean over all rows",
        labels=2,
    )  # fmt: skip
    curves = recorder.table(
        "curves",
        [Column("stores"), Column("rows", form=","), *(Column(name, "µs", ",.2f") for name in JOINS)],
        title="Time of a row, along the rows",
        labels=2,
    )
    for stores in options.stores:
        rows = sales(stores, options.rows)
        means: dict[str, tuple[float, float]] = {}
        answers: set[int] = set()
        along: list[list[float]] = []
        for name, kind in JOINS.items():
            recorder.progress(f"{stores} stores, {name}")
            join = kind(stores, WINDOW_MIN)
            took, compared = measured(join, rows)
            means[name] = float(np.mean(took)), float(np.mean(compared))
            answers.add(join.answers)
            totals.row(stores, name, *means[name], join.answers)
            along.append(took)
        step = max(1, len(along[0]) // POINTS)
        for at in range(0, len(along[0]), step):
            means_here = [float(np.mean(took[at : at + step])) for took in along]
            curves.row(stores, min(len(rows), (at + step) * EACH), *means_here)
        if len(answers) > 1:
            recorder.problem(f"{stores} stores: the joins have {sorted(answers)} answers")
        for one, other, fewer, less in PAIRS:
            for what, place, goal in (("comparisons", 1, fewer), ("time", 0, less)):
                recorder.figure(
                    f"{other} ÷ {one}, {stores} stores: {what}", means[other][place] / max(means[one][place], 1e-9), "×", ".1f",
                    better="more", goal=goal, main=what == "time",
                )  # fmt: skip


def draw(result: Result) -> Figure:
    """Times along the rows: nested loops above, hash joins below, stores from left to right; logarithmic, as both go far apart."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (what measures does without)

    from bench.runner.charts import dress  # noqa: PLC0415

    table = result.table("curves")
    stores = sorted({int(number(cell) or 0) for cell in table.column("stores")})
    figure = Figure(figsize=(11, 6.5), layout="constrained")
    axes = figure.subplots(2, len(stores), squeeze=False)
    for across, count in enumerate(stores):
        for down, (names, title) in enumerate(
            ((("NLW", "MW", "ripple"), "fig. 7 (a)"), (("HW", "XJoin"), "fig. 7 (b)"))
        ):
            for name in names:
                cells = zip(table.column("stores"), table.column("rows"), table.column(name), strict=True)
                points = [(number(at), number(took)) for own, at, took in cells if own == count]
                axes[down][across].semilogy(*zip(*points, strict=True), label=name)
            dress(axes[down][across], "rows", "µs a row", f"{title}: {count} stores", cut=True)
    return figure


BENCHMARK = Benchmark(measure, quick=Shops(stores=(2, 3), rows=12_000), minutes=8, chart=draw)

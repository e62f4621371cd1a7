"""The paper's figures 7 and 8: one plan for all users against one plan for each, over the same rows on the disk.

A plan reads the log, cuts out the columns and gives each of its users the rows that his filter lets pass; a user has them
once they are Arrow columns. With one plan for each user, the log is read and cut once for each of them. Spark is left out of both:
``bench.fanout`` compares with a streaming query of Spark's for each user. Beyond ``SEPARATE_MAXIMUM`` users the separate plans
are reckoned from their time a user, and drawn as such. Source: Fjords 2002, 5.3.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from bench.crowd import filtered, plan_of, rows, shared_stream
from bench.machine import machine, median
from skerry.delivery.engine import Engine
from skerry.planner.model.plans import Feed
from skerry.storage.log import stream_log
from skerry.storage.log.record import Block

#: Users of figure 7, which asks for all rows as well, and of figure 8.
FEW, MANY = (1, 2, 3, 4, 5), (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000)
SEPARATE_MAXIMUM = 100
ROWS, BLOCK = 524_288, 65_536
ROUNDS = 3
ALL = "SELECT nodeid, light FROM sensors SAMPLE PERIOD 1 s"


def engine_of(queries: Sequence[str]) -> Engine:
    """One plan for the users of these queries."""
    engine = Engine({1: shared_stream()}.get)
    for number, sql in enumerate(queries):
        engine.subscribe(str(number), plan_of(sql))
        engine.set_feeds(str(number), {1: Feed(str(number), 1, 1000, 1000, 0)})
    return engine


def run(engine: Engine, users: int, path: Path) -> int:
    """Rows delivered to the plan's users from the whole log."""
    positions, delivered = [0] * users, 0
    for start in range(0, ROWS, BLOCK):
        engine.process(Block(start, stream_log.read(path, start, start + BLOCK)))
        for number in range(users):
            subscriber = engine.subscriber(str(number))
            assert subscriber is not None
            found = subscriber.buffer.deliveries(positions[number])
            assert found is not None, "a user fell behind what is kept in memory"
            parts, positions[number] = found
            delivered += sum(len(part.numbers) for part in parts)
    return delivered


def measured(queries: Sequence[str], path: Path) -> tuple[float, float]:
    """Seconds for all the queries' rows: from one plan; and from one for each (reckoned, where there are too many)."""
    together, apart = [], []
    few = queries[:SEPARATE_MAXIMUM]
    for _ in range(ROUNDS):
        engine = engine_of(queries)
        began = time.perf_counter()
        delivered = run(engine, len(queries), path)
        together.append(time.perf_counter() - began)
        engines = [engine_of([sql]) for sql in few]
        began = time.perf_counter()
        separate = sum(run(engine, 1, path) for engine in engines)
        apart.append((time.perf_counter() - began) * len(queries) / len(few))
        assert len(few) < len(queries) or separate == delivered, "both deliver the same rows"
    return median(together), median(apart)


def draw(
    few: dict[str, dict[int, tuple[float, float]]], many: dict[int, tuple[float, float]], path: Path
) -> None:
    """Both figures, two panels each, as the paper has them; into an SVG file."""
    matplotlib.rcParams["svg.hashsalt"] = "skerry"  # the same file from the same figures
    figure = Figure(figsize=(10, 7.5), layout="constrained")
    (total, each), (all_rows, rate) = figure.subplots(2, 2)
    for name, found in few.items():
        users = list(found)
        for i, plans in enumerate(("one plan", "a plan each")):
            style = {"label": f"{name}, {plans}", "marker": "os"[i], "linestyle": "-" if i == 0 else "--"}
            total.plot(users, [found[n][i] for n in users], **style)
            each.plot(users, [found[n][i] / n for n in users], **style)
    counted = list(many)
    for i, plans in enumerate(("one plan", "a plan each")):
        style = {"label": plans, "marker": "os"[i], "linestyle": "-" if i == 0 else "--"}
        all_rows.loglog(counted, [n * ROWS / many[n][i] for n in counted], **style)
        rate.loglog(counted, [ROWS / many[n][i] for n in counted], **style)
    for axes, title, label in (
        (total, "fig. 7 (a): time of all queries", "s"), (each, "fig. 7 (b): time for each query", "s"),
        (all_rows, "fig. 8 (a): rows a second, all users together", "rows/s × users"),
        (rate, "fig. 8 (b): rows a second that each user keeps up with", "rows/s"),
    ):  # fmt: skip
        axes.set_title(title, fontsize="medium")
        axes.set_xlabel("users")
        axes.set_ylabel(label)
        axes.grid(visible=True, alpha=0.3)
        axes.legend(fontsize="small")
    for axes in (total, each):
        axes.set_ylim(bottom=0)
        axes.set_xticks(FEW)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Measure, print the tables and draw."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--figure", type=Path, default=Path(__file__).parent / "figures" / "sharing.svg")
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as directory:
        made = stream_log.StreamLog(Path(directory))
        made.append(rows(ROWS, 0, rng))
        lows = [int(low) for low in rng.integers(0, 63_900, max(MANY))]
        measured([ALL], made.path)  # what is read and imported for the first time
        few = {
            "all rows": {n: measured([ALL] * n, made.path) for n in FEW},
            "a filter": {n: measured([filtered(low) for low in lows[:n]], made.path) for n in FEW},
        }
        many = {n: measured([filtered(low) for low in lows[:n]], made.path) for n in MANY}
        made.close()
    print(
        f"\n### One plan for all users, or one for each: {ROWS:,} rows, medians of {ROUNDS} rounds\n\n{machine()}\n"
    )
    print("| users | query | one plan | a plan each |\n| --- | --- | --- | --- |")
    for name, found in {**few, "filter": many}.items():
        for users, (together, apart) in found.items():
            reckoned = " (reckoned)" if users > SEPARATE_MAXIMUM else ""
            print(f"| {users:,} | {name} | {together:.2f} s | {apart:.2f} s{reckoned} |")
    draw(few, many, options.figure)
    print(f"\ndrawn: {options.figure}")


if __name__ == "__main__":
    main()

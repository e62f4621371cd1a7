"""One plan for all users against one plan for each, over the same rows on the disk: figures 7 and 8 of Fjords 2002.

A plan reads the log, cuts out the columns and gives each of its users the rows that his filter lets pass; a user has them
once they are Arrow columns. With one plan for each user, the log is read and cut once for each of them. Spark is left out of both:
:mod:`bench.gateway.fanout` compares with a streaming query of Spark's for each user. Beyond ``SEPARATE_MAXIMUM`` users the separate
plans are reckoned from their time a user, and the table says so. Source: Fjords 2002, 5.3.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bench.measuring.crowd import SPAN, WIDTH, filtered, rows, shared_stream
from bench.measuring.plans import plan_of
from bench.measuring.rounds import alternated
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column, Result, Spread, number
from skerry.delivery.engine import Engine
from skerry.planner.model.plans import Feed
from skerry.storage.log import stream_log
from skerry.storage.log.record import Block

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEPARATE_MAXIMUM = 100
BLOCK = 65_536
ALL_ROWS, FILTER, MANY_FILTERS = "all rows", "a filter each", "a filter each, many users"
ONE, EACH = "one plan", "a plan each"
ALL = "SELECT nodeid, light FROM sensors SAMPLE PERIOD 1 s"


@dataclass(frozen=True)
class Options(SeedOptions):
    few: tuple[int, ...] = option((1, 2, 3, 4, 5), "users of figure 7")
    many: tuple[int, ...] = option((1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000), "users of figure 8")
    rows: int = option(524_288, "rows of the log")
    rounds: int = option(3, "how often each")


def engine_of(queries: Sequence[str]) -> Engine:
    """One plan for the users of these queries."""
    engine = Engine({1: shared_stream()}.get)
    for user, sql in enumerate(queries):
        engine.subscribe(str(user), plan_of(sql))
        engine.set_feeds(str(user), {1: Feed(str(user), 1, 1000, 1000, 0)})
    return engine


def delivered(engine: Engine, users: int, path: Path, count: int) -> int:
    """Rows delivered to the plan's users from the whole log."""
    positions, found = [0] * users, 0
    for start in range(0, count, BLOCK):
        engine.process(Block(start, stream_log.read(path, start, min(start + BLOCK, count))))
        for user in range(users):
            subscriber = engine.subscriber(str(user))
            assert subscriber is not None
            new = subscriber.buffer.deliveries(positions[user])
            assert new is not None, "a user fell behind what is kept in memory"
            parts, positions[user] = new
            found += sum(len(part.numbers) for part in parts)
    return found


def timed(groups: Sequence[Sequence[str]], path: Path, count: int) -> tuple[float, int]:
    """Seconds for the rows of all queries, those of a group from one plan, and how many rows they are."""
    engines = [engine_of(group) for group in groups]
    began = time.perf_counter()
    found = sum(
        delivered(engine, len(group), path, count) for engine, group in zip(engines, groups, strict=True)
    )
    return time.perf_counter() - began, found


def both(queries: Sequence[str], path: Path, options: Options, recorder: Recorder) -> tuple[Spread, Spread]:
    """Seconds for all the queries' rows: from one plan; and from one for each (reckoned, where there are too many)."""
    few = queries[:SEPARATE_MAXIMUM]
    ways = {
        ONE: partial(timed, [queries], path, options.rows),
        EACH: partial(timed, [[sql] for sql in few], path, options.rows),
    }
    found = alternated(ways, options.rounds, recorder, lambda way: f"{len(queries):,} users, {way}")
    rows_of = {way: {count for _, count in one} for way, one in found.items()}
    assert len(few) < len(queries) or rows_of[ONE] == rows_of[EACH], "both deliver the same rows"
    more = len(queries) / len(few)
    return Spread.of(took for took, _ in found[ONE]), Spread.of(took * more for took, _ in found[EACH])


def measure(options: Options, recorder: Recorder) -> None:
    """Few users, who ask for all rows or some, and many."""
    rng = np.random.default_rng(options.seed)
    table = recorder.table(
        "seconds",
        [
            Column("what they ask"), Column("users", form=","), Column(ONE, "s", ".2f", better="less"),
            Column(EACH, "s", ".2f"), Column("reckoned"), Column("rows", form=","),
        ],
        labels=2,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as directory:
        made = stream_log.StreamLog(Path(directory))
        made.append(rows(options.rows, 0, rng))
        lows = [int(low) for low in rng.integers(0, SPAN - WIDTH, max(*options.few, *options.many))]
        both([ALL], made.path, options, recorder)  # what is read and imported for the first time
        groups = [(ALL_ROWS, users, [ALL] * users) for users in options.few]
        groups += [(FILTER, users, [filtered(low) for low in lows[:users]]) for users in options.few]
        groups += [(MANY_FILTERS, users, [filtered(low) for low in lows[:users]]) for users in options.many]
        for name, users, queries in groups:
            together, apart = both(queries, made.path, options, recorder)
            table.row(name, users, together, apart, users > SEPARATE_MAXIMUM, options.rows)
        made.close()
    most = max(users for users in options.many if users <= SEPARATE_MAXIMUM)
    row = next(row for row in table.table.rows if row[:2] == [MANY_FILTERS, most])
    one, each = (number(row[place]) or 0.0 for place in (2, 3))
    recorder.figure(
        f"a plan each for {most:,} users ÷ one plan for all", each / one, "", ".0f", better="more", main=True
    )


def draw(result: Result) -> Figure:
    """Both figures, two panels each, as the paper has them."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (what measures does without)

    from bench.runner.charts import dress  # noqa: PLC0415

    figure = Figure(figsize=(10, 7.5), layout="constrained")
    (total, each), (all_rows, rate) = figure.subplots(2, 2)
    table = result.table("seconds")
    for place, way in enumerate((ONE, EACH)):
        style = {"marker": "os"[place], "linestyle": "-" if place == 0 else "--"}
        found = {
            name: [
                (users, number(took) or 0.0, count) for query, users, took, count in cells if query == name
            ]
            for name in (ALL_ROWS, FILTER, MANY_FILTERS)
            for cells in [
                list(zip(*(map(table.column, ("what they ask", "users", way, "rows"))), strict=True))
            ]
        }
        for name in (ALL_ROWS, FILTER):
            users = [n for n, _, _ in found[name]]
            total.plot(users, [s for _, s, _ in found[name]], label=f"{name}, {way}", **style)
            each.plot(users, [s / n for n, s, _ in found[name]], label=f"{name}, {way}", **style)
        users = [n for n, _, _ in found[MANY_FILTERS]]
        all_rows.loglog(users, [n * count / s for n, s, count in found[MANY_FILTERS]], label=way, **style)
        rate.loglog(users, [count / s for _, s, count in found[MANY_FILTERS]], label=way, **style)
    dress(total, "users", "s", "fig. 7 (a): time of all queries")
    dress(each, "users", "s", "fig. 7 (b): time for each query")
    dress(all_rows, "users", "rows/s × users", "fig. 8 (a): rows a second, all users together", cut=True)
    dress(rate, "users", "rows/s", "fig. 8 (b): rows a second that each user keeps up with", cut=True)
    return figure


BENCHMARK = Benchmark(
    measure, quick=Options(few=(1, 2), many=(1, 10), rows=65_536, rounds=1), minutes=6, chart=draw
)

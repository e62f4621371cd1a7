"""How late rows are that have to take another way, after a link dies.

A ladder of two by six motes, links that lose a twentieth of the frames of 100 bytes. Either the link from mote 3 to its parent is cut, and
those of its neighbours that are left stand no closer to the root than itself: with later news of the root alone it may follow one. Or a
mote between both sides, which hears each, loses one of them, and takes the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from bench.measuring.emulated import described, started
from bench.measuring.parallel import on_all_cores
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column, Spread
from skerry_testbed.network import Mote
from skerry_testbed.pytest import disc, grid
from skerry_testbed.queries import ask, rows

#: Network seconds until the tree stands and is old enough to be slow; rows of so long are looked at, and for so long waited for.
TREE_S, ROWS_S, WAIT_S = 400, 60, 400
#: Rows are late by no more, after two periods: a control window.
WINDOW_S = 4
CLOSER, NOT_CLOSER = "over a mote closer to the root", "over none that is closer"
#: The number of a mote that hears two closer to the root, and its place in m.
BETWEEN = 12
PLACE = (25.0, 5.0)


@dataclass(frozen=True)
class Options(SeedOptions):
    seed: int = option(1, "the first; each is a run of each kind")
    seeds: int = option(20, "how many, from that on")
    periods: tuple[int, ...] = option((5, 30, 60), "sample periods in s")


def motes_of(closer: bool) -> list[Mote]:
    """The ladder, and what is between its sides if one closer to the root is to be heard."""
    motes = grid(6, 2, spacing=10)
    return [*motes, Mote(id=BETWEEN, x=PLACE[0], y=PLACE[1])] if closer else motes


def lateness(seed: int, *, closer: bool, period_s: int) -> float:
    """Of the latest row of :data:`ROWS_S` after the cut, s behind its epoch; infinite where one has not come."""
    mote = BETWEEN if closer else 3
    net = started(described("detours", motes_of(closer), disc(12, 0.95), seed, clock_ppm=40.0), 20)
    query = ask(net, 1, f"SELECT parent FROM sensors SAMPLE PERIOD {period_s} s")
    # Cuts at different moments of the control windows and epochs.
    net.advance(TREE_S + 7 * seed % period_s)
    parent = next(row["parent"] for row in reversed(rows(net.line, 1, query)) if row["nodeid"] == mote)
    cut, network_time = net.now, net.line.network_time()
    for sender, receiver in ((mote, parent), (parent, mote)):
        net.inject(kind="link_down", mote=sender, to=receiver)
    net.advance(WAIT_S)
    found = [
        row["at"] - cut - (row["epoch"] * period_s - network_time)
        for row in rows(net.line, 1, query)
        if row["nodeid"] == mote and network_time < row["epoch"] * period_s < network_time + ROWS_S
    ]
    return max(found) if len(found) == ROWS_S // period_s else float("inf")


def measure(options: Options, recorder: Recorder) -> None:
    """All seeds of each kind; a row of the table as soon as it is measured."""
    table = recorder.table(
        "lateness",
        [
            Column("another way"), Column("period, s"), Column("median", "s", ".0f", better="less"),
            Column("within two periods and a control window of 4 s", "%", ".0f", better="more"),
            Column("worst", "s", ".0f", better="less"),
        ],
        labels=2,
    )  # fmt: skip
    seeds = range(options.seed, options.seed + options.seeds)
    recorder.remark(f"The latest row of the {ROWS_S} s after the cut, behind its epoch.")
    for closer in (True, False):
        for period_s in options.periods:
            name = f"{CLOSER if closer else NOT_CLOSER}, {period_s} s"
            runs = on_all_cores(partial(lateness, closer=closer, period_s=period_s), seeds)
            late = list(recorder.steps(runs, name, len(seeds)))
            within = sum(one < 2 * period_s + WINDOW_S for one in late)
            middle = Spread.of(late)
            table.row(
                CLOSER if closer else NOT_CLOSER,
                period_s,
                middle.value,
                100 * within / len(late),
                middle.most,
            )
    worst = min(row[3] for row in table.table.rows if isinstance(row[3], float))
    recorder.figure(
        "rows within two periods and a control window once a link has died, the worst case", worst, "%", ".0f", better="more",
        goal=100, main=True,
    )  # fmt: skip


BENCHMARK = Benchmark(measure, quick=Options(seeds=1, periods=(5,)), minutes=8)

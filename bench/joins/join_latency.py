"""How late answers are by strategy, and what each costs: the same join of emulated motes, each strategy in turn.

From the later row's sample to the answer at its user, in virtual time. Twelve motes: a corridor from the root to two rooms, in each of
which any two motes are a pair. The gateway is the one of runs in virtual time, which joins as rows come in: NAIVE is told of as it
begins there, with LEARNING ON, and may move in the midst of it.
"""

from __future__ import annotations

import contextlib
import io
import json
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.measuring.emulated import described
from bench.measuring.parallel import on_all_cores
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column, Result, number
from skerry_testbed.asking import Asking
from skerry_testbed.network import Field, Mote, Network, Query, Radio
from skerry_testbed.runner import Testbed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STRATEGIES = ("NAIVE", "AT BASE", "AT ANCESTOR", "THROUGH BASE", "BY HASH", "IN NETWORK")
#: By mote: where it stands, in m, and its room; 0: the corridor.
MOTES = {
    0: (0, 0, 0), 1: (10, 0, 0), 2: (20, 0, 0), 3: (30, 0, 0), 4: (40, 0, 0), 5: (50, 0, 0),
    6: (60, 0, 7), 7: (58, 8, 7), 8: (66, 6, 7),
    9: (40, 10, 4), 10: (46, 16, 4), 11: (36, 18, 4),
}  # fmt: skip
PERIOD_S = 10
#: Asked when the gateway knows the tree; answers, and what is spent, are counted from a while later on.
ASKED_S, COUNTED_S = 120.0, 300.0
_PHY_BYTES = 6


@dataclass(frozen=True)
class Options(SeedOptions):
    minutes: int = option(20, "of virtual time for each strategy")


@dataclass(frozen=True)
class Job:
    """A strategy."""

    options: Options
    strategy: str


@dataclass
class Outcome:
    """What came of it. ``late``: s, of each answer; ``joined``: as the gateway's status has it; ``parents`` by mote."""

    late: list[float]
    kilobytes: float
    joules: float
    joined: dict[str, Any]
    parents: dict[int, int | None]


def network(seed: int, strategy: str) -> Network:
    """All of a seed's strategies have the same one, and the same readings."""
    sql = (
        "SELECT s.nodeid, t.nodeid, s.epoch AS e, t.epoch AS f FROM sensors AS s, sensors AS t WINDOW 3 ROWS "
        "WHERE s.room = t.room AND s.nodeid < t.nodeid AND s.temp - t.temp > 5 "
        f"SAMPLE PERIOD {PERIOD_S} s ESTIMATE pair 5 % COST BYTES JOIN {strategy}"
    )
    if strategy == "NAIVE":
        sql += " LEARNING ON"
    motes = [
        Mote(id=node, x=x, y=y, room=room, root=node == 0, boot=0) for node, (x, y, room) in MOTES.items()
    ]
    fields = {"temp": Field(base=20.0, noise=2.0)}
    radio = Radio(model="disc", range_m=12)
    return described("corridor", motes, radio, seed, fields, query=[Query(sql=sql, at=ASKED_S)])


def run(job: Job) -> Outcome:
    """One run."""
    late: list[float] = []
    octets = 0

    def hear(frame: Any) -> None:
        nonlocal octets
        octets += len(frame.psdu) + _PHY_BYTES

    def answer(text: str) -> None:
        told = json.loads(text)
        sampled_s = max(told["row"]["e"], told["row"]["f"]) * PERIOD_S
        if sampled_s >= COUNTED_S:
            late.append(told["at"] - sampled_s)

    made = network(job.options.seed, job.strategy)
    with contextlib.redirect_stdout(io.StringIO()):
        bed = Testbed(made)
    with contextlib.closing(Asking(bed, made.query, answer, lambda _: None)) as asking:
        bed.advance(COUNTED_S)
        bed.air_listeners.append(hear)
        before = _joules(bed)
        bed.advance(job.options.minutes * 60 - COUNTED_S)
        report = bed.report()
        [asked] = asking.report(report["queries"])["asked"]
    hours = (bed.now_s - COUNTED_S) / 3600
    parents = {mote["node"]: mote["parent"] for mote in report["motes"]}
    return Outcome(
        late, octets / 1000 / hours, (_joules(bed) - before) / hours, asked["joined"] or {}, parents
    )


def _joules(bed: Testbed) -> float:
    return float(sum(mote["energy"]["total_j"] for mote in bed.report()["motes"]))


def measure(options: Options, recorder: Recorder) -> None:
    """A row for each strategy."""
    jobs = [Job(options, strategy) for strategy in STRATEGIES]
    outcomes = dict(
        zip(STRATEGIES, recorder.steps(on_all_cores(run, jobs), "strategies", total=len(jobs)), strict=True)
    )
    table = recorder.table(
        "latency",
        [
            Column("strategy"), Column("answers", "", "d"), Column("median", "s", ".1f"), Column("95 %", "s", ".1f"),
            Column("pairs at motes", "", "d"), Column("pairs at the gateway", "", "d"), Column("an hour", "kB", ".1f"),
            Column("an hour, energy", "J", ".2f"),
        ],
        title="From the later row's sample to the answer, and what all motes send and take",
    )  # fmt: skip
    hosts = recorder.table("hosts", [Column("strategy"), Column("mote", "", "d"), Column("pairs")])
    for strategy, found in outcomes.items():
        at_motes = found.joined.get("hosts", [])
        base = len(found.joined.get("base", []))
        late = sorted(found.late)
        table.row(
            strategy.lower(), len(late), statistics.median(late) if late else None, _at(late, 0.95),
            sum(len(one["pairs"]) for one in at_motes), base, found.kilobytes, found.joules,
        )  # fmt: skip
        for one in at_motes:
            hosts.row(strategy.lower(), one["mote"], ", ".join(f"{s} with {t}" for s, t in one["pairs"]))
    motes = recorder.table(
        "network",
        [Column("mote", "", "d"), Column("x", "m", "g"), Column("y", "m", "g"), Column("room", "", "d"), Column("parent", "", "d")],
    )  # fmt: skip
    parents = outcomes["AT ANCESTOR"].parents
    for node, (x, y, room) in MOTES.items():
        motes.row(node, x, y, room, parents.get(node))
    recorder.figure(
        "answers of a join at motes of the network, median", statistics.median(outcomes["IN NETWORK"].late or [0.0]), "s", ".1f",
        better="less", main=True,
    )  # fmt: skip
    recorder.figure(
        "answers of a join at the base, median", statistics.median(outcomes["AT BASE"].late or [0.0]), "s", ".1f", better="less", main=True,
    )  # fmt: skip


def _at(ordered: list[float], share: float) -> float | None:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None


#: Strategies whose join motes are drawn.
_DRAWN = ("at ancestor", "through base", "by hash", "in network")


def draw(result: Result) -> Figure:
    """The network with its tree and rooms, and who joins by each strategy."""
    from matplotlib.figure import Figure as Chart  # noqa: PLC0415 (what measures does without)

    chart = Chart(figsize=(10, 5.5), layout="constrained")
    hosts = result.table("hosts").rows
    for axes, strategy in zip(chart.subplots(2, 2).flat, _DRAWN, strict=True):
        joined = {int(number(row[1]) or 0): str(row[2]) for row in hosts if row[0] == strategy}
        _network(axes, result, joined)
        axes.set_title(f"JOIN {strategy.upper()}", fontsize="medium")
    return chart


def _network(axes: Axes, result: Result, joined: dict[int, str]) -> None:
    rows = [
        [int(number(cell) or 0) if cell is not None else None for cell in row]
        for row in result.table("network").rows
    ]
    places = {node: (x or 0, y or 0) for node, x, y, _, _ in rows}
    for node, _, _, room, parent in rows:
        assert node is not None
        x, y = places[node]
        if parent is not None:
            above = places[parent]
            axes.plot([x, above[0]], [y, above[1]], color="0.7", zorder=1)
        colour = {0: "white", 7: "tab:blue", 4: "tab:orange"}[room or 0]
        axes.scatter([x], [y], s=190, color=colour, edgecolors="black", zorder=2)
        axes.annotate(str(node), (x, y), ha="center", va="center", fontsize="small", zorder=3)
        if node in joined:
            axes.scatter([x], [y], s=420, facecolors="none", edgecolors="tab:red", linewidths=2, zorder=2)
            axes.annotate(
                f"{node} joins {joined[node].count('with')}",
                (x, y), xytext=(0, -20), textcoords="offset points", ha="center", fontsize="x-small", color="tab:red",
            )  # fmt: skip
    axes.annotate("root", (0, 0), xytext=(0, 12), textcoords="offset points", ha="center", fontsize="small")
    axes.set_axis_off()
    axes.set_xlim(-6, 74)
    axes.set_ylim(-8, 24)


BENCHMARK = Benchmark(measure, quick=Options(minutes=8), minutes=2, chart=draw)

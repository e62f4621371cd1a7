"""Readings that arrive, frames, radio and delay in a star, a line, a grid and a small network, once slots follow the network."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import Literal

from bench.measuring.emulated import BOOT_S, described, started
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Cell, Column
from hil_tests.lab import on_time
from skerry.planner.model.plans import MoteQuery
from skerry_protocol.codes import PacketType
from skerry_testbed.network import Mote, Radio
from skerry_testbed.pytest import NetworkHandle, disc, grid, line_of
from skerry_testbed.queries import ask, rows

#: Time to join, and for the slots to follow.
SETTLE_S = 420
#: Rows that come later count as lost.
PATIENCE_S = 60
PERIOD_S = 5
#: Until the query is asked.
JOIN_S = 60


@dataclass(frozen=True)
class Options(SeedOptions):
    epochs: int = option(40, f"epochs of {PERIOD_S} s that are counted")
    networks: tuple[Literal["star", "line", "grid", "small"], ...] = option(
        ("star", "line", "grid", "small"), "which"
    )


@dataclass(frozen=True)
class Scenario:
    """Motes, links, and what is asked of them."""

    name: str
    motes: list[Mote]
    radio: Radio
    aggregate: bool = False


def star(count: int) -> list[Mote]:
    """The root, and all others on a circle of 10 m around it; of their numbers each seventh is left out."""
    numbers = [n for n in range(1, 2 * count) if n % 7][:count]
    angles = [math.tau * i / count for i in range(count)]
    around = [
        Mote(id=n, x=10 * math.cos(a), y=10 * math.sin(a)) for n, a in zip(numbers, angles, strict=True)
    ]
    return [Mote(id=0, x=0, y=0, root=True), *around]


SCENARIOS = {
    "star": Scenario("60 motes around the root", star(60), disc(25, reception=0.95)),
    "line": Scenario("24 motes in a line, AVG", line_of(24, spacing=10), disc(12, reception=0.97), True),
    "grid": Scenario("6×5 motes", grid(6, 5, spacing=10), disc(15, reception=0.95)),
    "small": Scenario("3×2 motes", grid(3, 2, spacing=10), disc(12, reception=0.97)),
}


def arrivals(net: NetworkHandle, query: MoteQuery, first: int, epochs: int) -> list[float]:
    """Seconds from the epoch to each reading's arrival, by itself or in a partial state."""
    offset = net.now - net.line.network_time()
    found, seen = [], set()
    for row in rows(net.line, 1, query):
        key = row["nodeid"], row["epoch"]
        if key not in seen and first <= row["epoch"] < first + epochs:
            seen.add(key)
            found.append(row["at"] - row["epoch"] * PERIOD_S - offset)
    for record in net.line.of(PacketType.PARTIAL, 1):
        if first <= record.body.epoch < first + epochs:
            found += [record.at - record.body.epoch * PERIOD_S - offset] * record.body.motes
    return sorted(found)


def run(scenario: Scenario, epochs: int, seed: int) -> list[Cell]:
    """Readings that arrived of those expected, frames for each, radio duty cycle, delay."""
    network = described(scenario.name, scenario.motes, scenario.radio, seed)
    net = started(network, JOIN_S - BOOT_S)
    what = "AVG(temp)" if scenario.aggregate else "nodeid, temp"
    query = ask(net, 1, f"SELECT {what} FROM sensors SAMPLE PERIOD {PERIOD_S} s")
    net.advance(SETTLE_S - net.now)
    motes = {n: mote for n, mote in net.motes.items() if n}
    on = {n: on_time(mote.energy) for n, mote in motes.items()}
    sent = sum(mote.counters["sent"] for mote in motes.values())
    began, first = net.now, math.ceil(net.line.network_time() / PERIOD_S) + 1
    net.advance(epochs * PERIOD_S)
    duty = [(on_time(mote.energy) - on[n]) / (net.now - began) for n, mote in motes.items()]
    sent = sum(mote.counters["sent"] for mote in motes.values()) - sent
    net.advance(PATIENCE_S)
    delays = arrivals(net, query, first, epochs)
    expected = epochs * len(net.motes)
    quantiles = [delays[min(len(delays) - 1, int(len(delays) * q))] for q in (0.5, 0.95, 1)]
    return [
        100 * len(delays) / expected, sent / len(delays), 100 * statistics.mean(duty), 100 * max(duty), *quantiles
    ]  # fmt: skip


def measure(options: Options, recorder: Recorder) -> None:
    """Each network."""
    table = recorder.table(
        "networks",
        [
            Column("network"), Column("readings that arrive", "%", ".2f", better="more"),
            Column("frames for each, repetitions and beacons included", form=".2f", better="less"),
            Column("radio duty cycle, mean", "%", ".2f", better="less"), Column("radio duty cycle, worst", "%", ".2f", better="less"),
            Column("from the epoch to the reading, median", "s", ".2f", better="less"),
            Column("the same, 95 %", "s", ".2f", better="less"), Column("the same, last", "s", ".2f", better="less"),
        ],
    )  # fmt: skip
    for name in recorder.steps(options.networks):
        scenario = SCENARIOS[name]
        table.row(scenario.name, *run(scenario, options.epochs, options.seed))
    least = min(row[1] for row in table.table.rows if isinstance(row[1], float))
    recorder.figure(
        "readings that arrive once slots follow the network, the least of all networks", least, "%", ".2f",
        better="more", main=True,
    )  # fmt: skip


BENCHMARK = Benchmark(measure, quick=Options(epochs=6, networks=("grid", "small")), minutes=4)

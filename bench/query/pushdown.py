"""Energy of sampling with and without exemplary aggregates pushed down: TinyDB 2005, 4.2.1, on the emulated IRIS.

``SELECT WINMAX(humidity, 8 s, 8 s) … WHERE light > 300``: light costs eleven times as much as humidity. Readings are drawn so
that the condition passes a given share of epochs, and humidity is drawn anew each epoch, or rises or falls through each
window (the worst and the best that can happen). Beside what is measured stands what the optimiser's model expects of readings
drawn alike. Rows are compared: they are the same. Virtual time makes the figures repeatable.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from bench.measuring.emulated import advance_to, described, started
from bench.measuring.plans import query_of
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Cell, Column
from skerry.expressions.temporal import Parameters
from skerry.planner.physical.condition_order import SamplingPlan, considered
from skerry.planner.physical.program import encode
from skerry.planner.physical.pushdown import changing
from skerry_protocol.attributes import BY_NAME
from skerry_protocol.codes import PacketType
from skerry_testbed.pytest import disc, grid

TRACES = ("drawn anew", "rising", "falling")
WINDOW = 8
#: Readings that pass and do not pass the condition.
LIGHT = (600.0, 50.0)
QUERY = f"SELECT WINMAX(humidity, {WINDOW} s, {WINDOW} s) FROM sensors WHERE light > 300 SAMPLE PERIOD 1 s"
LIGHT_ENERGY, HUMIDITY_ENERGY = (BY_NAME[name].energy * 1e6 for name in ("light", "humidity"))


@dataclass(frozen=True)
class Options(SeedOptions):
    seed: int = option(6, "what readings are drawn from")
    epochs: int = option(200, "of 1 s, for each plan")
    shares: tuple[int, ...] = option((10, 50, 90), "of epochs in which the condition passes, in per cent")


def humidity(trace: str, epoch: int, draw: random.Random) -> float:
    """The reading of an epoch, counted from the window's first."""
    place = epoch % WINDOW
    return {"drawn anew": draw.uniform(20, 80), "rising": 20.0 + 5 * place, "falling": 60.0 - 5 * place}[
        trace
    ]


def measured(plan: SamplingPlan, trace: str, share: float, options: Options) -> tuple[float, list[bytes]]:
    """uJ that the sensors of one mote take for an epoch, and its rows."""
    draw, epochs = random.Random(options.seed), options.epochs
    net = started(described("pushdown", grid(1, 1, spacing=10), disc(15), options.seed), 2)
    # Windows end at multiples of their slide of network time: the first epoch is a window's first.
    start = -(-(int(net.line.network_time()) + 4) // WINDOW) * WINDOW
    net.line.install(1, encode(query_of(QUERY), start, start + epochs, plan))
    advance_to(net, start - 0.5)
    before = net.motes[0].energy["sensors_j"]
    told = set()  # windows in which some reading passes: of others there is no row
    for epoch in range(epochs):
        passes, reading = draw.random() < share, humidity(trace, epoch, draw)
        if passes:
            told.add(epoch // WINDOW)
        net.motes[0].sense(humidity=reading, light=LIGHT[not passes])
        net.advance(1)
    energy = (net.motes[0].energy["sensors_j"] - before) / epochs * 1e6
    net.advance(10)
    rows = [bytes([record.body.nulls, *record.body.values]) for record in net.line.of(PacketType.RESULT, 1)]
    assert len(rows) == len(told), (len(rows), len(told))
    return energy, rows


def measure(options: Options, recorder: Recorder) -> None:
    """Both plans for all shares and traces."""
    plans = considered(query_of(QUERY))
    pushed = next(plan for plan in plans if plan.pushed)
    plain = next(plan for plan in plans if plan.staged and not plan.pushed)
    table = recorder.table(
        "energy",
        [
            Column("light passes", "%"), Column("humidity"), Column("light first", "µJ", ".0f", better="less"),
            Column("model", "µJ", ".0f"), Column("pushed down", "µJ", ".0f", better="less"), Column("model of it", "µJ", ".0f"),
        ],
        title="Energy of the sensors for an epoch", labels=2,
    )  # fmt: skip
    cases = [(share, trace) for share in options.shares for trace in TRACES]
    saved = []
    for percent, trace in recorder.steps(cases):
        share = percent / 100
        expected: list[Cell] = [None, None]
        if trace == TRACES[0]:
            expected = [
                LIGHT_ENERGY + share * HUMIDITY_ENERGY,
                HUMIDITY_ENERGY + changing(Parameters(WINDOW, WINDOW, 0, 1000), share) * LIGHT_ENERGY,
            ]
        without, rows_without = measured(plain, trace, share, options)
        with_it, rows_with = measured(pushed, trace, share, options)
        assert rows_without == rows_with, "all rows are the same with and without"
        table.row(percent, trace, without, expected[0], with_it, expected[1])
        saved.append((trace, percent, 100 * (1 - with_it / without)))
    trace, percent, most = max((one for one in saved if one[0] == TRACES[0]), key=lambda one: one[1])
    recorder.figure(
        f"pushing the aggregate down saves, light passing {percent} %, humidity {trace}", most, "%", ".0f", better="more",
        main=True,
    )  # fmt: skip


BENCHMARK = Benchmark(measure, quick=Options(epochs=24, shares=(50,)), minutes=0.5)

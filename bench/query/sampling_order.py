"""Energy of sampling by order of conditions, over a grid of selectivities: figure 6 of TinyDB 2005 on the emulated IRIS.

``SELECT light, temp WHERE temp > t AND light > l`` with readings drawn so that each condition passes a given share of
epochs. Light costs 290 uJ and temperature 76.5 uJ, as accelerometer and magnetometer differed in the paper. Virtual
time makes the figures repeatable.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from bench.measuring.emulated import advance_to, described, started
from bench.measuring.plans import query_of
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column
from skerry.expressions.assembler import assemble
from skerry.expressions.expression import conjuncts
from skerry.planner.physical.program import encode
from skerry_protocol.codec import decode_program, encode_program
from skerry_protocol.codes import QueryFlag
from skerry_testbed.pytest import disc, grid

#: Readings that pass and do not pass the conditions.
TEMP, LIGHT = (40.0, 10.0), (600.0, 50.0)
QUERY = "SELECT light, temp FROM sensors WHERE temp > 25 AND light > 300 SAMPLE PERIOD 1 s"
ORDERS: dict[str, Sequence[int] | None] = {"all at once": None, "temp first": (0, 1), "light first": (1, 0)}


@dataclass(frozen=True)
class Options(SeedOptions):
    seed: int = option(6, "what readings are drawn from")
    epochs: int = option(200, "of 1 s, for each order")
    shares: tuple[int, ...] = option((10, 50, 90), "of epochs in which a condition passes, in per cent")


def program(order: Sequence[int] | None, start: int, epochs: int) -> bytes:
    """The query's program with its conditions in an order, 0 temp and 1 light; None: everything is read first."""
    query = query_of(QUERY)
    fields = decode_program(encode(query, start))
    conditions = [assemble(condition) for condition in conjuncts(query.where)]
    assert query.where is not None
    where = (
        assemble(query.where)
        if order is None
        else b"".join(bytes([len(conditions[i])]) + conditions[i] for i in order)
    )
    return encode_program(
        flags=0 if order is None else int(QueryFlag.STAGED), period=fields.period, start=start, end=start + epochs,
        where=where, fields=[{"format": f.format, "aggregate": f.aggregate, "code": f.code} for f in fields.fields],
    )  # fmt: skip


def measured(order: Sequence[int] | None, temp_share: float, light_share: float, options: Options) -> float:
    """uJ that the sensors of one mote take for an epoch."""
    draw, epochs = random.Random(options.seed), options.epochs
    net = started(described("sampling order", grid(1, 1, spacing=10), disc(15), options.seed), 2)
    start = int(net.line.network_time()) + 4
    net.line.install(1, program(order, start, epochs))
    advance_to(net, start - 0.5)
    before = net.motes[0].energy["sensors_j"]
    for _ in range(epochs):
        net.motes[0].sense(temp=TEMP[draw.random() >= temp_share], light=LIGHT[draw.random() >= light_share])
        net.advance(1)
    return (net.motes[0].energy["sensors_j"] - before) / epochs * 1e6


def measure(options: Options, recorder: Recorder) -> None:
    """All orders at all selectivities."""
    table = recorder.table(
        "energy",
        [Column("temp passes", "%"), Column("light passes", "%"), *(Column(name, "µJ", ".0f", better="less") for name in ORDERS)],
        title="Energy of the sensors for an epoch", labels=2,
    )  # fmt: skip
    saved = []
    shares = [(temp, light) for temp in options.shares for light in options.shares]
    for temp, light in recorder.steps(shares):
        found = {name: measured(order, temp / 100, light / 100, options) for name, order in ORDERS.items()}
        table.row(temp, light, *found.values())
        saved.append(100 * (1 - min(found.values()) / found["all at once"]))
    recorder.figure(
        "sampling in the better order saves, at most", max(saved), "%", ".0f", better="more", main=True
    )
    recorder.figure("the same, at least", min(saved), "%", ".0f", better="more")


BENCHMARK = Benchmark(measure, quick=Options(epochs=10, shares=(10, 90)), minutes=0.5)

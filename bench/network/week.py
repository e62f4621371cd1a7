"""A week of virtual time on ten motes: rows, averages, resets, memory and clocks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import median

from bench.measuring.emulated import described, install, next_epoch, started
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from skerry_protocol.codes import PacketType
from skerry_testbed.network import Environment, Field
from skerry_testbed.pytest import disc, grid

PERIOD_S = 60
DAY_S = 86_400


@dataclass(frozen=True)
class Options(SeedOptions):
    days: float = option(7.0, "of virtual time")


def measure(options: Options, recorder: Recorder) -> None:
    """One run."""
    days = options.days
    motes = grid(5, 2, spacing=10, boards=("iris", "cc2538"))
    environment = Environment(fields={"temp": Field(base=20.0, amplitude=8.0, noise=0.1)}, update="60 s")
    net = started(described("week", motes, disc(12, 0.95), options.seed, environment=environment), 120)
    start = next_epoch(net, PERIOD_S, 30)
    for number, sql in (
        (1, "SELECT nodeid, temp FROM sensors"),
        (2, "SELECT AVG(temp), MAX(temp) FROM sensors"),
    ):
        install(net, number, f"{sql} SAMPLE PERIOD {PERIOD_S} s", start)
    end = net.now + days * DAY_S
    rows: set[tuple[int, int]] = set()
    covered: Counter[int] = Counter()
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    late: list[float] = []
    delays: list[float] = []
    boots: set[tuple[int, int]] = set()
    dropped: dict[int, int] = {}
    while net.now < end:
        net.advance(min(3600, end - net.now))
        for record in net.line.of(PacketType.RESULT, 1):
            rows.add((record.body.node, record.body.epoch))
            late.append(record.at - record.body.epoch * PERIOD_S)
        for record in net.line.of(PacketType.PARTIAL, 2):
            covered[record.body.epoch] += record.body.motes
        for record in net.line.of(PacketType.STATUS):
            body = record.body
            last[body.node] = body.free_ram
            boots.add((body.node, body.boots))
            dropped[body.node] = body.dropped
        net.line.records.clear()
        net.frames.clear()
        if net.now >= end or net.now // DAY_S > len(delays):
            delays.append(median(late))
            late.clear()
            if len(delays) == 1:
                first = dict(last)
        recorder.progress(f"day {net.now / DAY_S:.1f} of {days:g}: {len(rows):,} rows")
    epochs = range(start // PERIOD_S, int(net.line.network_time()) // PERIOD_S - 1)
    wanted = len(epochs) * len(motes)
    got = sum(epoch in epochs for _, epoch in rows)
    whole = sum(covered[epoch] == len(motes) for epoch in epochs)
    figure = recorder.figure
    figure("rows of a week", 100 * got / wanted, "%", ".3f", better="more", main=True)
    figure("rows that arrived, and were expected", f"{got:,} of {wanted:,}")
    figure(
        "averages of a week over all motes", 100 * whole / len(epochs), "%", ".3f", better="more", main=True
    )
    figure("averages over all motes, and epochs", f"{whole:,} of {len(epochs):,}")
    figure("starts of motes", len(boots), better="less", goal=len(motes), reference="one each")
    figure("records lost to full queues", sum(dropped.values()), better="less", goal=0, main=True)
    figure(
        "RAM never used, least change of a mote after the first day", min(last[node] - first[node] for node in last),
        "bytes", better="more",
    )  # fmt: skip
    figure("from an epoch's begin to its row at the root, median of the first day", delays[0], "s", ".2f")
    figure("the same, of the last day", delays[-1], "s", ".2f")


BENCHMARK = Benchmark(measure, quick=Options(days=0.05), minutes=50)

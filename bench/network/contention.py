"""Rows delivered of those that motes offer, by how many they offer: figure 15 of TinyDB 2005 on the emulated IRIS.

One mote, then four, around a root sample 2 to 16 times a second. A packet is a row, as in the paper: of one reading, of which
several travel in a frame, and of the twelve attributes that take most room. What the radio does not carry is left out by the
queue's policy, and counted in rows that arrive.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from bench.measuring.emulated import described, started
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column
from skerry_protocol.codes import PacketType
from skerry_testbed.pytest import disc, grid
from skerry_testbed.queries import ask, rows

ROWS = {
    "one reading": "accel_x",
    "12 attributes": "uptime, energy, xpos, ypos, accel_x, accel_y, voltage, free_ram, radio_duty, link, resets",
}


@dataclass(frozen=True)
class Options(SeedOptions):
    seed: int = option(15, "what is random is drawn from it")
    seconds: int = option(60, "of virtual time that rows are counted for")
    rates: tuple[int, ...] = option((2, 4, 8, 16), "samples a second")


def measured(
    motes: int, rate: int, columns: str, policy: str, options: Options
) -> tuple[float, float, float]:
    """A second: rows that arrive, frames on the air, and samples that the rows account for."""
    net = started(described("contention", grid(motes + 1, 1, spacing=2), disc(30), options.seed), 30)
    query = ask(
        net,
        1,
        f"SELECT {columns} FROM sensors WHERE level > 0 SAMPLE PERIOD {1000 // rate} ms QUEUE {policy}",
    )
    net.advance("30s")
    began, seconds = net.now, options.seconds
    net.advance(seconds)
    arrived = [row for row in rows(net.line, 1, query) if row["at"] >= began]
    assert len({(row["nodeid"], row["epoch"]) for row in arrived}) == len(arrived)
    accounted = sum(row["combined"] + row["left_out"] for row in arrived)
    sent = Counter(packet.type for frame, _, packet in net.packets() if frame.start_ns >= began * 1e9)
    return len(arrived) / seconds, sent[PacketType.BUNDLE] / seconds, accounted / seconds


def measure(options: Options, recorder: Recorder) -> None:
    """All motes, rows and policies at all rates."""
    table = recorder.table(
        "rates",
        [
            Column("motes"), Column("rows of"), Column("policy"), Column("samples a second"),
            Column("rows that arrive, a second", form=".1f", better="more"), Column("frames/s", form=".1f"),
            Column("samples/s accounted for", form=".1f", better="more"),
        ],
        labels=4,
    )  # fmt: skip
    cases = [
        (1, "one reading", "NAIVE"),
        *((4, row, policy) for row in ROWS for policy in ("NAIVE", "DELTA")),
    ]
    turns = [(*case, rate) for case in cases for rate in options.rates]
    falls, last = 0, 0.0
    for motes, what, policy, rate in recorder.steps(turns):
        found = measured(motes, rate, ROWS[what], policy, options)
        falls += rate != options.rates[0] and found[0] < last
        last = found[0]
        table.row(motes, what, policy, rate, *found)
        if (motes, what, policy) == (4, "12 attributes", "DELTA") and rate == options.rates[-1]:
            recorder.figure(
                f"rows/s of 4 motes, {what}, {policy}, {rate} samples a second each", found[0], "/s", ".1f", better="more",
                main=True,
            )  # fmt: skip
    recorder.figure("times that more samples brought fewer rows", falls, better="less", goal=0, main=True)


BENCHMARK = Benchmark(measure, quick=Options(seconds=10, rates=(2, 16)), minutes=3)

"""Frames for an average over the lab's 54 motes: each sends one partial state record an epoch.

On links that lose nothing within their range, so that what is counted is what the protocol needs; repetitions after collisions are in.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from bench.measuring.emulated import advance_to, described, install, next_epoch, started
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from hil_tests.lab import positions
from skerry_protocol.codes import PacketType
from skerry_testbed.network import Field, Mote
from skerry_testbed.pytest import disc

#: Network seconds until the tree stands, and until the query runs everywhere.
TREE_S, LEAD_S = 300, 60
PARTIAL, BEACON = (
    "frames a mote and epoch with partial state records, repetitions included",
    "the same, beacons",
)


@dataclass(frozen=True)
class Options(SeedOptions):
    epochs: int = option(40, "epochs that are counted")
    period: int = option(30, "sample period in s")
    range: float = option(12.0, "how far a frame is heard, in m")


def measure(options: Options, recorder: Recorder) -> None:
    """One run."""
    period_s, epochs = options.period, options.epochs
    motes = [Mote(id=n, x=x, y=y, root=n == 0) for n, (x, y) in positions().items()]
    network = described(
        "aggregation", motes, disc(options.range), options.seed, {"temp": Field(base=20.0, noise=1.0)}
    )
    recorder.progress("settling")
    net = started(network, TREE_S)
    start = next_epoch(net, period_s, LEAD_S)
    install(net, 1, f"SELECT AVG(temp) FROM sensors SAMPLE PERIOD {period_s} s", start)
    advance_to(net, start - 1)
    net.frames.clear()
    for _ in recorder.steps(range(epochs), "epochs"):
        net.advance(period_s)
    sent: Counter[str] = Counter()
    for _, _, packet in net.packets():
        kind = packet.type.name
        if packet.type is PacketType.BUNDLE:
            kinds = {PacketType(record.type) for record in packet.body.records}
            kind = "PARTIAL" if PacketType.PARTIAL in kinds else "other records"
        sent[kind] += 1
    covered = Counter[int]()
    for record in net.line.of(PacketType.PARTIAL, 1):
        covered[record.body.epoch] += record.body.motes
    whole = [
        number
        for epoch, number in covered.items()
        if start <= epoch * period_s < start + (epochs - 1) * period_s
    ]
    share = (len(motes) - 1) * epochs
    others = sum(sent.values()) - sent["PARTIAL"] - sent["BEACON"]
    recorder.figure(PARTIAL, sent["PARTIAL"] / share, "", ".2f", better="less", goal=1.1, main=True)
    recorder.figure(BEACON, sent["BEACON"] / share, "", ".2f", better="less")
    recorder.figure("the same, reports and others", others / share, "", ".2f", better="less")
    recorder.figure("the same, all", sum(sent.values()) / share, "", ".2f", better="less")
    recorder.figure(
        f"motes in an epoch's average, of {len(motes)}", sum(whole) / max(1, len(whole)), "", ".2f", better="more"
    )  # fmt: skip


BENCHMARK = Benchmark(measure, quick=Options(epochs=4))

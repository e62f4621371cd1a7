"""MAX and AVG in a dense cell, with snooping (TinyDB 2005, 6.3.2) and without: frames, and what the radio takes.

All motes hear each other and the root. The answer of each epoch is compared with the readings, which are drawn anew for each
(``drawn``), or stay what they are but for noise (``places``): motes know better then whom to listen to. In a ``room`` they
differ by little, and drift together.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, replace

from bench.measuring.emulated import advance_to, described, install, started
from bench.measuring.plans import query_of
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column
from skerry.ingest.partial_states import Partial, from_packet, merge_partials
from skerry_protocol.codes import Aggregate, PacketType
from skerry_testbed.network import Field, Mote
from skerry_testbed.pytest import disc

#: Network seconds until the tree stands, and until the query runs everywhere.
TREE_S, LEAD_S = 240, 60
MAX = "MAX(temp) FROM sensors SAMPLE PERIOD {} s"
AVG = "AVG(temp) FROM sensors SAMPLE PERIOD {} s"
#: degC: half of what readings are given in.
RIGHT = 0.05
RADIO = ("radio_rx", "radio_tx", "radio_idle", "radio_off")


@dataclass(frozen=True)
class Options(SeedOptions):
    motes: int = option(50, "how many hear each other")
    epochs: int = option(20, "epochs that are counted")
    period: int = option(10, "sample period in s")


@dataclass
class Outcome:
    """Of one run, per mote and epoch."""

    frames: float
    radio_ms: float
    radio_uj: float
    errors: list[float]
    epochs: int


def temperatures(kind: str, motes: int, epoch: int, seed: int) -> list[float]:
    """degC of each mote in an epoch, multiples of 0.1."""
    noise = random.Random(f"{seed} {epoch}")
    places = random.Random(seed)
    if kind == "drawn":
        return [noise.randrange(100, 400) / 10 for _ in range(motes)]
    if kind == "room":
        drift = 200 + 2 * epoch % 50
        return [(drift + places.randrange(-5, 6) + noise.randrange(-2, 3)) / 10 for _ in range(motes)]
    return [places.randrange(150, 250) / 10 + noise.randrange(-2, 3) / 10 for _ in range(motes)]


def run(kind: str, what: str, snoop: bool, options: Options) -> Outcome:
    """One run."""
    motes, period_s, epochs, seed = options.motes, options.period, options.epochs, options.seed
    rng = random.Random(seed)
    cell = [
        Mote(id=n, x=rng.uniform(0, 10), y=rng.uniform(0, 10), root=n == 0) for n in range(motes)
    ]  # fmt: skip
    net = started(described("snooping", cell, disc(30), seed, {"humidity": Field(base=50.0)}), TREE_S)
    query = query_of(f"SELECT {what.format(period_s)}")
    query = query if query.snoop == snoop else replace(query, snoop=snoop)
    average = query.columns[0].aggregate is Aggregate.AVG
    first = (int(net.line.network_time()) + LEAD_S) // period_s + 1
    install(net, 1, query, first * period_s)
    advance_to(net, first * period_s - period_s / 2)
    others = [mote for number, mote in net.motes.items() if number]
    before = [mote.energy for mote in others]
    net.frames.clear()
    expected = {}
    for epoch in range(first, first + epochs):
        values = temperatures(kind, motes, epoch, seed)
        for mote, value in zip(net.motes.values(), values, strict=True):
            mote.sense(temp=value)
        expected[epoch] = sum(values) / len(values) if average else max(values)
        net.advance(period_s)
    after = [mote.energy for mote in others]
    sent: Counter[str] = Counter()
    for _, _, packet in net.packets():
        if packet.type is PacketType.BUNDLE:
            sent.update({PacketType(record.type).name for record in packet.body.records})
    parts: dict[int, list[Partial]] = {}
    for record in net.line.of(PacketType.PARTIAL, 1):
        partial = from_packet(query, record.body)
        parts.setdefault(partial.epoch, []).append(partial)
    errors = []
    for epoch, value in expected.items():
        count, total = merge_partials(query, parts[epoch]).states[0]
        errors.append(abs((total or 0) / (count if average else 1) / 100 - value))
    share = len(others) * epochs
    seconds, joule = (
        sum(a[f"{part}_{unit}"] - b[f"{part}_{unit}"] for a, b in zip(after, before, strict=True) for part in RADIO)
        for unit in ("s", "j")
    )  # fmt: skip
    return Outcome(sent["PARTIAL"] / share, seconds / share * 1e3, joule / share * 1e6, errors, epochs)


def measure(options: Options, recorder: Recorder) -> None:
    """Both queries in all ways."""
    radio = [
        Column("frames a mote and epoch", form=".2f", better="less"), Column("radio on", "ms", ".1f", better="less"),
        Column("radio", "µJ", ".0f", better="less"),
    ]  # fmt: skip
    largest = recorder.table(
        "max", [Column("readings"), Column("snooping"), *radio, Column("right answers", "%", ".0f", better="more")],
        title=f"SELECT {MAX.format(options.period)}", labels=2,
    )  # fmt: skip
    cases = [(kind, snoop) for kind in ("drawn", "places") for snoop in (False, True)]
    frames: dict[tuple[str, bool], float] = {}
    for kind, snoop in recorder.steps(cases, "MAX"):
        found = run(kind, MAX, snoop, options)
        right = 100 * sum(error < RIGHT for error in found.errors) / found.epochs
        frames[kind, snoop] = found.frames
        largest.row(kind, snoop, found.frames, found.radio_ms, found.radio_uj, right)
    average = recorder.table(
        "avg", [Column("readings"), Column("within, degC"), *radio, Column("largest error", "degC", ".3f", better="less")],
        title=f"SELECT {AVG.format(options.period)}, exact and APPROXIMATE", labels=2,
    )  # fmt: skip
    wanted = [(kind, within) for kind in ("drawn", "places", "room") for within in ("exact", "1")]
    for kind, within in recorder.steps(wanted, "AVG"):
        clause = "" if within == "exact" else f" APPROXIMATE WITHIN {within} degC"
        found = run(kind, AVG + clause, bool(clause), options)
        average.row(kind, within, found.frames, found.radio_ms, found.radio_uj, max(found.errors))
    for kind in ("drawn", "places"):
        recorder.figure(
            f"frames of MAX with snooping against those without, readings {kind}",
            100 * frames[kind, True] / frames[kind, False], "%", ".0f", better="less", goal=30, main=True,
        )  # fmt: skip


BENCHMARK = Benchmark(measure, quick=Options(motes=10, epochs=4), minutes=5)

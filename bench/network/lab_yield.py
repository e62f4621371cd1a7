"""How much of what the Intel lab's 54 motes sample arrives, and what their radios take; over the lab's links or a library's."""

from __future__ import annotations

import math
import random
import statistics
from collections import defaultdict
from dataclasses import dataclass
from typing import Literal

import msgspec

from bench.measuring.emulated import BOOT_S, started
from bench.measuring.processes import stoppable
from bench.network import library_links
from bench.runner.benchmark import Benchmark, OptionError, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column
from hil_tests.lab import heard, lab, on_time, reachable
from skerry_testbed.network import Fault, Network
from skerry_testbed.queries import ask, rows

PERIOD_S = 30
#: Time to join, and to learn the neighbourhood, before it counts.
SETTLE_S = 300
#: A row that is later than this counts as lost: the run ends so long after the last epoch.
PATIENCE_S = 90
#: Rows that took longest, and motes that lost most, of which so many are told.
TOLD = 8


@dataclass(frozen=True)
class Options(SeedOptions):
    epochs: int = option(1000, f"epochs of {PERIOD_S} s, counted once the network has settled")
    losses: bool = option(False, "5 % of the motes die and 5 % reboot during the run")
    links: Literal["lab", "library"] = option("lab", "measured in the lab, or fitted to a library's")
    scale: float = option(1.0, "the motes stand so many times as far apart")
    board: Literal["iris", "cc2538"] = option("iris", "that all of the motes are")


@dataclass
class Outcome:
    """What a run came to. ``delays`` in s from the epoch to the row's arrival, with its mote and epoch, the shortest first."""

    epochs: int
    expected: int
    arrived: dict[int, int]
    duty: dict[int, float]
    delays: list[tuple[float, int, int]]
    frames: float
    lost: dict[int, int]


def losses(network: Network, epochs: int) -> list[Fault]:
    """5 % of the motes die and 5 % reboot, at times drawn from the seed."""
    rng = random.Random(network.seed)
    motes = rng.sample([n for n in sorted(reachable(heard(network))) if n], 6)
    end = BOOT_S + 2 * SETTLE_S + epochs * PERIOD_S
    times = [rng.uniform(2 * SETTLE_S, end - 10 * PERIOD_S) for _ in motes]
    kinds = ["kill"] * 3 + ["reboot"] * 3
    return [
        Fault(at=f"{at:.0f} s", kind=kind, mote=mote)  # type: ignore[arg-type]
        for at, kind, mote in zip(times, kinds, motes, strict=True)
    ]


def run(network: Network, epochs: int, recorder: Recorder) -> Outcome:
    """The query over so many epochs, or fewer when it is stopped, counted once the network has settled."""
    recorder.progress("settling")
    net = started(network, SETTLE_S)
    query = ask(net, 1, f"SELECT nodeid, temp FROM sensors SAMPLE PERIOD {PERIOD_S} s")
    # Until the program has come everywhere, without counting.
    net.advance(SETTLE_S)
    before = {n: on_time(mote.energy) for n, mote in net.motes.items()}
    sent = {n: mote.counters["sent"] for n, mote in net.motes.items()}
    began = net.now
    first = math.ceil(net.line.network_time() / PERIOD_S) + 1
    alive: dict[int, int] = defaultdict(int)
    motes = reachable(heard(network))
    done = 0
    with stoppable() as stopped:
        for _ in recorder.steps(range(epochs), "epochs"):
            net.advance(PERIOD_S)
            for n, mote in net.motes.items():
                alive[n] += mote.alive
            done += 1
            if stopped():
                recorder.cut_short = done < epochs
                break
    duty = {
        n: (on_time(mote.energy) - before[n]) / (net.now - began)
        for n, mote in net.motes.items()
        if mote.alive
    }
    frames = sum(mote.counters["sent"] - sent[n] for n, mote in net.motes.items()) / (len(motes) * done)
    net.advance(PATIENCE_S)
    arrived: dict[int, int] = defaultdict(int)
    seen: set[tuple[int, int]] = set()
    delays = []
    offset = net.now - net.line.network_time()
    for row in rows(net.line, 1, query):
        key = row["nodeid"], row["epoch"]
        if key not in seen and first <= row["epoch"] < first + done:
            seen.add(key)
            arrived[row["nodeid"]] += 1
            delays.append((row["at"] - row["epoch"] * PERIOD_S - offset, *key))
    # A mote that died in the midst of an epoch may have sent its row or not.
    lost = {n: max(0, alive[n] - arrived[n]) for n in motes}
    return Outcome(done, sum(alive[n] for n in motes), dict(arrived), duty, sorted(delays), frames, lost)


def measure(options: Options, recorder: Recorder) -> None:
    """One run."""
    if options.scale != 1 and options.links == "lab":
        raise OptionError(
            "--scale: the lab's links were measured where its motes stand; give --links library, too"
        )
    fitted = library_links.fit().radio() if options.links == "library" else None
    network = lab(options.seed, fitted, options.scale, options.board)
    if options.losses:
        network = msgspec.structs.replace(network, fault=losses(network, options.epochs))
    result = run(network, options.epochs, recorder)
    own = {n: 100 * value for n, value in result.duty.items() if n}
    worst = max(own, key=own.__getitem__)
    delays = [delay for delay, _, _ in result.delays]
    late = [delays[min(len(delays) - 1, int(len(delays) * q))] for q in (0.5, 0.95, 0.999, 1)]
    arrived = 100 * (1 - sum(result.lost.values()) / result.expected)
    figure = recorder.figure
    figure(
        "rows of living motes that any path reaches", arrived, "%", ".3f", better="more",
        goal=99.5 if options.losses else 99.9, reference="TinyDB: 62 %", main=True,
    )  # fmt: skip
    figure("rows expected", result.expected)
    figure(
        "radio duty cycle, mean", statistics.mean(own.values()), "%", ".2f", better="less", goal=1, main=True
    )
    figure("radio duty cycle, median", statistics.median(own.values()), "%", ".2f", better="less")
    figure("radio duty cycle, worst", own[worst], "%", ".2f", better="less", goal=3)
    figure("mote of the worst duty cycle", str(worst))
    figure(
        "frames per mote and epoch, repetitions and beacons included", result.frames, "", ".2f", better="less"
    )
    for name, value in zip(("median", "95 %", "99.9 %", "last"), late, strict=True):
        figure(f"from the epoch to the row, {name}", value, "s", ".1f", better="less")
    table = recorder.table("lost", [Column("mote"), Column("rows lost")], title="Motes that lost most")
    for count, n in sorted(((count, n) for n, count in result.lost.items() if count), reverse=True)[:TOLD]:
        table.row(n, count)
    table = recorder.table(
        "latest", [Column("mote"), Column("epoch"), Column("delay", "s", ".1f")], title="Rows that took longest", labels=2
    )  # fmt: skip
    for delay, n, epoch in result.delays[: -TOLD - 1 : -1]:
        table.row(n, epoch, delay)


BENCHMARK = Benchmark(measure, quick=Options(epochs=3), minutes=15)

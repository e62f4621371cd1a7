"""How fast emulated motes run, and what they hold: one query each 5 s, radio model on, one core."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.measuring.emulated import described, started
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Spread
from skerry_testbed.network import Field, Mote, Network, Radio
from skerry_testbed.pytest import NetworkHandle, disc, grid
from skerry_testbed.queries import ask, rows

SQL = "SELECT nodeid, temp FROM sensors SAMPLE PERIOD 5 s"
TEMPERATURE = {"temp": Field(base=20)}
RADIO = Radio(model="log-distance", exponent=3.6, reference_db=52.0, shadowing_db=1.5)
EVERY_BOARD = {"IRIS": ["iris"], "CC2538": ["cc2538"], "mixed": ["iris", "cc2538"]}


@dataclass(frozen=True)
class Options(SeedOptions):
    seed: int = option(1, "the first; each is a run of each network")
    seeds: int = option(3, "how many, from that on")
    seconds: int = option(100, "of virtual time that are timed, and epochs of 5 s that are counted")


def office(seed: int) -> Network:
    """54 motes on a floor of 46 m x 27 m; links fade with distance."""
    rng = random.Random(seed)
    place = [(x * 5.2 + rng.uniform(-1, 1), y * 5 + rng.uniform(-1, 1)) for x in range(9) for y in range(6)]
    motes = [Mote(id=i, x=x, y=y, root=i == 0) for i, (x, y) in enumerate(place)]
    return described("office", motes, RADIO, seed, TEMPERATURE)


def room(boards: Sequence[str], seed: int) -> Network:
    """20 motes of these boards in turn, 6 m apart; links fade with distance."""
    return described("room", grid(5, 4, spacing=6, boards=boards), RADIO, seed, TEMPERATURE)


def asked(network: Network) -> NetworkHandle:
    """A network with its query running for 40 s."""
    net = started(network, 30)
    ask(net, 1, SQL)
    net.advance("40s")
    return net


def speed(net: NetworkHandle, seconds: int) -> float:
    """Virtual seconds per second of one core."""
    began = time.process_time()
    net.advance(seconds)
    return seconds / (time.process_time() - began)


def resident() -> int:
    """Bytes of memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def repeats(boards: Sequence[str]) -> bool:
    """Whether two runs of a seed put the same frames on the air and report the same."""
    runs = [asked(room(boards, 7)) for _ in range(2)]
    return runs[0].frames == runs[1].frames and runs[0].report() == runs[1].report()


def share(seed: int, epochs: int) -> float:
    """Rows delivered of 20 motes, every link at 92 %."""
    net = started(described("yield", grid(5, 4, spacing=10), disc(15, reception=0.92), seed), 45)
    query = ask(net, 1, f"SELECT temp FROM sensors SAMPLE PERIOD 5 s FOR {5 * epochs} s")
    net.advance(5 * epochs + 100)
    found = {(row["nodeid"], row["epoch"]) for row in rows(net.line, 1, query)}
    return len(found) / (20 * epochs)


def measure(options: Options, recorder: Recorder) -> None:
    """All networks, all seeds."""
    seeds = range(options.seed, options.seed + options.seeds)
    arm, grown = [], []
    # First, while the process is small: memory that an earlier network gave back would be taken again unseen.
    for seed in recorder.steps(seeds, "CC2538"):
        before = resident()
        net = asked(room(["cc2538"], seed))
        grown.append((resident() - before) / 20)
        arm.append(speed(net, options.seconds))
    mixed = [
        speed(asked(room(["iris", "cc2538"], seed)), options.seconds)
        for seed in recorder.steps(seeds, "mixed")
    ]
    avr, held = [], []
    for seed in recorder.steps(seeds, "IRIS"):
        net = asked(office(seed))
        avr.append(speed(net, options.seconds))
        held.append(sum(net.bed.world.memory(i) for i in range(54)) / 54)
    shares = [100 * share(seed, options.seconds) for seed in recorder.steps(seeds, "yield")]
    figure = recorder.figure
    for name, goal, found in (
        ("54 IRIS motes, one query each 5 s, one core", 20, avr),
        ("20 CC2538 motes, the same", 10, arm),
        ("10 IRIS and 10 CC2538 motes, the same", 10, mixed),
    ):
        figure(name, Spread.of(found), "× real time", ".1f", better="more", goal=goal, main=True)
    figure(
        "host memory per CC2538 mote (growth of the process)", grown[0] / 2**20, "MiB", ".2f", better="less", goal=4.77,
        reference="5 MB",
    )  # fmt: skip
    figure(
        "host memory per IRIS mote", Spread.of(one / 2**20 for one in held), "MiB", ".2f", better="less", goal=0.95,
        reference="1 MB",
    )  # fmt: skip
    for name, boards in recorder.steps(list(EVERY_BOARD.items()), "repeats"):
        same = repeats(boards)
        figure(f"two runs of a seed have the same frames and report, {name}", same, reference="yes")
        if not same:
            recorder.problem(f"two runs of seed 7 differ, {name}")
    figure("yield, 20 motes, links at 92 %", Spread.of(shares), "%", ".2f", better="more", goal=99.9)


BENCHMARK = Benchmark(measure, quick=Options(seeds=1, seconds=5), minutes=2)

"""For how long motes of the Intel lab's network fall silent, of those that have a path of good links, and what it takes of radios.

Yields hide it: rows that come minutes late, all at once, are not lost. The root is the gateway in the middle, which nearly all motes hear,
or one of the 54 motes: from mote 1 at the edge it is up to eight hops over links of which many are good one way alone.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import msgspec

from bench.measuring.emulated import started
from bench.measuring.parallel import on_all_cores
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column
from hil_tests.lab import heard, lab, on_time, reachable
from skerry_testbed.network import Network, check
from skerry_testbed.queries import LEAD_S, ask, rows

PERIOD_S = 10
#: Who sends nothing for longer has fallen silent.
SILENT_S = 60
#: Shares of frames that arrive on each link of a mote's path, both ways, where it is a path of good links, and of fair ones.
GOOD, FAIR = 0.5, 0.4


@dataclass(frozen=True)
class Options(SeedOptions):
    seed: int = option(1, "the first")
    seeds: int = option(20, "how many, from that on")
    seconds: int = option(900, f"of rows each {PERIOD_S} s")
    settle: int = option(60, "seconds before the query is asked, in which motes join")
    root: int = option(1, "mote that is the root; 0: the gateway in the middle")


@dataclass(frozen=True)
class Outcome:
    """Of a run. ``silences``: (mote, length in s), the longest first, of all motes; ``good``, ``fair``: motes that have such a path;
    ``arrived``: share of the rows of those with a fair one; ``duty``: mean share of time that radios were on; ``frames``: sent by a mote in
    an epoch."""

    seed: int
    silences: list[tuple[int, float]]
    good: set[int]
    fair: set[int]
    arrived: float
    duty: float
    frames: float

    def lengths(self, motes: set[int]) -> list[float]:
        """Of the silences of these motes, s."""
        return [length for mote, length in self.silences if mote in motes]


def rooted(network: Network, root: int) -> Network:
    """The lab's 54 motes alone, of which this one is the root."""
    motes = [msgspec.structs.replace(mote, root=mote.id == root) for mote in network.mote if mote.id]
    links = [(a, b, p) for a, b, p in network.radio.links if a and b]
    return check(
        msgspec.structs.replace(
            network, mote=motes, radio=msgspec.structs.replace(network.radio, links=links)
        )
    )


def silences_of(arrivals: dict[int, list[float]], began: float, ended: float) -> list[tuple[int, float]]:
    """Between rows of a mote, before its first and behind its last, the longest first."""
    found = []
    for mote, at in arrivals.items():
        moments = [began, *sorted(at), ended]
        found += [(mote, b - a) for a, b in pairwise(moments) if b - a > SILENT_S]
    return sorted(found, key=lambda one: -one[1])


def run(seed: int, *, seconds: int, settle: int, root: int) -> Outcome:
    """One network for so long."""
    network = lab(seed)
    if root:
        network = rooted(network, root)
    found = heard(network)
    good, fair = (reachable(found, least, root) - {root} for least in (GOOD, FAIR))
    net = started(network, settle)
    query = ask(net, 1, f"SELECT nodeid, temp FROM sensors SAMPLE PERIOD {PERIOD_S} s")
    net.advance(LEAD_S)
    first = int(net.line.network_time()) // PERIOD_S + 1
    before = {n: on_time(mote.energy) for n, mote in net.motes.items()}
    sent = sum(mote.counters["sent"] for mote in net.motes.values())
    began = net.now
    net.advance(seconds)
    duty = statistics.mean((on_time(net.motes[n].energy) - before[n]) / seconds for n in fair)
    frames = sum(mote.counters["sent"] for mote in net.motes.values()) - sent
    arrivals: dict[int, list[float]] = {n: [] for n in reachable(found, root=root) - {root}}
    epochs: set[tuple[int, int]] = set()
    for row in rows(net.line, 1, query):
        if row["nodeid"] != root:
            arrivals[row["nodeid"]].append(row["at"])
            epochs.add((row["nodeid"], row["epoch"]))
    # The last rows may be under way.
    count = (seconds - SILENT_S) // PERIOD_S
    arrived = sum((n, first + k) in epochs for n in fair for k in range(count)) / (len(fair) * count)
    return Outcome(
        seed,
        silences_of(arrivals, began, net.now),
        good,
        fair,
        arrived,
        duty,
        frames / (len(net.motes) - 1) * PERIOD_S / seconds,
    )


def measure(options: Options, recorder: Recorder) -> None:
    """A row for each seed, as soon as it is measured."""
    table = recorder.table(
        "seeds",
        [
            Column("seed"), Column("silences, good paths", better="less"), Column("silences, fair paths", better="less"),
            Column("silences, all motes", better="less"), Column("longest", "s", ".0f", better="less"),
            Column("its mote"), Column("rows", "%", ".2f", better="more"),
            Column("duty cycle", "%", ".2f", better="less"), Column("frames", "", ".2f", better="less"),
        ],
    )  # fmt: skip
    seeds = range(options.seed, options.seed + options.seeds)
    one = partial(run, seconds=options.seconds, settle=options.settle, root=options.root)
    outcomes = []
    for outcome in recorder.steps(on_all_cores(one, seeds), "seeds", len(seeds)):
        outcomes.append(outcome)
        mote, longest = outcome.silences[0] if outcome.silences else (None, None)
        table.row(
            outcome.seed, len(outcome.lengths(outcome.good)), len(outcome.lengths(outcome.fair)), len(outcome.silences),
            longest, mote, 100 * outcome.arrived, 100 * outcome.duty, outcome.frames,
        )  # fmt: skip
    good, fair = len(outcomes[0].good), len(outcomes[0].fair)
    recorder.remark(
        f"{good} motes have a path of links of at least {100 * GOOD:g} % both ways, {fair} one of {100 * FAIR:g} %."
    )
    figure = recorder.figure
    figure(
        f"silences of more than {SILENT_S} s, motes with a good path",
        sum(len(one.lengths(one.good)) for one in outcomes), better="less", goal=1, main=True,
    )  # fmt: skip
    figure(
        "… with a fair path", sum(len(one.lengths(one.fair)) for one in outcomes), better="less", main=True
    )
    figure(
        "rows of motes with a fair path",
        100 * statistics.mean(one.arrived for one in outcomes), "%", ".2f", better="more",
    )  # fmt: skip
    figure(
        "radio duty cycle, mean",
        100 * statistics.mean(one.duty for one in outcomes),
        "%",
        ".3f",
        better="less",
    )
    figure(
        "frames per mote and epoch, repetitions and beacons included",
        statistics.mean(one.frames for one in outcomes), "", ".2f", better="less",
    )  # fmt: skip


BENCHMARK = Benchmark(measure, quick=Options(seeds=1, seconds=120), minutes=25)

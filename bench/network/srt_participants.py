"""Motes that take part in range queries, by how a semantic routing tree chooses parents: figure 9 of TinyDB 2005, in emulation.

A grid of motes with the root in its middle, each hearing its eight neighbours; the indexed attribute is the motes' number, dealt at random
or by place. In the lab it is the position along x, over its measured links. What each mote would do with a query is read off the beacons
that the firmware sends: it holds the query if its value, or what a child tells, meets the range. Some queries are really asked, and those
who send for them counted beside that. The paper's trees keep one interval for each child, ours two: what the paper's would do on the very
tree of ``random`` is computed beside it.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from bench.measuring.emulated import described, started
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Cell, Column, Result
from hil_tests.lab import lab
from skerry.planner.features.srt import Srt
from skerry_protocol.beacons import SlotsEntry, SrtEntry
from skerry_protocol.codes import PacketType
from skerry_testbed.network import Mote, Network
from skerry_testbed.pytest import NetworkHandle, disc
from skerry_testbed.queries import ask, create_srt, senders

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POLICIES = ("random", "closest", "clustered")
#: Of the attribute's range, in per cent.
SIZES = (5, 10, 20, 30, 40, 50, 60)
SPACING_M = 10.0
#: Of virtual time: until the tree stands; until parents are chosen, while the network is young and has a control window each 4 s; until
#: every mote has had a beacon, when it has one each 16 s.
JOIN_S, SETTLE_S, BEACONS_S = 35.0, 112.0, 84.0
#: Queries really asked, in per cent, and their period in s: a mote holds eight, of which the tree is one.
ASKED = (10, 30, 60)
PERIOD_S = 15
#: Until they have come everywhere.
ARRIVE_S = 64.0

Interval = tuple[int, int]
NOTHING: Interval = (255, 0)
NAMES = ("no tree", "random, one interval", *POLICIES, "best possible")
#: What was to be reached with values at random, and by place or over the lab's links; in per cent.
GOALS: tuple[dict[str, float], ...] = ({"random": -25, "closest": -10}, {"best possible": 10})


@dataclass(frozen=True)
class Options(SeedOptions):
    placement: Literal["random", "geographic", "lab"] = option(
        "random", "of values on a grid, or the lab, by position along x"
    )
    side: int = option(20, "motes along a side of the grid")
    queries: int = option(100, "ranges of each size")
    settle: float = option(SETTLE_S, "s from the tree's making until it is looked at")


@dataclass
class Told:
    """What a mote's last beacon says: its parent, the code of its own value, and the codes below it."""

    parent: int
    value: int
    codes: tuple[Interval, Interval]


def placed(side: int, placement: str, seed: int) -> Network:
    """The network of a placement of values."""
    if placement == "lab":
        return lab(seed)
    places = [(x, y) for y in range(side) for x in range(side)]
    rng = random.Random(seed)
    # A mote's number is its rank among all by what decides the value.
    by_value = sorted(
        places, key=lambda p: rng.random() if placement == "random" else p[0] + p[1] + 2 * rng.random()
    )
    middle = (side // 2, side // 2)
    motes = [
        Mote(id=n, x=x * SPACING_M, y=y * SPACING_M, root=(x, y) == middle)
        for n, (x, y) in enumerate(by_value)
    ]
    return described(f"{placement} {side}x{side}", motes, disc(1.5 * SPACING_M), seed)


def beacons(net: NetworkHandle, srt: Srt) -> dict[int, Told]:
    """By mote, from the frames that are kept."""
    found = {}
    for _, mac, packet in net.packets():
        entries = packet.body.srts if packet.type is PacketType.BEACON else b""
        while entries[:1] == b"\0":
            entries = entries[SlotsEntry.sizeof() :]
        if entries[:1] == bytes([srt.number]):
            entry = SrtEntry.parse(entries)
            codes = ((entry.low, entry.high), (entry.low2, entry.high2))
            found[mac.source] = Told(packet.body.parent, entry.value, codes)
    return found


def meets(parts: Iterable[Interval], low: int, high: int) -> bool:
    """Whether one of the intervals has something in the range."""
    return any(a <= b and a <= high and low <= b for a, b in parts)


def single(told: dict[int, Told], root: int) -> dict[int, Told]:
    """The same tree with one interval for each child: from the least value below it, and its own, to the greatest."""
    hulls = {node: (one.value, one.value) for node, one in told.items()}
    for node, one in told.items():
        above, hops = node, 0
        while above in told and hops < len(told):
            low, high = hulls[above]
            hulls[above] = min(low, one.value), max(high, one.value)
            above, hops = (told[above].parent if above != root else -1), hops + 1
    return {node: Told(one.parent, one.value, (hulls[node], NOTHING)) for node, one in told.items()}


def holders(told: dict[int, Told], root: int, low: int, high: int) -> set[int]:
    """Motes but for the root that hold a query for these codes."""
    children = defaultdict(list)
    for node, one in told.items():
        children[one.parent].append(node)
    found: set[int] = set()
    looked_at = [root]
    while looked_at:
        for node in children[looked_at.pop()]:
            below = any(meets(told[child].codes, low, high) for child in children[node])
            if below or low <= told[node].value <= high:
                found.add(node)
                looked_at.append(node)
    return found


@dataclass
class Outcome:
    """Motes for queries of each size, on average: those that hold them, those that would with one interval for each child, and those
    whose values are in the range."""

    motes: int
    held: dict[int, float]
    paper: dict[int, float]
    best: dict[int, float]
    depth: float
    asked: list[tuple[int, int, int]]


def run(network: Network, policy: str, attribute: str, queries: int, settle_s: float) -> Outcome:
    """One network with one policy, looked at when the tree is so old."""
    net = started(network, JOIN_S)
    values = {n: n if attribute == "nodeid" else round(m.position[0] * 100) for n, m in net.motes.items()}
    srt = create_srt(
        net, 1, f"CREATE SRT t ON sensors ({attribute}) POLICY {policy}", lambda _: list(values.values())
    )
    net.advance(settle_s)
    net.frames.clear()
    net.advance(BEACONS_S)
    told = beacons(net, srt)
    (root,) = (mote.id for mote in network.mote if mote.root)
    axis, rng = srt.axes[0], random.Random(network.seed)
    lowest, width = min(values.values()), max(values.values()) - min(values.values())

    def drawn(size: int) -> Interval:
        low = lowest + rng.uniform(0, width * (1 - size / 100))
        return round(low), round(low + width * size / 100)

    held: dict[int, float] = {}
    paper: dict[int, float] = {}
    best: dict[int, float] = {}
    alone = single(told, root)
    for size in SIZES:
        ranges = [drawn(size) for _ in range(queries)]
        codes = [(axis.code(a), axis.code(b)) for a, b in ranges]
        held[size] = sum(len(holders(told, root, a, b)) for a, b in codes) / queries
        paper[size] = sum(len(holders(alone, root, a, b)) for a, b in codes) / queries
        best[size] = (
            sum(sum(a <= v <= b for n, v in values.items() if n in told and n != root) for a, b in ranges)
            / queries
        )
    asked = _ask(
        net, srt, attribute, {number: drawn(size) for number, size in enumerate(ASKED, 2)}, root, told
    )
    depth = sum(_depth(told, node, root) for node in told if node != root) / max(1, len(told) - 1)
    return Outcome(len(told) - 1, held, paper, best, depth, asked)


def _ask(
    net: NetworkHandle,
    srt: Srt,
    attribute: str,
    ranges: dict[int, Interval],
    root: int,
    before: dict[int, Told],
) -> list[tuple[int, int, int]]:
    """Ask queries of these ranges: size of each in per cent, motes that send for it, and those of the beacons at that time."""
    for number, (low, high) in ranges.items():
        unit, scale = ("", 1) if attribute == "nodeid" else (" m", 100)
        where = f"{attribute} BETWEEN {low / scale:g}{unit} AND {high / scale:g}{unit}"
        ask(net, number, f"SELECT COUNT(*) FROM sensors WHERE {where} SAMPLE PERIOD {PERIOD_S} s", srts=[srt])
        net.advance(16)
    net.advance(ARRIVE_S)
    net.frames.clear()
    net.advance(52)
    told, axis = before | beacons(net, srt), srt.axes[0]
    return [
        (
            size,
            len(senders(net, number, PacketType.PARTIAL)),
            len(holders(told, root, axis.code(low), axis.code(high))),
        )
        for size, (number, (low, high)) in zip(ASKED, ranges.items(), strict=True)
    ]


def _depth(told: dict[int, Told], node: int, root: int) -> int:
    hops = 0
    while node != root and node in told and hops < len(told):
        node, hops = told[node].parent, hops + 1
    return hops


def measure(options: Options, recorder: Recorder) -> None:
    """A run with each policy."""
    network = placed(options.side, options.placement, options.seed)
    attribute = "xpos" if options.placement == "lab" else "nodeid"
    runs = recorder.table(
        "runs",
        [
            Column("policy"), Column("motes"), Column("mean depth", form=".2f"),
            *(Column(f"asked for {size} %: motes that send, by beacons") for size in ASKED),
        ],
        title="Runs, and queries really asked",
    )  # fmt: skip
    outcomes = {}
    for policy in recorder.steps(POLICIES):
        outcomes[policy] = one = run(network, policy, attribute, options.queries, options.settle)
        runs.row(policy, one.motes, one.depth, *(f"{sent}, {held}" for _, sent, held in one.asked))
    clustered = outcomes["clustered"]
    columns = [outcomes["random"].paper, *(outcomes[policy].held for policy in POLICIES)]
    # Over lossy links not all motes are in the tree by then, nor as many with each policy: shares of those that are can be compared.
    motes = [outcomes["random"].motes, *(outcomes[policy].motes for policy in POLICIES)]
    held = recorder.table(
        "held",
        [Column("range", "%"), *(Column(name, form=".0f") for name in NAMES)],
        title="Motes that hold a query",
    )
    for size in SIZES:
        held.row(size, clustered.motes, *(found[size] for found in columns), clustered.best[size])
    means = [sum(found.values()) / len(SIZES) for found in columns]
    best = sum(clustered.best.values()) / len(SIZES)
    shares = [mean / count for mean, count in zip(means, motes, strict=True)]
    held.row("mean", clustered.motes, *means, best)
    gain: list[Cell] = [100 * (shares[-1] / share - 1) for share in (1, *shares[:-1])]
    gain += [None, 100 * (means[-1] / best - 1)]
    held.row("clustered against it, %", *gain)
    for name, share in zip(NAMES, gain, strict=True):
        if share is not None:
            recorder.figure(
                f"motes that hold range queries, clustered against {name}", share, "%", "+.0f", better="less",
                goal=GOALS[options.placement != "random"].get(name), main=name in ("random", "best possible"),
            )  # fmt: skip


def draw(result: Result) -> Figure:
    """Figure 9 of the paper."""
    from bench.runner.charts import lines  # noqa: PLC0415 (what measures does without)

    return lines(result, "held", "range", NAMES, "motes that hold the query")


BENCHMARK = Benchmark(measure, quick=Options(side=5, queries=20), minutes=12, chart=draw)

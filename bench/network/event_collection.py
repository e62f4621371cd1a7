"""What an event's average takes on the network's one tree, and would take if the mote that detected it collected it.

TinyDB 2005, section 6, lets the mote that detects an event be the root of the query that it starts. Here its states take the network's
tree; who sends them is seen in emulation. Beside it stands the fewest frames that collecting first could take on the same links and the
same tree: from the motes around it, over the shortest ways to the mote itself, merged on the way, and from there on as one state to the
root.

Radios are on for more than frames: a parent listens in its child's cell, whether or not something comes. A mote that sends elsewhere
leaves its parent an empty cell in each round of the epoch. What the two ways differ by is reckoned from that and from the frames saved,
for which the most is taken that a frame keeps two radios on (firmware/net/schedule). What else collecting would take is left out:
finding the ways, listening to who has nothing to send to this mote, the round by which the answer comes later.
"""

from __future__ import annotations

import random
import statistics
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from bench.measuring.emulated import started
from bench.measuring.parallel import on_all_cores
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column, Spread
from hil_tests.lab import heard, lab
from skerry_protocol.codes import CommandOp, PacketType
from skerry_protocol.commands import event_number
from skerry_protocol.limits import BROADCAST
from skerry_protocol.records import Event
from skerry_testbed.network import Environment, Field, Network, check
from skerry_testbed.pytest import NetworkHandle, disc, grid
from skerry_testbed.queries import ask

SPACING_M = 10.0
#: Of virtual time: until the tree stands, until a query is everywhere, and from one event to the next.
SETTLE_S, ARRIVE_S, BETWEEN_S = 90.0, 25.0, 45.0
PERIOD_S, LASTS_S = 4, 24
#: Links that deliver at least so much, both ways, may be hops of the way to the mote that collects.
HEARD_LEAST = 0.5
#: Of mac_conf.h, net_conf.h and rx_window.c in firmware/net: a cell; how early a listener is; how long it stays on behind a frame.
CELL_MS, GUARD_MS, LINGER_MS = 8, 2, 10
#: A cell in which nothing comes, in each round from one epoch to the next.
EMPTY_MS = CELL_MS * (PERIOD_S - 1)
#: For so long a frame keeps two radios on, its sender's and its listener's, at most.
FRAME_MS = CELL_MS + GUARD_MS + CELL_MS + LINGER_MS

Tree = dict[int, int]


@dataclass(frozen=True)
class Options(SeedOptions):
    seed: int = option(1, "the first")
    seeds: int = option(3, "how many, from that on")
    events: int = option(8, "each of another mote")
    sides: tuple[int, ...] = option((8, 12), "motes along a side of each grid")
    grids_alone: bool = option(False, "without the lab, whose places may be missing")


@dataclass(frozen=True)
class Case:
    """A network, and the radius of what its events concern, in m."""

    name: str
    network: Network
    radius: float
    events: int


@dataclass(frozen=True)
class Outcome:
    """Means over a case's events: motes concerned; of an epoch, frames both ways, and cells that collecting leaves empty."""

    concerned: float
    on_tree: float
    at_mote: float
    empty: float

    @property
    def more(self) -> float:
        """Share by which the one tree takes more frames."""
        return self.on_tree / self.at_mote - 1

    @property
    def longer_ms(self) -> float:
        """For so long radios are on in each epoch beyond what the one tree takes, if the mote collects."""
        return EMPTY_MS * self.empty - FRAME_MS * (self.on_tree - self.at_mote)


def cases(seed: int, options: Options) -> Iterator[Case]:
    """The networks, three radii each. The lab, whose places may be missing, comes last."""
    events = options.events
    light = Environment(fields={"light": Field(base=300.0)})
    for side in options.sides:
        motes, radio = grid(side, side, spacing=SPACING_M), disc(1.5 * SPACING_M)
        described = Network(name=f"grid {side}", seed=seed, mote=motes, radio=radio, environment=light)
        for radius in (10.0, 15.0, 25.0):
            yield Case(f"grid of {side} by {side}", check(described), radius, events)
    for radius in (5.0, 8.0, 12.0) if not options.grids_alone else ():
        yield Case("lab", lab(seed, disc(12)), radius, events)


def parents(net: NetworkHandle) -> Tree:
    """By mote, from the last beacons."""
    found = {}
    for _, mac, packet in net.packets():
        if packet.type is PacketType.BEACON:
            found[mac.source] = packet.body.parent
    return found


def way(tree: Tree, mote: int, root: int) -> list[int]:
    """The motes that pass on what a mote has, itself among them."""
    found: list[int] = []
    while mote != root and mote in tree and mote not in found:
        found.append(mote)
        mote = tree[mote]
    return found


def collecting(links: dict[int, list[int]], collector: int) -> Tree:
    """The shortest ways to a mote: who passes on to whom."""
    tree, left = {collector: collector}, deque([collector])
    while left:
        mote = left.popleft()
        for other in links[mote]:
            if other not in tree:
                tree[other] = mote
                left.append(other)
    return tree


def senders(net: NetworkHandle, query: int) -> list[set[int]]:
    """Motes that sent states of an event, in each epoch between its first and its last; repetitions once."""
    by_epoch: dict[int, set[int]] = {}
    for _, mac, packet in net.packets():
        if packet.type is not PacketType.BUNDLE:
            continue
        for record in packet.body.records:
            if record.type == PacketType.PARTIAL and record.body[0] == query:
                epoch = int.from_bytes(record.body[1:5], "little")
                by_epoch.setdefault(epoch, set()).add(mac.source)
    return [by_epoch[epoch] for epoch in sorted(by_epoch)[1:-1]]


def left_empty(sent: set[int], tree: Tree, local: Tree, passing: set[int], upwards: set[int]) -> int:
    """Cells of motes that send on the one tree, and would send to somebody else, or not, if the event's mote collected."""
    return sum(
        mote not in upwards and not (mote in passing and local[mote] == tree.get(mote)) for mote in sent
    )


def run(case: Case) -> Outcome:
    """Events one after the other, each of another mote."""
    network, radius = case.network, case.radius
    net = started(network, SETTLE_S)
    ask(
        net,
        1,
        f"ON EVENT look SELECT AVG(light), event.nodeid FROM sensors WHERE dist(loc, event.loc) <= {radius:g} m "
        f"SAMPLE PERIOD {PERIOD_S} s FOR {LASTS_S} s",
    )
    net.advance(ARRIVE_S)
    places = {mote.id: (mote.x, mote.y) for mote in network.mote}
    (root,) = (mote.id for mote in network.mote if mote.root)
    good = {pair for pair, share in heard(network).items() if share >= HEARD_LEAST}
    links = {a: [b for b in places if (a, b) in good and (b, a) in good] for a in places}
    concerned, measured, collected, empty = [], [], [], []
    for number, node in enumerate(
        random.Random(network.seed).sample([n for n in places if n != root], case.events)
    ):
        net.frames.clear()
        x, y = places[node]
        event = Event.build(
            {"event": event_number("look"), "node": node, "x": round(x * 100), "y": round(y * 100),
             "seconds": int(net.line.network_time()), "value": 0}
        )  # fmt: skip
        net.line.command(BROADCAST, CommandOp.EVENT, bytes(event), number + 1)
        net.advance(BETWEEN_S)
        around = [n for n, (a, b) in places.items() if (a - x) ** 2 + (b - y) ** 2 <= radius**2 and n != root]
        local, tree = collecting(links, node), parents(net)
        passing = {mote for n in around for mote in way(local, n, node)}
        upwards = set(way(tree, node, root))
        epochs = senders(net, 1)
        concerned.append(len(around))
        measured.append(statistics.mean(map(len, epochs)))
        collected.append(len(passing) + len(upwards))
        empty.append(statistics.mean(left_empty(sent, tree, local, passing, upwards) for sent in epochs))
    return Outcome(*(statistics.mean(column) for column in (concerned, measured, collected, empty)))


def measure(options: Options, recorder: Recorder) -> None:
    """All cases of all seeds."""
    table = recorder.table(
        "frames",
        [
            Column("network"), Column("around", "m", ".0f"), Column("motes concerned", form=".1f"),
            Column("frames on the one tree", form=".1f", better="less"),
            Column("collected at the mote, at least", form=".1f"),
            Column("one tree against it", "%", "+.0f", better="less"),
            Column("cells left empty by collecting", form=".1f"),
            Column("radios on for longer by it, an epoch", "ms", ".0f"),
        ],
        labels=2,
    )  # fmt: skip
    by_seed = [list(cases(seed, options)) for seed in range(options.seed, options.seed + options.seeds)]
    alike = list(zip(*by_seed, strict=True))
    outcomes = on_all_cores(run, [case for same in alike for case in same])
    shown = recorder.steps(outcomes, "networks", len(alike) * options.seeds)
    more, longer = [], []
    for same in alike:
        found = [next(shown) for _ in same]
        concerned, on_tree, at_mote, empty = (
            statistics.mean(getattr(one, what) for one in found)
            for what in ("concerned", "on_tree", "at_mote", "empty")
        )
        table.row(
            same[0].name, same[0].radius, concerned, on_tree, at_mote, Spread.mean(100 * one.more for one in found),
            empty, Spread.mean(one.longer_ms for one in found),
        )  # fmt: skip
        more += [100 * one.more for one in found]
        longer += [one.longer_ms for one in found]
    recorder.figure(
        "frames on the one tree against those of collecting at the event's mote first", Spread.mean(more), "%", "+.0f",
        better="less", main=True,
    )  # fmt: skip
    recorder.figure(
        "cases in which radios would be on for longer if it collected",
        f"{sum(one > 0 for one in longer)} of {len(longer)}",
    )


BENCHMARK = Benchmark(measure, quick=Options(seeds=1, events=2, sides=(5,), grids_alone=True), minutes=8)

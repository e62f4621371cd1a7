"""What it costs to keep a semantic routing tree while motes change parents: figure 11 of TinyDB 2005, in emulation.

In each epoch of a minute some motes lose the link to their parent, both ways, and get it back with the next epoch. Control frames
(beacons, JOIN, requests and programs) are counted against those of a time in which nothing moves, with the tree and without: the
difference between both is what the tree adds. In the paper motes are told to move; what they send here to a parent that does not
answer, until they know that it will not, is counted by itself.
"""

from __future__ import annotations

import random
from collections.abc import Container
from dataclasses import dataclass

from bench.measuring.emulated import started
from bench.network.srt_participants import JOIN_S, placed
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column
from skerry_protocol.codes import PacketType
from skerry_testbed.pytest import NetworkHandle
from skerry_testbed.queries import ask, create_srt

#: Motes that lose their parent in an epoch, in per cent, between the ends of the paper's axis; its runs have 100 epochs a point.
SHARES = (0.1, 1.0, 5.0, 10.0, 20.0)
EPOCH_S = 60
#: Read off the paper's text: about 30 messages for 1 % of 400 motes, 300 for 10 %.
PAPER_PER_MOVE = 7.5
CONTROL = {PacketType.BEACON, PacketType.JOIN, PacketType.QUERY_REQUEST, PacketType.QUERY_INSTALL}


@dataclass(frozen=True)
class Options(SeedOptions):
    side: int = option(8, "motes along a side of the grid")
    epochs: int = option(20, f"epochs of {EPOCH_S} s for each share; the paper has 100")
    shares: tuple[float, ...] = option(SHARES, "motes that lose their parent in an epoch, in per cent")


@dataclass
class Phase:
    """Of an epoch, on average: motes that took another parent, control frames beyond those of the quiet time, and in vain."""

    moves: float
    frames: float
    vain: float


def frames_of(net: NetworkHandle, down: Container[tuple[int, int]] = ()) -> tuple[int, int]:
    """Control frames that are kept, and those over links that are down; repetitions of one that was not acknowledged count once."""
    joins = {
        (mac.source, mac.sequence): (mac.source, mac.destination) in down
        for _, mac, packet in net.packets()
        if packet.type is PacketType.JOIN
    }
    others = sum(packet.type in CONTROL - {PacketType.JOIN} for _, _, packet in net.packets())
    vain = sum(joins.values())
    return others + len(joins) - vain, vain


def parents_of(net: NetworkHandle) -> dict[int, int]:
    """By mote, from the last beacons that are kept."""
    return {
        mac.source: packet.body.parent for _, mac, packet in net.packets() if packet.type is PacketType.BEACON
    }


def run(options: Options, recorder: Recorder, *, tree: bool) -> list[Phase]:
    """A network through all shares, so many epochs each, with a tree or without."""
    side, epochs = options.side, options.epochs
    network, rng = placed(side, "random", options.seed), random.Random(options.seed)
    name = "with a tree" if tree else "without a tree"
    recorder.progress(f"{name}: settling")
    net = started(network, JOIN_S)
    if tree:
        create_srt(net, 1, "CREATE SRT t ON sensors (nodeid) POLICY clustered", lambda _: range(side * side))
    ask(net, 2, "SELECT COUNT(*) FROM sensors SAMPLE PERIOD 5 s")
    net.advance(150)
    quiet = 0
    parents: dict[int, int] = {}
    for _ in recorder.steps(range(epochs), f"{name}, nothing moves"):
        net.frames.clear()
        net.advance(EPOCH_S)
        quiet += frames_of(net)[0]
        parents |= parents_of(net)
    (root,) = (mote.id for mote in network.mote if mote.root)
    phases = []
    for share in options.shares:
        moves = frames = vain = 0
        for _ in recorder.steps(range(epochs), f"{name}, {share:g} %"):
            losing = [
                n for n in parents if n != root and parents[n] in parents and rng.random() < share / 100
            ]
            links = [pair for n in losing for pair in ((n, parents[n]), (parents[n], n))]
            for sender, receiver in links:
                net.inject(kind="link_down", mote=sender, to=receiver)
            net.frames.clear()
            net.advance(EPOCH_S)
            for sender, receiver in links:
                net.inject(kind="link_up", mote=sender, to=receiver)
            now = parents | parents_of(net)
            moves += sum(now[n] != parents[n] for n in parents)
            arrived, lost = frames_of(net, links)
            frames, vain = frames + arrived, vain + lost
            parents = now
        phases.append(Phase(moves / epochs, (frames - quiet) / epochs, vain / epochs))
    return phases


def measure(options: Options, recorder: Recorder) -> None:
    """Without a tree, then with one."""
    table = recorder.table(
        "changes",
        [
            Column("links lost", "%", "g"), Column("changes of parent an epoch, without a tree", form=".1f"),
            Column("changes with a tree", form=".1f"), Column("frames a change, without", form=".1f", better="less"),
            Column("frames with", form=".1f", better="less"), Column("the paper's messages a change", form="g"),
            Column("in vain before it, without", form=".1f"), Column("in vain with", form=".1f"),
        ],
    )  # fmt: skip
    without, having = (run(options, recorder, tree=tree) for tree in (False, True))
    for share, bare, one in zip(options.shares, without, having, strict=True):
        two = (bare, one)
        frames = [phase.frames / max(phase.moves, 1e-9) for phase in two]
        vain = [phase.vain / max(phase.moves, 1e-9) for phase in two]
        table.row(share, *(phase.moves for phase in two), *frames, PAPER_PER_MOVE, *vain)
        recorder.figure(
            f"control frames a change of parent, {share:g} % of links lost", frames[1], "", ".1f", better="less",
            goal=PAPER_PER_MOVE, reference="the paper's messages", main=share == 10,
        )  # fmt: skip


BENCHMARK = Benchmark(measure, quick=Options(side=4, epochs=2, shares=(10.0,)), minutes=16)

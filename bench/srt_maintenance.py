"""What it costs to keep a semantic routing tree while motes change parents: figure 11 of TinyDB 2005, in emulation.

In each epoch of a minute some motes lose the link to their parent, both ways, and get it back with the next epoch. Control frames
(beacons, JOIN, requests and programs) are counted against those of a time in which nothing moves, with the tree and without: the
difference between both is what the tree adds. In the paper motes are told to move; what they send here to a parent that does not
answer, until they know that it will not, is counted by itself.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Container
from dataclasses import dataclass

from bench.srt import JOIN_S, placed
from hil_tests.queries import ask, create_srt
from skerry_protocol.packets import PacketType
from skerry_testbed.pytest import NetworkHandle

#: Motes that lose their parent in an epoch, in per cent, between the ends of the paper's axis; its runs have 100 epochs a point.
SHARES = (0.1, 1, 5, 10, 20)
EPOCH_S, EPOCHS = 60, 100
#: Read off the paper's text: about 30 messages for 1 % of 400 motes, 300 for 10 %.
PAPER_PER_MOVE = 7.5
CONTROL = {PacketType.BEACON, PacketType.JOIN, PacketType.QUERY_REQUEST, PacketType.QUERY_INSTALL}


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


def run(side: int, seed: int, epochs: int, *, tree: bool) -> list[Phase]:
    """A network through all shares, so many epochs each, with a tree or without."""
    network, rng = placed(side, "random", seed), random.Random(seed)
    net = NetworkHandle(network)
    net.advance(2.5)
    net.line.connect()
    net.advance(JOIN_S)
    if tree:
        create_srt(net, 1, "CREATE SRT t ON sensors (nodeid) POLICY clustered", lambda _: range(side * side))
    ask(net, 2, "SELECT COUNT(*) FROM sensors SAMPLE PERIOD 5 s")
    net.advance(150)
    quiet = 0
    parents: dict[int, int] = {}
    for _ in range(epochs):
        net.frames.clear()
        net.advance(EPOCH_S)
        quiet += frames_of(net)[0]
        parents |= parents_of(net)
    (root,) = (mote.id for mote in network.mote if mote.root)
    phases = []
    for share in SHARES:
        moves = frames = vain = 0
        for _ in range(epochs):
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
        print(f"{'with' if tree else 'without'} a tree, {share} %: {phases[-1]}", flush=True)
    return phases


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--side", type=int, default=8, help="motes along a side of the grid")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="epochs of each share")
    options = parser.parse_args()
    began = time.monotonic()
    without, having = (run(options.side, options.seed, options.epochs, tree=tree) for tree in (False, True))
    print(
        f"\n{options.side}x{options.side} motes, seed {options.seed}, {options.epochs} epochs each, {time.monotonic() - began:.0f} s\n"
    )
    print(
        "| links lost | moves per epoch, without a tree | with | frames per move, without | with | the paper's messages per move |"
        " in vain before it, without | with |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for share, bare, one in zip(SHARES, without, having, strict=True):
        two = (bare, one)
        cells = [
            *(f"{phase.moves:.1f}" for phase in two),
            *(f"{phase.frames / max(phase.moves, 1e-9):.1f}" for phase in two),
            str(PAPER_PER_MOVE),
            *(f"{phase.vain / max(phase.moves, 1e-9):.1f}" for phase in two),
        ]
        print(f"| {share} % | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()

"""What it costs to keep a semantic routing tree while motes change parents: figure 11 of TinyDB 2005, in emulation.

In each epoch of a minute some motes lose the link to their parent, both ways, and get it back with the next epoch. Control frames
(beacons, JOIN, requests and programs) are counted against those of a time in which nothing moves, with the tree and without: the
difference between both is what the tree adds.
"""

from __future__ import annotations

import argparse
import random
import time
from dataclasses import dataclass

from bench.srt import JOIN_S, placed
from hil_tests.queries import ask, create_srt
from skerry_protocol.packets import PacketType
from skerry_testbed.pytest import NetworkHandle

#: Motes that lose their parent in an epoch, in per cent; of the paper's points between 0.1 and 20.
SHARES = (1, 5, 20)
EPOCH_S, EPOCHS = 60, 4
QUIET_S = 180
#: Read off the paper's text: about 30 messages for 1 % of 400 motes, 300 for 10 %.
PAPER_PER_MOVE = 7.5
CONTROL = {PacketType.BEACON, PacketType.JOIN, PacketType.QUERY_REQUEST, PacketType.QUERY_INSTALL}


@dataclass
class Phase:
    """Of an epoch, on average: motes that took another parent, and control frames beyond those of the quiet time."""

    moves: float
    frames: float


def frames_of(net: NetworkHandle) -> int:
    """Control frames that are kept; repetitions of one that was not acknowledged count once."""
    seen = {
        (mac.source, mac.sequence, packet.type)
        for _, mac, packet in net.packets()
        if packet.type is PacketType.JOIN
    }
    return len(seen) + sum(packet.type in CONTROL - {PacketType.JOIN} for _, _, packet in net.packets())


def parents_of(net: NetworkHandle) -> dict[int, int]:
    """By mote, from the last beacons that are kept."""
    return {
        mac.source: packet.body.parent for _, mac, packet in net.packets() if packet.type is PacketType.BEACON
    }


def run(side: int, seed: int, *, tree: bool) -> list[Phase]:
    """A network through all shares, with a tree or without."""
    network, rng = placed(side, "random", seed), random.Random(seed)
    net = NetworkHandle(network)
    net.advance(2.5)
    net.line.connect()
    net.advance(JOIN_S)
    if tree:
        create_srt(net, 1, "CREATE SRT t ON sensors (nodeid) POLICY clustered", lambda _: range(side * side))
    ask(net, 2, "SELECT COUNT(*) FROM sensors SAMPLE PERIOD 5 s")
    net.advance(150)
    net.frames.clear()
    net.advance(QUIET_S)
    quiet, parents = frames_of(net) * EPOCH_S / QUIET_S, parents_of(net)
    (root,) = (mote.id for mote in network.mote if mote.root)
    phases = []
    for share in SHARES:
        moves = frames = 0
        for _ in range(EPOCHS):
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
            frames += frames_of(net)
            parents = now
        phases.append(Phase(moves / EPOCHS, frames / EPOCHS - quiet))
        print(f"{'with' if tree else 'without'} a tree, {share} %: {phases[-1]}", flush=True)
    return phases


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--side", type=int, default=8, help="motes along a side of the grid")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began = time.monotonic()
    without, having = (run(options.side, options.seed, tree=tree) for tree in (False, True))
    print(f"\n{options.side}x{options.side} motes, {time.monotonic() - began:.0f} s\n")
    print(
        "| links lost | moves per epoch | frames per move, tree and all | of them for the tree | paper's messages per move |"
    )
    print("| --- | --- | --- | --- | --- |")
    for share, bare, one in zip(SHARES, without, having, strict=True):
        per_move = one.frames / max(one.moves, 1e-9)
        added = per_move - bare.frames / max(bare.moves, 1e-9)
        print(f"| {share} % | {one.moves:.1f} | {per_move:.1f} | {added:.1f} | {PAPER_PER_MOVE} |")


if __name__ == "__main__":
    main()

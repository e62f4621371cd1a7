"""Holds the frames that motes sent in Renode against those of the same network in the testbed.

They agree when each mote sends the same frames in the same order, at times within a quantum; so frames of different motes that
lie further apart than that are in the same order as well. Renode sends a frame in no time and delivers it with its quantum: what
follows a frame is earlier there by the frame's time on the air, 4.3 ms at most. Stamps of network time, which differ by that, are
left out of the comparison, and so is how well a frame was heard, and the FCS.

In Renode the channel is always clear. Where a mote finds it busy here it draws another wait, and all its later times are others:
the comparison ends there, and says so.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from construct import Container, ListContainer

from skerry_protocol import codec, mac
from skerry_protocol.packets import PacketError, PacketType, VersionMismatchError
from skerry_testbed.network import Network, load
from skerry_testbed.runner import Testbed

#: Renode's own default quantum, s.
QUANTUM_S = 0.010
#: How exactly the end of an undisturbed channel is found, s.
STEP_S = 0.25
#: Fields that speak of time or of how well a frame was heard.
VARYING = ("seconds", "ticks", "cost", "heard")


@dataclass(frozen=True, slots=True)
class Sent:
    """One frame: when it was sent in s, by which mote, and what it says apart from what varies."""

    at: float
    node: int
    what: str


def describe(psdu: bytes) -> str:
    """A frame in words, without what may differ between emulators."""
    if len(psdu) == 5:
        return f"acknowledgement {psdu[2]}"
    frame = mac.decode(psdu)
    if frame is None:
        return psdu.hex()
    head = f"{frame.sequence} {frame.source}->{frame.destination}"
    try:
        packet = codec.decode(frame.payload)
    except (PacketError, VersionMismatchError):
        return f"{head} {frame.payload.hex()}"
    if packet.type is PacketType.BUNDLE:
        return f"{head} BUNDLE " + " ".join(
            f"{record.type}:{len(record.body)}" for record in packet.body.records
        )
    return f"{head} {packet.type.name} {_steady(packet.body)}"


def _steady(value: Any) -> Any:
    """A packet's fields without those that vary."""
    if isinstance(value, ListContainer):
        return [_steady(item) for item in value]
    if isinstance(value, Container):
        items = ((name, item) for name, item in value.items() if not name.startswith("_"))
        return {name: _steady(item) for name, item in items if name not in VARYING}
    return value


def from_testbed(network: Network, duration_s: float) -> tuple[list[Sent], float]:
    """Run the network here: its frames, and until when nobody found the channel busy."""
    bed, sent = Testbed(network), []
    bed.air_listeners.append(
        lambda frame: sent.append(
            Sent(frame.start_ns / 1e9, bed.motes[frame.sender].id, describe(frame.psdu))
        )
    )
    while bed.now_s < duration_s:
        before = bed.now_s
        bed.advance(STEP_S)
        if any(bed.world.counters(index)["cca_busy"] for index in range(len(bed.motes))):
            return sent, before
    return sent, duration_s


def from_file(path: Path, duration_s: float) -> list[Sent]:
    """Lines of ``milliseconds mote bytes``. Raises ValueError naming the line that is none."""
    sent = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        try:
            at, node, data = line.split()
            frame = Sent(float(at) / 1000, int(node), describe(bytes.fromhex(data)))
        except ValueError:
            raise ValueError(f"{path}:{number}: {line!r}: expected 'milliseconds mote bytes'") from None
        if frame.at <= duration_s:
            sent.append(frame)
    return sent


def differences(one: list[Sent], other: list[Sent], quantum_s: float, duration_s: float) -> list[str]:
    """What keeps two runs of so many seconds from being the same; a frame too many at the very end may be in one only."""
    found = []
    for node in sorted({frame.node for frame in one + other}):
        mine, theirs = ([f for f in run if f.node == node] for run in (one, other))
        common = min(len(mine), len(theirs))
        if any(frame.at < duration_s - quantum_s for frame in mine[common:] + theirs[common:]):
            found.append(f"mote {node}: {len(mine)} frames here, {len(theirs)} there")
        for a, b in zip(mine, theirs, strict=False):
            if a.what != b.what:
                found.append(
                    f"mote {node} at {a.at:.4f} s: {a.what!r} here, {b.what!r} at {b.at:.4f} s there"
                )
            elif abs(a.at - b.at) > quantum_s:
                found.append(f"mote {node}: {a.what!r} at {a.at:.4f} s here, at {b.at:.4f} s there")
    return found


def main() -> int:
    """Command line: 1 when they differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("network", type=Path, help="network description")
    parser.add_argument(
        "frames", type=Path, nargs="?", help="Renode's frames: lines of 'milliseconds mote bytes'"
    )
    parser.add_argument("--list", action="store_true", help="only print the motes' ids")
    parser.add_argument("--seconds", type=float, default=60, help="virtual time to compare")
    parser.add_argument("--quantum", type=float, default=QUANTUM_S, help="s within which times are the same")
    options = parser.parse_args()
    network = load(options.network)
    if options.list:
        print(*(mote.id for mote in network.mote))
        return 0
    if options.frames is None:
        parser.error("a file of frames is needed")
    here, until = from_testbed(network, options.seconds)
    if until < options.seconds:
        print(f"compare: only up to {until:g} s: a mote found the channel busy then", file=sys.stderr)
    here = [frame for frame in here if frame.at <= until]
    there = from_file(options.frames, until)
    found = differences(here, there, options.quantum, until)
    for line in found[:20]:
        print(f"compare: {line}", file=sys.stderr)
    print(f"{len(here)} frames here, {len(there)} there, {len(found)} differences")
    return 1 if found or not here else 0


if __name__ == "__main__":
    sys.exit(main())

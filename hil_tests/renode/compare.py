"""Holds the frames that motes sent in Renode against those of the same network in the testbed.

They agree when each mote sends the same frames in the same order, at times within a quantum; so frames of different motes that
lie further apart than that are in the same order as well. Renode sends a frame in no time and delivers it with its quantum: what
follows a frame is earlier there by the frame's time on the air, 4.3 ms at most. Stamps of network time, which differ by that, are
left out of the comparison, and so are what motes reckon of them, how well a frame was heard, and the FCS. Version 1.15.3 says
of acknowledgements that they were sent at 0.0: of these only the order counts.

In Renode no other mote's frame makes the channel busy or collides; only a mote that has just sent shows itself as sending for a few
reads of FSMSTAT1, which the firmware reads past. Where a mote finds the channel busy here it draws another wait, and all its later
times are others; where frames collide here, they do not there: the comparison ends there, and says so.

What two emulators draw or round by themselves cannot agree: networks that leave something to that are refused.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from construct import Container, ListContainer

from skerry_protocol import codec, mac
from skerry_protocol.codes import PacketType
from skerry_protocol.errors import PacketError, VersionMismatchError
from skerry_testbed.duration import seconds
from skerry_testbed.network import Network, NetworkError, load
from skerry_testbed.runner import Testbed

ACKNOWLEDGEMENT = "acknowledgement"
#: Within this, times are the same, s: what comes of sending in no time, and a tick or two of rounding.
QUANTUM_S = 0.010
#: How exactly the end of an undisturbed channel is found, s.
STEP_S = 0.25
#: Fields that speak of time or of how well a frame was heard.
VARYING = ("seconds", "ticks", "cost", "heard")
#: Of a beacon also those of its sender's clock, which each emulator starts at another count.
VARYING_IN_BEACONS = (*VARYING, "offset", "skew")
#: What makes the comparison end: counters of motes.
DISTURBANCES = {"cca_busy": "a mote found the channel busy", "lost_collision": "frames collided"}


@dataclass(frozen=True, slots=True)
class Sent:
    """One frame: when it was sent in s (None: nobody knows), by which mote, and what it says apart from what varies."""

    at: float | None
    node: int
    what: str


def check_comparable(network: Network) -> None:
    """Raises NetworkError where two emulators must differ: in starts, crystals, losses, or what frames.robot does not run."""
    reason = "two emulators cannot be compared"
    if seconds(network.boot_spread) and any(mote.boot is None for mote in network.mote):
        raise NetworkError(f"boot_spread = {network.boot_spread!r}: {reason}; expected 0")
    if network.clock_ppm and any(mote.clock_ppm is None for mote in network.mote):
        raise NetworkError(f"clock_ppm = {network.clock_ppm:g}: {reason}; expected 0")
    for mote in network.mote:
        if mote.boot is not None and seconds(mote.boot):
            raise NetworkError(f"mote {mote.id}: boot = {mote.boot!r}: {reason}; expected 0")
        if mote.clock_ppm:
            raise NetworkError(f"mote {mote.id}: clock_ppm = {mote.clock_ppm:g}: {reason}; expected 0")
    for fault in network.fault:
        raise NetworkError(f"fault at {fault.at!r}: kind = {fault.kind!r}: {reason}; expected no faults")
    model = network.radio
    if model.model == "disc" and model.reception != 1:
        raise NetworkError(f"radio.reception = {model.reception:g}: {reason}; expected 1")
    if model.model == "matrix":
        for sender, receiver, probability in model.links:
            if probability not in (0, 1):
                raise NetworkError(
                    f"radio.links: {sender} {receiver} {probability:g}: {reason}; expected a probability of 0 or 1"
                )
    if model.model not in ("disc", "matrix"):
        raise NetworkError(f"radio.model = {model.model!r}: {reason}; expected 'disc' or 'matrix'")


def describe(psdu: bytes) -> str:
    """A frame in words, without what may differ between emulators."""
    if len(psdu) == 5:
        return f"{ACKNOWLEDGEMENT} {psdu[2]}"
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
    varying = VARYING_IN_BEACONS if packet.type is PacketType.BEACON else VARYING
    return f"{head} {packet.type.name} {_steady(packet.body, varying)}"


def _steady(value: Any, varying: tuple[str, ...]) -> Any:
    """A packet's fields without those that vary."""
    if isinstance(value, ListContainer):
        return [_steady(item, varying) for item in value]
    if isinstance(value, codec.Result | codec.Series | codec.Joined):
        value = Container(value._asdict())
    if isinstance(value, Container):
        items = ((name, item) for name, item in value.items() if not name.startswith("_"))
        return {name: _steady(item, varying) for name, item in items if name not in varying}
    return value


@dataclass(frozen=True, slots=True)
class Coarse:
    """How simply Renode models the chip: the steps of its sleep timer, which are its quantum, and for how many reads of
    FSMSTAT1 a radio shows itself as sending after a frame."""

    timer_step_s: float
    tail_reads: int


def from_testbed(
    network: Network, duration_s: float, coarse: Coarse | None = None
) -> tuple[list[Sent], float, str]:
    """Run the network here: its frames, until when it can be compared, and what disturbed it then ("": nothing)."""
    bed, sent = Testbed(network), []
    if coarse:
        for index in range(len(bed.motes)):
            bed.world.set_coarse(index, round(coarse.timer_step_s * 1e9), coarse.tail_reads)
    bed.air_listeners.append(
        lambda frame: sent.append(
            Sent(frame.start_ns / 1e9, bed.motes[frame.sender].id, describe(frame.psdu))
        )
    )
    while bed.now_s < duration_s:
        before = bed.now_s
        bed.advance(STEP_S)
        for counter, what in DISTURBANCES.items():
            if any(bed.world.counters(index)[counter] for index in range(len(bed.motes))):
                return sent, before, what
    return sent, duration_s, ""


def from_file(path: Path, duration_s: float) -> list[Sent]:
    """Lines of ``milliseconds mote bytes``. Raises ValueError naming the line that is none."""
    sent = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        try:
            at, node, data = line.split()
            time_s, what = float(at) / 1000, describe(bytes.fromhex(data))
            known = time_s > 0 or not what.startswith(ACKNOWLEDGEMENT)
            frame = Sent(time_s if known else None, int(node), what)
        except ValueError:
            raise ValueError(f"{path}:{number}: {line!r}: expected 'milliseconds mote bytes'") from None
        if frame.at is None or frame.at <= duration_s:
            sent.append(frame)
    return sent


def differences(one: list[Sent], other: list[Sent], quantum_s: float, duration_s: float) -> list[str]:
    """What keeps two runs of so many seconds from being the same; a frame too many at the very end may be in one only, and so
    may acknowledgements behind all others of which nobody knows the time."""
    found = []
    for node in sorted({frame.node for frame in one + other}):
        mine, theirs = ([f for f in run if f.node == node] for run in (one, other))
        common = min(len(mine), len(theirs))
        beyond = [frame.at for frame in mine[common:] + theirs[common:] if frame.at is not None]
        if any(at < duration_s - quantum_s for at in beyond):
            found.append(f"mote {node}: {len(mine)} frames here, {len(theirs)} there")
        for a, b in zip(mine, theirs, strict=False):
            if a.what != b.what:
                found.append(f"mote {node}{_at(a)}: {a.what!r} here, {b.what!r}{_at(b)} there")
            elif a.at is not None and b.at is not None and abs(a.at - b.at) > quantum_s:
                found.append(f"mote {node}: {a.what!r}{_at(a)} here,{_at(b)} there")
    return found


def _at(frame: Sent) -> str:
    return "" if frame.at is None else f" at {frame.at:.4f} s"


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
    try:
        network = load(options.network)
        check_comparable(network)
    except (NetworkError, OSError) as error:
        print(f"compare: {error}", file=sys.stderr)
        return 1
    if options.list:
        print(*(mote.id for mote in network.mote))
        return 0
    if options.frames is None:
        parser.error("a file of frames is needed")
    here, until, disturbed = from_testbed(network, options.seconds)
    if disturbed:
        print(f"compare: only up to {until:g} s: {disturbed} then", file=sys.stderr)
    here = [frame for frame in here if frame.at is not None and frame.at <= until]
    there = from_file(options.frames, until)
    found = differences(here, there, options.quantum, until)
    for line in found[:20]:
        print(f"compare: {line}", file=sys.stderr)
    print(f"{len(here)} frames here, {len(there)} there, {len(found)} differences")
    return 1 if found or not here else 0


if __name__ == "__main__":
    sys.exit(main())

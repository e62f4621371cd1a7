"""Bytes of frames that were on the air, from preamble to FCS with acknowledgements and repetitions, by who sent and received them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skerry.planner.cost.join_prices import RECORD_BYTES
from skerry_protocol import codec, mac
from skerry_protocol.codes import PacketType
from skerry_protocol.errors import PacketError
from skerry_testbed.core import AirFrame

#: Preamble and SFD 5, length 1.
PHY_BYTES = 6
#: In front of each packet its version goes, and then its type.
_TYPE = 1
#: An acknowledgement begins 192 µs after the frame that it is of.
_ACK_WITHIN_NS = 2_000_000
#: What carries rows and answers; all else keeps the network, and opens ways.
DATA = frozenset({PacketType.BUNDLE, PacketType.CARRIED})
#: Records of a BUNDLE that are of a query; what motes say of themselves goes in bundles, too.
ROWS = frozenset({PacketType.RESULT, PacketType.JOINED, PacketType.STORED, PacketType.STATES})
#: What opens ways, to places as well.
OPENING = frozenset({PacketType.WAY_OPEN, PacketType.WAY_STATE, PacketType.TRAIL, PacketType.POSITION})


@dataclass
class Air:
    """Of some types of packets, by mote; received is what was sent to this mote alone. ``frames``: acknowledgements apart; ``rest``: bytes
    of all else."""

    sent: NDArray[np.float64]
    received: NDArray[np.float64]
    frames: int = 0
    rest: float = 0.0

    @property
    def total(self) -> float:
        """Bytes that were sent."""
        return float(self.sent.sum())

    @property
    def by_mote(self) -> NDArray[np.float64]:
        """Bytes that each sent and received."""
        found: NDArray[np.float64] = self.sent + self.received
        return found

    @property
    def root(self) -> float:
        """Of the root, which is the first mote."""
        return float(self.by_mote[0])

    @property
    def most(self) -> float:
        """Of the mote that sent and received most, the root apart."""
        return float(self.by_mote[1:].max())

    def __sub__(self, other: Air) -> Air:
        """What is more than that of another time."""
        return Air(
            self.sent - other.sent,
            self.received - other.received,
            self.frames - other.frames,
            self.rest - other.rest,
        )

    def times(self, factor: float) -> Air:
        """Of a time so much longer."""
        return Air(
            self.sent * factor, self.received * factor, round(self.frames * factor), self.rest * factor
        )


def counted(frames: Iterable[AirFrame], motes: int, types: frozenset[PacketType] = DATA) -> Air:
    """Of so many motes with the addresses 0, 1, …, in this order."""
    air = Air(np.zeros(motes), np.zeros(motes))
    #: By sequence number: when the last frame that wants an acknowledgement ended, whose it was, and whether it is counted.
    waiting: dict[int, tuple[int, int, bool]] = {}
    for frame in frames:
        size = PHY_BYTES + len(frame.psdu)
        try:
            decoded = mac.decode(frame.psdu)
        except PacketError:
            air.rest += size
            continue
        if decoded is None:
            ended, of, data = waiting.get(frame.psdu[2], (-_ACK_WITHIN_NS, 0, False))
            if not data or frame.start_ns - ended >= _ACK_WITHIN_NS:
                air.rest += size
                continue
            air.sent[frame.sender] += size
            air.received[of] += size
            continue
        others = _others(decoded.payload, types)
        if decoded.acknowledged:
            waiting[decoded.sequence] = frame.end_ns, frame.sender, others is not None
        if others is None:
            air.rest += size
            continue
        air.rest += others
        size -= others
        air.frames += 1
        air.sent[frame.sender] += size
        if decoded.destination < motes:
            air.received[decoded.destination] += size
    return air


def _others(payload: bytes, types: frozenset[PacketType]) -> int | None:
    """Bytes of records that are not of a query, in a packet that is counted; None: it is not."""
    if len(payload) <= _TYPE or payload[_TYPE] not in types:
        return None
    if payload[_TYPE] != PacketType.BUNDLE:
        return 0
    records = codec.decode(payload).body.records
    others = [RECORD_BYTES + len(record.body) for record in records if record.type not in ROWS]
    return sum(others) if len(others) < len(records) else None


def joules(energies: Iterable[dict[str, float]], component: str = "") -> float:
    """Of motes together, of all that takes it or of a component as ``radio``."""
    return sum(
        value
        for one in energies
        for name, value in one.items()
        if name.endswith("_j") and name.startswith(component)
    )

"""The root's time, and when it came."""

from __future__ import annotations

from dataclasses import dataclass

from skerry_protocol.codec import Packet
from skerry_protocol.limits import TICKS_PER_SECOND


@dataclass(slots=True)
class Stamp(Packet):
    """A TIME. ``arrival``: UTC in s."""

    arrival: float

    @property
    def seconds(self) -> float:
        """Network time when the root wrote it, in s."""
        return float(self.body.seconds + self.body.ticks / TICKS_PER_SECOND)

    @property
    def all_sent(self) -> bool:
        """Whether nothing from before that time waits at the root any more."""
        return not self.body.more

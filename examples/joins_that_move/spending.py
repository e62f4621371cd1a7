"""What all motes of a run spend in a while."""

from __future__ import annotations

from dataclasses import dataclass

from skerry_testbed.core import AirFrame
from skerry_testbed.runner import Testbed

#: Preamble, start of frame and length (IEEE 802.15.4), which are on the air before a frame's bytes.
_PHY_BYTES = 6
_HOUR_S = 3600


@dataclass(frozen=True)
class Spent:
    """Since the start: frames, acknowledgements and repetitions included, their bytes, and J; or the same in an hour."""

    at_s: float
    frames: float
    octets: float
    joules: float

    def until(self, later: Spent) -> Spent:
        """An hour of what was spent between both."""
        hours = (later.at_s - self.at_s) / _HOUR_S
        return Spent(
            later.at_s - self.at_s,
            (later.frames - self.frames) / hours,
            (later.octets - self.octets) / hours,
            (later.joules - self.joules) / hours,
        )

    def __str__(self) -> str:
        return f"{self.frames:,.0f} frames, {self.octets / 1000:,.1f} kB on the air and {self.joules:,.2f} J an hour"


class Meter:
    """Listens to a run from here on."""

    def __init__(self, bed: Testbed) -> None:
        self._bed, self._frames, self._octets = bed, 0, 0
        bed.air_listeners.append(self._hear)

    def _hear(self, frame: AirFrame) -> None:
        self._frames += 1
        self._octets += len(frame.psdu) + _PHY_BYTES

    def now(self) -> Spent:
        """Up to now."""
        energy = sum(mote["energy"]["total_j"] for mote in self._bed.report()["motes"])
        return Spent(self._bed.now_s, self._frames, self._octets, energy)

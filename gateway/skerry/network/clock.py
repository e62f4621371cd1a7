"""Network time ↔ UTC: the root's seconds since boot, seen through its packets."""

from __future__ import annotations

import time

#: A new sighting moves the mapping at most by what a packet may wait on the line; one that came later than that has waited elsewhere.
_JITTER_S = 0.5


class NetworkClock:
    """The mapping of one session of the root. Sightings come late, never early: the earliest one counts, slowly forgotten.
    ``speed``: s of network time in one of this machine's, of emulated motes.

    Where this machine's clock is set, UTC moves and network time does not: the mapping moves with it.
    """

    def __init__(self, speed: float = 1.0) -> None:
        self.speed = speed
        self._origin: float | None = None
        self._assumed: float | None = None
        #: UTC of this machine's start, as its clock had it when that was asked last.
        self._started = _started()

    @property
    def origin(self) -> float | None:
        """UTC in s of network time 0, as it is or, until the root is heard, was known; None: never."""
        self._follow()
        return self._assumed if self._origin is None else self._origin

    def _follow(self) -> None:
        """Move by what the machine's clock was set by since the last time; what it is slewed by, sightings follow."""
        started = _started()
        step, self._started = started - self._started, started
        if self._origin is not None and abs(step) >= _JITTER_S:
            self._origin += step

    def assume(self, origin: float | None) -> None:
        """What :attr:`origin` was before the gateway's last start."""
        self._assumed = origin

    def restart(self, seconds: int, ticks: int, arrival: float) -> None:
        """HELLO: network time when the root wrote it, and UTC in s when it arrived."""
        self._follow()
        self._origin = arrival - (seconds + ticks / 32768) / self.speed

    def sighting(self, seconds: float, arrival: float) -> None:
        """A packet that was written at about this network time."""
        self._follow()
        origin = arrival - seconds / self.speed
        if self._origin is None:
            self._origin = origin
            return
        if origin < self._origin:
            self._origin = origin
        elif origin - self._origin < _JITTER_S:
            self._origin += (origin - self._origin) * 0.01

    @property
    def known(self) -> bool:
        """Whether the root has been heard."""
        return self._origin is not None

    def now(self) -> float:
        """Network time now, in s; 0 while nothing is known of it."""
        origin = self.origin
        return 0.0 if origin is None else (time.time() - origin) * self.speed

    def now_ms(self) -> int:
        """The same in whole ms."""
        return int(self.now() * 1000)

    def utc(self, network_ms: int) -> float | None:
        """UTC in s of a network time in ms."""
        self._follow()
        return None if self._origin is None else self._origin + network_ms / 1000 / self.speed


def _started() -> float:
    """UTC in s of this machine's start, as its clock has it now."""
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)

"""Network time ↔ UTC: the root's seconds since boot, as it tells them once a second (TIME).

Network time follows the root, at whatever pace: emulated motes run faster or slower than this machine's clock, stand still, and may not
keep the speed that they are asked for. Between two of the root's stamps time goes on as it did of late, and no further than to the next
one, which would have come. Of a root whose line is down nobody knows better than that it goes on as before.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import deque
from typing import NamedTuple

from skerry.storage.log import machine_clock

#: The root tells its time so often, in s of network time.
STAMP_S = 1.0
#: A stamp that comes so late, in s of this machine's, at the speed that is asked for, has waited somewhere on its way: what it is late
#: by is hardly believed. One that comes later tells that network time goes at another pace.
_JITTER_S = 0.5
_BELIEVED = 0.01
#: Marks of the mapping lie so far apart at least, in s of this machine's; and how many are kept, an hour of them at the roots' own pace.
_GAP_S = 0.25
_MARKS = 4096
#: The speed of real motes is as near to 1, whatever crystals and lines do.
_REAL = 0.02
#: The speed is that of so long, in s of this machine's.
_MEASURED_S = 10.0
#: … and what takes this machine's time is reckoned by the highest of so long.
_PACE_S = 60.0


class Mark(NamedTuple):
    """Network time, and this machine's since its start, in s."""

    network: float
    machine: float


class NetworkClock:
    """The mapping of one session of the root. ``speed``: s of network time in one of this machine's, until the root has shown it.

    Where this machine's clock is set, UTC moves and network time does not: the mapping moves with it.
    """

    def __init__(self, speed: float = 1.0) -> None:
        self._asked_speed = self._speed = speed
        self._last: Mark | None = None
        self._assumed: Mark | None = None
        #: Ascending; the last one may still be replaced by one that tells better.
        self._marks: list[Mark] = []
        self._speeds: deque[tuple[float, float]] = deque()
        #: Whether the root's stamps would come now.
        self.connected = True
        #: UTC of this machine's start, as its clock had it when that was asked last.
        self._started = machine_clock.started()

    # ---- what the root tells ----

    def restart(self, seconds: int, ticks: int, arrival: float, *, goes_on: bool = False) -> None:
        """HELLO: network time when the root wrote it, and UTC in s when it arrived. ``goes_on``: in the session that there was."""
        if not goes_on:
            self._marks.clear()
            self._last = None
        self.stamp(seconds + ticks / 32768, arrival)

    def stamp(self, seconds: float, arrival: float) -> None:
        """Network time when the root wrote a packet, and UTC in s when that arrived. An earlier one than the last tells nothing."""
        machine = arrival - self._utc_of_start()
        if self._last is not None and seconds <= self._last.network:
            return
        self._last = told = Mark(seconds, machine)
        self._keep(told)
        self._measure(told)

    def assume(self, told: tuple[float, float, float] | None) -> None:
        """What :meth:`told` was before the gateway's last start."""
        if told is not None:
            network, utc, self._speed = told
            self._assumed = Mark(network, utc - self._utc_of_start())

    def gap(self, seconds: float) -> tuple[float, float] | None:
        """By how much UTC is further, in s, than it would be by what was told before the gateway's start, when the root that has gone on
        says this time; and how long it went on, in s. None: nothing was told, or emulated motes may have stood still."""
        if self._last is not None or self._assumed is None or not self.is_real:
            return None
        gone = seconds - self._assumed.network
        return self._machine() - self._assumed.machine - gone / self._speed, gone

    def told(self) -> tuple[float, float, float] | None:
        """The last that the root has told, here or before this gateway started: network time, UTC and speed. None: nothing."""
        last = self._last or self._assumed
        return None if last is None else (last.network, last.machine + self._utc_of_start(), self.speed)

    def _keep(self, told: Mark) -> None:
        marks = self._marks
        if marks:
            before = marks[-1]
            due = before.machine + (told.network - before.network) / self._asked_speed
            if due < told.machine < due + _JITTER_S:
                told = Mark(told.network, due + (told.machine - due) * _BELIEVED)
            elif self._steady and due - told.machine > _JITTER_S and len(marks) > 1:
                # The one before had waited on its way.
                marks.pop()
        if len(marks) > 1 and told.machine - marks[-2].machine < _GAP_S:
            marks.pop()
        # What is earlier than what is kept would bend time back.
        if not marks or told.machine > marks[-1].machine:
            marks.append(told)
        if len(marks) > _MARKS:
            del marks[: _MARKS // 4]

    @property
    def _steady(self) -> bool:
        return abs(self._speed / self._asked_speed - 1) < 0.05

    def _measure(self, told: Mark) -> None:
        since = told.machine - _MEASURED_S
        first = next((mark for mark in reversed(self._marks) if mark.machine <= since), self._marks[0])
        if told.machine - first.machine < STAMP_S:
            return
        self._speed = (told.network - first.network) / (told.machine - first.machine)
        self._speeds.append((told.machine, self._speed))
        while self._speeds[0][0] < told.machine - _PACE_S:
            self._speeds.popleft()

    # ---- what it is now ----

    @property
    def known(self) -> bool:
        """Whether the root has been heard."""
        return self._last is not None

    @property
    def is_real(self) -> bool:
        """Whether network time goes as this machine's does: emulated motes may stop and go on, real ones do not."""
        return abs(self._speed - 1) < _REAL

    @property
    def stamped(self) -> float:
        """Network time in s up to which the root has told it; 0 while nothing is known."""
        last = self._last or self._assumed
        return 0.0 if last is None else last.network

    def now(self) -> float:
        """Network time now, in s; 0 while nothing is known of it."""
        last = self._last or self._assumed
        if last is None:
            return 0.0
        gone = max(0.0, self._machine() - last.machine) * self._speed
        bounded = self._last is not None and self.connected
        return last.network + (min(gone, STAMP_S) if bounded else gone)

    def now_ms(self) -> int:
        """The same in whole ms."""
        return int(self.now() * 1000)

    @property
    def speed(self) -> float:
        """S of network time in one of this machine's, of late."""
        if self._last is None or not self.connected:
            return self._speed
        silent = self._machine() - self._last.machine
        return self._speed if silent <= _JITTER_S + 2 * STAMP_S / self._speed else STAMP_S / silent

    @property
    def pace(self) -> float:
        """The highest speed of late, for what takes this machine's time."""
        return max((speed for _, speed in self._speeds), default=self._speed)

    def silent(self) -> float:
        """For how long, in s of this machine's, the root has not told its time though its line is up."""
        return self._machine() - self._last.machine if self._last is not None and self.connected else 0.0

    # ---- UTC ----

    def utc(self, network_ms: int) -> float | None:
        """UTC in s of a network time in ms; None while the root has not been heard."""
        if not self._marks:
            return None
        network = network_ms / 1000
        at = bisect_right(self._marks, network, key=lambda mark: mark.network)
        return self._on_line(network, at, by_network=True) + self._utc_of_start()

    def network(self, utc: float) -> float | None:
        """Network time in s at a UTC in s; None while the root has not been heard."""
        if not self._marks:
            return None
        machine = utc - self._utc_of_start()
        at = bisect_right(self._marks, machine, key=lambda mark: mark.machine)
        return self._on_line(machine, at, by_network=False)

    def earlier(self, utc: float, span_ms: int) -> float:
        """UTC in s so long, in ms of network time, before another: also of one that the root was not yet heard at."""
        then = self.network(utc)
        if then is None:
            return utc - span_ms / 1000 / self._asked_speed
        # Where the root has stopped since, it went no further.
        found = self.utc(round(min(then, self.now()) * 1000) - span_ms)
        assert found is not None
        return found

    def _on_line(self, value: float, at: int, *, by_network: bool) -> float:
        """Between the marks around, or as it goes before the first and behind the last."""
        one, other = self._marks[max(at - 1, 0)], self._marks[min(at, len(self._marks) - 1)]
        (x, y) = (one.network, one.machine) if by_network else (one.machine, one.network)
        if other is one:
            speed = self._speed if at else self._asked_speed
            return y + (value - x) * (1 / speed if by_network else speed)
        dx, dy = other.network - one.network, other.machine - one.machine
        return y + (value - x) * (dy / dx if by_network else dx / dy)

    def _utc_of_start(self) -> float:
        """Moves by what the machine's clock is set by; what it is slewed by, stamps follow."""
        started = machine_clock.started()
        if abs(started - self._started) >= _JITTER_S:
            self._started = started
        return self._started

    def _machine(self) -> float:
        return time.time() - self._utc_of_start()

"""The time that replays play: which moment of the past it is now. Replays that name the same ``clock=`` have one, and so keep together.

A clock stands at its origin, the first time of any of its replays, until those that are opened together are there; then it goes at its
speed. One without a speed goes as fast as its rows are read: none of its replays is further ahead than a step of what the slowest has next.
With a speed none is further ahead of that than what is played in a moment: where a machine has stood still, they catch up together, and not
one after the other, by which the rows of the last would be late.
"""

from __future__ import annotations

import json
import threading
import time
from datetime import UTC, datetime, timedelta

from skerry.sources.stream_type import AddressError

#: Replays that are opened within so long, in s, begin together.
TOGETHER_S = 0.5
#: Without a speed, replays are within so much time of what is played.
STEP = timedelta(seconds=1)
#: With a speed, within what is played in so long, in s, from :data:`STEP` to this much.
LEAD_S, LEAD = 0.25, timedelta(hours=1)
#: Until somebody else is asked for what it has next, in s.
_SOON_S = 0.001
#: Later than all that anybody has, with room for a lead behind it.
_NEVER = datetime(9000, 1, 1, tzinfo=UTC)


class ReplayClock:
    """``speed``: None: as fast as rows are read. Its replays' first and next times are told to it from any thread."""

    def __init__(self, speed: float | None, *, together: bool) -> None:
        self.speed, self._together = speed, together
        self._lock = threading.Lock()
        self._origin: datetime | None = None
        self._began: float | None = None
        self._opened = time.time()
        #: What each replay has next; None: it is not known yet, and others wait for it.
        self._next: dict[object, datetime | None] = {}

    @property
    def keeps_together(self) -> bool:
        """Whether rows of its replays are to come in the order of their times, but for :data:`LEAD`."""
        return self._together and self.speed is not None

    def join(self, replay: object) -> None:
        """One more replay."""
        with self._lock:
            self._next[replay] = None
            self._opened = time.time()

    def pass_by(self, replay: object) -> None:
        """What a replay has next has no time, or one that is not waited for: nobody waits for it."""
        with self._lock:
            self._next[replay] = _NEVER

    def leave(self, replay: object) -> bool:
        """One fewer; whether there are none left."""
        with self._lock:
            self._next.pop(replay, None)
            return not self._next

    def go_on(self, position: list[str | float]) -> None:
        """As it was before the process ended: what :attr:`position` said."""
        with self._lock:
            if self._began is None:
                self._origin, self._began = datetime.fromisoformat(str(position[0])), float(position[1])

    @property
    def position(self) -> list[str | float] | None:
        """For JSON; None: it has not begun."""
        if self._origin is None or self._began is None:
            return None
        return [self._origin.isoformat(), self._began]

    def wait_s(self, replay: object, at: datetime, *, in_hand: bool = False) -> float:
        """How long until a replay's next row has its turn, in s; 0: now. ``in_hand``: rows before it have had theirs, and have not been
        handed on: others that are kept together with it wait for the first of these, or each would run ahead of what others hold."""
        with self._lock:
            if not (in_hand and self.keeps_together):
                self._next[replay] = at
            if self._began is None:
                self._origin = at if self._origin is None else min(at, self._origin)
                left = self._opened + TOGETHER_S - time.time() if self._together else 0.0
                if left > 0:
                    return left
                if None in self._next.values():
                    return _SOON_S
                self._began = time.time()
            lead = STEP
            if self.speed is not None:
                assert self._origin is not None
                left = (at - self._origin).total_seconds() / self.speed - (time.time() - self._began)
                if left > 0:
                    return left
                lead = min(max(STEP, timedelta(seconds=LEAD_S * self.speed)), LEAD)
            known = [other for other in self._next.values() if other is not None]
            return 0.0 if len(known) == len(self._next) and at <= min(known) + lead else _SOON_S

    def now(self) -> datetime | None:
        """What is played now; None: that is as fast as rows are read."""
        if self.speed is None or self._origin is None or self._began is None:
            return None
        played = (time.time() - self._began) * self.speed
        # At great speeds it is behind all times that there are before long.
        return self._origin + timedelta(seconds=min(played, (_NEVER - self._origin).total_seconds()))

    def moved(self, at: datetime) -> datetime:
        """When a moment of the past is played, at speed 1."""
        assert self._origin is not None
        assert self._began is not None
        return datetime.fromtimestamp(self._began, UTC) + (at - self._origin)


_clocks: dict[str, ReplayClock] = {}
_lock = threading.Lock()


def clock_of(name: str | None, speed: float | None, replay: object) -> ReplayClock:
    """The clock with a name, which this process's replays share; a new one without. Raises AddressError."""
    if name is None:
        found = ReplayClock(speed, together=False)
        found.join(replay)
        return found
    with _lock:
        found = _clocks.setdefault(name, ReplayClock(speed, together=True))
        if found.speed != speed:
            raise AddressError(
                f"clock={name} goes at speed={_speed(found.speed)}: all of its replays have that speed"
            )
        found.join(replay)
        return found


def left(name: str | None, clock: ReplayClock, replay: object) -> None:
    """A replay has ended; a clock that has none begins anew with the next."""
    with _lock:
        if clock.leave(replay) and name is not None and _clocks.get(name) is clock:
            del _clocks[name]


def position_of(text: str | None) -> tuple[int, list[str | float] | None]:
    """Rows that have been played, and where the clock was."""
    if text is None:
        return 0, None
    rows, clock = json.loads(text)
    return rows, clock


def _speed(speed: float | None) -> str:
    return "max" if speed is None else f"{speed:g}"

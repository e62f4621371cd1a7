"""When all motes of a network have heard of a query that is asked now."""

from __future__ import annotations

import math
from dataclasses import dataclass

from skerry.planner.model.periods import ceiling, last_sample_before
from skerry.planner.model.plans import MoteQuery
from skerry.planner.physical.program import encode
from skerry.sharing.flood_times import (
    ASKED_FOR,
    GATEWAY_DELAY_MS,
    SLOW_FROM_S,
    control_windows,
    frames_of,
    keeps_awake,
    keeps_some_awake,
    spread_ms,
)
from skerry.sharing.mote_queries import MoteQueries, Running
from skerry_protocol.limits import FOREVER

#: From the window in which the last motes hear of a query to its first epoch, in ms; in a slow network as long as ``lead_seconds``:
#: who knows that something is missing asks again each 4 s.
_HEARD_MS = 2_000
#: Motes hold a query that has an end so long behind its last epoch, in ms (firmware/query/query_conf.h, LINGER_SECONDS).
_HELD_MS = 10_000
#: They come to the windows of a fast network for so long, in ms, once they have heard that the last fast query was stopped
#: (firmware/net/schedule/slotframe.c, ENDING_ROUNDS).
_ENDING_MS = 32_000


@dataclass
class Spreading:
    """``speed``: s of network time in one of this machine's; ``lead_seconds``: what the network needs to spread a query, at least."""

    speed: float
    lead_seconds: int
    #: From the root to the farthest mote, as far as that is known.
    hops: int = 0

    @property
    def gateway_delay_ms(self) -> int:
        """What gateway and line take, of this machine's time, in network time."""
        return round(GATEWAY_DELAY_MS * max(1.0, self.speed))

    @property
    def late_s(self) -> int:
        """The same beyond the second that they may take anyway."""
        return -(-self.gateway_delay_ms // 1000) - 1

    def soon_ms(self, now: float) -> int:
        """When the root can have begun with a query, and motes that hear it first."""
        return ceiling(int(now * 1000), 1000) + (1 + self.late_s) * 1000

    def known_ms(self, wanted: MoteQuery, queries: MoteQueries, now: float) -> int:
        """When all motes have heard of it. What has but one epoch is waited for one window longer in a slow network: a mote that has lost
        the flood there, and those behind it, learn only in the next window that something is missing (four asks of a hundred)."""
        more = int(wanted.once)
        return self._heard_ms(frames_of([encode(wanted, 0, FOREVER)]), queries, now, more)

    def gone_ms(self, queries: MoteQueries, now: float) -> int:
        """When all motes have heard of a stop, and of those before it, which it tells of, too."""
        return self._heard_ms(1, queries, now)

    def _heard_ms(self, frames: int, queries: MoteQueries, now: float, more: int = 0) -> int:
        now_ms, lead_ms = int(now * 1000), (self.lead_seconds + self.late_s) * 1000
        asked = queries.active()
        news = [running.installation.program for running in asked if running.known_ms > now_ms]
        frames += frames_of(news)
        count = control_windows(self.hops, frames)
        soon = spread_ms(now_ms + self.gateway_delay_ms, count, slow=False)
        if self._is_slow(queries, now_ms, soon):
            if any(keeps_some_awake(running.mote_query) for running in queries):
                count = control_windows(self.hops, max(frames, ASKED_FOR))
            return spread_ms(now_ms + self.gateway_delay_ms, count + more, slow=True) + lead_ms
        return max(ceiling(now_ms, 1000) + lead_ms, soon + _HEARD_MS)

    @staticmethod
    def _is_slow(queries: MoteQueries, now_ms: int, until_ms: int) -> bool:
        """Whether motes may be listening for queries seldom before then: all, or those that have not heard of a fast one yet."""
        awake = (
            r
            for r in queries.active()
            if r.known_ms <= now_ms and keeps_awake(r.mote_query) and _held_until_ms(r) >= until_ms
        )
        return until_ms >= SLOW_FROM_S * 1000 and not any(awake)

    @staticmethod
    def needed_until_ms(running: Running, queries: MoteQueries, now: float) -> int:
        """Until when motes are to hold a query that nobody reads, so that they stay awake for others that were to spread in a fast
        network; 0: it may be stopped at once."""
        if running.known_ms > int(now * 1000) or not keeps_awake(running.mote_query):
            return 0
        known = (other.known_ms for other in queries.active() if other.query != running.query)
        return max(0, max(known, default=0) - _ENDING_MS)


def _held_until_ms(running: Running) -> float:
    end = running.installation.end
    return math.inf if end == FOREVER else last_sample_before(end * 1000, running.period_ms) + _HELD_MS

"""How soon a batch of the stream follows another.

A batch takes Java some 60 ms of a processor, however few rows it has. Where rows trickle in one follows the other at once, as somebody
may wait for them; where thousands come each second, those of a quarter of a second go together, and most of that time is the machine's.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

#: Up to so many rows/s nothing waits; from so many on batches begin :data:`INTERVAL_S` apart; in between, evenly, less.
TRICKLE, STREAM = 2_000, 5_000
INTERVAL_S = 0.25
#: Rows/s are those of so long, in s: motes that are asked for the same moments send theirs within some ms of each other.
_LATELY_S = 1.0


class Pace:
    """Of one stream. ``clock`` in s, of any beginning."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        #: When batches were planned lately, and up to which row; the first is from before :data:`_LATELY_S`, or the first of all.
        self._planned: deque[tuple[float, int]] = deque()

    def wait_s(self, row: int) -> float:
        """How long to wait, in s, until a batch is planned, when the log goes up to ``row``."""
        if not self._planned:
            return 0.0
        now = self._clock()
        while len(self._planned) > 1 and self._planned[1][0] <= now - _LATELY_S:
            self._planned.popleft()
        since, first = self._planned[0]
        rate = (row - first) / max(now - since, _LATELY_S)
        share = min(1.0, max(0.0, (rate - TRICKLE) / (STREAM - TRICKLE)))
        last, _ = self._planned[-1]
        return max(0.0, last + share * INTERVAL_S - now)

    def planned(self, row: int) -> None:
        """A batch is planned now, of rows before this one."""
        self._planned.append((self._clock(), row))

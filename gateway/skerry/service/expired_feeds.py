"""Feeds that no reader can get a row by any more.

Each change of what motes run begins a stream, and gives a feed on it to each user whose rows come by it then. His feeds on the streams
before are what a reader that is behind, or goes back, is given older rows of the log by; with the rows they have no use.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from skerry.planner.model.frames import LATENESS_MS
from skerry.service.queries import UserQuery
from skerry.storage.log.last_rows import Latest

#: Of windows, which hold rows from before, all of which may have come long after they were sampled.
_LONGER_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Beginning:
    """The first row that the log has, and when it arrived, UTC in us; None: it has none."""

    row: int
    arrival_us: int | None


def expired(
    query: UserQuery, running: Container[int], latest: Latest, log: Beginning, speed: float = 1.0
) -> list[int]:
    """Numbers of the streams whose feeds a query has for nothing. ``running``: those that motes go on with; ``speed``: s of network
    time in one of UTC's."""
    window, behind_ms = query.plan.window, LATENESS_MS
    if log.arrival_us is None:
        return []
    if window is not None:
        if not window.is_bounded or query.plan.probes or query.plan.history is not None:
            # They are made of all rows since the query began.
            return []
        behind_ms += window.lookback_ms + _LONGER_MS
    found = []
    for number in query.feeds:
        last, arrival_us = latest.of(number)
        gone = last < log.row and arrival_us < log.arrival_us - behind_ms * 1000 / speed
        if gone and number not in running:
            found.append(number)
    return found

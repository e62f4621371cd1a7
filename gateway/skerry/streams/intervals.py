"""Which stream's rows are the rows of ``sensors`` at a time, so that each mote's sample counts once.

Several mote queries may report plain readings at the same time: the shared one of all plain queries and, while it changes, the
one that follows it; besides, queries that stand alone (ONCE, LIFETIME, actions). At each network time one of them is authoritative:
the shared one, the newer one from its cut-over on; without it, of the others the one that was asked first.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from skerry.planner.model.periods import last_sample_before
from skerry.planner.model.plans import MoteQuery
from skerry.streams.stream import Stream
from skerry_protocol.attributes import EVENT_BY_NAME
from skerry_protocol.codes import Aggregate

#: From, and up to (None: without end), in ms of network time.
Interval = tuple[int, int | None]
Int64 = npt.NDArray[np.int64]
_OF_EVENTS = frozenset(entry.number for entry in EVENT_BY_NAME.values())


def is_plain(query: MoteQuery) -> bool:
    """Whether its rows are motes' readings as ``sensors`` has them."""
    return not query.aggregate and all(
        column.aggregate is Aggregate.NONE
        and column.expr is not None
        and column.expr.is_attribute
        and column.expr.operand not in _OF_EVENTS
        for column in query.columns
    )


def is_shared(query: MoteQuery) -> bool:
    """Whether it is the one that all plain queries share."""
    return is_plain(query) and not (query.once or query.clauses or query.budget)


def intervals(stream: Stream, streams: Collection[Stream]) -> list[Interval]:
    """When a stream is authoritative among all streams, ascending; [] for one that never is."""
    called_off = stream.until_ms is not None and stream.until_ms <= stream.since_ms
    if called_off or not is_plain(stream.mote_query):
        return []
    left: list[Interval] = [(stream.since_ms, stream.until_ms)]
    for other in _overlapping(stream, streams):
        if _takes_precedence(other, stream):
            left = [
                part for interval in left for part in _without(interval, (other.since_ms, other.until_ms))
            ]
    return left


def _overlapping(stream: Stream, streams: Collection[Stream]) -> list[Stream]:
    """The streams of its session that run, or end, while it does: few, however many there have been."""
    return [
        other
        for other in streams
        if other.session == stream.session
        and (other.until_ms is None or other.until_ms >= stream.since_ms)
        and (stream.until_ms is None or other.since_ms <= stream.until_ms)
    ]


def _takes_precedence(other: Stream, stream: Stream) -> bool:
    """Whether ``other`` is authoritative where both run."""
    if other.number == stream.number or not is_plain(other.mote_query):
        return False
    shared = is_shared(other.mote_query)
    if shared != is_shared(stream.mote_query):
        return shared
    return other.number > stream.number if shared else other.number < stream.number


def _without(interval: Interval, hole: Interval) -> list[Interval]:
    (start, end), (hole_start, hole_end) = interval, hole
    parts: list[Interval] = [(start, _earlier(end, hole_start))]
    if hole_end is not None:
        parts.append((max(start, hole_end), end))
    kept = [(low, high) for low, high in parts if high is None or low < high]
    # A hole that is empty cuts nothing.
    return kept if hole_end is None or hole_start < hole_end else [interval]


def _earlier(a: int | None, b: int) -> int:
    return b if a is None else min(a, b)


def authoritative(stream: Stream, streams: Collection[Stream], network_ms: Int64) -> npt.NDArray[np.bool_]:
    """Which of a stream's rows are rows of ``sensors``, by their sample times."""
    mask = np.zeros(len(network_ms), np.bool_)
    for start, end in intervals(stream, streams):
        mask |= (network_ms >= start) & (network_ms < (np.iinfo(np.int64).max if end is None else end))
    return mask


def sampled_before(stream: Stream, streams: Collection[Stream]) -> dict[int, int]:
    """For each beginning of an interval authoritative at which another stream's ends: when that one sampled last."""
    overlapping = _overlapping(stream, streams)
    ends = {
        end: other.mote_query.period_ms
        for other in overlapping
        if other.number != stream.number
        for _, end in intervals(other, streams)
        if end is not None
    }
    return {
        start: last_sample_before(start, ends[start])
        for start, _ in intervals(stream, overlapping)
        if start in ends
    }

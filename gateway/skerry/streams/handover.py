"""Where the past ends and rows to come begin: by the number of the row, so that each counts once, however late it is.

A query with HISTORY answers from what the log held when it was asked. Of rows that come later, its own feed begins with its first
epoch; rows that were sampled before and are still under way come by feeds on the streams that were authoritative until then.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from skerry.planner.model.plans import Feed
from skerry.streams.intervals import intervals, is_plain, sampled_before
from skerry.streams.stream import Stream

#: Rows that were sampled longer before a query are not expected any more, in ms.
LATE_MS = 600_000


@dataclass(frozen=True, slots=True)
class Handover:
    """When a query was asked, and its feed begins; network times in ms of one session."""

    session: int
    asked_ms: int
    since_ms: int


def handover_of(before: Handover | None, feeds: Mapping[int, Feed], session: int, now_ms: int) -> Handover:
    """The handover of a query that has these feeds now. Until its feed begins, the coming or going of others may move that."""
    since_ms = min(feed.since_ms for feed in feeds.values())
    if before is None:
        return Handover(session, now_ms, since_ms)
    if before.session == session and before.since_ms > now_ms:
        return replace(before, since_ms=since_ms)
    return before


def joined_feeds(
    feeds: Mapping[int, Feed], handover: Handover, user: str, period_ms: int, streams: Collection[Stream]
) -> dict[int, Feed]:
    """A query's feeds by stream number, and those for rows from before its first epoch. ``streams``: all there have been."""
    earliest = handover.asked_ms - LATE_MS
    found = dict(feeds)
    for stream in streams:
        over = stream.until_ms is not None and stream.until_ms <= earliest
        if over or stream.session != handover.session or not is_plain(stream.mote_query):
            continue
        mine = feeds.get(stream.number)
        if mine is not None and mine.since_ms != handover.since_ms:
            # It follows one of his own.
            continue
        charge = [
            (start, end)
            for start, end in intervals(stream, streams)
            if start < handover.since_ms and (end is None or end > earliest)
        ]
        if not charge:
            continue
        start, end = charge[-1]
        before = sampled_before(stream, streams).get(start)
        if mine is not None:
            found[stream.number] = replace(mine, since_ms=start, before_ms=before)
            continue
        until = handover.since_ms if end is None else min(end, handover.since_ms)
        query = stream.mote_query
        found[stream.number] = Feed(user, stream.query, period_ms, query.period_ms, start, until, before)
    return found

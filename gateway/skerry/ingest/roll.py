"""Who has a part in the epochs of an aggregate, as intake asks it of the networks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from skerry.planner.model.waits import BY_DEFAULT, WAIT_MS
from skerry.streams.stream import Stream


class Roll(Protocol):
    """A stream of an aggregate is that of the network that leads; sessions are those of all networks that run the same mote query."""

    def sessions(self, stream: Stream) -> frozenset[int]:
        """Sessions whose roots can be heard, and have a part in the stream's epochs."""

    def time_ms(self, session: int) -> int | None:
        """Network time up to which all that a root had has come; None: the session is over."""

    def begin_ms(self, session: int, stream: Stream, epoch: int) -> int | None:
        """When an epoch of the stream begins, by a session's network time; None: that is not known."""

    def motes(self, session: int, stream: Stream) -> int | None:
        """How many motes of a session's network have been heard of lately, without those that have refused the query; None: nobody has
        listened for long enough to know."""

    def waits(self, stream: Stream) -> Mapping[int, int]:
        """For how long, in ms from an epoch's beginning, it is waited for by those who read the stream, by what they are told by
        (:mod:`skerry.planner.model.waits`)."""

    def predecessors(self, stream: Stream) -> Mapping[int, int]:
        """The streams that readers of this one read before it, by number, and up to which network time in ms."""


class SingleNetwork:
    """Of a gateway of one network of which nothing is known but its streams: each epoch has its time. ``time`` in ms, of all sessions."""

    def __init__(self, time_ms: int = 0) -> None:
        self.now_ms = time_ms

    def sessions(self, stream: Stream) -> frozenset[int]:
        """Its own."""
        return frozenset({stream.session})

    def time_ms(self, session: int) -> int | None:
        """What is said."""
        del session
        return self.now_ms

    def begin_ms(self, session: int, stream: Stream, epoch: int) -> int | None:
        """By the one clock that there is."""
        del session
        return epoch * stream.mote_query.period_ms

    def motes(self, session: int, stream: Stream) -> int | None:
        """Nobody knows."""
        del session, stream
        return None

    def waits(self, stream: Stream) -> Mapping[int, int]:
        """As long as is usual."""
        del stream
        return {BY_DEFAULT: WAIT_MS}

    def predecessors(self, stream: Stream) -> Mapping[int, int]:
        """None."""
        del stream
        return {}

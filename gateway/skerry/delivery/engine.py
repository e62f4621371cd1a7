"""The residual work of all users in one pass over a batch of the log."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skerry.delivery.buffers import Batch, FeedBuffer, Readable, Recent
from skerry.delivery.own_buffers import OwnBuffer
from skerry.execution.deliveries import Delivery, in_order
from skerry.execution.matching import Audience, Part, View
from skerry.execution.residual import Residual, Rows
from skerry.execution.stream_batches import stream_batch
from skerry.planner.model.plans import Feed, QueryPlan
from skerry.storage.log.record import RECORD, Block
from skerry.streams.stream import Stream
from skerry.tables.columns import TableError
from skerry.tables.join import Joiner
from skerry.windows.own_windows import OwnWindows, Past
from skerry.windows.shared_windows import Windows, WindowView

#: Rows of the log read at a time to find out what windows hold.
STEP = 65_536


@dataclass(slots=True)
class Subscriber:
    """A user's query as the proxy sees it. ``begin``: row of the log that it begins with; ``feeds``: which rows of which
    stream are his."""

    plan: QueryPlan
    residual: Residual
    buffer: FeedBuffer
    begin: int
    feeds: dict[int, Feed] = field(default_factory=dict)
    #: The windows that it has for itself.
    own: OwnWindows | None = None

    @property
    def shares_windows(self) -> bool:
        """Whether it has windows that others may have, too."""
        return self.plan.window is not None and self.own is None


@dataclass(slots=True)
class Replay:
    """One user's windows again, as far as row ``at`` of the log."""

    windows: Windows
    views: Mapping[Hashable, WindowView]
    at: int


class Engine:
    """Owns the subscribers; fed with batches by one streaming query, read by the API's threads.

    A batch is kept once for all and searched once for all users' conditions; those who have rows in it are woken.
    """

    def __init__(
        self,
        stream: Callable[[int], Stream | None],
        read: Callable[[int, int], Block] | None = None,
        compacted: Callable[[int, int, Collection[int]], Mapping[int, Part]] | None = None,
        *,
        by_utc: bool = False,
        speed: float = 1.0,
    ) -> None:
        """``stream``: what a number means; ``read``: rows of the log from .. to - 1, those that it still has; ``compacted``: those that
        it has no longer, of plain streams with some attributes; ``by_utc``: whether windows are of all networks, by UTC, instead of each
        session's own; ``speed``: s of network time in one of UTC's."""
        self._stream, self._compacted = stream, compacted
        self._read = read or (lambda start, _: Block(start, np.empty(0, RECORD)))
        self._subscribers: dict[str, Subscriber] = {}
        self._audiences: dict[int, Audience] = {}
        self._by_utc, self._speed = by_utc, speed
        self._windows = self._new_windows()
        #: Who has windows for himself.
        self._own: set[str] = set()
        self._replays: dict[str, Replay] = {}
        self._recent = Recent()
        self._lock = threading.RLock()
        #: Rows of the log that have been through.
        self.done = 0
        self._started = False
        #: Why shared windows that began before the start lack rows; None: they do not.
        self.lacking: str | None = None

    def _new_windows(self) -> Windows:
        return Windows(self._session, self._utc if self._by_utc else None, self._speed)

    def _utc(self, number: int, network_ms: int) -> int:
        """A stream's network time as that which networks have in common, in ms; where the log was begun without, network time, which
        is long ago."""
        stream = self._stream(number)
        if stream is None or stream.since_utc_ms is None:
            return network_ms
        return round(stream.since_utc_ms * self._speed) + network_ms - stream.since_ms

    def _session(self, number: int) -> int | None:
        stream = self._stream(number)
        return None if stream is None else stream.session

    def subscribe(
        self,
        user: str,
        plan: QueryPlan,
        begin: int | None = None,
        joiner: Joiner | None = None,
        past: Past | None = None,
    ) -> None:
        """A new user, or one that there was before a restart; his rows begin with the next batch. ``begin``: the row of the
        log that his query began with, if not the next one; ``joiner``: what joins his rows with tables; ``past``: what his
        windows begin with."""
        with self._lock:
            begin = self.done if begin is None else begin
            residual, own = Residual(plan), None
            if plan.window is not None and (joiner is not None or past is not None):
                utc = self._utc if self._by_utc else None
                own = OwnWindows(plan, begin, self._pieces, self._session, joiner, past, utc, self._speed)
            elif joiner is not None:
                residual.join = joiner.join
            buffer = FeedBuffer(self._recent, self.done - 1)
            buffer = OwnBuffer(own, self._recent, self.done - 1) if own is not None else buffer
            self._subscribers[user] = Subscriber(plan, residual, buffer, begin, own=own)
            if own is not None:
                self._own.add(user)

    def set_feeds(self, user: str, feeds: dict[int, Feed]) -> None:
        """Which rows are the user's, by stream number."""
        with self._lock:
            subscriber = self._subscribers.get(user)
            if subscriber is None or subscriber.feeds == feeds:
                return
            had, subscriber.feeds = subscriber.feeds, feeds
            seen = subscriber.buffer.views
            if subscriber.own is not None:
                subscriber.own.feeds = feeds
                return
            if subscriber.plan.window is not None:
                self._replays.pop(user, None)
                views = self._windows.set_feeds(
                    user, subscriber.residual, feeds, self.done, self._recent.floor + 1
                )
                subscriber.buffer.see(views, self.done)
                return
            subscriber.buffer.see(
                {
                    n: seen[n] if had.get(n) == feed else View(subscriber.residual, feed)
                    for n, feed in feeds.items()
                },
                self.done,
            )
            for number in had.keys() | feeds.keys():
                if had.get(number) != feeds.get(number):
                    self._audiences.pop(number, None)

    def unsubscribe(self, user: str) -> None:
        """The user is gone."""
        with self._lock:
            gone = self._subscribers.pop(user, None)
            self._own.discard(user)
            self._replays.pop(user, None)
            self._windows.remove(user)
            for number in gone.feeds if gone else ():
                self._audiences.pop(number, None)

    def subscriber(self, user: str) -> Subscriber | None:
        """The user, if there."""
        return self._subscribers.get(user)

    def process(self, block: Block) -> int:
        """A batch of the log, in order; returns how many of its rows were new.

        A batch that comes again, after the streaming query had to start anew, is known by its row numbers.
        """
        with self._lock:
            block = block.behind(self.done) if self._started else block
            if not len(block.records):
                return 0
            if not self._started:
                self._started = True
                self._catch_up(block.first)
            parts = self._parts(block)
            hits: set[str] = set()
            for number, part in parts.items():
                hits.update(part.hits(self._audience(number, part)))
            of_windows, users = self._windows.process(parts)
            of_batch: list[tuple[Hashable, Readable]] = [*parts.items(), *of_windows.items()]
            woken = [self._subscribers[user].buffer for user in hits | users]
            for buffer in woken:
                buffer.hit(block.end)
            woken += [s.buffer for s in self._alone() if not s.feeds.keys().isdisjoint(parts)]
            self._recent.add(Batch(block.first, block.end, dict(of_batch)))
            self.done = block.end
        for buffer in woken:
            buffer.wake()
        return len(block.records)

    def _alone(self) -> list[Subscriber]:
        """Those that have windows for themselves."""
        return [self._subscribers[user] for user in self._own]

    def _parts(self, block: Block) -> dict[int, Part]:
        """The rows by stream; rows of streams that nobody knows are left out."""
        parts = {}
        for number, rows, records in block.streams():
            stream = self._stream(number)
            if stream is not None:
                part = parts[number] = Part(Rows(stream_batch(records, stream), stream.mote_query), rows)
                part.rows.sessions = np.full(len(rows), stream.session)
        return parts

    def _catch_up(self, end: int) -> None:
        """What windows hold after a restart, from the log as far as it reaches back."""
        sharing = [s for s in self._subscribers.values() if s.shares_windows]
        attributes = frozenset[int]().union(*(s.plan.attributes for s in sharing))
        for at in range(min((s.begin for s in sharing), default=end), end, STEP):
            try:
                for parts in self._pieces(at, min(at + STEP, end), attributes):
                    self._windows.process(parts)
            except TableError as error:
                # Windows of many users are not to wait for a file that may never come back, nor their new rows.
                self.lacking = str(error)

    def _pieces(self, start: int, end: int, attributes: Collection[int]) -> Iterator[Mapping[int, Part]]:
        """Rows of the log from .. to - 1 with these attributes at least, some at a time: what has left the log, from the
        files that it was compacted to."""
        for at in range(start, end, STEP):
            upto = min(at + STEP, end)
            block = self._read(at, upto)
            if block.first > at and self._compacted is not None:
                yield self._compacted(at, min(block.first, upto), attributes)
            yield self._parts(block)

    def _audience(self, number: int, part: Part) -> Audience:
        audience = self._audiences.get(number)
        if audience is None:
            views = [
                (user, view)
                for user, subscriber in self._subscribers.items()
                if isinstance(view := subscriber.buffer.views.get(number), View)
            ]
            audience = self._audiences[number] = Audience(views, part.rows.query.aggregate)
        return audience

    def replay(self, user: str, block: Block, after: int) -> list[tuple[int, dict[str, Any]]]:
        """A user's rows of an older part of the log: (row number, values), behind ``after``."""
        return [row for part in self.replay_arrow(user, block, after) for row in part.values()]

    def replay_arrow(self, user: str, block: Block, after: int) -> list[Delivery]:
        """The same as Arrow; [] for a user who has gone."""
        subscriber = self._subscribers.get(user)
        if subscriber is None:
            return []
        block = block.behind(after + 1)
        if subscriber.plan.window is not None:
            return self._replay_windows(user, subscriber, block)
        found = []
        for number, part in self._parts(block).items():
            feed = subscriber.feeds.get(number)
            if feed is None:
                continue
            # Sorting does not pay for one user.
            places, columns = subscriber.residual.rows(part.rows, subscriber.residual.select(part.rows, feed))
            if len(places):
                found.append(Delivery(part.numbers[places], columns))
        return in_order(found)

    def _replay_windows(self, user: str, subscriber: Subscriber, block: Block) -> list[Delivery]:
        """What his windows gave with some rows: the rows since his query began tell, so that the way there is kept for the
        next call."""
        with self._lock:
            replay = self._replays.pop(user, None)
            feeds = subscriber.feeds
        if replay is None or replay.at > block.first:
            windows = self._new_windows()
            replay = Replay(windows, windows.set_feeds(user, subscriber.residual, feeds, 0), subscriber.begin)
        for earlier in self._pieces(replay.at, block.first, subscriber.plan.attributes):
            replay.windows.process(earlier)
        parts, _ = replay.windows.process(self._parts(block))
        replay.at = block.end
        with self._lock:
            if subscriber.feeds == feeds:
                self._replays[user] = replay
        found = [part.delivery(replay.views[key]) for key, part in parts.items() if key in replay.views]
        return in_order([part for part in found if part is not None])

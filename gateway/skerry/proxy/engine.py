"""The residual work of all users in one pass over a batch of the log."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from skerry.plan.model import Feed, QueryPlan
from skerry.plan.residual import Residual, Rows
from skerry.proxy.batches import stream_batch
from skerry.proxy.feeds import Batch, Delivery, FeedBuffer, Recent, in_order
from skerry.proxy.matching import Audience, Listener, Part
from skerry.streams.ingest import Stream
from skerry.streams.record import Block


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A user's query as the proxy sees it."""

    plan: QueryPlan
    residual: Residual
    buffer: FeedBuffer


class Engine:
    """Owns the subscribers; fed with batches by one streaming query, read by the API's threads.

    A batch is kept once for all and searched once for all users' conditions; those who have rows in it are woken.
    """

    def __init__(self, stream: Callable[[int], Stream | None]) -> None:
        self._stream = stream
        self._subscribers: dict[str, Subscriber] = {}
        self._audiences: dict[int, Audience] = {}
        self._recent = Recent()
        self._lock = threading.RLock()
        #: Rows of the log that have been through.
        self.done = 0
        self._started = False

    def subscribe(self, user: str, plan: QueryPlan) -> None:
        """A new user; his rows begin with the next batch."""
        with self._lock:
            residual = Residual(plan)
            buffer = FeedBuffer(self._recent, residual, self.done - 1)
            self._subscribers[user] = Subscriber(plan, residual, buffer)

    def set_feeds(self, user: str, feeds: dict[int, Feed]) -> None:
        """Which rows are the user's, by stream number."""
        with self._lock:
            subscriber = self._subscribers.get(user)
            if subscriber is None:
                return
            had, subscriber.buffer.feeds = subscriber.buffer.feeds, feeds
            for number in had.keys() | feeds.keys():
                if had.get(number) != feeds.get(number):
                    self._audiences.pop(number, None)

    def unsubscribe(self, user: str) -> None:
        """The user is gone."""
        with self._lock:
            gone = self._subscribers.pop(user, None)
            for number in gone.buffer.feeds if gone else ():
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
            self._started = True
            parts, hits = [], set[str]()
            for number, rows, records in block.streams():
                stream = self._stream(number)
                if stream is not None:
                    part = Part(number, Rows(stream_batch(records, stream), stream.mote_query), rows)
                    hits.update(self._audience(stream).hits(part))
                    parts.append(part)
            self._recent.add(Batch(block.first, block.end, parts))
            self.done = block.end
            woken = [self._subscribers[user].buffer for user in hits]
        for buffer in woken:
            buffer.wake()
        return len(block.records)

    def _audience(self, stream: Stream) -> Audience:
        audience = self._audiences.get(stream.number)
        if audience is None:
            listeners = [
                Listener(user, subscriber.residual, subscriber.buffer.feeds[stream.number])
                for user, subscriber in self._subscribers.items()
                if stream.number in subscriber.buffer.feeds
            ]
            audience = self._audiences[stream.number] = Audience(listeners, stream.mote_query.aggregate)
        return audience

    def replay(self, user: str, block: Block, after: int) -> list[tuple[int, dict[str, Any]]]:
        """A user's rows of an older part of the log: (row number, values), behind ``after``."""
        return [row for part in self.replay_arrow(user, block, after) for row in part.values()]

    def replay_arrow(self, user: str, block: Block, after: int) -> list[Delivery]:
        """The same as Arrow; [] for a user who has gone."""
        subscriber = self._subscribers.get(user)
        if subscriber is None:
            return []
        found = []
        for number, numbers, records in block.behind(after + 1).streams():
            stream, feed = self._stream(number), subscriber.buffer.feeds.get(number)
            if stream is None or feed is None:
                continue
            rows = Rows(stream_batch(records, stream), stream.mote_query)
            places = subscriber.residual.select(rows, feed)
            if len(places):
                found.append(Delivery(numbers[places], subscriber.residual.project(rows, places)))
        return in_order(found)

"""The residual work of all users in one pass over a batch of the log."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from skerry.plan.model import Feed, QueryPlan
from skerry.plan.residual import Indices, Residual, Rows
from skerry.proxy.batches import Int64, column, stream_batch
from skerry.proxy.feeds import Delivery, FeedBuffer
from skerry.proxy.index import RangeIndex
from skerry.streams.ingest import Stream

#: A batch with fewer rows times users than this is evaluated without an index: it would cost more than it saves.
INDEX_FROM = 20_000


@dataclass
class Subscriber:
    """A user's query as the proxy sees it. ``feeds`` by stream number: which of that stream's rows are his."""

    plan: QueryPlan
    buffer: FeedBuffer
    feeds: dict[int, Feed] = field(default_factory=dict)
    residual: Residual = field(init=False)

    def __post_init__(self) -> None:
        self.residual = Residual(self.plan)


class Engine:
    """Owns the subscribers; fed with batches by one streaming query, read by the API's threads."""

    def __init__(self, stream: Callable[[int], Stream | None]) -> None:
        self._stream = stream
        self._subscribers: dict[str, Subscriber] = {}
        self._indexes: dict[int, dict[str, RangeIndex]] = {}
        self._lock = threading.RLock()
        #: Rows of the log that have been through.
        self.done = 0
        self._started = False

    def subscribe(self, user: str, plan: QueryPlan) -> None:
        """A new user; his rows begin with the next batch."""
        with self._lock:
            self._subscribers[user] = Subscriber(
                plan, FeedBuffer(self.done - 1 if self._started else 1 << 62)
            )

    def set_feeds(self, user: str, feeds: dict[int, Feed]) -> None:
        """Which rows are the user's, by stream number."""
        with self._lock:
            if user in self._subscribers and self._subscribers[user].feeds != feeds:
                self._subscribers[user].feeds = feeds
                self._indexes.clear()

    def unsubscribe(self, user: str) -> None:
        """The user is gone."""
        with self._lock:
            self._subscribers.pop(user, None)
            self._indexes.clear()

    def subscriber(self, user: str) -> Subscriber | None:
        """The user, if there."""
        return self._subscribers.get(user)

    def process(self, table: pa.Table) -> int:
        """A batch of the log, in order; returns the number of rows delivered."""
        if not table.num_rows:
            return 0
        numbers = column(table, "row")
        with self._lock:
            if not self._started:
                self._started = True
                for subscriber in self._subscribers.values():
                    subscriber.buffer.floor = int(numbers.min()) - 1
            delivered = sum(self._process_stream(stream, part) for stream, part in self._by_stream(table))
            self.done = max(self.done, int(numbers.max()) + 1)
        return delivered

    def _by_stream(self, table: pa.Table) -> Iterable[tuple[Stream, pa.Table]]:
        numbers = column(table, "stream")
        for number in np.unique(numbers):
            stream = self._stream(int(number))
            if stream is not None:
                whole = bool((numbers == number).all())
                yield stream, table if whole else table.filter(pa.array(numbers == number))

    def _process_stream(self, stream: Stream, part: pa.Table) -> int:
        rows = Rows(stream_batch(part, stream), stream.mote_query)
        numbers = column(part, "row")
        listeners = {user: s for user, s in self._subscribers.items() if stream.number in s.feeds}
        delivered = 0
        if len(numbers) * len(listeners) >= INDEX_FROM and not stream.mote_query.aggregate:
            delivered += self._indexed(stream, rows, numbers, listeners)
            listeners = {user: s for user, s in listeners.items() if s.residual.range is None}
        for subscriber in listeners.values():
            delivered += _deliver(subscriber, stream, rows, numbers, None)
        return delivered

    def _indexed(self, stream: Stream, rows: Rows, numbers: Int64, listeners: dict[str, Subscriber]) -> int:
        """Users whose condition is or contains a range, through an index for each attribute."""
        delivered = 0
        for name, index in self._index(stream, listeners).items():
            array = rows.batch.column(name)
            known = np.flatnonzero(~array.is_null().to_numpy(zero_copy_only=False))
            values = np.asarray(array.fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64)[known]
            for user, candidates in index.matches(values, known):
                delivered += _deliver(listeners[user], stream, rows, numbers, candidates)
        return delivered

    def _index(self, stream: Stream, listeners: dict[str, Subscriber]) -> dict[str, RangeIndex]:
        if stream.number not in self._indexes:
            ranges: dict[str, list[tuple[str, int | None, int | None]]] = {}
            for user, subscriber in listeners.items():
                condition = subscriber.residual.range
                if condition is not None:
                    ranges.setdefault(condition.name, []).append((user, condition.low, condition.high))
            self._indexes[stream.number] = {name: RangeIndex(entries) for name, entries in ranges.items()}
        return self._indexes[stream.number]

    def replay(self, user: str, table: pa.RecordBatch, after: int) -> list[tuple[int, dict[str, Any]]]:
        """A user's rows of an older part of the log: (row number, values), behind ``after``."""
        found: list[tuple[int, dict[str, Any]]] = []
        with self._lock:
            subscriber = self._subscribers[user]
            for stream, part in self._by_stream(pa.Table.from_batches([table])):
                if stream.number not in subscriber.feeds:
                    continue
                rows = Rows(stream_batch(part, stream), stream.mote_query)
                places = _select(subscriber, stream, rows, None)
                numbers = column(part, "row")[places]
                found += Delivery(numbers, partial(subscriber.residual.project, rows), places).values(after)
        return sorted(found, key=lambda row: row[0])


def _deliver(
    subscriber: Subscriber, stream: Stream, rows: Rows, numbers: Int64, candidates: Indices | None
) -> int:
    places = _select(subscriber, stream, rows, candidates)
    if len(places):
        project = partial(subscriber.residual.project, rows)
        subscriber.buffer.add(Delivery(numbers[places], project, places))
    return len(places)


def _select(subscriber: Subscriber, stream: Stream, rows: Rows, candidates: Indices | None) -> Indices:
    feed = subscriber.feeds[stream.number]
    if candidates is not None and subscriber.residual.rest is None and _whole(feed, rows):
        return candidates
    return subscriber.residual.select(rows, feed, candidates)


def _whole(feed: Feed, rows: Rows) -> bool:
    """Whether every row of the batch is in the feed, by its times alone."""
    same = feed.period_ms == feed.stream_period_ms and feed.before_ms is None
    samples = rows.sample_ms
    return (
        same
        and bool(samples.min() >= feed.since_ms)
        and (feed.until_ms is None or bool(samples.max() < feed.until_ms))
    )

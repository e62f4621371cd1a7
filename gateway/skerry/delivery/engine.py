"""The residual work of all users in one pass over a batch of the log."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from skerry.delivery.buffers import Batch, FeedBuffer, Readable, Recent
from skerry.delivery.entries import Entries, Publish
from skerry.delivery.kept_windows import KeptWindows
from skerry.delivery.log_rows import LogRows
from skerry.delivery.mote_windows import MoteWindows
from skerry.delivery.own_buffers import OwnBuffer
from skerry.delivery.published_rows import PublishedRows
from skerry.delivery.row_users import RowUsers
from skerry.delivery.source_streams import SourceStreams
from skerry.delivery.subscribers import Subscriber
from skerry.delivery.window_snapshots import WindowSnapshots
from skerry.execution.deliveries import Delivery
from skerry.execution.matched import MatchedBatch
from skerry.execution.matching import Part
from skerry.execution.residual import Residual
from skerry.planner.model.plans import Feed, QueryPlan
from skerry.planner.model.source_plans import SourcePlan
from skerry.sensors.readings import Readings
from skerry.storage.block_files import BlockFiles
from skerry.storage.log.record import Block
from skerry.streams.stream import Stream
from skerry.tables.join import Joiner
from skerry.windows.own_windows import OwnWindows, Past


class Engine:
    """Owns the subscribers; fed with batches by one streaming query, read by the API's threads.

    Executors have matched a batch against the index of all users, which this writes; it is kept once for all, and those who have rows
    in it are woken.
    """

    def __init__(
        self,
        stream: Callable[[int], Stream | None],
        read: Callable[[int, int], Block] | None = None,
        compacted: Callable[[int, int, Collection[int]], Mapping[int, Part]] | None = None,
        *,
        by_utc: bool = False,
        speed: float = 1.0,
        publish: Publish | None = None,
        version: int = 0,
        files: BlockFiles | None = None,
        entries: Entries | None = None,
        log: Path | None = None,
        snapshots: WindowSnapshots | None = None,
        readings: Readings | None = None,
    ) -> None:
        """``stream``: what a number means; ``read``: rows of the log from .. to - 1, those that it still has; ``compacted``: those that
        it has no longer, of plain streams with some attributes; ``by_utc``: whether windows are of all networks, by UTC, instead of each
        session's own; ``speed``: s of network time in one of UTC's; ``publish``: gets the changes of the users' index, behind
        ``version``; ``files``: what executors matched before what is in memory;
        ``entries``: other ones than this gives users itself; ``log``: the log's directory, of rows that are no motes';
        ``snapshots``: what is kept of shared windows over a restart; ``readings``: of the tables that rows which are no motes' are joined
        with."""
        self._rows = LogRows(stream, read, compacted, speed)
        self._published = PublishedRows(files, stream) if files is not None else None
        self._subscribers: dict[str, Subscriber] = {}
        self._entries = entries or Entries(publish, version)
        self._sources = (
            SourceStreams(log, self._rows.read, self._entries, snapshots, readings)
            if log is not None
            else None
        )
        self._of_rows = RowUsers(self._rows, self._subscribers, self._entries)
        self._windows = MoteWindows(self._rows, self._subscribers, snapshots, by_utc=by_utc)
        #: Who has windows for himself.
        self._own: dict[str, OwnBuffer] = {}
        self._kept = KeptWindows(self._subscribers, self._windows, self._sources, self._own, snapshots)
        #: Whether others want to be told at the end, and whether it has changed what shared windows are made of.
        self._gathering = self._windows_due = False
        #: The latest rows.
        self._recent = Recent()
        self._lock = threading.RLock()
        #: Rows of the log that have been through.
        self.done = 0
        self._started = False
        #: Told of a user whose feeds have changed, or who has gone, in the order in which that and batches come.
        self.changed: Callable[[str], object] = lambda _: None

    @property
    def lacking(self) -> str | None:
        """Why shared windows that began before the start lack rows; None: they do not."""
        return self._windows.lacking

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
            residual, own, alone = Residual(plan), None, None
            if plan.window is not None and (joiner is not None or past is not None):
                rows, utc = self._rows, self._windows.utc
                own = OwnWindows(plan, begin, rows.pieces, rows.session, joiner, past, utc, rows.speed)
            elif joiner is not None:
                residual.join, alone = joiner.join, joiner
            recent = self._recent if plan.window is None else self._windows.recent
            buffer = FeedBuffer(recent, self.done - 1)
            if own is not None:
                kept = partial(self._kept.of_own.run, user, own)
                buffer = self._own[user] = OwnBuffer(own, recent, self.done - 1, kept)
            made = self._subscribers[user] = Subscriber(plan, residual, buffer, begin, own=own, joiner=alone)
            if plan.sources is not None:
                self._see_source(user, made, plan.sources)

    def _see_source(self, user: str, subscriber: Subscriber, plan: SourcePlan) -> None:
        """A user of a stream that is no motes'."""
        if plan.gathers:
            assert self._sources is not None
            at = self.done if self._started else subscriber.begin
            subscriber.buffer.see(self._sources.add(user, plan, subscriber.begin, at), self.done)
        else:
            self._of_rows.see_source(user, subscriber, plan, self.done)
        self._entries.publish()

    def sources_of(self, user: str) -> set[int]:
        """Of a user's query FROM LATEST, numbers of the tuples that have a row."""
        with self._lock:
            return self._sources.users.latest.sources(user) if self._sources is not None else set()

    def end_sources(self, user: str, number: int) -> None:
        """Sources of a user whose rows are made of many have ended: no rows of theirs come behind this record of the log."""
        with self._lock:
            if self._sources is not None:
                self._sources.end(user, number)

    def set_feeds(self, user: str, feeds: dict[int, Feed]) -> None:
        """Which rows are the user's, by stream number."""
        with self._lock:
            subscriber = self._subscribers.get(user)
            if subscriber is None or (subscriber.feeds == feeds and self._of_rows.keeps(user, subscriber)):
                return
            had, subscriber.feeds = subscriber.feeds, feeds
            if subscriber.own is not None:
                subscriber.own.feeds = feeds
            elif subscriber.plan.window is not None:
                self._windows.set_feeds(user, subscriber)
                self._windows_due = True
            else:
                self._of_rows.see(user, subscriber, had, self.done)
            self._publish()
            self.changed(user)

    @contextmanager
    def together(self) -> Iterator[None]:
        """While feeds of many users change: executors are told once, of all of them."""
        with self._lock:
            self._gathering = True
            try:
                yield
            finally:
                self._gathering = False
                self._publish()

    def _publish(self) -> None:
        """Executors are to know what has changed."""
        if self._gathering:
            return
        if self._windows_due:
            self._want_windows()
        self._entries.publish()

    @contextmanager
    def steady(self) -> Iterator[None]:
        """While neither batches come nor feeds change."""
        with self._lock:
            yield

    def tell(self, user: str) -> None:
        """Tell :attr:`changed` of a user in any case."""
        with self._lock:
            self.changed(user)

    def entries_of(self, user: str) -> tuple[dict[int, int], int]:
        """By which entries of the users' index a user gets his rows, by stream, and the version that knows so. Where :attr:`changed` is
        told."""
        return self._of_rows.entries_of(user), self._entries.version

    def skip_to(self, row: int) -> None:
        """Rows before this one do not come here any more: who is behind finds them in files, or in the log."""
        with self._lock:
            self._started, self.done = True, row
            self._recent.clear()
            self._windows.skip_to(row)
            woken = [subscriber.buffer for subscriber in self._subscribers.values()]
        for buffer in woken:
            buffer.wake()

    def _want_windows(self) -> None:
        """Executors are to fold what shared windows are made of."""
        self._windows_due = False
        self._entries.want_windows(self._windows.windows.wanted(), self._rows.stream)

    def unsubscribe(self, user: str) -> None:
        """The user is gone."""
        with self._lock:
            gone = self._subscribers.pop(user, None)
            self._own.pop(user, None)
            self._kept.of_own.forget(user)
            self._windows.remove(user)
            if gone is None:
                return
            self._of_rows.remove(user, gone)
            if gone.shares_windows:
                self._windows_due = True
            if gone.plan.sources is not None and gone.plan.sources.gathers and self._sources is not None:
                self._sources.remove(user)
            self._publish()
            self.changed(user)
        gone.buffer.wake()

    def subscriber(self, user: str) -> Subscriber | None:
        """The user, if there."""
        return self._subscribers.get(user)

    def process(self, block: Block) -> int:
        """What executors do, and :meth:`take`, here in the caller's thread: for a batch of the log, in order."""
        with self._lock:
            block = block.behind(self.done) if self._started else block
            by_stream, index = block.streams(), self._entries.index()
            streams = frozenset(number for number, _, _ in by_stream)
            parts, folded = index.match(by_stream)
            if self._sources is not None:
                numbers = np.arange(block.first, block.end, dtype=np.int64)
                parts += index.sources.match(self._sources.files, numbers, block.records)
            return self.take(
                MatchedBatch(block.first, block.end, index.version, streams, tuple(parts), tuple(folded))
            )

    def take(self, batch: MatchedBatch) -> int:
        """A batch of the log that executors have matched, in order; returns how many of its rows were new.

        A batch that comes again, after the streaming query had to start anew, is known by its row numbers.
        """
        with self._lock:
            batch = batch.behind(self.done) if self._started else batch
            if batch.first >= batch.end:
                return 0
            self._publish()
            if not self._started:
                self._started = True
                if batch.first > self._windows.done:
                    self._catch_up(batch.first)
                if self._sources is not None:
                    self._sources.catch_up(batch.first)
            parts: dict[Hashable, list[Readable]] = {}
            entries: set[int] = set()
            for found in batch.parts:
                if found.stream < 0:
                    # Folded for windows.
                    continue
                entries |= found.entries
                parts.setdefault(found.stream, []).append(self._of_rows.readable(found))
            users = self._windows.take(batch, self._entries.folded)
            self._tell_exceeded()
            theirs: set[str] = set()
            if self._sources is not None:
                of_sources, theirs = self._sources.take(batch)
                parts |= {key: [part] for key, part in of_sources.items()}
                self._tell_exceeded()
            woken = [
                self._subscribers[user].buffer
                for user in self._of_rows.woken(entries, batch.version) | theirs
            ]
            for buffer in woken:
                buffer.hit(batch.end)
            woken += [self._subscribers[user].buffer for user in users]
            woken += [
                s.buffer for s in self._with_own_windows() if not s.feeds.keys().isdisjoint(batch.streams)
            ]
            self._recent.add(Batch(batch.first, batch.end, parts, batch.version))
            self.done = batch.end
        for buffer in woken:
            buffer.wake()
        self.keep()
        return batch.end - batch.first

    def _with_own_windows(self) -> list[Subscriber]:
        """Those that have windows for themselves."""
        return [self._subscribers[user] for user in self._own]

    def resume(self, rows: int) -> None:
        """Windows as they were kept before a restart, for those who have been subscribed; :meth:`set_feeds` follows for each of
        them, and then :meth:`catch_up`. ``rows``: that the log has."""
        with self._lock:
            self._kept.resume(rows)

    def keep(self) -> None:
        """What windows hold is kept for the next start, if it is time."""
        with self._lock:
            # Of a batch that comes again windows have more than others.
            if self._started and self._windows.done == self.done:
                self._kept.keep()

    def catch_up(self, rows: int) -> None:
        """The rows before ``rows`` into windows that :meth:`resume` found, so that nobody has to make them of all rows for himself
        meanwhile; of others the first batch says how far they are to come."""
        with self._lock:
            if self._windows.done:
                self._catch_up(rows)

    def _catch_up(self, end: int) -> None:
        self._windows.catch_up(end)
        self._tell_exceeded()

    def _tell_exceeded(self) -> None:
        """Whose windows are over, as their groups have become too many."""
        of_sources = self._sources.exceeded if self._sources is not None else {}
        for user, reason in {**self._windows.windows.exceeded, **of_sources}.items():
            self._subscribers[user].buffer.trouble = reason
        if self._windows.windows.exceeded:
            # Nobody may be left for whom their rows are folded.
            self._want_windows()

    def published(
        self, user: str, position: int, most: int, through: int
    ) -> tuple[list[Delivery], int] | None:
        """A user's rows behind a position as Arrow, and the position reached, at most that before row ``through``: from the files of what
        executors have matched. Of many the first ``most`` or some more.

        None: the log has them, as the next batch is in no file, or was matched before what he asks was known; and of windows.
        """
        subscriber = self._subscribers.get(user)
        if self._published is None or subscriber is None or subscriber.has_windows:
            return None
        views, version = subscriber.buffer.seen
        return self._published.behind(position, views, version, most, through)

    def replay(self, user: str, block: Block, after: int) -> list[tuple[int, dict[str, Any]]]:
        """A user's rows of an older part of the log: (row number, values), behind ``after``."""
        return [row for part in self.replay_arrow(user, block, after) for row in part.values()]

    def replay_arrow(self, user: str, block: Block, after: int) -> list[Delivery]:
        """The same as Arrow; [] for a user who has gone."""
        subscriber = self._subscribers.get(user)
        if subscriber is None:
            return []
        block = block.behind(after + 1)
        if subscriber.plan.sources is not None:
            assert self._sources is not None
            return self._sources.replay(
                user, subscriber.plan.text, subscriber.plan.sources, block, subscriber.begin
            )
        if subscriber.plan.window is not None:
            return self._windows.replay(user, subscriber, block)
        return self._of_rows.replay(subscriber, block)

"""The residual work of all users in one pass over a batch of the log."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from skerry.delivery.buffers import Batch, FeedBuffer, Readable, Recent
from skerry.delivery.entries import Entries, Publish
from skerry.delivery.matched_rows import Audience, MatchedRows, UserView
from skerry.delivery.matched_source_rows import MatchedSourceRows, SourceUser
from skerry.delivery.own_buffers import OwnBuffer
from skerry.delivery.source_streams import SourceStreams
from skerry.delivery.window_snapshots import WindowSnapshots
from skerry.execution.blocks import batch_of, from_bytes
from skerry.execution.deliveries import Delivery, in_order
from skerry.execution.joined import ReadingGoneError
from skerry.execution.matched import Matched, MatchedBatch
from skerry.execution.matching import Part, View
from skerry.execution.residual import Residual, Rows
from skerry.execution.source_matching import SourceView
from skerry.execution.stream_batches import stream_batch
from skerry.planner.model.plans import Feed, QueryPlan
from skerry.planner.model.source_plans import STREAMS, SourcePlan
from skerry.storage.block_files import BlockFiles
from skerry.storage.log.record import RECORD, Block
from skerry.streams.stream import Stream
from skerry.tables.columns import TableError
from skerry.tables.join import Joiner
from skerry.windows.own_windows import OwnWindows, Past
from skerry.windows.shared_windows import Windows, WindowView
from skerry.windows.snapshot import Capture, resume

log = logging.getLogger(__name__)

#: Rows of the log read at a time to find out what windows hold.
STEP = 65_536


#: Rows of the log after which a reader of older batches is asked whether he is still there.
_FAR = 1 << 18
#: Batches of files that are kept for the next reader.
_KEPT_BATCHES = 16
_NOBODY = Audience(())


class Unpacked:
    """Batches of files that were read last: mostly several readers are behind, and want the same ones. Asked from any thread."""

    def __init__(self) -> None:
        self._batches: dict[tuple[int, int], MatchedBatch] = {}
        self._lock = threading.Lock()

    def batch(self, first: int, end: int, blocks: Callable[[], bytes | None]) -> MatchedBatch | None:
        """Rows ``first`` .. ``end`` - 1; None: they are not there any more, or not whole."""
        with self._lock:
            batch = self._batches.pop((first, end), None)
        if batch is None:
            packed = blocks()
            try:
                batch = None if packed is None else batch_of(from_bytes(packed))
            except (ValueError, pa.ArrowException):
                # Whoever could not take it makes it come again.
                return None
            if batch is None or (batch.first, batch.end) != (first, end):
                return None
        with self._lock:
            self._batches[first, end] = batch
            while len(self._batches) > _KEPT_BATCHES:
                del self._batches[next(iter(self._batches))]
        return batch


@dataclass(slots=True)
class Subscriber:
    """A user's query as the proxy sees it. ``begin``: row of the log that it begins with; ``feeds``: which rows of which
    stream are his."""

    plan: QueryPlan
    residual: Residual
    buffer: FeedBuffer
    begin: int
    feeds: dict[int, Feed] = field(default_factory=dict)
    #: What joins its rows with tables, which it has no windows over.
    joiner: Joiner | None = None
    #: The windows that it has for itself.
    own: OwnWindows | None = None

    @property
    def has_windows(self) -> bool:
        """Whether its rows are those of windows."""
        return self.plan.window is not None or (self.plan.sources is not None and self.plan.sources.gathers)

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
    ) -> None:
        """``stream``: what a number means; ``read``: rows of the log from .. to - 1, those that it still has; ``compacted``: those that
        it has no longer, of plain streams with some attributes; ``by_utc``: whether windows are of all networks, by UTC, instead of each
        session's own; ``speed``: s of network time in one of UTC's; ``publish``: gets the changes of the users' index, behind
        ``version``; ``files``: what executors matched before what is in memory;
        ``entries``: other ones than this gives users itself; ``log``: the log's directory, of rows that are no motes';
        ``snapshots``: what is kept of shared windows over a restart."""
        self._stream, self._compacted = stream, compacted
        self._read = read or (lambda start, _: Block(start, np.empty(0, RECORD)))
        self._files = files
        self._unpacked = Unpacked()
        self._subscribers: dict[str, Subscriber] = {}
        self._entries = entries or Entries(publish, version)
        self._sources = SourceStreams(log, self._read, self._entries) if log is not None else None
        self._audiences: dict[Hashable, Audience] = {}
        #: A version of the index that knows what a user asks, ascending: of those who came or changed last it is the highest.
        self._known: dict[str, int] = {}
        self._by_utc, self._speed = by_utc, speed
        self._windows = self._new_windows()
        #: Who has windows for himself.
        self._own: set[str] = set()
        #: Whether others want to be told at the end, and whether it has changed what shared windows are made of.
        self._gathering = self._windows_due = False
        self._replays: dict[str, Replay] = {}
        self._snapshots = snapshots
        #: The latest rows, and those of shared windows, which may have come further before the first batch.
        self._recent, self._recent_windows = Recent(), Recent()
        self._lock = threading.RLock()
        #: Rows of the log that have been through, and that shared windows have had.
        self.done = self._windowed = 0
        self._started = False
        #: Told of a user whose feeds have changed, or who has gone, in the order in which that and batches come.
        self.changed: Callable[[str], object] = lambda _: None
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
            residual, own, alone = Residual(plan), None, None
            if plan.window is not None and (joiner is not None or past is not None):
                utc = self._utc if self._by_utc else None
                own = OwnWindows(plan, begin, self._pieces, self._session, joiner, past, utc, self._speed)
            elif joiner is not None:
                residual.join, alone = joiner.join, joiner
            recent = self._recent if plan.window is None else self._recent_windows
            buffer = FeedBuffer(recent, self.done - 1)
            buffer = OwnBuffer(own, recent, self.done - 1) if own is not None else buffer
            self._subscribers[user] = Subscriber(plan, residual, buffer, begin, own=own, joiner=alone)
            if own is not None:
                self._own.add(user)
            if plan.sources is not None:
                self._see_source(user, plan.sources, buffer, begin)

    def _see_source(self, user: str, plan: SourcePlan, buffer: FeedBuffer, begin: int) -> None:
        """A user of a stream that is no motes'."""
        assert plan.stream is not None
        if plan.gathers:
            assert self._sources is not None
            at = self.done if self._started else begin
            buffer.see(self._sources.add(user, plan, begin, at), self.done)
            self._entries.publish()
            return
        entry = self._entries.add_source(user, plan.stream, SourceView.of(plan))
        self._known[user] = self._entries.version
        buffer.see({plan.stream: SourceUser(entry, plan)}, self.done, entry)
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
            if subscriber is None or (subscriber.feeds == feeds and self._keeps(user, subscriber)):
                return
            had, subscriber.feeds = subscriber.feeds, feeds
            if subscriber.own is not None:
                subscriber.own.feeds = feeds
            elif subscriber.plan.window is not None:
                self._replays.pop(user, None)
                views = self._windows.set_feeds(
                    user, subscriber.residual, feeds, self._windowed, self._recent_windows.floor + 1
                )
                subscriber.buffer.see(views, self._windowed)
                self._windows_due = True
            else:
                self._see(user, subscriber, had)
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

    def _keeps(self, user: str, subscriber: Subscriber) -> bool:
        """Whether he gets his rows by the entries that he has."""
        return all(
            self._entries.keeps(user, view.entry)
            for view in subscriber.buffer.views.values()
            if isinstance(view, UserView)
        )

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
        views = self._subscribers[user].buffer.views if user in self._subscribers else {}
        found = {
            n: view.entry for n, view in views.items() if isinstance(n, int) and isinstance(view, UserView)
        }
        return found, self._entries.version

    def skip_to(self, row: int) -> None:
        """Rows before this one do not come here any more: who is behind finds them in files, or in the log."""
        with self._lock:
            self._started, self.done, self._windowed = True, row, row
            self._recent.clear()
            self._recent_windows.clear()
            woken = [subscriber.buffer for subscriber in self._subscribers.values()]
        for buffer in woken:
            buffer.wake()

    def _see(self, user: str, subscriber: Subscriber, had: Mapping[int, Feed]) -> None:
        """Other feeds of a user who has no windows."""
        seen, views = subscriber.buffer.views, dict[Hashable, UserView]()
        for number, feed in subscriber.feeds.items():
            view, stream = seen.get(number), self._stream(number)
            same = had.get(number) == feed and isinstance(view, UserView)
            if same and isinstance(view, UserView) and self._entries.keeps(user, view.entry):
                views[number] = view
            elif stream is not None:
                filter_ = subscriber.residual.filter.in_executors
                joiner = subscriber.joiner if filter_ is subscriber.residual.filter else None
                what = View.of(filter_, feed, None if joiner is None else joiner.in_executors())
                entry = self._entries.add(user, stream, what)
                views[number] = UserView(entry, subscriber.residual, feed, joiner)
        kept = {view.entry for view in views.values()}
        for key in seen.keys() | views.keys():
            before = seen.get(key)
            if isinstance(before, UserView) and before.entry not in kept:
                self._entries.remove(user, before.entry)
            if views.get(key) is not before:
                self._audiences.pop(key, None)
        # Who asks what others ask already is known for longer than that.
        self._known.pop(user, None)
        self._known[user] = self._entries.version
        subscriber.buffer.see(views, self.done, max(kept, default=0))

    def _want_windows(self) -> None:
        """Executors are to fold what shared windows are made of."""
        self._windows_due = False
        self._entries.want_windows(self._windows.wanted(), self._stream)

    def unsubscribe(self, user: str) -> None:
        """The user is gone."""
        with self._lock:
            gone = self._subscribers.pop(user, None)
            self._own.discard(user)
            self._replays.pop(user, None)
            self._known.pop(user, None)
            self._windows.remove(user)
            if gone is None:
                return
            for key, view in gone.buffer.views.items():
                if isinstance(view, UserView | SourceUser):
                    self._entries.remove(user, view.entry)
                    self._audiences.pop(key, None)
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
                if batch.first > self._windowed:
                    self._catch_up(batch.first)
                if self._sources is not None:
                    self._sources.catch_up(batch.first)
                self._windowed = max(batch.first, self._windowed)
            parts: dict[Hashable, list[Readable]] = {}
            entries: set[int] = set()
            for found in batch.parts:
                if found.stream < 0:
                    # Folded for windows.
                    continue
                entries |= found.entries
                parts.setdefault(found.stream, []).append(self._readable(found))
            users = self._take_windows(batch.behind(self._windowed))
            theirs: set[str] = set()
            if self._sources is not None:
                of_sources, theirs = self._sources.take(batch)
                parts |= {key: [part] for key, part in of_sources.items()}
                self._tell_exceeded()
            woken = [
                self._subscribers[user].buffer
                for user in self._entries.users(entries) | self._unknown(batch.version) | theirs
            ]
            for buffer in woken:
                buffer.hit(batch.end)
            woken += [self._subscribers[user].buffer for user in users]
            woken += [
                s.buffer for s in self._with_own_windows() if not s.feeds.keys().isdisjoint(batch.streams)
            ]
            self._recent.add(Batch(batch.first, batch.end, parts, batch.version))
            self.done = batch.end
            self._keep_windows()
        for buffer in woken:
            buffer.wake()
        return batch.end - batch.first

    def _readable(self, found: Matched) -> Readable:
        if found.stream >= STREAMS:
            return MatchedSourceRows(found)
        return MatchedRows(found, self._stream, self._audience(found.stream))

    def _unknown(self, version: int) -> set[str]:
        """Users of whom this version of the index may not know what they ask."""
        found = set()
        for user in reversed(self._known):
            if self._known[user] <= version:
                break
            found.add(user)
        return found

    def _take_windows(self, batch: MatchedBatch) -> set[str]:
        """A batch's rows into shared windows, which have had those before it: returns whose windows it brought."""
        if batch.first >= batch.end:
            return set()
        rows: list[Mapping[int, Part]] = []

        def of_log() -> Mapping[int, Part]:
            if not rows:
                rows.append(self._parts(self._read(batch.first, batch.end)))
            return rows[0]

        parts, users = self._windows.merge(
            batch.streams, lambda wanted: self._entries.folded(wanted, batch), of_log
        )
        self._remember(batch.first, batch.end, {key: [part] for key, part in parts.items()}, users)
        self._tell_exceeded()
        return users

    def _remember(
        self, first: int, end: int, parts: Mapping[Hashable, Sequence[Readable]], users: Iterable[str]
    ) -> None:
        """What shared windows gave with rows ``first`` .. ``end`` - 1, and whose it is."""
        for user in users:
            self._subscribers[user].buffer.hit(end)
        self._recent_windows.add(Batch(first, end, parts))
        self._windowed = end

    def _keep_windows(self) -> None:
        """Shared windows for the next start, from time to time."""
        # Windows that lack rows may find them when they are made anew.
        if self._snapshots is None or self.lacking is not None:
            return
        shared = self._windows.shared()
        if shared and self._snapshots.due(self._windowed, len(shared)):
            plans = {user: s.plan for user, s in self._subscribers.items() if s.shares_windows}
            self._snapshots.keep(Capture(self._windowed, self._windows, plans))

    def _with_own_windows(self) -> list[Subscriber]:
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

    def resume(self, rows: int) -> None:
        """Shared windows as they were kept before a restart, for those who have been subscribed; :meth:`set_feeds` follows for each of
        them, and then :meth:`catch_up`. ``rows``: that the log has."""
        plans = {user: s.plan for user, s in self._subscribers.items() if s.shares_windows}
        if self._snapshots is None or not plans:
            return
        kept = self._snapshots.begin(rows)
        if kept is None:
            log.info("no file has what windows hold: they are made of the rows since their queries began")
            return
        with self._lock:
            try:
                known = resume(self._windows, kept, plans)
            except ValueError as error:
                # It was written so: not by this program.
                log.warning(
                    "what was kept of windows is not understood (%s): they are made of rows again", error
                )
                self._windows = self._new_windows()
                return
            self._windowed = kept.row
            log.info("windows of %d users go on behind row %d of %d", len(known), kept.row, rows)

    def catch_up(self, rows: int) -> None:
        """The rows before ``rows`` into windows that :meth:`resume` found, so that nobody has to make them of all rows for himself
        meanwhile; of others the first batch says how far they are to come."""
        with self._lock:
            if self._windowed:
                self._catch_up(rows)

    def _catch_up(self, end: int) -> None:
        """What windows hold after a restart, from the log as far as it reaches back."""
        sharing = {user: s for user, s in self._subscribers.items() if s.shares_windows}
        attributes = frozenset[int]().union(*(s.plan.attributes for s in sharing.values()))
        begins = self._windows.begins({user: s.begin for user, s in sharing.items()})
        kept = self._windowed
        at = min(begins.values(), default=end)
        if kept:
            at = min(at, kept)
        while at < end:
            # What comes behind the rows that were kept is for readers, too.
            upto = min(at + STEP, kept if at < kept else end, end)
            # Of a thousand who have come in the course of a day hardly one asks for windows of all of it.
            begun = {number for number, begin in begins.items() if begin < upto}
            found: dict[Hashable, list[Readable]] = {}
            users: set[str] = set()
            try:
                for parts in self._pieces(at, upto, attributes):
                    given, whose = self._windows.process(parts, begun)
                    users |= whose
                    for key, part in given.items():
                        found.setdefault(key, []).append(part)
            except TableError as error:
                # Windows of many users are not to wait for a file that may never come back, nor their new rows.
                self.lacking = str(error)
            if kept and at >= kept:
                self._remember(at, upto, found, users)
            at = upto
        self._windowed = max(end, self._windowed)
        self._tell_exceeded()

    def _tell_exceeded(self) -> None:
        """Whose windows are over, as their groups have become too many."""
        of_sources = self._sources.exceeded if self._sources is not None else {}
        for user, reason in {**self._windows.exceeded, **of_sources}.items():
            self._subscribers[user].buffer.trouble = reason
        if self._windows.exceeded:
            # Nobody may be left for whom their rows are folded.
            self._want_windows()

    def _pieces(self, start: int, end: int, attributes: Collection[int]) -> Iterator[Mapping[int, Part]]:
        """Rows of the log from .. to - 1 with these attributes at least, some at a time: what has left the log, from the
        files that it was compacted to."""
        for at in range(start, end, STEP):
            upto = min(at + STEP, end)
            block = self._read(at, upto)
            if block.first > at and self._compacted is not None:
                yield self._compacted(at, min(block.first, upto), attributes)
            yield self._parts(block)

    def _audience(self, number: int) -> Audience:
        audience = self._audiences.get(number)
        if audience is None:
            views = (subscriber.buffer.views.get(number) for subscriber in self._subscribers.values())
            audience = Audience(view for view in views if isinstance(view, UserView))
            self._audiences[number] = audience
        return audience

    def published(
        self, user: str, position: int, most: int, through: int
    ) -> tuple[list[Delivery], int] | None:
        """A user's rows behind a position as Arrow, and the position reached, at most that before row ``through``: from the files of what
        executors have matched. Of many the first ``most`` or some more.

        None: the log has them, as the next batch is in no file, or was matched before what he asks was known; and of windows.
        """
        subscriber = self._subscribers.get(user)
        if self._files is None or subscriber is None or subscriber.has_windows:
            return None
        (views, version), begin = subscriber.buffer.seen, position
        found: list[Delivery] = []
        count = 0
        for first, end, blocks in self._files.behind(position):
            batch = self._unpacked.batch(first, end, blocks) if end <= through else None
            if batch is None or batch.version < version:
                break
            try:
                of_streams = self._by_stream(batch, views, position)
            except ReadingGoneError:
                break
            parts = [part for of_stream in of_streams.values() for part in of_stream]
            count += sum(len(part.numbers) for part in parts)
            found += in_order(parts) if len(of_streams) > 1 else parts
            position = end - 1
            if count >= most or position - begin >= _FAR:
                break
        return (found, position) if position > begin else None

    def _by_stream(
        self, batch: MatchedBatch, views: Mapping[Hashable, object], position: int
    ) -> dict[int, list[Delivery]]:
        """What a batch has for somebody behind a position, by stream. Raises ReadingGoneError."""
        found: dict[int, list[Delivery]] = {}
        for part in batch.parts:
            view = views.get(part.stream)
            rows = None
            if isinstance(view, UserView):
                rows = MatchedRows(part, self._stream, _NOBODY).delivery(view)
            elif isinstance(view, SourceUser):
                rows = MatchedSourceRows(part).delivery(view)
            if rows is not None and rows.numbers[-1] > position:
                found.setdefault(part.stream, []).append(rows.behind(position))
        return found

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
            return self._sources.replay(user, subscriber.plan.sources, block, subscriber.begin)
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
            replay = self._replay_begun(user, subscriber, feeds, block.first)
        for earlier in self._pieces(replay.at, block.first, subscriber.plan.attributes):
            replay.windows.process(earlier)
        parts, _ = replay.windows.process(self._parts(block))
        replay.at = block.end
        with self._lock:
            if subscriber.feeds == feeds:
                self._replays[user] = replay
        found = [part.delivery(replay.views[key]) for key, part in parts.items() if key in replay.views]
        return in_order([part for part in found if part is not None])

    def _replay_begun(self, user: str, subscriber: Subscriber, feeds: dict[int, Feed], first: int) -> Replay:
        """On the way to row ``first``: with what was kept of his windows before it, if anything, or with the first row."""
        windows, at = self._new_windows(), subscriber.begin
        kept = self._snapshots.before(first) if self._snapshots is not None else None
        if kept is not None and kept.row > at:
            try:
                known = resume(windows, kept, {user: subscriber.plan})
            except ValueError as error:
                log.warning("what was kept of windows is not understood: %s", error)
                windows, known = self._new_windows(), set()
            at = kept.row if known else at
        return Replay(windows, windows.set_feeds(user, subscriber.residual, feeds, 0), at)

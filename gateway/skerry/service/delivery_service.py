"""Which rows of the log are whose, and how readers come by them."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from skerry.delivery.engine import Engine
from skerry.delivery.window_snapshots import WindowSnapshots
from skerry.execution.deliveries import Delivery
from skerry.execution.matching import Part
from skerry.network.networks import Networks
from skerry.sensors.store import SensorStore
from skerry.service.expired_feeds import Beginning, expired
from skerry.service.persistence import Persistence
from skerry.service.queries import Queries, UnknownQueryError, UserQuery
from skerry.service.reader import Past as PastOf
from skerry.service.reader import Reader
from skerry.spark.index_file import IndexFile
from skerry.storage.block_files import BlockFiles
from skerry.storage.history.engine.waiting import Waiting
from skerry.storage.history.history_service import HistoryService
from skerry.storage.log import stream_log
from skerry.storage.log.record import Block
from skerry.storage.log.source_times import SourceTimes
from skerry.streams.stream import Stream
from skerry.tables.columns import TableError
from skerry.tables.join import Joiner
from skerry.tables.journal import TableJournal, Tables
from skerry.tables.lookup_checks import trouble_of


class DeliveryService:
    """Feeds and readers. ``backlog``: rows of the log that a reader may be behind; ``speed``: s of network time in one of this machine's;
    ``by_utc``: rows come from several networks, which have only UTC in common. What changes feeds is called under the gateway's lock,
    what readers do is not."""

    def __init__(
        self,
        log: stream_log.StreamLog,
        network: Networks,
        queries: Queries,
        history: HistoryService,
        tables: Tables,
        journal: TableJournal,
        persistence: Persistence,
        sensors: SensorStore,
        index: IndexFile,
        files: BlockFiles,
        snapshots: WindowSnapshots,
        backlog: int,
        speed: float,
        *,
        by_utc: bool,
    ) -> None:
        self._log, self._network, self._queries, self._persistence = log, network, queries, persistence
        self._history, self._tables, self._journal = history, tables, journal
        self._backlog, self._speed, self._sensors = backlog, speed, sensors
        self.engine = Engine(
            network.stream,
            self._there,
            self._compacted,
            by_utc=by_utc,
            speed=speed,
            publish=index.append,
            version=index.version,
            files=files,
            log=log.path,
            snapshots=snapshots,
            readings=journal,
        )
        self._joins: dict[str, Joiner] = {}
        #: Of queries over sources, the readings that their rows are joined with.
        self._readings: dict[str, list[str]] = {}
        #: Why sources of a query bring nothing.
        #: The answer to a query of an index of what motes store; None: it is of none.
        self.index_rows: Callable[[UserQuery], Any] = lambda _: None
        self.source_trouble: Callable[[UserQuery], str | None] = lambda _: None
        #: Told of a query whose rows are others of the log from now on.
        self.feeds_changed: Callable[[UserQuery], object] = lambda _: None
        #: Of readers, for which nobody is to wait until a query is planned or rows are durable.
        self._counting = threading.Lock()
        #: Rows that were in the log when the gateway started.
        self._opened = log.rows
        #: The log's first row when feeds were looked through last.
        self._begun = log.first

    def forget(self, query_id: str) -> None:
        """A query that has ended."""
        joiner = self._joins.pop(query_id, None)
        if joiner is not None:
            self._journal.leave(joiner.names)
        self._journal.leave(self._readings.pop(query_id, []))
        self.engine.unsubscribe(query_id)

    def refresh_feeds(self) -> None:
        """Tell the engine which rows are whose; feeds of streams that have ended stay, for readers that are behind.

        Of ten thousand queries, of those only whose feeds have changed, and of those that go on from the past into any stream.
        """
        changed = self._network.changed()
        with self.engine.together():
            for query_id in changed | self._queries.with_past:
                query = self._queries.find(query_id)
                if query is not None:
                    self._persistence.note(query.id)
                    self._refresh_feed(query)
                    self.engine.set_feeds(query.id, dict(query.feeds))
                    self.feeds_changed(query)

    def _refresh_feed(self, query: UserQuery) -> None:
        feeds, network = self._network.feeds(query.id), self._network
        if query.plan.history is not None:
            feeds = network.joined_feeds(query.id, query.handovers, query.plan.period_ms)
        for number in network.called_off(query.id, query.feeds, feeds):
            del query.feeds[number]
        query.feeds.update(feeds)

    def drop_expired_feeds(self) -> None:
        """Forget feeds that no reader can get a row by any more, when rows have left the log."""
        first = self._log.first
        if first == self._begun:
            return
        self._begun = first
        self._journal.drop_before(first)
        there = stream_log.read_there(self._log.path, first, first + 1)[1]
        log = Beginning(first, int(there["arrival"][0]) if len(there) else None)
        running = self._network.running
        for query in self._queries.all():
            numbers = expired(query, running, self._log.latest, log, self._speed)
            for number in numbers:
                del query.feeds[number]
            if numbers:
                self._persistence.note(query.id)
                self._persistence.unsaved = True
                self.engine.set_feeds(query.id, dict(query.feeds))
                self.feeds_changed(query)

    def subscribe(self, query: UserQuery) -> None:
        past = None
        self._want_readings(query)
        if query.plan.history is not None and query.plan.window is not None:
            past = self._history.rows(query.plan, query.created, query.position)
        self.engine.subscribe(query.id, query.plan, query.position, self._joiner(query), past)
        sources = query.plan.sources
        if query.finished and sources is not None and sources.gathers and sources.stream is not None:
            end = SourceTimes(self._log.path).end_of(
                sources.stream, int(query.id), query.position, self._log.rows
            )
            if end is not None:
                self.engine.end_sources(query.id, end)

    def _joiner(self, query: UserQuery) -> Joiner | None:
        """What joins a query's rows with tables; None: there are none."""
        if query.plan.probes and query.id not in self._joins:
            past = {called: before.table for called, before in self._history.earlier_rows(query.plan).items()}
            joiner = Joiner(query.plan, self._tables.get, past, self._journal)
            # What it was planned with is what its first rows meet.
            self._journal.want(joiner.names)
            self._joins[query.id] = joiner
        return self._joins.get(query.id)

    def _want_readings(self, query: UserQuery) -> None:
        """The tables that rows of sources are joined with are noted from now on, while the query is there."""
        plan = query.plan.sources
        if plan is not None and plan.lookups is not None and query.id not in self._readings:
            # What it was planned with is what its first rows meet.
            self._readings[query.id] = plan.lookups.readings
            self._journal.want(plan.lookups.readings)

    def paused(self, query: UserQuery) -> str | None:
        """Why a query waits, which goes on where it was as soon as it can; None: it does not."""
        try:
            joiner = self._joiner(query)
            if joiner is not None:
                joiner.check()
        except TableError as error:
            return str(error)
        subscriber = self.engine.subscriber(query.id)
        trouble = subscriber.buffer.trouble if subscriber is not None else None
        trouble = trouble or self.source_trouble(query) or self._tables_trouble(query)
        return trouble or self._history.waits(query.id)

    def _tables_trouble(self, query: UserQuery) -> str | None:
        """Why rows of sources go on meeting a table as it was; None: they meet all as they are."""
        plan = query.plan.sources
        why = (
            trouble_of(plan.lookups, self._tables) if plan is not None and plan.lookups is not None else None
        )
        return None if why is None else f"{why}; rows meet it as it was"

    def reader(self, query: UserQuery, position: int | None) -> Reader:
        """For one reader of a query, who has come to a row of the log; None: from the beginning."""
        past = None
        begin = query.position - 1
        if query.plan.history is not None:
            begin = -1
        if query.past_only or (query.plan.history is not None and query.plan.window is None):
            past = self.past(query)
        begin = begin if position is None else position
        return Reader(query, begin, self.engine, self._log.path, self.through, self._backlog, past)

    def past(self, query: UserQuery) -> PastOf:
        self._want_readings(query)
        if query.plan.sources is not None and not query.plan.sources.of_motes:
            return self._static(query) if query.plan.sources.stream is None else self._past_of_sources(query)
        joiner = self._joiner(query)
        asked = partial(self._history.after, query.id, query.plan, query.created, query.position, joiner)

        def after(position: int, waiting: Waiting) -> tuple[list[Delivery], int, bool]:
            if self._queries.find(query.id) is None:
                raise UnknownQueryError(query.id)
            return asked(position, waiting)

        return after

    def _past_of_sources(self, query: UserQuery) -> PastOf:
        """HISTORY … ONLY of sources that are no motes."""

        def after(position: int, waiting: Waiting) -> tuple[list[Delivery], int, bool]:
            if self._queries.find(query.id) is None:
                raise UnknownQueryError(query.id)
            found = query.id, query.plan, query.created, query.position
            return self._history.after_sources(*found, position, waiting)

        return after

    def _static(self, query: UserQuery) -> PastOf:
        """A query over static columns: what they are now, all under one number."""

        def after(position: int, waiting: Waiting) -> tuple[list[Delivery], int, bool]:
            del waiting
            plan, number = query.plan.sources, max(query.position - 1, 0)
            assert plan is not None
            if self._queries.find(query.id) is None:
                raise UnknownQueryError(query.id)
            rows = self.index_rows(query)
            if rows is None:
                rows = self._sensors.static_rows(plan, self._journal)
            found = [Delivery.of_one(number, rows)] if rows.num_rows and position < number else []
            return found, max(number, position), False

        return after

    @contextmanager
    def reading(self, query: UserQuery, wake: Callable[[], None]) -> Iterator[None]:
        """While a feed is open: ``wake`` is called, in another thread, when rows may have come."""
        subscriber = self.engine.subscriber(query.id)
        end = subscriber.buffer.listen(wake) if subscriber is not None else None
        self.count(query, 1)
        try:
            yield
        finally:
            self.count(query, -1)
            if end is not None:
                end()

    def count(self, query: UserQuery, change: int) -> None:
        """So many readers more, or less, wherever they are served."""
        with self._counting:
            query.readers += change
            query.left = time.monotonic()

    def state(self, query: UserQuery) -> dict[str, Any]:
        """What another process must know of a query to serve its readers, for JSON. As :attr:`skerry.delivery.engine.Engine.changed`."""
        entries, version = self.engine.entries_of(query.id)
        return {
            "id": query.id,
            "user": query.user,
            "sql": query.sql,
            "tables": query.schemas(),
            "statics": [dataclasses.astuple(entry) for entry in query.plan.statics.values()],
            "position": query.position,
            "created": query.created,
            "finished": query.finished,
            # Of one that has finished no more come.
            "rows": self._log.rows,
            "feeds": {number: dataclasses.astuple(feed) for number, feed in query.feeds.items()},
            "entries": entries,
            "version": version,
        }

    def stream(self, number: int) -> Stream | None:
        """What a stream's number means."""
        return self._network.stream(number)

    @property
    def backlog(self) -> int:
        """Rows of the log that a reader may be behind."""
        return self._backlog

    @property
    def rows(self) -> int:
        """Number of the next row of the log."""
        return self._log.rows

    def caught_up(self, query: UserQuery) -> bool:
        """Whether every row of the log that may be a query's has been through the proxy."""
        return query.past_only or self.through() >= self._log.rows

    def through(self) -> int:
        """Rows of the log that readers may have: what was there at the start needs no batch to come first."""
        return max(self.engine.done, self._opened)

    def deliver(self) -> None:
        """What threads and Spark do once the gateway is started, here in the caller's: tables are looked at, new rows of the log go on to
        the users."""
        self._journal.look()
        if self._log.rows > self.engine.done:
            self.engine.process(self._there(self.engine.done, self._log.rows))

    def _there(self, start: int, end: int) -> Block:
        """Rows of the log that it still has."""
        return Block(*stream_log.read_there(self._log.path, start, end))

    def _compacted(self, start: int, end: int, attributes: Collection[int]) -> Mapping[int, Part]:
        """Rows that the log has no longer."""
        return self._history.parts(start, end, attributes)

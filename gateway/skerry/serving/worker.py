"""What serves readers in a process of its own: an engine with only those queries that somebody reads here.

The gateway says which batches are published and whose they are; rows come from the data directory. Nothing of it is this process's to keep.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skerry.api.access import Access
from skerry.api.feeds import AwayError
from skerry.catalog.static_attributes import statics_of
from skerry.delivery.engine import Engine
from skerry.delivery.entries import GivenEntries
from skerry.execution.blocks import batch_of, from_bytes
from skerry.planner.model.joined_tables import TableSchema
from skerry.planner.model.plans import Feed, QueryPlan
from skerry.planner.planner import plan_query
from skerry.service.queries import UserQuery
from skerry.service.reader import Reader
from skerry.serving.gateway_link import LinkError
from skerry.sql.errors import QueryError
from skerry.storage.block_files import BlockFiles
from skerry.storage.log import stream_log
from skerry.storage.log.record import Block
from skerry.streams.stream import Stream
from skerry.tables.columns import TableError
from skerry.tables.join import Joiner
from skerry.tables.store import Table
from skerry.tables.versions import DIRECTORY as TABLES
from skerry.tables.versions import TableVersions

log = logging.getLogger(__name__)

#: A batch that is not seen so long after it was published, in s, as on a disk that another machine writes, is read from the log.
VISIBLE_S = 2.0
_LOOK_S = 0.02
_DIGITS = 19
#: Readers wait so long for a gateway that is away, in s.
AWAY_S = 30.0


@dataclass
class _Read:
    """A query that somebody reads, or is about to. ``counted``: feeds that the gateway knows of."""

    readers: int = 0
    counted: int = 0
    query: UserQuery | None = None
    #: Of one that has finished: the row behind its last.
    end: int | None = None
    #: Why it cannot be served here, or False; None: it is not known yet.
    refused: bool | None = None
    waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = field(default_factory=list)


class Worker:
    """Fulfils :class:`skerry.api.services.Feeds` for readers that ``access`` admits. ``guarded``: only where the gateway asks for tokens;
    ``closed``: told of each feed that ends."""

    def __init__(self, data: Path, access: Access, *, guarded: bool, closed: Callable[[str], object]) -> None:
        self._log, self._files = data / stream_log.DIRECTORY, BlockFiles(data)
        self._access, self._guarded, self._closed = access, guarded, closed
        self._streams: dict[int, Stream] = {}
        self._tables = TableVersions(data / TABLES)
        self._entries = GivenEntries()
        self.engine = Engine(self._streams.get, self._there, files=self._files, entries=self._entries)
        self._reads: dict[str, _Read] = {}
        self._lock = threading.RLock()
        self._through, self._backlog = 0, 1
        #: The connection by which the gateway counts this worker's readers.
        self.number: int | None = None
        #: For how long the gateway has been away, in s.
        self.away_s: Callable[[], float] = float

    # ---- what the gateway says ----

    def take(self, news: dict[str, Any]) -> None:
        """A piece of news. Raises LinkError."""
        match news:
            case {"tokens": bool(asked)}:
                self._check_tokens(asked=asked)
            case {"worker": int(number), "through": int(through), "backlog": int(backlog)}:
                self._begin(number, through, backlog)
            case {"batch": [int(first), int(end)]}:
                self._batch(first, end)
            case {"stream": dict(described)}:
                stream = Stream.from_dict(described)
                self._streams[stream.number] = stream
            case {"query": dict(state)}:
                self._query(state)
            case {"gone": str(query)}:
                self._gone(query)

    def lost(self) -> None:
        """The gateway is away."""
        self.number = None

    def readers(self) -> dict[str, int]:
        """Open feeds by query, for the next connection; none is counted until that is there."""
        with self._lock:
            self.number = None
            return {query: read.counted for query, read in self._reads.items() if read.counted}

    def _check_tokens(self, *, asked: bool) -> None:
        if self._guarded and not asked:
            raise LinkError(
                "the gateway asks for no tokens, and others could reach this process and ask as anybody: start the gateway with --tokens, "
                "or listen on 127.0.0.1 here"
            )
        self._access.open = not asked

    def _begin(self, number: int, through: int, backlog: int) -> None:
        self._through, self._backlog = through, backlog
        if through > self.engine.done:
            # What was published meanwhile is in files.
            self.engine.skip_to(through)
        self.number = number

    def _batch(self, first: int, end: int) -> None:
        if end <= self.engine.done:
            return
        if first > self.engine.done:
            self.engine.skip_to(first)
        self._tables.refresh()
        blocks, began = self._files.batch(first, end), time.monotonic()
        while blocks is None and time.monotonic() - began < VISIBLE_S:
            time.sleep(_LOOK_S)
            blocks = self._files.batch(first, end)
        try:
            batch = None if blocks is None else batch_of(from_bytes(blocks))
        except (ValueError, OSError) as error:
            log.warning("rows %d to %d: %s", first, end - 1, error)
            batch = None
        if batch is None:
            log.info("rows %d to %d are read from the log", first, end - 1)
            self.engine.skip_to(end)
        else:
            self.engine.take(batch)

    def _query(self, state: dict[str, Any]) -> None:
        query_id = state["id"]
        self._tables.refresh()
        with self._lock:
            read = self._reads.get(query_id)
            if read is None:
                return
            if read.query is None and not self._plan(read, state):
                return
            assert read.query is not None
            self._entries.give(
                query_id, {int(number): entry for number, entry in state["entries"].items()}, state["version"]
            )
            read.query.feeds = {int(number): Feed(*feed) for number, feed in state["feeds"].items()}
            self.engine.set_feeds(query_id, dict(read.query.feeds))
            if state["finished"]:
                read.query.finished, read.end = True, state["rows"]
            self._answer(read, refused=False)

    def _plan(self, read: _Read, state: dict[str, Any]) -> bool:
        """Whether the query can be served here: an extension may not be known."""
        try:
            known = [TableSchema.from_list(schema) for schema in state["tables"]]
            tables = {schema.name: schema for schema in known}
            plan = plan_query(
                state["sql"], tables=tables, statics=statics_of(state["statics"]), restored=True
            )
        except QueryError as error:
            log.warning("query %s is left to the gateway: %s", state["id"], error.summary)
            plan = None
        if not isinstance(plan, QueryPlan):
            self._answer(read, refused=True)
            return False
        read.query = UserQuery(
            state["id"], state["user"], state["sql"], plan, state["created"], state["position"]
        )
        joiner = Joiner(plan, _noted_only, None, self._tables) if plan.probes else None
        self.engine.subscribe(state["id"], plan, state["position"], joiner)
        return True

    def _gone(self, query_id: str) -> None:
        with self._lock:
            read = self._reads.get(query_id)
            if read is not None:
                self.engine.unsubscribe(query_id)
                self._answer(read, refused=True)

    def _answer(self, read: _Read, *, refused: bool) -> None:
        read.refused = refused
        for loop, event in read.waiting:
            loop.call_soon_threadsafe(event.set)
        read.waiting.clear()

    # ---- readers ----

    async def open(self, query_id: str, count: Callable[[int], Any], limit_s: float) -> UserQuery | None:
        """A reader comes: once the gateway has been asked by ``count``, which says whether he is served at workers, the query; None: the
        gateway serves him. Whoever gets a query is to :meth:`close` it. Raises AwayError: it is away for longer than ``limit_s``."""
        deadline = time.monotonic() + limit_s
        with self._lock:
            read = self._reads.setdefault(query_id, _Read())
            read.readers += 1
        counted = False
        try:
            counted = await self._count(read, count, deadline)
            if counted and await self._known(read, deadline) and read.query is not None:
                return read.query
        except BaseException:
            self._leave(query_id, counted=counted)
            raise
        self._leave(query_id, counted=counted)
        return None

    async def _count(self, read: _Read, count: Callable[[int], Any], deadline: float) -> bool:
        while True:
            number = self.number
            served = await count(number) if number is not None else None
            with self._lock:
                # Of a connection that is no more all readers have been dropped.
                if served is not None and (not served or number == self.number):
                    read.counted += bool(served)
                    return bool(served)
            if time.monotonic() > deadline:
                raise AwayError
            await asyncio.sleep(0.05)

    async def _known(self, read: _Read, deadline: float) -> bool:
        event = asyncio.Event()
        with self._lock:
            if read.refused is not None:
                return not read.refused
            read.waiting.append((asyncio.get_running_loop(), event))
        try:
            await asyncio.wait_for(event.wait(), max(0.0, deadline - time.monotonic()))
        except TimeoutError:
            raise AwayError from None
        return not read.refused

    def close(self, query_id: str) -> None:
        """A reader of a query has gone."""
        self._leave(query_id, counted=True)

    def _leave(self, query_id: str, *, counted: bool) -> None:
        with self._lock:
            read = self._reads[query_id]
            read.readers -= 1
            if counted:
                read.counted -= 1
                self._closed(query_id)
            if not read.readers:
                del self._reads[query_id]
                self.engine.unsubscribe(query_id)

    @property
    def counts(self) -> Counter[str]:
        """Readers by query."""
        with self._lock:
            return Counter({query: read.readers for query, read in self._reads.items()})

    # ---- skerry.api.services.Feeds ----

    @property
    def rows(self) -> int:
        """Number of the next row of the log, as far as it is seen here."""
        return max(stream_log.length(self._log), self.through())

    async def sees(self, position: str | None) -> None:
        """Wait a moment for a row that a reader has had elsewhere, on a disk that another machine writes."""
        began = time.monotonic()
        while position and position.isdecimal() and len(position) < _DIGITS and int(position) >= self.rows:
            if time.monotonic() - began > VISIBLE_S:
                return
            await asyncio.sleep(_LOOK_S)

    def through(self) -> int:
        """Rows of the log that readers may have."""
        return max(self.engine.done, self._through)

    def reader(self, query: UserQuery, position: int | None) -> Reader:
        """For one reader of a query, who has come to a row of the log; None: from the beginning."""
        begin = query.position - 1 if position is None else position
        return Reader(query, begin, self.engine, self._log, self.through, self._backlog)

    @contextmanager
    def reading(self, query: UserQuery, wake: Callable[[], None]) -> Iterator[None]:
        """While a feed is open: ``wake`` is called, in another thread, when rows may have come."""
        subscriber = self.engine.subscriber(query.id)
        end = subscriber.buffer.listen(wake) if subscriber is not None else None
        try:
            yield
        finally:
            if end is not None:
                end()

    def caught_up(self, query: UserQuery) -> bool:
        """Whether every row of the log that may be a query's has been through."""
        read = self._reads.get(query.id)
        return read is not None and read.end is not None and self.through() >= read.end

    def paused(self, query: UserQuery) -> str | None:
        """Queries that may have to wait are the gateway's to serve."""
        del query
        return None

    def check_there(self) -> None:
        """Raises AwayError where the gateway has been away for so long that readers are to come again."""
        if self.away_s() > AWAY_S:
            raise AwayError

    def _there(self, start: int, end: int) -> Block:
        return Block(*stream_log.read_there(self._log, start, end))


def _noted_only(name: str) -> Table:
    """Tables as they are now are the gateway's to look at."""
    raise TableError(f"no reading of table {name} that the query can use is noted yet")

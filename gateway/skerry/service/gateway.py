"""The gateway: owns roots, log and users, and the order in which they change."""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from construct import Container

from skerry.catalog import Catalog
from skerry.delivery.engine import Engine
from skerry.execution.matching import Part
from skerry.ingest.ingest import Ingest
from skerry.ingest.reorder import Reorder
from skerry.ingest.stored_frames import Lines
from skerry.network.commands import Running, check
from skerry.network.link.link import PortError
from skerry.network.link.stamp import Stamp
from skerry.network.network import Common
from skerry.network.networks import Networks
from skerry.network.root import Root
from skerry.planner.features.history import explain_past
from skerry.planner.model.plans import QueryPlan
from skerry.planner.model.storage_points import Point
from skerry.planner.planner import plan_point, plan_query
from skerry.service.alarms import Alarms
from skerry.service.expired_feeds import Beginning, spent
from skerry.service.explain import explain, explain_text
from skerry.service.inventory import Inventory
from skerry.service.queries import Ended, Queries, UnknownQueryError, UserQuery
from skerry.service.reader import BACKLOG_ROWS, Reader
from skerry.service.reader import Past as PastOf
from skerry.service.restore import restore
from skerry.service.watch import Watch
from skerry.spark.supervisor import SparkDriver
from skerry.sql.ast import CreatePoint, CreateSrt, DropPoint, DropSrt, Stop
from skerry.sql.errors import QueryError
from skerry.storage.history.history_service import HistoryService
from skerry.storage.history.retention import Retention
from skerry.storage.log import stream_log
from skerry.storage.log.dating import MachineClock
from skerry.storage.log.record import Block
from skerry.storage.state import DataDirectory, StorageError
from skerry.streams.stream import Stream
from skerry.tables.columns import TableError
from skerry.tables.directory import shown
from skerry.tables.join import Joiner
from skerry.tables.store import TableStore
from skerry_protocol.codec import Packet

log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Stopped:
    """The queries that STOP QUERY or DROP ALL has stopped."""

    queries: list[UserQuery]


class Gateway:
    """One daemon. Public methods may be called from any thread. ``links``: a URL for each root; ``backlog``: rows of the log
    that a reader may be behind; ``speed``: s of network time in one of this machine's."""

    def __init__(
        self,
        links: Sequence[str],
        data: Path,
        master: str = "local[2]",
        retention: Retention | None = None,
        backlog: int = BACKLOG_ROWS,
        tables: Path | None = None,
        speed: float = 1.0,
    ) -> None:
        self._backlog, self._speed = backlog, speed
        self._lock = threading.RLock()
        #: Of readers, for which nobody is to wait until a query is planned or rows are durable.
        self._counting = threading.Lock()
        self._data = DataDirectory(data)
        self.alarms = Alarms()
        self._watch = Watch(self.alarms)
        common = Common(speed=speed)
        self.roots = [Root(url, common, self._on_packets, self._on_hello, self._on_idle) for url in links]
        self._network = Networks([root.network for root in self.roots], common)
        self._log = stream_log.StreamLog(data, root_of=self._network.root_of, machine_clock=MachineClock())
        self._queries = Queries()
        self.inventory = Inventory(self._lock, self._network, self._queries, self._save)
        self._ingest = Ingest(Reorder(data, self._network.held_ms), self._network)
        by_utc = len(links) > 1
        self.engine = Engine(self._network.stream, self._rows, self._compacted, by_utc=by_utc, speed=speed)
        self.spark = SparkDriver(master, data, self._log.path, self.engine.process)
        self.tables = TableStore(tables or data / "tables", self.spark.read)
        self._joins: dict[str, Joiner] = {}
        self.history = HistoryService(
            data,
            self._log,
            self._streams,
            lambda: self.engine.done,
            retention,
            by_utc=by_utc,
            earlier=self._network.earlier,
            speed=speed,
        )
        self._opened = self._log.rows
        #: The log's first row when feeds were looked through last.
        self._begun = self._log.first
        #: Queries of which not everything is remembered.
        self._dirty: set[str] = set()
        self._restore()
        self._ingest.restore(
            self._log, self._network.streams, self._network.source_of, self._network.session_of
        )
        self._lines = Lines(data)
        for root in self.roots:
            root.link.endpoint.remember(self._lines.of(root.network.root).stored(self._log))
        self._advanced = 0.0
        #: Whether something has changed that is not on the disk yet.
        self._unsaved = False

    def start(self) -> None:
        """Open the links, then Spark in the background. Raises PortError when none can be opened."""
        errors = []
        for root in self.roots:
            try:
                root.link.open()
            except PortError as error:
                errors.append(error)
        if len(errors) == len(self.roots):
            raise errors[0]
        for failed in errors:
            log.warning("%s; it is tried again", failed)
        for root in self.roots:
            root.link.start()
        self.spark.start()
        # Databases are asked in the background from now on.
        self.tables.schemas()
        self.history.start()

    def close(self) -> None:
        """Stop everything; the motes keep their queries."""
        for root in self.roots:
            root.link.close()
        self.tables.close()
        self.spark.stop()
        self.history.stop()
        self._log.close()
        self._data.close()

    def deliver(self) -> None:
        """What Spark does once the gateway is started, here in the caller's thread: new rows of the log go on to the users."""
        if self._log.rows > self.engine.done:
            self.engine.process(self._rows(self.engine.done, self._log.rows))

    @property
    def _links(self) -> list[str]:
        return [root.link.url for root in self.roots]

    @property
    def catalog(self) -> Catalog:
        """Motes and attributes."""
        return self._network.catalog

    def _rows(self, start: int, end: int) -> Block:
        """Rows of the log that it still has."""
        return Block(*stream_log.read_there(self._log.path, start, end))

    def _compacted(self, start: int, end: int, attributes: Collection[int]) -> Mapping[int, Part]:
        """Rows that the log has no longer."""
        return self.history.parts(start, end, attributes)

    # ---- remembering ----

    def _restore(self) -> None:
        state = self._data.load("gateway")
        if state is None:
            return
        try:
            self._restore_from(state)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise self._data.damaged("gateway", f"{type(error).__name__}: {error}") from error

    def _restore_from(self, state: dict[str, Any]) -> None:
        plans = restore(self._queries, state)
        for query in self._queries.all():
            if not query.past_only:
                self._subscribe(query)
        running = [query.id for query in self._queries.all() if not query.finished and not query.past_only]
        self._network.restore(state, self._links, plans, running)
        self._network.route_by(self._queries.srts().values())
        self.inventory.restore(state.get("tags", []))
        self._refresh_feeds()
        for query in self._queries.all():
            if query.finished and not query.past_only:
                # No network knows of it, and its rows are read all the same.
                self.engine.set_feeds(query.id, dict(query.feeds))

    def _save(self) -> None:
        """Remember everything. Raises StorageError, with an alarm; it is tried again until it works."""
        self._unsaved = True
        state = {
            **self._network.to_dict(self._links),
            "tags": self.inventory.to_list(),
            "last_query": self._queries.last,
            "ended": [dataclasses.astuple(ended) for ended in self._queries.ended()],
        }
        try:
            self._data.save("gateway", state, self._entries(self._dirty), self._entries)
        except StorageError as error:
            self.alarms.on("state", f"what users ask cannot be remembered: {error}")
            raise
        self._unsaved = False
        self._dirty.clear()
        self._network.remembered()
        self.alarms.off("state")

    def _entries(self, ids: Collection[str] | None = None) -> dict[str, dict[str, str | None]]:
        """What is remembered of some queries, and of streams and mote queries that have changed, None: of all; None of what has gone."""
        changed = ids is not None
        ids = [query.id for query in self._queries.all()] if ids is None else ids
        found = [(query_id, self._queries.find(query_id)) for query_id in ids]
        queries = {query_id: query.text() if query is not None else None for query_id, query in found}
        return {"queries": queries, **self._network.texts(ids, changed=changed)}

    # ---- the motes' side (the links' threads) ----

    def _on_packets(self, root: Root, packets: list[Packet]) -> None:
        """Returns when everything is durable. StorageError: nothing was taken in."""
        with self._lock:
            if root.refused is not None:
                return
            try:
                if self._unsaved:
                    # The log must not name streams that a restart would not know.
                    self._commit()
                self._data.check_room()
                source = self._network.source(root.network)
                line = self._lines.of(root.network.root)
                self._ingest.store(packets, source, self._log, self._network.now_ms(), line)
            except (StorageError, OSError) as error:
                text = f"{self._log.path}: {error.strerror}" if isinstance(error, OSError) else str(error)
                self.alarms.on("intake", f"no rows are taken in: {text}; motes and root keep what they can")
                root.network.missed()
                raise StorageError(text) from None
            self.alarms.off("intake")
            for packet in packets:
                root.network.hear(packet)
            if any(isinstance(packet, Stamp) for packet in packets):
                self._tell()

    def _tell(self) -> None:
        """Epochs whose time is over by what the root has said of its time."""
        try:
            self._ingest.tell(self._log)
        except OSError as error:
            # :meth:`_release` says so, and tries again.
            log.debug("not told: %s", error)

    def _on_hello(self, root: Root, hello: Container[Any]) -> None:
        with self._lock:
            root.refused = root.clash(self.roots, hello) or root.renewed(hello)
            # At once: a root that begins another session does so before anybody looks.
            self._watch.root(root)
            if root.refused is not None:
                return
            if root.network.greet(hello):
                self._refresh_feeds()
            if root.network.gap is not None and self._log.dating is not None:
                self._log.dating.went_on(*root.network.gap)
            self._try_commit()

    def _on_idle(self, root: Root) -> None:
        self._watch.root(root)
        self._watch.delivery(self.engine.done, self._through(), self._log.rows, self.spark.state)
        self._watch.spark(self.spark.trouble)
        self._watch.history(self.history.trouble)
        self._watch.clock(self.history.clock())
        self._watch.windows(self.engine.lacking)
        self._advance()

    def _advance(self) -> None:
        if time.monotonic() - self._advanced < 1.0 or not self._network.known:
            return
        self._advanced = time.monotonic()
        with self._lock:
            self._release()
            changed = self._go_on()
            self._leave_spent()
            self._watch.motes(self.catalog, self._network.roots)
            abandoned = [query for query in self._queries.all() if query.abandoned(time.monotonic())]
            for query in abandoned:
                log.info("query %s of %s is stopped: nobody reads it any more", query.id, query.user)
                self._remove(query)
            if changed or abandoned or self._unsaved or self._network.strayed():
                self._try_commit()

    def _release(self) -> None:
        """Rows that were held back."""
        try:
            self._ingest.release(self._log, self._network.now_ms())
        except OSError as error:
            self.alarms.on("intake", f"rows wait beside the log: {self._log.path}: {error.strerror}")

    def _go_on(self) -> bool:
        """What time brings to the networks; whether that is anything."""
        changed, finished = self._network.advance()
        for user in finished:
            query = self._queries.find(user)
            if query is not None:
                query.finished = True
                self._dirty.add(query.id)
        if changed:
            self._refresh_feeds()
        return changed

    def _commit(self) -> None:
        """Remember what has changed, then tell the motes: they never hold what a restart would not know. Raises StorageError."""
        self._network.prepare()
        self._save()
        self._network.tell()

    def _try_commit(self) -> None:
        """The same where nobody waits for it; :meth:`_on_idle` tries again."""
        try:
            self._commit()
        except StorageError as error:
            log.debug("not saved: %s", error)

    def _refresh_feeds(self) -> None:
        """Tell the engine which rows are whose; feeds of streams that have ended stay, for readers that are behind.

        Of ten thousand queries, of those only whose feeds have changed, and of those that go on from the past into any stream.
        """
        changed = self._network.changed()
        for query_id in changed | self._queries.with_past:
            query = self._queries.find(query_id)
            if query is not None:
                self._dirty.add(query.id)
                self._refresh_feed(query)
                self.engine.set_feeds(query.id, dict(query.feeds))

    def _refresh_feed(self, query: UserQuery) -> None:
        feeds, network = self._network.feeds(query.id), self._network
        if query.plan.history is not None:
            feeds = network.joined_feeds(query.id, query.joints, query.plan.period_ms)
        for number in network.called_off(query.id, query.feeds, feeds):
            del query.feeds[number]
        query.feeds.update(feeds)

    def _leave_spent(self) -> None:
        """Forget feeds that no reader can get a row by any more, when rows have left the log."""
        first = self._log.first
        if first == self._begun:
            return
        self._begun = first
        there = stream_log.read_there(self._log.path, first, first + 1)[1]
        log = Beginning(first, int(there["arrival"][0]) if len(there) else None)
        running = self._network.running
        for query in self._queries.all():
            numbers = spent(query, running, self._log.latest, log, self._speed)
            for number in numbers:
                del query.feeds[number]
            if numbers:
                self._dirty.add(query.id)
                self._unsaved = True
                self.engine.set_feeds(query.id, dict(query.feeds))

    def _subscribe(self, query: UserQuery) -> None:
        past = None
        if query.plan.history is not None and query.plan.window is not None:
            past = self.history.rows(query.plan, query.created, query.position)
        self.engine.subscribe(query.id, query.plan, query.position, self._joiner(query), past)

    def _joiner(self, query: UserQuery) -> Joiner | None:
        """What joins a query's rows with tables; None: there are none."""
        if query.plan.probes and query.id not in self._joins:
            past = {called: before.table for called, before in self.history.before(query.plan).items()}
            self._joins[query.id] = Joiner(query.plan, self.tables.get, past)
        return self._joins.get(query.id)

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
        return trouble or self.history.waits(query.id)

    def _streams(self) -> list[Stream]:
        """All there have been. Without the lock: the proxy asks under its own, and whoever has this one may wait for that."""
        return list(self._network.streams.copy().values())

    # ---- the users' side ----

    def ask(
        self,
        sql: str,
        user: str,
        check: Callable[[int], object] = int,
        linger_s: float | None = None,
    ) -> UserQuery | Stopped:
        """A new query or storage point, or what STOP QUERY, DROP ALL or DROP STORAGE POINT stopped. ``check`` is told how many
        queries the user has, and raises what it likes. Raises QueryError, UnknownQueryError, StorageError."""
        asked = self._ask(sql, user, check, linger_s)
        if isinstance(asked, UserQuery) and asked.past_only and asked.plan.order and not asked.plan.window:
            # Without the lock, as it takes its time. Whether there are too many rows is to be told before anybody waits for them.
            try:
                self._past(asked)(asked.position)
            except (QueryError, TableError) as error:
                self.stop(asked.id)
                raise (error if isinstance(error, QueryError) else QueryError(str(error))) from None
        return asked

    def _ask(
        self, sql: str, user: str, check: Callable[[int], object], linger_s: float | None
    ) -> UserQuery | Stopped:
        with self._lock:
            statement, point = plan_query(sql, self._queries.points(), self.tables.schemas()), None
            if isinstance(statement, DropPoint):
                return Stopped([self.stop(self._queries.keeper(statement, user), user)])
            if isinstance(statement, DropSrt):
                return Stopped([self.stop(self._queries.srt_keeper(statement, user), user)])
            if isinstance(statement, Stop):
                if statement.query is not None:
                    return Stopped([self.stop(str(statement.query), user)])
                return self._stop_all(user)
            check(len(self._queries.of(user)))
            srt = None
            if isinstance(statement, CreatePoint):
                number = self._queries.point_number(sql)
                point, plan = plan_point(statement, number, self._queries.points())
            elif isinstance(statement, CreateSrt):
                srt, plan = self._queries.plan_srt(statement, self._network.roots, self.catalog.values)
            else:
                plan = statement
            if plan.history is not None and plan.history.only:
                return self._ask_past(sql, user, plan, linger_s)
            self._network.check_heard([root.link for root in self.roots])
            # What fills a storage point has no readers.
            query = self._add(sql, user, plan, point, None, None if plan.into or srt else linger_s)
            if srt is not None:
                query.srt = srt
                self._network.route_by(self._queries.srts().values())
            try:
                self._add_started(query)
                self._commit()
            except (QueryError, StorageError):
                self._remove(query)
                raise
            return query

    def _new(self, sql: str, user: str, plan: QueryPlan, linger_s: float | None) -> UserQuery:
        """A query that is asked now; nobody knows of it yet."""
        asked = time.time(), self._log.rows
        return UserQuery(self._queries.next_id(), user, sql, plan, *asked, linger_s=linger_s)

    def _add(
        self,
        sql: str,
        user: str,
        plan: QueryPlan,
        point: Point | None,
        started_by: str | None,
        linger_s: float | None = None,
    ) -> UserQuery:
        query = self._new(sql, user, plan, linger_s)
        query.point, query.started_by = point, started_by
        self._network.add_user(query.id, plan)
        self._queries.add(query)
        self._dirty.add(query.id)
        self._subscribe(query)
        self._refresh_feeds()
        return query

    def _add_started(self, query: UserQuery) -> None:
        """The queries that its rows start, and those that theirs start. Raises QueryError."""
        for text in query.plan.starts:
            plan = plan_query(text, self._queries.points(), self.tables.schemas())
            assert isinstance(plan, QueryPlan)
            self._add_started(self._add(text, query.user, plan, None, query.id))

    def _ask_past(self, sql: str, user: str, plan: QueryPlan, linger_s: float | None) -> UserQuery:
        """A query that motes have no part in: over what the log holds now."""
        query = self._new(sql, user, plan, linger_s)
        query.finished = True
        self._queries.add(query)
        self._dirty.add(query.id)
        try:
            self._save()
        except StorageError:
            self._queries.remove(query.id)
            raise
        return query

    def stop(self, query_id: str, user: str | None = None) -> UserQuery:
        """Stop a query. Raises UnknownQueryError, QueryError; StorageError: it is stopped, but a restart may bring it back."""
        with self._lock:
            try:
                query = self._queries.get(query_id, user)
            except UnknownQueryError:
                # Who is told why it has ended need not be told again.
                if self._queries.forget_ended(user, query_id):
                    self._commit()
                raise
            if query.point is not None:
                self._queries.check_unused(query.point)
            self._remove(query)
            self._commit()
            return query

    def _stop_all(self, user: str) -> Stopped:
        """All queries of a user but what others' read or fill. Raises QueryError, which names that, when the rest is stopped."""
        stopped, kept = list[UserQuery](), list[QueryError]()
        if self._queries.forget_ended(user):
            self._commit()
        # Newest first: those that read a storage point before it.
        for query in reversed(self._queries.of(user)):
            # What another started has ended with that.
            if self._queries.find(query.id) is not None:
                try:
                    stopped.append(self.stop(query.id, user))
                except QueryError as error:
                    kept.append(error)
        if kept:
            text = "; ".join(error.message for error in kept)
            raise QueryError(f"{text}: all other queries of yours are stopped", "stop what uses it first")
        return Stopped(stopped[::-1])

    def _remove(self, query: UserQuery) -> None:
        for inner in self._queries.started_by(query.id):
            self._remove(inner)
        self._queries.remove(query.id)
        self._dirty.add(query.id)
        if query.srt is not None:
            self._network.route_by(self._queries.srts().values())
        self.history.forget(query.id)
        self._joins.pop(query.id, None)
        self.engine.unsubscribe(query.id)
        if self._network.remove_user(query.id):
            self._refresh_feeds()

    def points(self, user: str | None = None) -> list[dict[str, Any]]:
        """The storage points, with what uses them, as far as a user may know."""
        with self._lock:
            return self._queries.described_points(user)

    def signal(self, event: str, user: str | None = None) -> list[str]:
        """Raise an event as if at the root; returns the ids of the queries, of one user or all, that it starts or stops.

        Raises UnknownEventError where no running query knows the event.
        """
        with self._lock:
            waiting = self._queries.waiting_for(event)
            self._network.raise_event(event)
            return [query for query in waiting if user in (None, self._queries.get(query).user)]

    def run(self, command: str, argument: int | None, mote: int | None) -> Running:
        """Run a command on a mote, None: on all; returns at once. Raises QueryError."""
        action = check(command, argument, mote)
        with self._lock:
            self._network.check_heard([root.link for root in self.roots])
            return self._network.run(action, argument, mote)

    def command(self, token: int) -> Running | None:
        """A command that :meth:`run` sent, with the answers so far."""
        with self._lock:
            return self._network.command(token)

    def queries(self, user: str | None = None) -> list[UserQuery]:
        """All queries, or one user's, oldest first."""
        with self._lock:
            return self._queries.all() if user is None else self._queries.of(user)

    def ended(self, user: str | None = None) -> list[Ended]:
        """Those that could not go on when the gateway started, and have not been stopped since."""
        with self._lock:
            return self._queries.ended(user)

    def query(self, query_id: str, user: str | None = None) -> UserQuery:
        """One query; with ``user`` only if it is his. Raises UnknownQueryError."""
        # Without the lock, as one entry is looked at: who opens a feed does so where all feeds are written.
        return self._queries.get(query_id, user)

    def refused(self, query: UserQuery) -> list[str]:
        """Which motes do not run what the user asked, and why."""
        with self._lock:
            return self._network.refused(query.id)

    @property
    def known(self) -> bool:
        """Whether a root has answered, so that motes can be asked."""
        return self._network.known

    def mote_queries(self, query: UserQuery) -> set[int]:
        """Numbers on the motes of those that serve a query, or have done so since it was asked."""
        streams = self._network.streams
        return {streams[number].query for number in query.feeds if number in streams}

    def begins(self, query: UserQuery) -> float | None:
        """From when on the user has rows of what motes sample, UTC in s, at the earliest where he waits for room; None: when his event
        comes, or that is not known yet, or motes have no part in it any more."""
        with self._lock:
            return self._network.begins(query.id)

    def answered(self, query: UserQuery) -> tuple[int, int | None]:
        """How many motes have answered a query, and how many are there that run it; None: that is not known (yet)."""
        with self._lock:
            return self._network.answered(query.id)

    def reader(self, query: UserQuery, position: int | None) -> Reader:
        """For one reader of a query, who has come to a row of the log; None: from the beginning."""
        past = None
        begin = query.position - 1
        if query.plan.history is not None:
            begin = -1
        if query.past_only or (query.plan.history is not None and query.plan.window is None):
            past = self._past(query)
        begin = begin if position is None else position
        return Reader(query, begin, self.engine, self._log, self._through, self._backlog, past)

    def _past(self, query: UserQuery) -> PastOf:
        joiner = self._joiner(query)
        return partial(self.history.after, query.id, query.plan, query.created, query.position, joiner)

    @contextmanager
    def reading(self, query: UserQuery, wake: Callable[[], None]) -> Iterator[None]:
        """While a feed is open: ``wake`` is called, in another thread, when rows may have come."""
        subscriber = self.engine.subscriber(query.id)
        end = subscriber.buffer.listen(wake) if subscriber is not None else None
        with self._counting:
            query.readers += 1
        try:
            yield
        finally:
            with self._counting:
                query.readers -= 1
                query.left = time.monotonic()
            if end is not None:
                end()

    @property
    def rows(self) -> int:
        """Number of the next row of the log."""
        return self._log.rows

    def caught_up(self, query: UserQuery) -> bool:
        """Whether every row of the log that may be a query's has been through the proxy."""
        return query.past_only or self._through() >= self._log.rows

    def _through(self) -> int:
        """Rows of the log that readers may have: what was there at the start needs no batch to come first."""
        return max(self.engine.done, self._opened)

    def explain(self, sql: str) -> dict[str, Any]:
        """What would run where. Raises QueryError."""
        with self._lock:
            plan = plan_query(sql, self._queries.points(), self.tables.schemas())
            if isinstance(plan, Stop | DropPoint | DropSrt):
                raise QueryError("what stops queries has no plan", "explain a SELECT")
            if isinstance(plan, CreatePoint):
                _, plan = plan_point(plan, self._queries.point_number(sql), self._queries.points())
            if isinstance(plan, CreateSrt):
                _, plan = self._queries.plan_srt(plan, self._network.roots, self.catalog.values)
            if plan.history is not None and plan.history.only:
                return explain_past(plan)
            first = self._network.first
            described = explain(plan, self.catalog, first.demand, first.now())
        return {**described, "text": explain_text(described)}

    def status(self) -> dict[str, Any]:
        """Roots, log, streams, users and alarms; what stands beside the roots of a link and its session is the first root's."""
        counters = self._ingest.counters
        with self._lock:
            return {
                "alarms": self.alarms.active(),
                "roots": [root.status() for root in self.roots],
                **{name: value for name, value in self.roots[0].status().items() if name != "root"},
                "motes": len(self.catalog.motes()),
                "rows": self._log.rows,
                "processed": self._through(),
                **dataclasses.asdict(counters),
                "history": self.history.status(),
                "paused": {q.id: why for q in self._queries.all() if (why := self.paused(q)) is not None},
                "spark": {"state": self.spark.state, "batches": self.spark.batches},
                "tables": shown(self.tables.directory),
                "streams": self._network.described_streams(),
                "srts": self._queries.described_srts(None),
                "users": len(self._queries.all()),
                "feeds": sum(query.readers for query in self._queries.all()),
            }  # fmt: skip

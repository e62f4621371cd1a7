"""The gateway: owns link, log, catalog, demand and users, and the order in which they change."""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from binascii import crc_hqx
from pathlib import Path
from typing import Any

from construct import Container

from skerry.catalog import Catalog
from skerry.catalog.refusals import Refusals
from skerry.lang.ast import CreatePoint, DropPoint, Stop
from skerry.lang.errors import QueryError, did_you_mean
from skerry.link.link import Link
from skerry.netclock import NetworkClock
from skerry.plan.clauses import event_number
from skerry.plan.explain import explain, explain_text
from skerry.plan.model import Difference, Feed, Installation, QueryPlan
from skerry.plan.planner import plan_point, plan_query
from skerry.plan.points import Point
from skerry.proxy.demand import Demand
from skerry.proxy.engine import Engine
from skerry.proxy.spark import StreamingQuery
from skerry.state import DataDirectory
from skerry.streams import log as stream_log
from skerry.streams.ingest import KEYS, Ingest, Stream
from skerry.streams.record import Block
from skerry_protocol import codec
from skerry_protocol.codec import Packet
from skerry_protocol.packets import BROADCAST, FRAGMENT_MAXIMUM, Aggregate, CommandOp, Event, PacketType

log = logging.getLogger(__name__)

#: Rows that a reader is served from the log at a time.
REPLAY_ROWS = 65536


class UnknownQueryError(KeyError):
    """No such query, or another user's."""


@dataclasses.dataclass
class UserQuery:
    """A query somebody asked. ``position``: rows of the log before it are not his."""

    id: str
    user: str
    sql: str
    plan: QueryPlan
    created: float
    position: int
    finished: bool = False
    #: What CREATE STORAGE POINT made.
    point: Point | None = None


@dataclasses.dataclass(frozen=True)
class Stopped:
    """The queries that STOP QUERY or DROP ALL has stopped."""

    queries: list[UserQuery]


class Gateway:
    """One daemon. Public methods may be called from any thread."""

    def __init__(self, link_url: str, data: Path, master: str = "local[2]") -> None:
        self._lock = threading.RLock()
        self._data = DataDirectory(data)
        self._log = stream_log.StreamLog(data)
        self.clock = NetworkClock()
        self.catalog = Catalog()
        self.refusals = Refusals()
        #: Of the last command; motes number their own from 0x8000.
        self._token = int(time.time()) % 0x7FFF
        self._demand = Demand()
        self._queries: dict[str, UserQuery] = {}
        self._feed_history: dict[str, dict[int, Feed]] = {}
        self._streams: dict[int, Stream] = {}
        self._session = 0
        self._last_time = 0.0
        self._query_version = 0
        self._current: dict[int, Stream] = {}
        self._ingest = Ingest(self._stream_of_query, self.clock.utc)
        self.engine = Engine(self._stream)
        self._restore()
        self._ingest.remember(self._log.tail(KEYS), self._streams)
        self.spark = StreamingQuery(master, data, self._log.path, self.engine.process)
        self.link = Link(link_url, self._on_packets, self._on_hello, self._on_idle)
        self._advanced = 0.0

    def start(self) -> None:
        """Open the link, then Spark in the background. Raises PortError."""
        self.link.start()
        self.spark.start()

    def close(self) -> None:
        """Stop everything; the motes keep their queries."""
        self.link.close()
        self.spark.stop()
        self._log.close()
        self._data.close()

    def _stream_of_query(self, query: int) -> Stream | None:
        return self._current.get(query)

    def _stream(self, number: int) -> Stream | None:
        return self._streams.get(number)

    # ---- remembering ----

    def _restore(self) -> None:
        state = self._data.load("gateway")
        if state is None:
            return
        self._session, self._query_version = state["session"], state["query_version"]
        self._last_time = state["network_time"]
        self._streams = {entry["number"]: Stream.from_dict(entry) for entry in state["streams"]}
        self._current = {self._streams[number].query: self._streams[number] for number in state["current"]}
        self.catalog = Catalog.from_dict(state["catalog"])
        plans: dict[str, QueryPlan] = {}
        for entry in state["queries"]:
            # In the order in which they were asked: a storage point comes before those that read it.
            plan, point = self._plan(entry["sql"], entry.get("point"))
            plans[entry["id"]] = plan
            plan = dataclasses.replace(plan, duration_ms=entry["duration_ms"])
            query = UserQuery(
                entry["id"],
                entry["user"],
                entry["sql"],
                plan,
                entry["created"],
                entry["position"],
                entry["finished"],
                point,
            )
            self._queries[query.id] = query
            self.engine.subscribe(query.id, plan)
            self._feed_history[query.id] = {
                int(number): Feed(**feed) for number, feed in entry["feeds"].items()
            }
        self._demand = Demand.from_dict(state["demand"], plans)
        self._refresh_feeds()

    def _plan(self, sql: str, number: int | None) -> tuple[QueryPlan, Point | None]:
        """The plan of a query beside the storage points there are; ``number``: of the point that it creates."""
        plan = plan_query(sql, self._points())
        if isinstance(plan, CreatePoint):
            assert number is not None
            point, plan = plan_point(plan, number, self._points())
            return plan, point
        assert isinstance(plan, QueryPlan)
        return plan, None

    def _points(self) -> dict[str, Point]:
        return {
            query.point.name.lower(): query.point
            for query in self._queries.values()
            if query.point is not None
        }

    def _save(self) -> None:
        self._data.save(
            "gateway",
            {
                "session": self._session,
                "query_version": self._query_version,
                "network_time": self.clock.now() if self.clock.known else self._last_time,
                "streams": [stream.to_dict() for stream in self._streams.values()],
                "current": [stream.number for stream in self._current.values()],
                "demand": self._demand.to_dict(),
                "catalog": self.catalog.to_dict(),
                "queries": [
                    {
                        "id": query.id, "user": query.user, "sql": query.sql, "created": query.created,
                        "position": query.position, "finished": query.finished, "duration_ms": query.plan.duration_ms,
                        "point": query.point.number if query.point is not None else None,
                        "feeds": {number: dataclasses.asdict(feed) for number, feed in self._feed_history[query.id].items()},
                    }
                    for query in self._queries.values()
                ],
            },
        )  # fmt: skip

    # ---- the motes' side (the link's thread) ----

    def _on_packets(self, packets: list[Packet]) -> None:
        """Returns when everything is durable."""
        with self._lock:
            self._ingest.store(packets, self._log)
            for packet in packets:
                if packet.type is PacketType.STATUS:
                    self.catalog.update(packet.body, time.time())
                    self.clock.sighting(packet.body.seconds, time.time())
                elif packet.type is PacketType.REFUSAL:
                    log.warning("%s", self.refusals.add(packet.body))
                elif packet.type is PacketType.LOG:
                    log.info("mote %d: %s", packet.body.node, packet.body.text.decode("ascii", "replace"))

    def _on_hello(self, hello: Container[Any]) -> None:
        with self._lock:
            if self.clock.known:
                self._last_time = self.clock.now()
            self.clock.restart(hello.seconds, hello.ticks, time.time())
            if hello.session != self._session:
                self._new_session(hello.session)
            held = set(hello.queries)
            for installation in self._demand.installations():
                if installation.query not in held:
                    self._install(installation)
            for query in held - {installation.query for installation in self._demand.installations()}:
                self._stop(query)
            self._save()

    def _new_session(self, session: int) -> None:
        """The root has restarted: its time begins at 0 and no mote holds a query any more. Ask anew for what is left of them."""
        log.info("root's session %d begins", session)
        self._session = session
        self._current = {}
        self._adopt(self._demand.restart(self._last_time, self._now()))
        self._refresh_feeds()

    def _on_idle(self) -> None:
        if time.monotonic() - self._advanced < 1.0 or not self.clock.known:
            return
        self._advanced = time.monotonic()
        with self._lock:
            self._apply(self._demand.advance(self._now()))

    def _now(self) -> int:
        return int(self.clock.now())

    def _apply(self, difference: Difference) -> None:
        """Bring the network to what the demand asks, and remember it before the first byte goes out."""
        for user in difference.finished:
            if user in self._queries:
                self._queries[user].finished = True
        self._adopt(difference)
        if difference.install or difference.stop or difference.finished:
            self._refresh_feeds()
            self._save()
        # Motes hold few queries: room first.
        for query in difference.stop:
            self._stop(query)
        for installation in difference.install:
            self._install(installation)
        if difference.install or difference.stop:
            self._save()

    def _adopt(self, difference: Difference) -> None:
        for installation in difference.install:
            number = len(self._streams) + 1
            stream = Stream(number, self._session, installation.query, installation.mote_query)
            self._streams[number] = self._current[installation.query] = stream

    def _install(self, installation: Installation) -> None:
        self._query_version = (self._query_version + 1) & 0xFFFF or 1
        self.refusals.forget(installation.query)
        program = installation.program
        for offset in range(0, len(program), FRAGMENT_MAXIMUM):
            self.link.send(
                codec.encode(
                    PacketType.QUERY_INSTALL, query_version=self._query_version, query=installation.query,
                    total=len(program), offset=offset, data=program[offset : offset + FRAGMENT_MAXIMUM],
                )
            )  # fmt: skip

    def _stop(self, query: int) -> None:
        self.refusals.forget(query)
        self._query_version = (self._query_version + 1) & 0xFFFF or 1
        self.link.send(codec.encode(PacketType.QUERY_STOP, query_version=self._query_version, query=query))

    def _refresh_feeds(self) -> None:
        """Tell the engine which rows are whose; feeds of streams that have ended stay, for readers that are behind."""
        for query in self._queries.values():
            history = self._feed_history.setdefault(query.id, {})
            for feed in self._demand.feeds(query.id) if query.id in self._demand.users() else ():
                stream = self._current.get(feed.query)
                if stream is not None:
                    history[stream.number] = feed
            self.engine.set_feeds(query.id, dict(history))

    # ---- the users' side ----

    def ask(self, sql: str, user: str) -> UserQuery | Stopped:
        """A new query or storage point, or what STOP QUERY, DROP ALL or DROP STORAGE POINT stopped. Raises QueryError,
        UnknownQueryError."""
        with self._lock:
            statement, point = plan_query(sql, self._points()), None
            if isinstance(statement, DropPoint):
                return Stopped([self.stop(self._keeper(statement), user)])
            if isinstance(statement, Stop):
                # Newest first: those that read a storage point before it.
                own = [query.id for query in reversed(self._queries.values()) if query.user == user]
                wanted = own if statement.query is None else [str(statement.query)]
                return Stopped([self.stop(query_id, user) for query_id in wanted][::-1])
            if isinstance(statement, CreatePoint):
                point, plan = plan_point(statement, self._point_number(sql), self._points())
            else:
                plan = statement
            if not self.clock.known:
                raise QueryError(
                    "the root mote has not answered yet", f"link {self.link.url}: {self.link.state}"
                )
            number = 1 + max((int(key) for key in self._queries if key.isdigit()), default=0)
            query = UserQuery(str(number), user, sql, plan, time.time(), self._log.rows, point=point)
            difference = self._demand.add_user(query.id, plan, self._now())
            self._queries[query.id] = query
            self.engine.subscribe(query.id, plan)
            self._apply(difference)
            self._refresh_feeds()
            self._save()
            return query

    def stop(self, query_id: str, user: str | None = None) -> UserQuery:
        """Stop a query. Raises UnknownQueryError."""
        with self._lock:
            query = self._queries.get(query_id)
            if query is None or (user is not None and query.user != user):
                raise UnknownQueryError(f"no query {query_id}: 'skerry list' shows those there are")
            if query.point is not None:
                self._check_unused(query.point)
            del self._queries[query_id]
            self.engine.unsubscribe(query_id)
            if query_id in self._demand.users():
                self._apply(self._demand.remove_user(query_id, self._now()))
            self._feed_history.pop(query_id, None)
            self._save()
            return query

    def _point_number(self, sql: str) -> int:
        """A new storage point's: of its text and the time, so that rows that an earlier one left in EEPROM are not taken for its own."""
        taken = {point.number for point in self._points().values()}
        number = crc_hqx(f"{sql} {time.time_ns()}".encode(), 0) or 1
        while number in taken:
            number = number % 0xFFFF + 1
        return number

    def _keeper(self, statement: DropPoint) -> str:
        """The query that keeps a storage point. Raises QueryError."""
        name = statement.name.name.lower()
        for query in self._queries.values():
            if query.point is not None and query.point.name.lower() == name:
                return query.id
        names = ", ".join(point.name for point in self._points().values()) or "none"
        hint = f"{did_you_mean(name, list(self._points()))}storage points are {names}"
        raise QueryError(
            f"unknown storage point '{statement.name.name}'", hint, statement.name.span, statement.text
        )

    def _check_unused(self, point: Point) -> None:
        """Raises QueryError where other queries read or fill a storage point."""
        name = point.name.lower()
        users = [
            query.id
            for query in self._queries.values()
            if query.point is not point
            and not query.finished
            and name in (*query.plan.reads, query.plan.into)
        ]
        if users:
            what = f"query {users[0]} uses" if len(users) == 1 else f"queries {', '.join(users)} use"
            raise QueryError(f"{what} storage point {point.name}", "stop that first")

    def points(self) -> list[dict[str, Any]]:
        """The storage points, with what uses them."""
        with self._lock:
            return [
                {
                    **query.point.to_dict(),
                    "query": query.id,
                    "user": query.user,
                    "used_by": [
                        other.id
                        for other in self._queries.values()
                        if other is not query
                        and query.point.name.lower() in (*other.plan.reads, other.plan.into)
                    ],
                }
                for query in self._queries.values()
                if query.point is not None
            ]

    def signal(self, event: str) -> list[str]:
        """Raise an event as if at the root; returns the ids of the queries that it starts or stops.

        Raises UnknownQueryError where no running query knows the event.
        """
        with self._lock:
            known = {
                (clause.name.lower(), query.id)
                for query in self._queries.values()
                for clause in query.plan.clauses
                if clause.kind in (Aggregate.ON_EVENT, Aggregate.STOP_ON)
            }
            waiting = sorted(query for name, query in known if name == event.lower())
            if not waiting:
                names = ", ".join(sorted({name for name, _ in known})) or "none"
                raise UnknownQueryError(f"no query waits for event '{event}': events waited for are {names}")
            root = self.catalog.root()
            values = {
                "event": event_number(event), "node": root.nodeid if root else 0, "x": round(root.xpos * 100) if root else 0,
                "y": round(root.ypos * 100) if root else 0, "seconds": int(self.clock.now()),
            }  # fmt: skip
            self._token = self._token % 0x7FFF + 1
            arguments = Event.build(values)
            self.link.send(
                codec.encode(
                    PacketType.COMMAND,
                    target=BROADCAST,
                    token=self._token,
                    op=CommandOp.EVENT,
                    arguments=arguments,
                )
            )
            return waiting

    def queries(self) -> list[UserQuery]:
        """All queries, oldest first."""
        with self._lock:
            return list(self._queries.values())

    def query(self, query_id: str) -> UserQuery:
        """One query. Raises UnknownQueryError."""
        with self._lock:
            if query_id not in self._queries:
                raise UnknownQueryError(f"no query {query_id}: 'skerry list' shows those there are")
            return self._queries[query_id]

    def refused(self, query: UserQuery) -> list[str]:
        """Which motes do not run what the user asked, and why."""
        with self._lock:
            asked = query.id in self._demand.users()
            running = [feed.query for feed in self._demand.feeds(query.id)] if asked else []
            return [sentence for number in running for sentence in self.refusals.of(number)]

    def rows_after(self, query_id: str, position: int) -> tuple[list[tuple[int, dict[str, Any]]], int, bool]:
        """Rows of a query behind a row of the log: (row number, values), the position reached, and whether more follow at once."""
        query, subscriber = self.query(query_id), self.engine.subscriber(query_id)
        if subscriber is None:
            return [], position, False
        done = self.engine.done - 1
        found = subscriber.buffer.deliveries(position)
        if found is not None:
            return [row for part in found[0] for row in part.values()], found[1], False
        start = max(position + 1, query.position)
        end = min(start + REPLAY_ROWS, done + 1)
        if end <= start:
            return [], position, False
        block = Block(start, stream_log.read(self._log.path, start, end))
        return self.engine.replay(query_id, block, position), end - 1, end <= done

    @property
    def caught_up(self) -> bool:
        """Whether every row of the log has been through the proxy."""
        return self.engine.done >= self._log.rows

    def explain(self, sql: str) -> dict[str, Any]:
        """What would run where. Raises QueryError."""
        with self._lock:
            plan = plan_query(sql, self._points())
            if isinstance(plan, Stop | DropPoint):
                raise QueryError("what stops queries has no plan", "explain a SELECT")
            if isinstance(plan, CreatePoint):
                _, plan = plan_point(plan, self._point_number(sql), self._points())
            described = explain(plan, self.catalog, self._demand)
        return {**described, "text": explain_text(described)}

    def status(self) -> dict[str, Any]:
        """Link, log, streams and users."""
        counters = self._ingest.counters
        with self._lock:
            return {
                "link": {
                    "url": self.link.url,
                    "state": self.link.state,
                    **dataclasses.asdict(self.link.endpoint.counters),
                    "errors": self.link.endpoint.line_errors,
                    "waiting": self.link.endpoint.queued,
                },
                "network_time_s": round(self.clock.now(), 1),
                "session": self._session,
                "query_version": self._query_version,
                "motes": len(self.catalog.motes()),
                "rows": self._log.rows,
                "processed": self.engine.done,
                **dataclasses.asdict(counters),
                "spark": {"state": self.spark.state, "batches": self.spark.batches},
                "streams": [
                    {"stream": s.number, "query": s.query, "period_ms": s.mote_query.period_ms,
                     "columns": [column.name for column in s.mote_query.columns], "aggregate": s.mote_query.aggregate,
                     "refused": self.refusals.of(s.query)}
                    for s in self._current.values()
                ],
                "users": len(self._queries),
            }  # fmt: skip

"""What users ask: planned, shared, remembered, told to the motes, and stopped."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from skerry.network.commands import Running, check
from skerry.network.networks import Networks
from skerry.network.root import Root
from skerry.planner.features.history import explain_past
from skerry.planner.model.plans import QueryPlan
from skerry.planner.model.storage_points import Point
from skerry.planner.planner import plan_point, plan_query
from skerry.sensors.store import Done
from skerry.service.delivery_service import DeliveryService
from skerry.service.explain import explain, explain_text
from skerry.service.join_service import JoinService, join_of
from skerry.service.persistence import Persistence
from skerry.service.queries import Ended, Queries, UnknownQueryError, UserQuery
from skerry.service.sensor_service import SensorService
from skerry.sql.ast import CreatePoint, CreateSrt, DropPoint, DropSrt, Stop
from skerry.sql.errors import QueryError
from skerry.storage.history.history_service import HistoryService
from skerry.storage.log.stream_log import StreamLog
from skerry.storage.state import StorageError
from skerry.tables.store import TableStore


@dataclasses.dataclass(frozen=True)
class Stopped:
    """The queries that STOP QUERY or DROP ALL has stopped."""

    queries: list[UserQuery]


class QueryService:
    """Users' queries, events and commands. Methods may be called from any thread but :meth:`remove`, which is called under ``lock``."""

    def __init__(
        self,
        lock: threading.RLock,
        log: StreamLog,
        network: Networks,
        roots: Sequence[Root],
        queries: Queries,
        delivery: DeliveryService,
        history: HistoryService,
        tables: TableStore,
        persistence: Persistence,
        sensors: SensorService,
        joins: JoinService,
    ) -> None:
        self._sensors, self._joins = sensors, joins
        self._lock, self._log, self._network, self._roots, self._queries = lock, log, network, roots, queries
        self._delivery, self._history, self._tables, self._persistence = (
            delivery,
            history,
            tables,
            persistence,
        )

    def ask(
        self,
        sql: str,
        user: str,
        check: Callable[[int], object] = int,
        linger_s: float | None = None,
    ) -> UserQuery | Stopped | Done:
        """A new query or storage point, or what STOP QUERY, DROP ALL or DROP STORAGE POINT stopped, or what a statement about tables of
        sensors came to. ``check`` is told how many queries the user has, and raises what it likes. Raises QueryError, UnknownQueryError,
        StorageError."""
        done = self._sensors.run(sql, user)
        with self._lock:
            if done is not None:
                return done
            of_sources = self._sensors.plan(sql)
            if of_sources is not None:
                return self._ask_sources(sql, user, of_sources, check, linger_s)
            statement, point = plan_query(sql, self._queries.points(), self._tables.schemas()), None
            if isinstance(statement, DropPoint | DropSrt | Stop):
                return self._stopped(statement, user)
            check(len(self._queries.of(user)))
            srt = None
            if isinstance(statement, CreatePoint):
                number = self._queries.point_number(sql)
                point, plan = plan_point(statement, number, self._queries.points())
            elif isinstance(statement, CreateSrt):
                srt, plan = self._queries.plan_srt(
                    statement, self._network.roots, self._network.catalog.values
                )
            else:
                plan = statement
            if plan.history is not None and plan.history.only:
                return self._ask_past(sql, user, plan, linger_s)
            self._network.check_heard([root.link for root in self._roots])
            # What fills a storage point has no readers.
            query = self._add(sql, user, plan, point, None, None if plan.into or srt else linger_s)
            if srt is not None:
                query.srt = srt
                self._network.route_by(self._queries.srts().values())
            try:
                self._add_started(query)
                self._persistence.commit()
            except (QueryError, StorageError):
                self.remove(query)
                raise
            return query

    def _stopped(self, statement: Stop | DropPoint | DropSrt, user: str) -> Stopped:
        match statement:
            case DropPoint():
                query = self._queries.keeper(statement, user)
            case DropSrt():
                query = self._queries.srt_keeper(statement, user)
            case Stop(None):
                return self._stop_all(user)
            case Stop():
                query = str(statement.query)
        return Stopped([self.stop(query, user)])

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
        self._persistence.note(query.id)
        self._delivery.subscribe(query)
        self._delivery.refresh_feeds()
        return query

    def _add_started(self, query: UserQuery) -> None:
        """The queries that its rows start, and those that theirs start. Raises QueryError."""
        for text in query.plan.starts:
            plan = plan_query(text, self._queries.points(), self._tables.schemas())
            assert isinstance(plan, QueryPlan)
            self._add_started(self._add(text, query.user, plan, None, query.id))

    def _ask_sources(
        self, sql: str, user: str, plan: QueryPlan, check: Callable[[int], object], linger_s: float | None
    ) -> UserQuery:
        """A query over sensors that are no motes."""
        check(len(self._queries.of(user)))
        if plan.history is not None:
            return self._ask_past(sql, user, plan, linger_s)
        query = self._new(sql, user, plan, linger_s)
        self._queries.add(query)
        self._persistence.note(query.id)
        self._delivery.subscribe(query)
        try:
            self._persistence.save()
            join = join_of(query)
            if join is not None:
                self._joins.add(query, join)
        except StorageError:
            self.remove(query)
            raise
        return query

    def _ask_past(self, sql: str, user: str, plan: QueryPlan, linger_s: float | None) -> UserQuery:
        """A query that motes have no part in: over what the log holds now."""
        query = self._new(sql, user, plan, linger_s)
        query.finished = True
        self._queries.add(query)
        self._persistence.note(query.id)
        try:
            self._persistence.save()
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
                    self._persistence.commit()
                raise
            if query.point is not None:
                self._queries.check_unused(query.point)
            self.remove(query)
            self._persistence.commit()
            return query

    def _stop_all(self, user: str) -> Stopped:
        """All queries of a user but what others' read or fill. Raises QueryError, which names that, when the rest is stopped."""
        stopped, kept = list[UserQuery](), list[QueryError]()
        if self._queries.forget_ended(user):
            self._persistence.commit()
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

    def remove(self, query: UserQuery) -> None:
        for inner in self._queries.started_by(query.id):
            self.remove(inner)
        self._queries.remove(query.id)
        self._persistence.note(query.id)
        if query.srt is not None:
            self._network.route_by(self._queries.srts().values())
        self._history.forget(query.id)
        self._delivery.forget(query.id)
        if self._network.remove_user(query.id):
            self._delivery.refresh_feeds()

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
            self._network.check_heard([root.link for root in self._roots])
            return self._network.run(action, argument, mote)

    def command(self, token: int) -> Running | None:
        """A command that :meth:`run` sent, with the answers so far."""
        with self._lock:
            return self._network.command(token)

    def all(self, user: str | None = None) -> list[UserQuery]:
        """All queries, or one user's, oldest first."""
        with self._lock:
            return self._queries.all() if user is None else self._queries.of(user)

    def ended(self, user: str | None = None) -> list[Ended]:
        """Those that could not go on when the gateway started, and have not been stopped since."""
        with self._lock:
            return self._queries.ended(user)

    def get(self, query_id: str, user: str | None = None) -> UserQuery:
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

    def explain(self, sql: str) -> dict[str, Any]:
        """What would run where. Raises QueryError."""
        with self._lock:
            of_sources = self._sensors.plan(sql)
            if of_sources is not None:
                return self._sensors.explain(of_sources)
            plan = plan_query(sql, self._queries.points(), self._tables.schemas())
            if isinstance(plan, Stop | DropPoint | DropSrt):
                raise QueryError("what stops queries has no plan", "explain a SELECT")
            if isinstance(plan, CreatePoint):
                _, plan = plan_point(plan, self._queries.point_number(sql), self._queries.points())
            if isinstance(plan, CreateSrt):
                _, plan = self._queries.plan_srt(plan, self._network.roots, self._network.catalog.values)
            if plan.history is not None and plan.history.only:
                return explain_past(plan)
            if not self._roots:
                # Nobody's to ask.
                self._network.check_heard([])
            first = self._network.first
            described = explain(plan, self._network.catalog, first.demand, first.now())
        return {**described, "text": explain_text(described)}

"""What users ask: planned, shared, remembered, told to the motes, and stopped."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from skerry.network import pings, searches
from skerry.network.commands import Running, check, is_placing, placed
from skerry.network.networks import Networks
from skerry.network.pings import Pinged
from skerry.network.root import Root
from skerry.network.searches import Searched
from skerry.planner.model.plans import QueryPlan
from skerry.planner.model.storage_points import Point
from skerry.planner.planner import plan_point, plan_query
from skerry.sensors.definitions import SensorTable
from skerry.sensors.store import Done
from skerry.service.attribute_service import AttributeService
from skerry.service.delivery_service import DeliveryService
from skerry.service.explainer import Explainer
from skerry.service.index_service import IndexService
from skerry.service.join_choice import JoinChoices
from skerry.service.join_service import JoinService, join_of
from skerry.service.pair_service import PairService
from skerry.service.persistence import Persistence
from skerry.service.planning import Planning
from skerry.service.queries import Ended, Queries, UnknownQueryError, UserQuery
from skerry.service.sensor_service import SensorService
from skerry.sql import index_statements
from skerry.sql.ast import CreatePoint, CreateSrt, DropPoint, DropSrt, Stop
from skerry.sql.errors import QueryError
from skerry.sql.index_statements import DropIndex
from skerry.storage.history.history_service import HistoryService
from skerry.storage.log.stream_log import StreamLog
from skerry.storage.state import StorageError
from skerry.tables.store import TableStore


@dataclasses.dataclass(frozen=True)
class Stopped:
    """The queries that STOP QUERY or DROP ALL has stopped."""

    queries: list[UserQuery]


class QueryService:
    """Users' queries, events and commands. Methods may be called from any thread but :meth:`remove` and :meth:`withdraw`, which are called
    under ``lock``."""

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
        attributes: AttributeService,
        indexes: IndexService,
        pairs: PairService,
        *,
        joins_itself: bool = True,
    ) -> None:
        self._pairs = pairs
        self._planning = Planning(queries, tables, sensors, network)
        self._choices = JoinChoices(self._planning, pairs, network, itself=joins_itself)
        self._explainer = Explainer(
            network, roots, queries, sensors, indexes, pairs, self._planning, self._choices
        )
        self._sensors, self._joins, self._attributes = sensors, joins, attributes
        self._indexes = indexes
        self._lock, self._log, self._network, self._roots, self._queries = lock, log, network, roots, queries
        self._delivery, self._history, self._persistence = delivery, history, persistence

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
        done = self._attributes.run(sql, user) or self._sensors.run(sql, user)
        with self._lock:
            stream = self._sensors.stream_statement(sql, user) if done is None else done
            done = self._drop_stream(stream) if isinstance(stream, SensorTable) else stream
            if done is not None:
                return done
            if index_statements.is_one(sql):
                return self._index(sql, user, check)
            choice = self._choices.of_hosts(sql)
            of_sources = self._planning.gateways(sql) if choice is None else None
            choice = self._choices.of(sql, of_sources) if of_sources is not None else choice
            note = choice.note() if choice is not None else None
            if choice is not None and choice.by_motes:
                # It is remembered as it is asked, so that a restart finds it joined where it was.
                sql, of_sources = choice.sql, None
            if of_sources is not None:
                of_sources = _noted(of_sources, note)
                return self._ask_sources(sql, user, of_sources, check, linger_s)
            statement, point = self._planning.planned(sql), None
            if isinstance(statement, DropPoint | DropSrt | Stop):
                return self._stopped(statement, user)
            check(len(self._queries.of(user)))
            srt = None
            if isinstance(statement, CreatePoint):
                number = self._queries.point_number(sql)
                point, plan = plan_point(
                    statement, number, self._queries.points(), self._queries.statics.all()
                )
            elif isinstance(statement, CreateSrt):
                srt, plan = self._queries.plan_srt(
                    statement, self._network.roots, self._network.catalog.values
                )
            else:
                plan = _noted(statement, note)
                self._pairs.check(plan)
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

    def _index(self, sql: str, user: str, check: Callable[[int], object]) -> UserQuery | Stopped:
        """CREATE INDEX, DROP INDEX. Raises QueryError, StorageError."""
        statement = index_statements.parse(sql)
        if isinstance(statement, DropIndex):
            return Stopped([self.stop(self._indexes.keeper(statement, user), user)])
        check(len(self._queries.of(user)))
        self._network.check_heard([root.link for root in self._roots])
        index, plan = self._indexes.plan(statement, self._planning.names())
        query = self._add(sql, user, plan, None, None)
        query.index = index
        try:
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
        plan = self._pairs.placed(plan)
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
            plan = self._planning.planned(text)
            assert isinstance(plan, QueryPlan)
            self._add_started(self._add(text, query.user, plan, None, query.id))

    def _ask_sources(
        self, sql: str, user: str, plan: QueryPlan, check: Callable[[int], object], linger_s: float | None
    ) -> UserQuery | Done:
        """A query over sensors that are no motes, or a stream that one fills."""
        check(len(self._queries.of(user)))
        if plan.history is not None:
            return self._ask_past(sql, user, plan, linger_s)
        questions = (
            plan.sources.join.questions if plan.sources is not None and plan.sources.join is not None else ()
        )
        if questions:
            self._network.check_heard([root.link for root in self._roots])
        made = plan.sources is not None and plan.sources.made
        # What fills a stream has no readers.
        query = self._new(sql, user, plan, None if made else linger_s)
        done = self._sensors.make(query) if made else None
        self._queries.add(query)
        self._persistence.note(query.id)
        self._delivery.subscribe(query)
        try:
            self._ask_motes(query, questions)
            if questions:
                self._persistence.commit()
            else:
                self._persistence.save()
            join = join_of(query)
            if join is not None:
                self._joins.add(query, join)
        except (QueryError, StorageError):
            self.remove(query)
            raise
        return done or query

    def _drop_stream(self, table: SensorTable) -> Done:
        """Raises QueryError, where others read it; StorageError: it is dropped, but a restart may bring it back."""
        self._sensors.store.check_unread(table)
        query = self._queries.find(table.made_by)
        if query is not None:
            self.remove(query)
        self._sensors.store.drop_made(table.made_by)
        self._persistence.commit()
        return Done(f"stream {table.name} dropped")

    def _ask_motes(self, query: UserQuery, questions: Sequence[str]) -> None:
        """What motes are asked for a join: queries that end with it. Raises QueryError."""
        for text in questions:
            plan = plan_query(text, statics=self._queries.statics.all())
            assert isinstance(plan, QueryPlan)
            self._add(text, query.user, plan, None, query.id)

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
        self._indexes.ask(query)
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
            if self._is_of_join(query):
                text = f"query {query.id} is what motes are asked for query {query.started_by}"
                raise QueryError(text, f"stop query {query.started_by}: it ends with that")
            made = self._sensors.store.tuples(query.plan.sources.made.lower()) if query.plan.sources else None
            if made is not None:
                self._sensors.store.check_unread(made.table)
            self.remove(query)
            self._persistence.commit()
            return query

    def _is_of_join(self, query: UserQuery) -> bool:
        """Whether motes are asked it for a join, or joins, that would lack its rows."""
        of = self._queries.find(query.started_by) if query.started_by is not None else None
        return of is not None and of.plan.sources is not None

    def _stop_all(self, user: str) -> Stopped:
        """All queries of a user but what others' read or fill. Raises QueryError, which names that, when the rest is stopped."""
        stopped, kept = self.withdraw(user)
        self._persistence.commit()
        if kept:
            text = "; ".join(error.message for error in kept)
            raise QueryError(f"{text}: all other queries of yours are stopped", "stop what uses it first")
        return Stopped(stopped)

    def withdraw(self, user: str) -> tuple[list[UserQuery], list[QueryError]]:
        """Take away all queries of a user but what others' read or fill, which is named; nothing is remembered yet. Under ``lock``."""
        stopped, kept = list[UserQuery](), list[QueryError]()
        self._queries.forget_ended(user)
        # Newest first: those that read a storage point before it.
        for query in reversed(self._queries.of(user)):
            # What another started has ended with that.
            if self._queries.find(query.id) is not None and not self._is_of_join(query):
                try:
                    if query.point is not None:
                        self._queries.check_unused(query.point)
                except QueryError as error:
                    kept.append(error)
                else:
                    self.remove(query)
                    stopped.append(query)
        return stopped[::-1], kept

    def remove(self, query: UserQuery) -> None:
        for inner in self._queries.started_by(query.id):
            self.remove(inner)
        self._queries.remove(query.id)
        self._persistence.note(query.id)
        self._sensors.store.drop_made(query.id)
        self._indexes.removed(query)
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

    def run(
        self,
        command: str,
        argument: int | None,
        mote: int | None,
        position: tuple[float, float] | None = None,
    ) -> Running:
        """Run a command on a mote, None: on all; returns at once. ``position``: of set_position, in m. Raises QueryError, StorageError."""
        if is_placing(command):
            place = placed(argument, mote, position)
            with self._lock:
                self._network.check_heard([root.link for root in self._roots])
                return self._network.place(*place)
        if position is not None:
            raise QueryError(f"{command} takes no position", "only set_position does")
        action = check(command, argument, mote, self._queries.statics.all())
        with self._lock:
            self._network.check_heard([root.link for root in self._roots])
            sets = action.name.removeprefix("set_")
            if self._attributes.number(sets) is not None and sets != action.name:
                # Who joins late is to have it, too.
                self._attributes.want(mote, {sets: argument})
                self._attributes.sent(sets, mote)
            return self._network.run(action, argument, mote)

    def ping(
        self,
        mote: int,
        to: int | None,
        within_s: int,
        place: tuple[float, float] | None = None,
        by: Sequence[int] = (),
    ) -> Pinged:
        """Have a mote send a record to another one, or to a place, past the gateway; returns at once. Raises QueryError."""
        pings.check(mote, to, within_s, place, by)
        with self._lock:
            self._network.check_heard([root.link for root in self._roots])
            return self._network.ping(mote, to, within_s, place, by)

    def pinged(self, token: int) -> Pinged | None:
        """A record that :meth:`ping` asked for, with what became of it so far."""
        with self._lock:
            return self._network.pinged(token)

    def search(self, attribute: str, low: int, high: int, mote: int | None = None) -> Searched:
        """Have a mote, or else the root, search the network for motes whose static attribute is ``low`` to ``high``; returns at once.
        Raises QueryError."""
        with self._lock:
            self._network.check_heard([root.link for root in self._roots])
            seeker = self._network.first.root if mote is None else mote
            return self._network.search(
                seeker, searches.check(attribute, low, high, seeker, self._attributes), low, high
            )

    def searched(self, token: int) -> Searched | None:
        """A search that :meth:`search` asked for, with what it has found so far."""
        with self._lock:
            return self._network.searched(token)

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
            return self._explainer.explain(sql)

    def indexed(self, query: UserQuery) -> dict[str, Any] | None:
        """Which motes were asked for a query of an index, and have answered; None: it is of none."""
        with self._lock:
            return self._indexes.described(query)


def _noted(plan: QueryPlan, note: str | None) -> QueryPlan:
    """With one more line for its user."""
    return plan if note is None else dataclasses.replace(plan, notes=(*plan.notes, note))

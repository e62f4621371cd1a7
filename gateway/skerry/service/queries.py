"""Users' queries as the gateway keeps them, and the storage points that some of them make."""

from __future__ import annotations

import dataclasses
import json
import time
from binascii import crc_hqx
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from skerry.catalog.static_attributes import StaticAttributes
from skerry.planner.features.indexing import Index
from skerry.planner.features.srt import Srt, Values
from skerry.planner.model.plans import Feed, QueryPlan
from skerry.planner.model.source_plans import answers_of
from skerry.planner.model.storage_points import Point
from skerry.planner.planner import plan_srt
from skerry.sql.ast import CreateSrt, DropPoint, DropSrt
from skerry.sql.errors import QueryError, did_you_mean
from skerry.streams.handover import Handover
from skerry_protocol.codes import Aggregate


class UnknownQueryError(KeyError):
    """No such query, or another user's; or it has ended by itself, and ``why``."""

    def __init__(self, query: str, why: str | None = None) -> None:
        super().__init__(
            f"query {query} has ended: {why}"
            if why
            else f"no query {query}: 'skerry list' shows those there are"
        )


class UnknownEventError(KeyError):
    """No query waits for this event; the message names those waited for."""


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
    #: What CREATE SRT made.
    srt: Srt | None = None
    #: What CREATE INDEX made.
    index: Index | None = None
    #: Of one with HISTORY that goes on: where its own feed begins, by root.
    handovers: dict[int, Handover] = dataclasses.field(default_factory=dict)
    #: It is stopped once nobody has read it for so long, in s; None: never.
    linger_s: float | None = None
    #: Feeds that are open, and when the last one closed (monotonic).
    readers: int = 0
    left: float = dataclasses.field(default_factory=time.monotonic)
    #: By stream number, the streams that have ended included, for readers that are behind.
    feeds: dict[int, Feed] = dataclasses.field(default_factory=dict)
    #: The query whose rows start this one; it ends with that.
    started_by: str | None = None

    def __post_init__(self) -> None:
        plan = self.plan.sources
        if plan is not None and plan.join is not None:
            # Its answers are a stream of its own.
            numbered = dataclasses.replace(plan, stream=answers_of(self.id, made=bool(plan.made)))
            self.plan = dataclasses.replace(self.plan, sources=numbered)

    @property
    def past_only(self) -> bool:
        """Whether no rows are to come: HISTORY … ONLY."""
        return self.plan.history is not None and self.plan.history.only

    @property
    def of_motes(self) -> bool:
        """Whether motes may have a part in it."""
        return not self.past_only and self.plan.sources is None

    def row(self) -> dict[str, Any]:
        """To be kept, without its feeds and handovers; the plan is made of its own text again."""
        return {
            "id": self.id,
            "user": self.user,
            "sql": self.sql,
            "created": self.created,
            "position": self.position,
            "finished": int(self.finished),
            "duration_ms": self.plan.duration_ms,
            "linger_s": self.linger_s,
            "started_by": self.started_by,
            "point": self.point.number if self.point is not None else None,
            "srt": json.dumps(self.srt.to_list()) if self.srt is not None else None,
            "stored_index": json.dumps(self.index.to_list()) if self.index is not None else None,
            "tables": json.dumps(self.schemas()),
        }

    def schemas(self) -> list[Any]:
        """The tables of files that its rows are joined with, as they were when it was planned, for JSON."""
        found = [probe.table.schema for probe in self.plan.probes]
        lookups = self.plan.sources.lookups if self.plan.sources is not None else None
        if lookups is not None:
            found += [one.schema for one in lookups.tables if one.schema is not None]
        return [schema.to_list() for schema in found]

    def feed_rows(self) -> list[dict[str, Any]]:
        """Its feeds, to be kept."""
        return [
            {
                "query": self.id,
                "stream": number,
                "mote_query": feed.query,
                "period_ms": feed.period_ms,
                "stream_period_ms": feed.stream_period_ms,
                "since_ms": feed.since_ms,
                "until_ms": feed.until_ms,
                "before_ms": feed.before_ms,
            }
            for number, feed in self.feeds.items()
        ]

    def handover_rows(self) -> list[dict[str, Any]]:
        """Its handovers, to be kept."""
        return [
            {"query": self.id, "root": root, **dataclasses.asdict(handover)}
            for root, handover in self.handovers.items()
        ]

    def published(self) -> str:
        """What other processes need to make its rows of the log's, in JSON."""
        return json.dumps(
            {
                "user": self.user,
                "sql": self.sql,
                "position": self.position,
                "point": self.point.number if self.point is not None else None,
                "joined": bool(self.plan.probes),
                "statics": [dataclasses.astuple(entry) for entry in self.plan.statics.values()],
                "feeds": {number: dataclasses.astuple(feed) for number, feed in self.feeds.items()},
            }
        )

    @classmethod
    def from_rows(
        cls,
        row: Mapping[str, Any],
        feeds: Iterable[Mapping[str, Any]],
        handovers: Iterable[Mapping[str, Any]],
        plan: QueryPlan,
        point: Point | None,
        srt: Srt | None = None,
        index: Index | None = None,
    ) -> UserQuery:
        """What :meth:`row`, :meth:`feed_rows` and :meth:`handover_rows` said."""
        names = "period_ms", "stream_period_ms", "since_ms", "until_ms", "before_ms"
        return cls(
            row["id"],
            row["user"],
            row["sql"],
            dataclasses.replace(plan, duration_ms=row["duration_ms"]),
            row["created"],
            row["position"],
            bool(row["finished"]),
            point,
            srt,
            index,
            {
                each["root"]: Handover(each["session"], each["asked_ms"], each["since_ms"])
                for each in handovers
            },
            linger_s=row["linger_s"],
            feeds={
                each["stream"]: Feed(row["id"], each["mote_query"], *(each[name] for name in names))
                for each in feeds
            },
            started_by=row["started_by"],
        )

    def abandoned(self, now: float) -> bool:
        """Whether nobody has read it for longer than it is to linger; ``now`` in s, monotonic."""
        return self.linger_s is not None and not self.readers and now - self.left > self.linger_s


@dataclasses.dataclass(frozen=True, slots=True)
class Ended:
    """A query that could not go on when the gateway started again, and why: known until its user has stopped it."""

    id: str
    user: str
    sql: str
    why: str


class Queries:
    """All of them by id, oldest first. Not locked: its owner calls it under his lock."""

    def __init__(self) -> None:
        self._by_id: dict[str, UserQuery] = {}
        # The same by who asked, and those that keep storage points: of ten thousand, one more looks through none.
        self._by_user: dict[str, dict[str, UserQuery]] = {}
        self._keepers: dict[str, UserQuery] = {}
        #: Those with HISTORY.
        self.with_past: set[str] = set()
        #: The greatest id that there has been, also of a query that is gone: who still has that one must not meet another's.
        self.last = 0
        #: Attributes that users have made, which queries may name.
        self.statics = StaticAttributes()
        #: By id, not among the others.
        self._ended: dict[str, Ended] = {}

    def add(self, query: UserQuery) -> None:
        """A new one, whose user and storage point stay."""
        self._by_id[query.id] = query
        self._by_user.setdefault(query.user, {})[query.id] = query
        if query.point is not None:
            self._keepers[query.id] = query
        if query.plan.history is not None:
            self.with_past.add(query.id)
        self.last = max(self.last, int(query.id) if query.id.isdigit() else 0)

    def remove(self, query_id: str) -> None:
        """Forget one. KeyError when there is none."""
        query = self._by_id.pop(query_id)
        own = self._by_user[query.user]
        del own[query_id]
        if not own:
            del self._by_user[query.user]
        self._keepers.pop(query_id, None)
        self.with_past.discard(query_id)

    def all(self) -> list[UserQuery]:
        """Oldest first."""
        return list(self._by_id.values())

    def of(self, user: str) -> list[UserQuery]:
        """One user's, oldest first."""
        return list(self._by_user.get(user, {}).values())

    def get(self, query_id: str, user: str | None = None) -> UserQuery:
        """One query; with ``user`` only if it is his. Raises UnknownQueryError."""
        query = self._by_id.get(query_id)
        if query is None or (user is not None and query.user != user):
            ended = self._ended.get(query_id)
            mine = ended is not None and user in (None, ended.user)
            raise UnknownQueryError(query_id, ended.why if ended is not None and mine else None)
        return query

    def end(self, ended: Ended) -> None:
        """One that cannot go on. Its id is not given again."""
        self._ended[ended.id] = ended
        self.last = max(self.last, int(ended.id))

    def ended(self, user: str | None = None) -> list[Ended]:
        """Those of one user, or all."""
        return [ended for ended in self._ended.values() if user in (None, ended.user)]

    def has_ended(self, query_id: str) -> bool:
        """Whether it is one of those."""
        return query_id in self._ended

    def forget_ended(self, user: str | None, query_id: str | None = None) -> bool:
        """A user knows of one of his, or of all; whether there were any."""
        known = [one.id for one in self.ended(user) if query_id in (None, one.id)]
        for one in known:
            del self._ended[one]
        return bool(known)

    def find(self, query_id: str) -> UserQuery | None:
        """One query, None when there is none."""
        return self._by_id.get(query_id)

    def started_by(self, query_id: str) -> list[UserQuery]:
        """Those that the rows of one start."""
        return [query for query in list(self._by_id.values()) if query.started_by == query_id]

    def next_id(self) -> str:
        """An id above all that there have been."""
        return str(self.last + 1)

    # ---- storage points ----

    def points(self) -> dict[str, Point]:
        """Storage points by name in lower case."""
        return {
            query.point.name.lower(): query.point
            for query in self._keepers.values()
            if query.point is not None
        }

    def point_numbers(self) -> list[int]:
        """Numbers of the storage points that there are."""
        return [query.point.number for query in self._keepers.values() if query.point is not None]

    def point_number(self, sql: str) -> int:
        """A new storage point's: of its text and the time, so that rows that an earlier one left in EEPROM are not taken for its own."""
        taken = {point.number for point in self.points().values()}
        number = crc_hqx(f"{sql} {time.time_ns()}".encode(), 0) or 1
        while number in taken:
            number = number % 0xFFFF + 1
        return number

    def keeper(self, statement: DropPoint, user: str) -> str:
        """The user's query that keeps a storage point. Raises QueryError."""
        name = statement.name.name.lower()
        for query in self._keepers.values():
            if query.point is not None and query.point.name.lower() == name:
                if query.user != user:
                    raise QueryError(
                        f"storage point '{query.point.name}' is another user's",
                        "who created it drops it",
                        statement.name.span,
                        statement.text,
                    )
                return query.id
        names = ", ".join(point.name for point in self.points().values()) or "none"
        hint = f"{did_you_mean(name, list(self.points()))}storage points are {names}"
        raise QueryError(
            f"unknown storage point '{statement.name.name}'", hint, statement.name.span, statement.text
        )

    def users_of(self, point: Point) -> list[UserQuery]:
        """Other queries that read or fill a storage point."""
        name = point.name.lower()
        return [
            query
            for query in self._by_id.values()
            if query.point is not point and name in (*query.plan.reads, query.plan.into)
        ]

    def check_unused(self, point: Point) -> None:
        """Raises QueryError where queries that still run read or fill a storage point."""
        users = [query.id for query in self.users_of(point) if not query.finished]
        if users:
            what = f"query {users[0]} uses" if len(users) == 1 else f"queries {', '.join(users)} use"
            raise QueryError(f"{what} storage point {point.name}", "stop that first")

    def described_points(self, user: str | None) -> list[dict[str, Any]]:
        """The storage points, with what uses them; of other users' queries ``user`` sees nothing, unless he is None."""
        return [
            {
                **query.point.to_dict(),
                "query": query.id if user in (None, query.user) else None,
                "user": query.user if user in (None, query.user) else None,
                "used_by": [other.id for other in self.users_of(query.point) if user in (None, other.user)],
            }
            for query in self._keepers.values()
            if query.point is not None
        ]

    def indexes(self) -> dict[str, Index]:
        """Those that motes store, by name in lower case."""
        return {
            query.index.name.lower(): query.index for query in self._by_id.values() if query.index is not None
        }

    # ---- semantic routing trees ----

    def srts(self) -> dict[str, Srt]:
        """Semantic routing trees by name in lower case."""
        return {query.srt.name.lower(): query.srt for query in self._by_id.values() if query.srt is not None}

    def srt_number(self, sql: str) -> int:
        """A new tree's, 1..255: seldom one that was dropped just now, of which motes may not have heard."""
        taken = {srt.number for srt in self.srts().values()}
        number = crc_hqx(f"{sql} {time.time_ns()}".encode(), 0) % 0xFF + 1
        while number in taken:
            number = number % 0xFF + 1
        return number

    def plan_srt(self, statement: CreateSrt, roots: Sequence[int], values: Values) -> tuple[Srt, QueryPlan]:
        """A new tree, and the query that keeps it: at the root that it names, or the first of ``roots``. Raises QueryError."""
        asked = [root for root in roots if statement.root is not None and statement.root.value == root]
        root = next(iter(asked or roots), None)
        return plan_srt(
            statement, self.srt_number(statement.text), self.srts(), values, root, self.statics.all()
        )

    def srt_keeper(self, statement: DropSrt, user: str) -> str:
        """The user's query that keeps a tree. Raises QueryError."""
        name = statement.name.name.lower()
        for query in self._by_id.values():
            if query.srt is not None and query.srt.name.lower() == name:
                if query.user != user:
                    text = f"semantic routing tree '{query.srt.name}' is another user's"
                    raise QueryError(text, "who created it drops it", statement.name.span, statement.text)
                return query.id
        names = ", ".join(srt.name for srt in self.srts().values()) or "none"
        hint = f"{did_you_mean(name, list(self.srts()))}semantic routing trees are {names}"
        text = f"unknown semantic routing tree '{statement.name.name}'"
        raise QueryError(text, hint, statement.name.span, statement.text)

    def described_srts(self, user: str | None) -> list[dict[str, Any]]:
        """The trees; of other users' queries ``user`` sees nothing, unless he is None."""
        return [
            {
                **query.srt.to_dict(),
                "query": query.id if user in (None, query.user) else None,
                "user": query.user if user in (None, query.user) else None,
            }
            for query in self._by_id.values()
            if query.srt is not None
        ]

    # ---- events ----

    def waiting_for(self, event: str) -> list[str]:
        """Ids of the queries that an event starts or stops. Raises UnknownEventError where there is none."""
        known = {
            (clause.name.lower(), query.id)
            for query in self._by_id.values()
            for clause in query.plan.clauses
            if clause.kind in (Aggregate.ON_EVENT, Aggregate.STOP_ON)
        }
        waiting = sorted(query for name, query in known if name == event.lower())
        if not waiting:
            names = ", ".join(sorted({name for name, _ in known})) or "none"
            raise UnknownEventError(f"no query waits for event '{event}': events waited for are {names}")
        return waiting


def readers_of(queries: Queries, table: str, column: str | None) -> list[str]:
    """Ids of the queries that still read a table, or a column of it."""
    found = []
    for query in queries.all():
        plan = query.plan.sources
        if plan is None or plan.stream is None or query.finished:
            continue
        if plan.reads(table, column):
            found.append(query.id)
    return found

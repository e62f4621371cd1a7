"""Window joins of streams: which there are, and their answers, which are streams of the log themselves."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from skerry.execution.join_buckets import GroupNow, Joined
from skerry.execution.join_motes import MoteRows
from skerry.execution.join_sets import JoinGroup
from skerry.planner.model.source_plans import ANSWERS, JoinPlan, query_of
from skerry.service.alarms import Alarms
from skerry.service.kept_groups import KeptGroups
from skerry.service.persistence import Persistence
from skerry.service.queries import Queries, UserQuery
from skerry.spark.join_file import JoinFile
from skerry.spark.supervisor import SparkDriver
from skerry.storage.log import stream_log
from skerry.storage.log.source_batches import NOTHING, Through, through_of
from skerry.storage.log.stream_log import StreamLog
from skerry.storage.state import DataDirectory, StorageError
from skerry.streams.stream import Stream

log = logging.getLogger(__name__)

#: Records looked through at a time for answers that there are.
_LOOK = 65_536


class JoinService:
    """Methods are called under ``lock``, or take it. ``streams``: of motes, by number."""

    def __init__(
        self,
        lock: threading.RLock,
        data: DataDirectory,
        stream_log: StreamLog,
        queries: Queries,
        persistence: Persistence,
        alarms: Alarms,
        spark: SparkDriver,
        file: JoinFile,
        streams: Callable[[], Mapping[int, Stream]],
    ) -> None:
        self._streams = streams
        self._lock, self._data, self._log, self._queries = lock, data, stream_log, queries
        self._persistence, self._alarms, self._spark, self._file = persistence, alarms, spark, file
        self._through: dict[int, Through] | None = None
        self._kept = KeptGroups(file.directory)
        groups = file.sets.groups
        self._groups = {name: now for name, now in self._kept.read().items() if name in groups}
        #: By join: the version that says that its streams have ended; and up to which version no more comes.
        self._ended: dict[str, int] = {}
        self._over = 0
        #: Queries that motes are asked of which executors are to be told more.
        self._untold: set[str] = set()
        spark.take_joined, spark.joined_through = self._take, self._known

    # ---- which there are ----

    def add(self, query: UserQuery, plan: JoinPlan) -> None:
        """One more, of rows from now on; what motes are asked for it runs already. Raises StorageError."""
        if query.id in self._file.sets.group_of:
            return
        first = not self._file.sets.groups
        self._append([["join", query.id, query.position, plan.executed()]])
        self._untold |= {asked.id for asked in self._questions_of(query)}
        self.tell()
        if first:
            self._spark.begin_joins()

    def _append(self, changes: list[list[object]]) -> None:
        try:
            self._file.append(changes)
        except OSError as error:
            raise StorageError(f"{self._file.path}: {error.strerror}") from error

    def feeds_changed(self, query: UserQuery) -> None:
        """Other rows of the log are a query's: if motes are asked it for a join, executors are to know before the next rows come."""
        if query.started_by is not None and query.started_by in self._file.sets.group_of:
            self._untold.add(query.id)

    def tell(self) -> None:
        """Executors know where in the log rows of motes are. To be called before rows of motes are appended. Raises StorageError: they must
        not be."""
        for name in sorted(self._untold):
            asked = self._queries.find(name)
            join = asked.started_by if asked is not None else None
            if asked is not None and join in self._file.sets.group_of:
                now = MoteRows.known(asked.plan, asked.feeds, self._streams())
                told = self._file.sets.of_motes.get(join, {})
                if now != told.get(asked.sql):
                    self._append([["motes", join, asked.sql, now.written()]])
            self._untold.discard(name)

    def follow(self) -> None:
        """Joins whose queries are over go; those that a disk has lost come again."""
        running = {query.id: plan for query in self._queries.all() if (plan := join_of(query)) is not None}
        over = [["gone", name] for name in self._file.sets.group_of if name not in running]
        if over:
            try:
                self._file.append(over)
            except OSError as error:
                log.warning("%s: %s; it is tried again", self._file.path, error)
        groups = self._file.sets.groups
        self._groups = {name: now for name, now in self._groups.items() if name in groups}
        for name, plan in running.items():
            if name not in self._file.sets.group_of:
                self.add(self._queries.get(name), plan)
        try:
            self.tell()
        except StorageError as error:
            log.warning("%s; it is tried again", error)

    def motes_ended(self, query: UserQuery) -> bool:
        """Whether no rows of motes come any more for a join, if there are any motes in it."""
        asked = self._questions_of(query)
        return all(one.finished for one in asked) and (bool(asked) or not _questions(query))

    def _questions_of(self, query: UserQuery) -> list[UserQuery]:
        """What motes are asked for a join."""
        return self._queries.started_by(query.id) if _questions(query) else []

    def end(self, query: UserQuery) -> bool:
        """All sources of a join have ended. Returns whether no further answer comes."""
        if query.id not in self._ended:
            try:
                self._ended[query.id] = self._file.append([["ended", query.id]])
            except OSError as error:
                log.warning("%s: %s; it is tried again", self._file.path, error)
                return False
        return self._ended[query.id] <= self._over

    def close(self) -> None:
        """Write no more."""
        if self._groups:
            self._kept.write(self._groups, now=True)
        self._file.close()

    # ---- what comes ----

    def _known(self) -> dict[int, Through] | None:
        """How far the answers of each join are in the log; None: there are no joins."""
        with self._lock:
            groups = self._file.sets.groups.values()
            if not groups:
                return None
            if self._through is None:
                self._through, first = {}, min(group.since for group in groups)
                for at in range(first, self._log.rows, _LOOK):
                    _, records = stream_log.read_there(self._log.path, at, min(at + _LOOK, self._log.rows))
                    for stream, through in through_of(records, ANSWERS).items():
                        self._through[stream] = max(through, self._through.get(stream, NOTHING))
            return dict(self._through)

    def _take(self, joined: Joined) -> bool:
        """Whether answers are in the log, durably."""
        with self._lock:
            sets = self._file.sets
            try:
                self._note_failed(joined)
                # Of queries that have been stopped nobody asks any more; of what has failed answers would be missing.
                wanted = [
                    batch
                    for batch in joined.answers
                    if sets.group_of.get(query_of(batch.stream), "") not in ("", *sets.failed)
                ]
                if wanted:
                    self._data.check_room()
                    self._log.append_sources(wanted)
            except (StorageError, OSError) as error:
                text = f"{self._log.path}: {error.strerror}" if isinstance(error, OSError) else str(error)
                self._alarms.on("joins", f"no answers of joins are taken in: {text}; joins wait")
                return False
            self._alarms.off("joins")
            through = self._through if self._through is not None else {}
            through.update({batch.stream: batch.through for batch in wanted})
            self._groups.update(joined.groups)
            self._kept.write(self._groups)
            self._over = max(self._over, joined.over)
            return True

    def _note_failed(self, joined: Joined) -> None:
        """Groups that have failed stay so over a restart: what they keep lacks rows. Raises StorageError."""
        sets = self._file.sets
        found: list[list[object]] = [
            ["failed", next(iter(sets.groups[name].members)), now.trouble]
            for name, now in joined.groups.items()
            if now.trouble is not None and name in sets.groups and name not in sets.failed
        ]
        if found:
            self._append(found)

    # ---- how they are ----

    def trouble_of(self, query: UserQuery) -> str | None:
        """Why a join does not go on; None: it does."""
        failed = self._file.sets.failed.get(self._file.sets.group_of.get(query.id, ""))
        if failed is not None:
            return failed
        asked = {one.sql for one in self._questions_of(query)}
        missing = [question for question in _questions(query) if question not in asked]
        return f"motes are not asked any more: {missing[0]}" if missing else None

    def status(self) -> list[dict[str, Any]]:
        """How each join is."""
        found = []
        with self._lock:
            for name, group in self._file.sets.group_of.items():
                of = self._file.sets.groups[group]
                if isinstance(of, JoinGroup) and of.members[name].join.kind == "rows":
                    # It joins nobody.
                    continue
                query, now = self._queries.find(name), self._groups.get(group, GroupNow())
                motes = [one.id for one in self._questions_of(query)] if query is not None else []
                kind = of.members[name].join.kind if isinstance(of, JoinGroup) else "mined"
                own = {"query": name, "kind": kind, "algorithm": of.algorithm, "group": group, "motes": motes}
                state = {key: value for key, value in asdict(now).items() if key != "greatest_us"}
                streams = of.members[name].join.streams if isinstance(of, JoinGroup) else {}
                greatest = {alias: now.greatest_us.get(stream) for alias, stream in streams.items()}
                found.append(
                    {**own, **state, "greatest_us": greatest, "trouble": self._file.sets.failed.get(group)}
                )
        return found


def join_of(query: UserQuery) -> JoinPlan | None:
    """A query's join, while it runs; None: it has none, or is over."""
    plan = query.plan.sources
    return plan.join if plan is not None and not query.finished else None


def _questions(query: UserQuery) -> tuple[str, ...]:
    """What motes are asked for a query's join, while it runs."""
    join = join_of(query)
    return join.questions if join is not None else ()

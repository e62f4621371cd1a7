"""Window joins of streams: which there are, and their answers, which are streams of the log themselves."""

from __future__ import annotations

import logging
import threading
from dataclasses import asdict
from typing import Any

from skerry.execution.join_buckets import GroupNow, Joined
from skerry.planner.model.source_plans import ANSWERS, JoinPlan
from skerry.service.alarms import Alarms
from skerry.service.persistence import Persistence
from skerry.service.queries import Queries, UserQuery
from skerry.spark.join_file import JoinFile
from skerry.spark.supervisor import SparkDriver
from skerry.storage.log import stream_log
from skerry.storage.log.source_batches import through_of
from skerry.storage.log.stream_log import StreamLog
from skerry.storage.state import DataDirectory, StorageError

log = logging.getLogger(__name__)

#: Records looked through at a time for answers that there are.
_LOOK = 65_536


class JoinService:
    """Methods are called under ``lock``, or take it."""

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
    ) -> None:
        self._lock, self._data, self._log, self._queries = lock, data, stream_log, queries
        self._persistence, self._alarms, self._spark, self._file = persistence, alarms, spark, file
        self._through: dict[int, int] | None = None
        self._groups: dict[str, GroupNow] = {}
        #: Groups that have stopped, and why.
        self._failed: dict[str, str] = {}
        #: By join: the version that says that its streams have ended; and up to which version no more comes.
        self._ended: dict[str, int] = {}
        self._over = 0
        spark.take_joined, spark.joined_through = self._take, self._known

    # ---- which there are ----

    def add(self, query: UserQuery, plan: JoinPlan) -> None:
        """One more, of rows from now on. Raises StorageError."""
        if query.id in self._file.sets.group_of:
            return
        first = not self._file.sets.groups
        try:
            self._file.append([["join", query.id, query.position, plan.executed()]])
        except OSError as error:
            raise StorageError(f"{self._file.path}: {error.strerror}") from error
        if first:
            self._spark.begin_joins()

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
        self._file.close()

    # ---- what comes ----

    def _known(self) -> dict[int, int] | None:
        """Up to which row the answers of each join are in the log; None: there are no joins."""
        with self._lock:
            groups = self._file.sets.groups.values()
            if not groups:
                return None
            if self._through is None:
                self._through, first = {}, min(group.since for group in groups)
                for at in range(first, self._log.rows, _LOOK):
                    _, records = stream_log.read_there(self._log.path, at, min(at + _LOOK, self._log.rows))
                    for stream, through in through_of(records, ANSWERS).items():
                        self._through[stream] = max(through, self._through.get(stream, 0))
            return dict(self._through)

    def _take(self, joined: Joined) -> bool:
        """Whether answers are in the log, durably."""
        with self._lock:
            known = self._file.sets.group_of
            self._failed |= {
                name: now.trouble for name, now in joined.groups.items() if now.trouble is not None
            }
            # Of queries that have been stopped nobody asks any more; of what has failed answers would be missing.
            wanted = [
                batch
                for batch in joined.answers
                if known.get(str(batch.stream - ANSWERS), "") not in ("", *self._failed)
            ]
            try:
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
            self._over = max(self._over, joined.over)
            return True

    # ---- how they are ----

    def trouble_of(self, query: UserQuery) -> str | None:
        """Why a join does not go on; None: it does."""
        return self._failed.get(self._file.sets.group_of.get(query.id, ""))

    def status(self) -> list[dict[str, Any]]:
        """How each join is."""
        found = []
        with self._lock:
            for name, group in self._file.sets.group_of.items():
                query, now = self._queries.find(name), self._groups.get(group, GroupNow())
                plan = join_of(query) if query is not None else None
                algorithm = plan.algorithm if plan is not None else ""
                own = {"query": name, "algorithm": algorithm, "group": group}
                found.append({**own, **asdict(now), "trouble": self._failed.get(group)})
        return found


def join_of(query: UserQuery) -> JoinPlan | None:
    """A query's join, while it runs; None: it has none, or is over."""
    plan = query.plan.sources
    return plan.join if plan is not None and not query.finished else None

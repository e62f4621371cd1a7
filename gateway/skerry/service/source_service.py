"""Sources that are no motes: which are to be open for the queries that there are, and what they bring goes to the log."""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from skerry.catalog.table_select import Table
from skerry.planner.model.source_plans import STREAMS
from skerry.sensors.definitions import SensorTable
from skerry.sensors.made_streams import TUPLE
from skerry.sensors.store import SensorStore, Tuples
from skerry.service.alarms import Alarms
from skerry.service.join_service import JoinService, join_of
from skerry.service.kept_statistics import KeptStatistics
from skerry.service.persistence import Persistence
from skerry.service.queries import Queries, UserQuery
from skerry.service.source_tables import source_tables
from skerry.sources.batching import end_of
from skerry.sources.messages import Job, Key, SourceState, Wanted
from skerry.sources.statistics import SourceStatistics
from skerry.sources.supervisor import IntakeProcess
from skerry.storage.log.source_batches import SourceBatch
from skerry.storage.log.source_positions import Position, Source
from skerry.storage.log.stream_log import StreamLog
from skerry.storage.state import DataDirectory, StorageError

log = logging.getLogger(__name__)

#: Queries and tables are looked at so often, in s: what has changed is followed within that.
LOOK_S = 0.25


class SourceService:
    """One intake process for all queries: a source is read once, however many want it. ``remove`` forgets a query, under ``lock``."""

    def __init__(
        self,
        lock: threading.RLock,
        data: DataDirectory,
        stream_log: StreamLog,
        store: SensorStore,
        queries: Queries,
        persistence: Persistence,
        alarms: Alarms,
        job: Job,
        remove: Callable[[UserQuery], object],
        joins: JoinService,
        end_sources: Callable[[str, int], object],
        sources_of: Callable[[str], set[int]],
        statistics: SourceStatistics,
    ) -> None:
        self._joins, self._statistics = joins, statistics
        self._kept = KeptStatistics(data.path, statistics)
        self._lock, self._data, self._log, self._store = lock, data, stream_log, store
        self._queries, self._persistence, self._alarms, self._remove = queries, persistence, alarms, remove
        self._end_sources, self._sources_of = end_sources, sources_of
        #: The first record of what was appended last.
        self._first = 0
        self._process = IntakeProcess(job, self._append, self._position, statistics)
        self._stopping = threading.Event()
        #: The tuples whose sources are wanted, and whether that is known yet.
        self._rows: dict[Key, tuple[Any, ...]] = {}
        self._looked = False
        #: What rows of each table have taken in the log since the start.
        self._bytes = Counter[int]()
        self._thread = threading.Thread(target=self._run, name="sources' queries", daemon=True)

    def start(self) -> None:
        """From now on sources that queries select are open."""
        self._process.start()
        self._thread.start()

    def stop(self) -> None:
        """Close them."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(5)
        self._process.stop()
        self._kept.write()

    @property
    def pid(self) -> int | None:
        """The id of the process that reads; None: there is none."""
        return self._process.pid

    def status(self) -> list[dict[str, Any]]:
        """How each source is that is to be open; ``readers``: queries that want it, ``bytes``: what rows of its table have taken in the log
        since the gateway began."""
        with self._lock:
            readers = Counter(
                (found.table.number, number)
                for query in self._running()
                for found, numbers in self._tuples_of(query)
                for number in set(numbers)
            )
            return [
                {**dataclasses.asdict(state), "readers": readers[key], "bytes": self._bytes[key[0]]}
                for key, state in sorted(self._process.states.items())
            ]

    def streams(self) -> list[dict[str, Any]]:
        """What has been seen of each table's stream, and how many of its sources are open or away."""
        with self._lock:
            tables, states = list(self._store.tables().values()), list(self._process.states.values())
        found = []
        for table in tables:
            own = Counter(state.state for state in states if state.table == table.name)
            seen = self._statistics.seen(table.number, time.time())
            if own or seen.rows or seen.errors:
                found.append({
                    "table": table.name, "sources": own.total(), "away": own["away"] + own["refused"], "rows": seen.rows,
                    "rows_per_s": round(seen.rows_per_s, 3), "errors": seen.errors,
                    "ranges": seen.ranges,
                })  # fmt: skip
        return found

    def tables(self) -> dict[str, Table]:
        """The same, of each source and column, for the catalog."""
        with self._lock:
            tables, states = list(self._store.tables().values()), dict(self._process.states)
        now = time.time()
        return source_tables(tables, states, lambda number: self._statistics.seen(number, now))

    @property
    def trouble(self) -> str | None:
        """Why the process that reads sources does not run; None: it does, or nobody needs it."""
        return self._process.trouble

    def trouble_of(self, query: UserQuery) -> str | None:
        """Which of a query's sources bring nothing, and why; None: none of them, or it has ended."""
        plan = query.plan.sources
        if plan is None or plan.stream is None or query.finished:
            return None
        failed = self._joins.trouble_of(query)
        if failed is not None:
            return failed
        states = [state for state in self._states_of(query) if state is not None]
        wrong = [state for state in states if state.state in ("away", "refused")]
        if not wrong:
            return self._process.trouble
        first = f"{wrong[0].address or f'tuple {wrong[0].tuple}'}, {wrong[0].why}"
        if len(states) == 1:
            return f"its source brings nothing: {first}"
        return f"{len(wrong)} of {len(states)} sources bring nothing: {first}"

    # ---- what comes ----

    def _append(self, batches: Sequence[SourceBatch]) -> bool:
        """Whether rows are in the log, durably."""
        with self._lock:
            try:
                if self._persistence.unsaved:
                    # The log must not name streams that a restart would not know.
                    self._persistence.commit()
                self._data.check_room()
                self._first = self._log.append_sources([self._of_wanted(batch) for batch in batches])
            except (StorageError, OSError) as error:
                text = f"{self._log.path}: {error.strerror}" if isinstance(error, OSError) else str(error)
                self._alarms.on("sources", f"no rows of sources are taken in: {text}; sources wait")
                return False
            for batch in batches:
                self._bytes[batch.stream - STREAMS] += len(batch.data)
            self._alarms.off("sources")
            return True

    def _position(self, key: Key) -> Position | None:
        return self._log.positions.get((STREAMS + key[0], key[1]))

    def _of_wanted(self, batch: SourceBatch) -> SourceBatch:
        """A batch without the positions of those that nobody wants any more: they have been forgotten."""
        table = batch.stream - STREAMS
        left = {
            number: position
            for number, position in batch.positions.items()
            if position.lasting or (table, number) in self._rows
        }
        return batch if len(left) == len(batch.positions) else dataclasses.replace(batch, positions=left)

    def _forget(self) -> None:
        """Positions that nobody will ask for: of sources that begin anew, and of tuples that are gone."""
        known = {found.table.number: found.rows for found in self._store.all()}

        def gone(source: Source, position: Position) -> bool:
            key = source[0] - STREAMS, source[1]
            return key not in self._rows if not position.lasting else key[1] not in known.get(key[0], ())

        self._log.forget_positions(gone)
        self._statistics.keep(known)

    # ---- what is wanted ----

    def _run(self) -> None:
        while not self._stopping.wait(LOOK_S):
            try:
                self.look()
                self._kept.look()
            except Exception:
                log.exception("sources could not be looked after; it is tried again")

    def look(self) -> None:
        """Follow what queries and tables have become."""
        with self._lock:
            self._leave_abandoned()
            running = self._want()
            if self._finish(running):
                # Who asks from now on is not told that his sources have ended: they are opened anew.
                self._want()

    def _want(self) -> list[UserQuery]:
        """Have read what queries want; these."""
        running = self._running()
        tables: dict[int, SensorTable] = {}
        rows: dict[Key, tuple[Any, ...]] = {}
        for query in running:
            for found, numbers in self._tuples_of(query):
                if found.table.is_made:
                    # The query that fills it has its sources opened.
                    continue
                tables[found.table.number] = found.table
                rows |= {(found.table.number, n): found.rows[n] for n in numbers}
        # A join has all rows that come once its sources are open.
        self._joins.follow()
        if rows.keys() != self._rows.keys() or not self._looked:
            self._rows, self._looked = rows, True
            self._forget()
        self._process.want(Wanted(tables, rows))
        return running

    def _running(self) -> list[UserQuery]:
        found = []
        for query in self._queries.all():
            plan = query.plan.sources
            if plan is not None and plan.stream is not None and not query.finished:
                found.append(query)
        return found

    def _states_of(self, query: UserQuery) -> list[SourceState | None]:
        """How the sources of a query are, each; None: that is not known yet."""
        states: dict[Key, SourceState | None] = {}
        for found, numbers in self._tuples_of(query):
            for number in numbers:
                key = found.table.number, number
                states[key] = (
                    self._state_of_made(found.table) if found.table.is_made else self._process.states.get(key)
                )
        return list(states.values())

    def _state_of_made(self, table: SensorTable) -> SourceState:
        """Of a stream that a query fills: it ends with that, and lacks what that lacks."""
        query = self._queries.find(table.made_by)
        if query is None or query.finished:
            return SourceState(table.name, TUPLE, f"stream {table.name}", "ended")
        why = self.trouble_of(query)
        state = "open" if why is None else "away"
        return SourceState(table.name, TUPLE, f"stream {table.name}", state, why or "")

    def _tuples_of(self, query: UserQuery) -> Iterator[tuple[Tuples, list[int]]]:
        """The tuples whose sources a query reads, by table."""
        plan = query.plan.sources
        for table, chosen in plan.chosen_of() if plan is not None else []:
            found = self._store.tuples(table)
            if found is not None:
                yield found, found.chosen(chosen)

    def _finish(self, running: Sequence[UserQuery]) -> bool:
        """Queries of which all sources have ended: what is in the log is all that there will be. Whether there were any."""
        ended = []
        for query in running:
            states = self._states_of(query)
            over = all(state is not None and state.state == "ended" for state in states)
            join = join_of(query)
            if join is None:
                over = over and bool(states)
            elif over:
                # Without sources that are no motes all of these have ended.
                over = (
                    (bool(states) or not join.of_sources)
                    and self._joins.motes_ended(query)
                    and self._joins.end(query)
                )
            if over or self._answered(query):
                ended.append(query)
        for query in ended:
            if not self._ended_in_log(query):
                continue
            query.finished = True
            self._persistence.note(query.id)
        if ended:
            self._persistence.try_commit()
        return bool(ended)

    def _answered(self, query: UserQuery) -> bool:
        """Whether one with ONCE need not wait any longer: each of its sources has brought a row, or their time is over."""
        plan = query.plan.sources
        found = self._store.tuples(plan.table) if plan is not None else None
        if plan is None or found is None or not plan.once:
            return False
        if (time.time() - query.created) * 1000 >= plan.wait_ms:
            return True
        return set(found.chosen(plan.chosen)) <= self._sources_of(query.id)

    def _ended_in_log(self, query: UserQuery) -> bool:
        """Note behind a query's rows that these are all, for what is made of many; whether that is done."""
        plan = query.plan.sources
        if plan is None or plan.stream is None or not plan.gathers:
            return True
        if not self._append([end_of(plan.stream, int(query.id), time.time_ns() // 1000)]):
            return False
        self._end_sources(query.id, self._first)
        return True

    def _leave_abandoned(self) -> None:
        left = [query for query in self._running() if query.abandoned(time.monotonic())]
        for query in left:
            log.info("query %s of %s is stopped: nobody reads it any more", query.id, query.user)
            self._remove(query)
        if left:
            self._persistence.try_commit()

"""Processes that serve readers for the gateway: which there are, who reads at them, and what each is told.

A worker is told of each batch that is published, and of changes of the queries that somebody reads there, in the order in which both
happen: what it knows of a query is never behind a batch that has the query's rows.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from skerry.service.delivery_service import DeliveryService
from skerry.service.queries import Queries, UserQuery

log = logging.getLogger(__name__)

#: A worker that has said nothing for so long, in s, is gone, and so are its readers.
SILENT_S = 30.0
#: Queries that ended are looked for so often, in s.
_LOOK_S = 1.0


class UnknownWorkerError(LookupError):
    """It is not connected, or no more."""

    def __init__(self, worker: int) -> None:
        super().__init__(f"worker {worker} is not connected: it has to begin anew")


@dataclass
class ApiWorker:
    """One that is connected. ``push`` gives it a piece of news, from any thread."""

    number: int
    name: str
    host: str
    pid: int
    push: Callable[[dict[str, Any]], object]
    #: Open feeds by query.
    readers: Counter[str] = field(default_factory=Counter)
    #: Streams whose meaning it has been told.
    streams: set[int] = field(default_factory=set)
    #: Queries that it knows to have finished.
    finished: set[str] = field(default_factory=set)
    heard: float = field(default_factory=time.monotonic)
    looked: float = 0.0
    gone: bool = False


class ApiWorkers:
    """All that are connected. Asked from any thread."""

    def __init__(self, queries: Queries, delivery: DeliveryService) -> None:
        self._queries, self._delivery = queries, delivery
        self._workers: dict[int, ApiWorker] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.RLock()
        delivery.engine.changed = self._changed
        #: How a worker that the gateway has started is, by name: its state and process id.
        self.started: Callable[[], Mapping[str, tuple[str, int | None]]] = dict

    def open(
        self,
        name: str,
        host: str,
        pid: int,
        readers: Mapping[str, int],
        push: Callable[[dict[str, Any]], object],
    ) -> ApiWorker:
        """A worker that connects, with the readers that it has already. Before it is told how far rows are, it knows what these ask."""
        with self._delivery.engine.steady(), self._lock:
            worker = ApiWorker(next(self._numbers), name, host, pid, push, Counter(readers))
            for query_id, count in readers.items():
                query = self._queries.find(query_id)
                if query is not None:
                    self._delivery.count(query, count)
                self._tell(worker, query_id, query)
            push(
                {
                    "worker": worker.number,
                    "through": self._delivery.through(),
                    "backlog": self._delivery.backlog,
                }
            )
            self._workers[worker.number] = worker
        return worker

    def close(self, worker: ApiWorker) -> None:
        """It is gone, with its readers."""
        with self._lock:
            worker.gone = True
            if self._workers.pop(worker.number, None) is None:
                return
            self._leave(worker, worker.readers)
            worker.readers.clear()

    def serves(self, query: UserQuery) -> bool:
        """Whether workers can serve a query's readers: rows that are told as they come, from what executors matched."""
        plan = query.plan
        past = any(probe.table.past_ms is not None for probe in plan.probes)
        own = plan.window is None and plan.history is None and not past and plan.sources is None
        return own and not plan.reads and plan.into is None and query.point is None and query.srt is None

    def read(self, number: int, query: UserQuery) -> None:
        """One reader more at a worker, which is told of the query. Raises UnknownWorkerError."""
        with self._lock:
            worker = self._worker(number)
            worker.readers[query.id] += 1
            self._delivery.count(query, 1)
        self._delivery.engine.tell(query.id)

    def report(self, number: int, closed: list[str]) -> None:
        """A worker is there, and some of its feeds, by their queries, have been closed. Raises UnknownWorkerError."""
        with self._lock:
            worker = self._worker(number)
            worker.heard = time.monotonic()
            ended = Counter(closed) & worker.readers
            worker.readers -= ended
            self._leave(worker, ended)

    def _worker(self, number: int) -> ApiWorker:
        if number not in self._workers:
            raise UnknownWorkerError(number)
        return self._workers[number]

    def _leave(self, worker: ApiWorker, readers: Mapping[str, int]) -> None:
        for query_id, count in readers.items():
            query = self._queries.find(query_id)
            if query is not None:
                self._delivery.count(query, -count)
            if not worker.readers[query_id]:
                worker.finished.discard(query_id)

    def published(self, first: int, end: int) -> None:
        """Rows ``first`` .. ``end`` - 1 of the log have been through."""
        with self._lock:
            for worker in self._workers.values():
                worker.push({"batch": [first, end]})

    def look(self, worker: ApiWorker) -> bool:
        """Tell a worker which of its queries have finished; to be called now and then. Whether it is there."""
        now = time.monotonic()
        if now - worker.looked < _LOOK_S:
            return not worker.gone
        worker.looked = now
        if now - worker.heard > SILENT_S:
            log.warning(
                "API worker %s at %s has gone silent: its readers are taken for gone",
                worker.name,
                worker.host,
            )
            self.close(worker)
        with self._lock:
            asked = [self._queries.find(query_id) for query_id in worker.readers.keys() - worker.finished]
        for query in asked:
            if query is not None and query.finished:
                self._delivery.engine.tell(query.id)
        return not worker.gone

    def _changed(self, query_id: str) -> None:
        """Under the engine's lock: see :attr:`skerry.delivery.engine.Engine.changed`."""
        with self._lock:
            concerned = [worker for worker in self._workers.values() if worker.readers[query_id]]
            if not concerned:
                return
            query = self._queries.find(query_id)
            for worker in concerned:
                self._tell(worker, query_id, query)

    def _tell(self, worker: ApiWorker, query_id: str, query: UserQuery | None) -> None:
        if query is None or self._delivery.engine.subscriber(query_id) is None:
            worker.push({"gone": query_id})
            return
        self._tell_streams(worker, query)
        worker.push({"query": self._delivery.state(query)})
        if query.finished:
            worker.finished.add(query_id)

    def _tell_streams(self, worker: ApiWorker, query: UserQuery) -> None:
        for number in query.feeds:
            stream = self._delivery.stream(number)
            if stream is not None and number not in worker.streams:
                worker.streams.add(number)
                worker.push({"stream": stream.to_dict()})

    @property
    def trouble(self) -> str | None:
        """Which of those that the gateway has started do not run, and why; None: all do."""
        ended = [
            f"{name} is {state}"
            for name, (state, pid) in self.started().items()
            if pid is None and state not in ("starting", "stopped")
        ]
        return f"readers wait: API worker {', '.join(ended)}" if ended else None

    def status(self) -> list[dict[str, Any]]:
        """For people: those that are connected, and those that the gateway has started, with what has become of them."""
        with self._lock:
            connected = {worker.name: worker for worker in self._workers.values()}
            started = self.started()
            return [
                {
                    "name": name,
                    "host": connected[name].host if name in connected else None,
                    "pid": connected[name].pid if name in connected else started[name][1],
                    "readers": connected[name].readers.total() if name in connected else 0,
                    "state": "connected" if name in connected else started[name][0],
                }
                for name in sorted(connected.keys() | started.keys())
            ]

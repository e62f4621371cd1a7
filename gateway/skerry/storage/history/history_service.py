"""The past as a running gateway keeps it: compacts in the background, answers queries with HISTORY."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from skerry.execution.deliveries import Delivery
from skerry.execution.matching import Part
from skerry.planner.model.plans import QueryPlan
from skerry.storage.history.answer import Answer, PastRows
from skerry.storage.history.compaction_process import CompactionProcess
from skerry.storage.history.damaged_files import DamagedError
from skerry.storage.history.engine.engine import DIRECTORY, Cluster, EngineError, PastEngine
from skerry.storage.history.engine.waiting import Waiting
from skerry.storage.history.past_table import EarlierRows, earlier_reader
from skerry.storage.history.reader import Reader
from skerry.storage.history.retention import Retention
from skerry.storage.history.source_answer import SourceAnswer
from skerry.storage.history.store import History
from skerry.storage.log.stream_log import StreamLog
from skerry.streams.stream import Stream
from skerry.tables.join import Joiner

log = logging.getLogger(__name__)

#: The log is compacted when so many rows have come since, or after so many s when any have.
COMPACT_ROWS = 100_000
COMPACT_S = 600.0
#: How often it is looked at, in s.
_LOOK_S = 5.0
#: Answers that are kept for their readers' next piece.
_ANSWERS = 16


class HistoryService:
    """``streams``: a copy of all there have been; ``processed``: how many rows of the log have been through the proxy;
    ``by_utc``: as of :class:`skerry.storage.history.answer.Answer`; ``earlier``: UTC in s so long, in ms of network time, before another;
    ``speed``: s of that in one of UTC's; ``cluster``: as of :class:`skerry.storage.history.engine.engine.PastEngine`."""

    def __init__(
        self,
        data: Path,
        stream_log: StreamLog,
        streams: Callable[[], Sequence[Stream]],
        processed: Callable[[], int],
        retention: Retention | None = None,
        *,
        by_utc: bool = False,
        earlier: Callable[[float, int], float] = lambda utc, span_ms: utc - span_ms / 1000,
        speed: float = 1.0,
        cluster: Cluster | None = None,
    ) -> None:
        self._by_utc, self._earlier = by_utc, earlier
        self._compaction = CompactionProcess()
        self._history = History(data, retention, stream_log.dating, self._compaction.done)
        self.engine = PastEngine(data / DIRECTORY, cluster=cluster)
        self._log, self._streams, self._processed = stream_log, streams, processed
        self._speed = speed
        stream_log.go_on_at(self._history.manifest.rows)
        self._answers: OrderedDict[str, Answer] = OrderedDict()
        self._of_sources: dict[str, SourceAnswer] = {}
        #: Where the past of each begins, UTC in us: it stays, however the root's time is known later.
        self._since: dict[str, int] = {}
        #: By query, why its past cannot be read now.
        self._waits: dict[str, str] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="compact", daemon=True)
        self._compacted = time.monotonic()
        #: Why the last pass failed; None: it did not.
        self.trouble: str | None = None

    def start(self) -> None:
        """Compact in the background from now on."""
        self._thread.start()

    def stop(self) -> None:
        """A pass that has begun is ended first."""
        self._stopping.set()
        self.engine.stop()
        if self._thread.is_alive():
            self._thread.join()
        self._compaction.end()

    def _run(self) -> None:
        while not self._stopping.wait(_LOOK_S):
            waiting = self._log.rows - self._history.manifest.rows
            due = time.monotonic() - self._compacted >= COMPACT_S
            if waiting < COMPACT_ROWS and not due and not self._history.due():
                self._compaction.end()
                continue
            # The rows stay in the log; it is tried again.
            try:
                self.compact()
            except OSError as error:
                log.warning("history: %s", error)
            except Exception:
                # A fault of the gateway's, which must not be the end of compaction.
                log.exception("history: the log could not be compacted")

    def compact(self) -> int:
        """Bring all rows that the log has now into the files, then drop what is too old or too much; returns how many rows
        there were. Raises OSError, of a full disk: nothing is lost."""
        try:
            # Streams after rows: each row is of a stream that is known.
            rows = self._log.rows
            done = self._history.compact(self._log.path, rows, self._streams())
            self._history.retain(self._log, self._processed())
        except Exception as error:
            self.trouble = str(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
            raise
        self._compacted, self.trouble = time.monotonic(), None
        return done

    def after(
        self,
        query: str,
        plan: QueryPlan,
        asked: float,
        end: int,
        joiner: Joiner | None,
        position: int,
        waiting: Waiting,
    ) -> tuple[list[Delivery], int, bool]:
        """A query's rows of the past behind a row of the log, the position reached, whether more follow.

        ``asked``: when, UTC in s; ``end``: what the log had then; ``waiting``: who reads. Raises TableError, QueryError, GivenUpError.
        """
        with self._lock:
            answer = self._answers.pop(query, None)
            if answer is None:
                since_us = self._since.setdefault(query, self._since_us(plan, asked))
                reader = self._reader(plan.attributes, since_us)
                answer = Answer(
                    plan,
                    reader,
                    end,
                    self.engine,
                    since_us,
                    joiner,
                    lambda table: earlier_reader(plan, table, self._reader, self._earlier, since_us),
                    by_utc=self._by_utc,
                    speed=self._speed,
                )
            self._answers[query] = answer
            if len(self._answers) > _ANSWERS:
                self._answers.popitem(last=False)[1].forget()
        try:
            found = answer.after(position, waiting)
        except (DamagedError, EngineError) as error:
            self._waits[query] = str(error)
            raise
        self._waits.pop(query, None)
        return found

    def after_sources(
        self, query: str, plan: QueryPlan, asked: float, end: int, position: int, waiting: Waiting
    ) -> tuple[list[Delivery], int, bool]:
        """The same of sources that are no motes."""
        assert plan.history is not None
        assert plan.sources is not None
        with self._lock:
            answer = self._of_sources.get(query)
            if answer is None:
                since_us = round(asked * 1e6) - plan.history.span_ms * 1000
                answer = SourceAnswer(plan, self._history, self._log.path, self.engine, since_us, end)
                self._of_sources[query] = answer
        try:
            found = answer.after(position, waiting)
        except (DamagedError, EngineError) as error:
            self._waits[query] = str(error)
            raise
        self._waits.pop(query, None)
        return found

    def waits(self, query: str) -> str | None:
        """Why the past of a query cannot be read now; None: it can, as far as is known."""
        return self._waits.get(query)

    def rows(self, plan: QueryPlan, asked: float, end: int) -> PastRows:
        """What a query's windows begin with that was asked then, UTC in s; ``end``: what the log had then."""
        since_us = self._since_us(plan, asked)
        return PastRows(plan, lambda: self._reader(plan.attributes, since_us), end, since_us)

    def _since_us(self, plan: QueryPlan, asked: float) -> int:
        """Where a query's span, which is of network time, begins, UTC."""
        assert plan.history is not None
        return round(self._earlier(asked, plan.history.span_ms) * 1e6)

    def earlier_rows(self, plan: QueryPlan) -> dict[str, EarlierRows]:
        """What the stream was before its rows, for each of a query's tables that is that."""
        past = [probe.table for probe in plan.probes if probe.table.past_ms is not None]
        return {table.called: EarlierRows(plan, table, self._reader, self._earlier) for table in past}

    def parts(self, start: int, end: int, attributes: Collection[int]) -> dict[int, Part]:
        """Rows ``start`` .. ``end`` - 1 of plain streams by stream, as the proxy has them, from files."""
        found = self._reader(attributes, 0).parts(start, end)
        return {number: Part(rows, numbers) for number, (numbers, rows) in found.items()}

    def _reader(self, attributes: Collection[int], since_us: int) -> Reader:
        return Reader(self._history, self._log.path, self._streams(), attributes, since_us)

    def forget(self, query: str) -> None:
        """The query is gone."""
        with self._lock:
            answer = self._answers.pop(query, None)
            self._since.pop(query, None)
            self._waits.pop(query, None)
            of_sources = self._of_sources.pop(query, None)
        if of_sources is not None:
            of_sources.forget()
        if answer is not None:
            answer.forget()

    def clock(self) -> str | None:
        """Why rows go for no age now; None: they do, as they get too old."""
        dating = self._log.dating
        return dating.trouble() if dating is not None else None

    def status(self) -> dict[str, Any]:
        """For people."""
        return {**self._history.status(self._log.path, self._log.rows), "trouble": self.trouble}

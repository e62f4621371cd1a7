"""A query's answer over the past: rows one by one, or aggregates over epochs, or over all of it.

The engine (:mod:`skerry.storage.history.engine`) has the rows, and folds groups of them, over the integers that motes sent, so that a
value is the same then and now. Aggregates are exact here, where motes keep summaries: MEDIAN, QUANTILE and COUNT(DISTINCT …) have no
error, and nothing leaves 32 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cached_property

import numpy as np
import pyarrow as pa

from skerry.execution.deliveries import Delivery
from skerry.planner.model.joined_tables import JoinedTable
from skerry.planner.model.plans import QueryPlan
from skerry.storage.history.engine.engine import MovedError, PastEngine
from skerry.storage.history.engine.messages import EarlierRows, Question, Reading, TableRows, Timing
from skerry.storage.history.engine.waiting import Waiting
from skerry.storage.history.first_readings import first_in_epochs
from skerry.storage.history.layout import Int64
from skerry.storage.history.reader import Reader, Samples
from skerry.storage.history.sorting import most_ordered
from skerry.tables.join import Joiner
from skerry.tables.store import Table
from skerry.windows.own_windows import Chosen

#: Rows of one piece of an answer.
PIECE_ROWS = 131_072
#: How often a piece is asked for anew because files or segments went meanwhile.
_ATTEMPTS = 5


class PastRows:
    """A query's rows of the past: of the log's before ``end``. ``since_us``: where its span begins, UTC."""

    def __init__(self, plan: QueryPlan, reader: Callable[[], Reader], end: int, since_us: int) -> None:
        assert plan.history is not None
        self._plan, self._past, self._open, self._end = plan, plan.history, reader, end
        self.since_ms = since_us // 1000

    @cached_property
    def _reader(self) -> Reader:
        return self._open()

    @cached_property
    def _chosen(self) -> Int64:
        return first_in_epochs(self._reader.moments(), self._end, self._plan.period_ms)

    def first(self) -> int:
        """A row of the log before which there are none."""
        return self._reader.first()

    def selected(self, samples: Samples) -> Int64:
        """Indices of the query's rows: the first in each of its epochs, those that pass its condition."""
        chosen = samples.rows.evaluate.truth(self._plan.where, self._plan.period_ms)
        if not self._past.recorded:
            chosen &= np.isin(samples.numbers, self._chosen, assume_unique=True)
        return np.flatnonzero(chosen)

    def read(self, start: int, end: int) -> list[Chosen]:
        """Rows ``start`` .. ``end`` - 1 by session."""
        samples = self._reader.read(start, end)
        chosen = self.selected(samples)
        found = []
        for session in np.unique(samples.sessions).tolist():
            mine = np.flatnonzero(samples.sessions == session)
            places = chosen[samples.sessions[chosen] == session]
            found.append(Chosen(session, samples.numbers[mine], samples.rows, mine, places))
        return found


#: Rows of the stream that may be of the time before those sampled from a moment on, UTC in us, for each of a query's tables of its past.
EarlierReader = Callable[[JoinedTable], Reader]


class Answer:
    """One query's rows among those of the log before ``end``. A piece that is asked for again is the same."""

    def __init__(
        self,
        plan: QueryPlan,
        reader: Reader,
        end: int,
        engine: PastEngine,
        since_us: int = 0,
        joiner: Joiner | None = None,
        earlier: EarlierReader | None = None,
        *,
        by_utc: bool = False,
        speed: float = 1.0,
    ) -> None:
        """``since_us``: where the query's span begins, UTC; ``joiner``: knows which tables its rows meet; ``earlier`` reads what a table
        of the stream's own past is made of; ``by_utc``: whether windows and epochs that are aggregated are of all networks, by UTC,
        instead of each session's own; ``speed``: s of network time in one of UTC's."""
        self._plan, self._reader, self._end, self._engine = plan, reader, end, engine
        self._since_us, self._joiner, self._earlier = since_us, joiner, earlier
        self._timing = Timing(by_utc, speed)
        #: What the engine keeps for the next piece goes by it.
        self._key = engine.key()

    def forget(self) -> None:
        """Nobody wants more of it."""
        self._engine.forget(self._key)

    def after(self, position: int, waiting: Waiting | None = None) -> tuple[list[Delivery], int, bool]:
        """Rows behind a row of the log, the position that is reached, and whether more may follow. Raises TableError; QueryError, where a
        limit is reached; GivenUpError, when ``waiting`` goes."""
        for _ in range(_ATTEMPTS):
            moves = self._reader.settled()
            sources = self._reader.sources(self._end)
            question = Question(
                0,
                self._key,
                self._plan,
                sources,
                self._timing,
                self._since_us // 1000,
                position,
                most_ordered(),
                PIECE_ROWS,
                self._tables(sources.first),
            )
            with suppress(MovedError):
                table, reached, more = self._engine.ask(question, waiting or Waiting())
                if self._reader.settled() == moves:
                    [batch] = table.combine_chunks().to_batches() or [_empty(table.schema)]
                    columns = pa.RecordBatch.from_arrays(
                        batch.columns[1:], schema=pa.schema(list(batch.schema)[1:])
                    )
                    numbers = batch.column(0).to_numpy()
                    return [Delivery(numbers, columns)] if len(numbers) else [], reached, more
            # What has been kept of it may have some rows twice.
            self._engine.forget(self._key)
        raise self._reader.unsettled()

    def _tables(self, first: int) -> tuple[TableRows | EarlierRows, ...]:
        """What the rows from the first on are joined with. Raises TableError."""
        if self._joiner is None:
            return ()
        met = self._joiner.readings(first, self._end)
        return tuple(
            self._before(probe.table)
            if probe.table.past_ms is not None
            else self._readings(met[probe.table.called])
            for probe in self._plan.probes
        )

    def _readings(self, found: list[tuple[int, Table]]) -> TableRows:
        # Also those are met that have no number yet, as a table must be there for a question that has no rows.
        begins = [0, *(row for row, _ in found[1:]), max(self._end, 1)]
        return TableRows(
            tuple(
                Reading(begin, until, str(table.path))
                for (_, table), begin, until in zip(found, begins, begins[1:], strict=False)
            )
        )

    def _before(self, table: JoinedTable) -> EarlierRows:
        assert self._earlier is not None
        return EarlierRows(self._earlier(table).sources(self._end))


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)

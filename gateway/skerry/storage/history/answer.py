"""A query's answer over the past: rows one by one, or aggregates over epochs, or over all of it.

The engine (:mod:`skerry.storage.history.engine`) has the rows, and folds groups of them, over the integers that motes sent, so that a
value is the same then and now. Aggregates are exact here, where motes keep summaries: MEDIAN, QUANTILE and COUNT(DISTINCT …) have no
error, and nothing leaves 32 bits. Joins and windows are made here of the rows, by what makes them of those that come in.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cached_property

import numpy as np
import pyarrow as pa

from skerry.execution.deliveries import Delivery
from skerry.execution.residual import Residual, Rows
from skerry.planner.model.plans import QueryPlan
from skerry.storage.history.engine.engine import MovedError, PastEngine
from skerry.storage.history.engine.messages import Question
from skerry.storage.history.engine.selects import Timing
from skerry.storage.history.engine.waiting import Waiting
from skerry.storage.history.engine.windows import has_windows
from skerry.storage.history.first_readings import first_in_epochs
from skerry.storage.history.layout import Int64
from skerry.storage.history.reader import Reader, Samples
from skerry.storage.history.sorting import Ordered, most_ordered
from skerry.tables.join import Joiner
from skerry.windows.own_windows import Chosen, OwnWindows, Run

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
        *,
        by_utc: bool = False,
        speed: float = 1.0,
    ) -> None:
        """``since_us``: where the query's span begins, UTC; ``by_utc``: whether windows and epochs that are aggregated are of all
        networks, by UTC, instead of each session's own; ``speed``: s of network time in one of UTC's."""
        self._plan, self._reader, self._end, self._engine = plan, reader, end, engine
        self._since_us, self._joiner = since_us, joiner
        self._timing = Timing(by_utc, speed)
        self._residual = Residual(plan)
        if joiner is not None:
            self._residual.join = joiner.join
        #: What the engine keeps for the next piece goes by it.
        self._key = engine.key()
        #: Of what is known as a whole only, and not by the engine.
        self._whole: list[Delivery] | None = None

    def forget(self) -> None:
        """Nobody wants more of it."""
        self._engine.forget(self._key)

    def after(self, position: int, waiting: Waiting | None = None) -> tuple[list[Delivery], int, bool]:
        """Rows behind a row of the log, the position that is reached, and whether more may follow. Raises TableError; QueryError, where a
        limit is reached; GivenUpError, when ``waiting`` goes."""
        waiting = waiting or Waiting()
        plan = self._plan
        windowed = plan.window is not None and not has_windows(plan)
        if windowed or (plan.order is not None and self._joiner is not None):
            if self._whole is None:
                self._whole = self._windows() if windowed else self._sorted(waiting)
            found = [delivery.behind(position) for delivery in self._whole]
            return [one for one in found if len(one.numbers)], max(self._end - 1, 0), False
        if self._joiner is None:
            numbers, columns, position, more = self._found(position, waiting)
            return [Delivery(numbers, columns)] if len(numbers) else [], position, more
        more = True
        while more:
            rows, position, more = self._unjoined(position, waiting)
            left, columns = self._residual.rows(rows, np.arange(len(rows.sample_ms)))
            if len(left):
                assert rows.numbers is not None
                return [Delivery(rows.numbers[left], columns)], position, more
        return [], position, False

    def _found(self, position: int, waiting: Waiting) -> tuple[Int64, pa.RecordBatch, int, bool]:
        """The engine's rows behind a position."""
        for _ in range(_ATTEMPTS):
            moves = self._reader.settled()
            question = Question(
                0,
                self._key,
                self._plan,
                self._reader.sources(self._end),
                self._timing,
                self._since_us // 1000,
                position,
                most_ordered(),
                PIECE_ROWS,
            )
            with suppress(MovedError):
                table, reached, more = self._engine.ask(question, waiting)
                if self._reader.settled() == moves:
                    [batch] = table.combine_chunks().to_batches() or [_empty(table.schema)]
                    columns = pa.RecordBatch.from_arrays(
                        batch.columns[1:], schema=pa.schema(list(batch.schema)[1:])
                    )
                    return batch.column(0).to_numpy(), columns, reached, more
            # What has been kept of it may have some rows twice.
            self._engine.forget(self._key)
        raise self._reader.unsettled()

    def _unjoined(self, position: int, waiting: Waiting) -> tuple[Rows, int, bool]:
        """The engine's rows before they are joined."""
        numbers, batch, reached, more = self._found(position, waiting)
        return self._reader.rows(numbers, batch), reached, more

    def _sorted(self, waiting: Waiting) -> list[Delivery]:
        """Rows that are joined, in the query's order. Who stops among them begins again: all have the number of the last row there is."""
        assert self._plan.order is not None
        assert self._joiner is not None
        ordered, exprs = Ordered(self._plan.order), self._plan.order.exprs()
        position, more = -1, True
        while more:
            rows, position, more = self._unjoined(position, waiting)
            places = np.arange(len(rows.sample_ms))
            left, columns = self._residual.rows(rows, places)
            if len(left):
                _, keys = self._joiner.columns(rows, places, exprs)
                ordered.add([key for key in keys if not isinstance(key, list)], columns)
        found = ordered.rows()
        if found is None:
            return []
        return [Delivery(np.full(found.num_rows, max(self._end - 1, 0), np.int64), found)]

    def _windows(self) -> list[Delivery]:
        """Those that are over."""
        # It has no feeds: their times do not matter.
        utc = (lambda _, network_ms: network_ms) if self._timing.by_utc else None
        past = PastRows(self._plan, lambda: self._reader, self._end, self._since_us)
        own = OwnWindows(
            self._plan,
            self._end,
            lambda *_: iter(()),
            lambda _: None,
            self._joiner,
            past,
            utc,
            self._timing.speed,
        )
        run, found = Run(own), list[Delivery]()
        while run.at < self._end:
            position = run.at - 1
            run.step(self._end)
            if run.at >= self._end:
                run.finish()
            found += run.behind(position)
        return found


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)

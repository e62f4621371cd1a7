"""A query's answer over the past: rows one by one, or aggregates over epochs, or over all of it.

Expressions are computed by what computes them for rows that come in, so that a value is the same then and now. Aggregates are exact
here, where motes keep summaries: MEDIAN, QUANTILE and COUNT(DISTINCT …) have no error, and nothing leaves 32 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from skerry.execution.residual import Residual
from skerry.planner.model.plans import QueryPlan
from skerry.storage.history.aggregates import Aggregation
from skerry.storage.history.first_readings import first_in_epochs
from skerry.storage.history.layout import Int64
from skerry.storage.history.reader import Reader, Samples
from skerry.storage.history.sorting import Ordered
from skerry.tables.join import Joiner
from skerry.windows.own_windows import Chosen, OwnWindows, Run

#: Rows of the log that are looked at for one piece of an answer.
PIECE_ROWS = 65_536
#: (row number, values by column); a row of an aggregate has the number of the last row that went into it.
Row = tuple[int, dict[str, Any]]


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
        since_us: int = 0,
        joiner: Joiner | None = None,
        *,
        by_utc: bool = False,
        speed: float = 1.0,
    ) -> None:
        """``since_us``: where the query's span begins, UTC; ``by_utc``: whether windows and epochs that are aggregated are of all
        networks, by UTC, instead of each session's own; ``speed``: s of network time in one of UTC's."""
        self._plan, self._reader, self._end = plan, reader, end
        self._rows = PastRows(plan, lambda: reader, end, since_us)
        self._joiner, self._by_utc, self._speed = joiner, by_utc, speed
        self._residual = Residual(plan)
        if joiner is not None:
            self._residual.join = joiner.join
        #: Of what is known as a whole only.
        self._whole: list[Row] | None = None

    def after(self, position: int) -> tuple[list[Row], int, bool]:
        """Rows behind a row of the log, the position that is reached, and whether more may follow. Raises TableError, and QueryError
        where more rows are to be put in order than there is room for."""
        plan = self._plan
        if plan.aggregate or plan.window is not None or plan.order is not None:
            if self._whole is None:
                self._whole = self._computed()
            return [row for row in self._whole if row[0] > position], max(self._end - 1, 0), False
        start = max(position + 1, min(self._reader.first(), self._end))
        while start < self._end:
            end = min(start + PIECE_ROWS, self._end)
            samples = self._reader.read(start, end)
            places = self._rows.selected(samples)
            if len(places) or end == self._end:
                left, columns = self._residual.rows(samples.rows, places)
                rows = list(zip(samples.numbers[left].tolist(), columns.to_pylist(), strict=True))
                return rows, end - 1, end < self._end
            start = end
        return [], self._end - 1, False

    def _computed(self) -> list[Row]:
        if self._plan.window is not None:
            return self._windows()
        if self._plan.order is None:
            return self._aggregate()
        rows = [row for _, row in self._aggregate()] if self._plan.aggregate else self._sorted()
        # Who stops among them begins again: all have the number of the last row there is.
        return [(max(self._end - 1, 0), row) for row in rows]

    def _sorted(self) -> list[dict[str, Any]]:
        """Rows one by one, in the query's order."""
        assert self._plan.order is not None
        ordered, exprs = Ordered(self._plan.order), self._plan.order.exprs()
        for start in range(self._reader.first(), self._end, PIECE_ROWS):
            samples = self._reader.read(start, min(start + PIECE_ROWS, self._end))
            places = self._rows.selected(samples)
            left, columns = self._residual.rows(samples.rows, places)
            if not len(left):
                continue
            if self._joiner is not None:
                _, keys = self._joiner.columns(samples.rows, places, exprs)
                ordered.add([key for key in keys if not isinstance(key, list)], columns)
                continue
            evaluate = samples.rows.evaluate.at(left)
            ordered.add([evaluate(expr, self._plan.period_ms) for expr in exprs], columns)
        return ordered.rows()

    def _windows(self) -> list[Row]:
        """Those that are over."""
        # It has no feeds: their times do not matter.
        utc = (lambda _, network_ms: network_ms) if self._by_utc else None
        own = OwnWindows(
            self._plan,
            self._end,
            lambda *_: iter(()),
            lambda _: None,
            self._joiner,
            self._rows,
            utc,
            self._speed,
        )
        run, rows = Run(own), list[Row]()
        while run.at < self._end:
            position = run.at - 1
            run.step(self._end)
            if run.at >= self._end:
                run.finish()
            for delivery in run.behind(position):
                rows += zip(delivery.numbers.tolist(), delivery.columns.to_pylist(), strict=True)
        return rows

    def _aggregate(self) -> list[Row]:
        assert self._plan.history is not None
        by_epoch = not self._plan.history.recorded
        speed = self._speed if self._by_utc else None
        aggregation = Aggregation(self._plan, by_epoch=by_epoch, speed=speed, pace=self._speed)
        for start in range(self._reader.first(), self._end, PIECE_ROWS):
            samples = self._reader.read(start, min(start + PIECE_ROWS, self._end))
            aggregation.add(samples, self._rows.selected(samples))
        return aggregation.rows(max(self._end - 1, 0))

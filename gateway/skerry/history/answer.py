"""A query's answer over the past: rows one by one, or aggregates over epochs, or over all of it.

Expressions are computed by what computes them for rows that come in, so that a value is the same then and now. Aggregates are exact
here, where motes keep summaries: MEDIAN, QUANTILE and COUNT(DISTINCT …) have no error, and nothing leaves 32 bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skerry.history.aggregates import Aggregation
from skerry.history.layout import Int64
from skerry.history.reader import Reader, Samples
from skerry.plan.model import Past, QueryPlan
from skerry.plan.residual import Residual

#: Rows of the log that are looked at for one piece of an answer.
PIECE_ROWS = 65_536
#: (row number, values by column); a row of an aggregate has the number of the last row that went into it.
Row = tuple[int, dict[str, Any]]


class Answer:
    """One query's rows among those of the log before ``end``. A piece that is asked for again is the same."""

    def __init__(self, plan: QueryPlan, reader: Reader, end: int) -> None:
        assert plan.history is not None
        self._plan, self._past, self._reader, self._end = plan, plan.history, reader, end
        self._residual = Residual(plan)
        self._aggregated: list[Row] | None = None

    def after(self, position: int) -> tuple[list[Row], int, bool]:
        """Rows behind a row of the log, the position that is reached, and whether more may follow."""
        if self._plan.aggregate:
            if self._aggregated is None:
                self._aggregated = self._aggregate()
            return [row for row in self._aggregated if row[0] > position], max(self._end - 1, 0), False
        start = max(position + 1, min(self._reader.first(), self._end))
        while start < self._end:
            end = min(start + PIECE_ROWS, self._end)
            samples = self._reader.read(start, end)
            places = self._selected(samples)
            if len(places) or end == self._end:
                values = self._residual.project(samples.rows, places).to_pylist()
                rows = list(zip(samples.numbers[places].tolist(), values, strict=True))
                return rows, end - 1, end < self._end
            start = end
        return [], self._end - 1, False

    def _selected(self, samples: Samples) -> Int64:
        """Indices of the query's rows: the first in each of its epochs, those that pass its condition."""
        chosen = in_epochs(samples, self._reader.scheduled_before(samples), self._plan.period_ms, self._past)
        chosen &= samples.rows.evaluate.truth(self._plan.where, self._plan.period_ms)
        return np.flatnonzero(chosen)

    def _aggregate(self) -> list[Row]:
        aggregation = Aggregation(self._plan, by_epoch=not self._past.recorded)
        for start in range(self._reader.first(), self._end, PIECE_ROWS):
            samples = self._reader.read(start, min(start + PIECE_ROWS, self._end))
            aggregation.add(samples, self._selected(samples))
        return aggregation.rows(max(self._end - 1, 0))


def in_epochs(
    samples: Samples, before: Int64, period_ms: int, past: Past
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which rows are the first that a query of this period sees in each of its epochs, as in :class:`skerry.plan.model.Feed`."""
    if past.recorded:
        return np.ones(len(samples), np.bool_)
    first: np.ndarray[Any, np.dtype[np.bool_]] = samples.rows.sample_ms // period_ms != before // period_ms
    return first | (before < 0)

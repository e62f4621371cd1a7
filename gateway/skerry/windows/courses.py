"""The windows of a query on their way through time: when they are over, and which of them hold a row."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from skerry.execution.range_index import Int64
from skerry.expressions.evaluate import Mask
from skerry.expressions.expression import Expr
from skerry.planner.model.frames import Frame, Window

#: The windows of a query, and where those begin that are landmarks'.
Key = tuple[Frame, int]


@dataclass(slots=True)
class Course:
    """``first_ms``: of landmarks, where they begin.

    ``closed_ms``: the end of the last row that came; None before the first row of the log. ``before``: states of landmarks'
    panes that are no longer held, with the number of rows first, and ``motes_before`` their motes. ``revised``: how often those that end
    within the last hour have changed.
    """

    frame: Frame
    first_ms: int = 0
    closed_ms: int | None = None
    before: dict[Expr | None, list[Int64]] | None = None
    motes_before: Mask = field(default_factory=lambda: np.zeros(0, np.bool_))
    revised: dict[int, int] = field(default_factory=dict)

    def due(self, time_ms: int) -> int:
        """End of the last row that is over when all before ``time_ms`` has been seen."""
        return time_ms // self.frame.slide_ms * self.frame.slide_ms

    def spans(self, window: Window, ends: Int64) -> tuple[Int64, Int64]:
        """Where a window of the rows with these ends begins, and ends."""
        latest = ends // window.slide_ms * window.slide_ms
        begins = latest - window.length_ms if window.length_ms else np.full(len(ends), self.first_ms)
        return begins, latest

    def begins(self, ends: Int64) -> Int64:
        """Where the earliest window of the rows with these ends begins."""
        found: Int64 = np.minimum.reduce([self.spans(window, ends)[0] for window in self.frame.windows])
        return found

    def holding(self, sample_ms: int) -> list[int]:
        """Ends of the rows that have come and whose windows hold a sample."""
        found: set[int] = set()
        slide, closed = self.frame.slide_ms, self.closed_ms
        assert closed is not None
        for window in self.frame.windows:
            if not window.length_ms and sample_ms < self.first_ms:
                continue
            first = window.latest(sample_ms) + window.slide_ms
            # It holds it until the next end takes its place.
            last = window.latest(sample_ms + window.length_ms) + window.slide_ms - slide
            found.update(range(first, min(closed, last if window.length_ms else closed) + 1, slide))
        return sorted(found)

    def revise(self, end_ms: int) -> int:
        """One more revision of a row's windows: its number."""
        self.revised[end_ms] = found = self.revised.get(end_ms, 0) + 1
        return found

    def settle(self, time_ms: int) -> None:
        """Rows that end up to then do not change any more."""
        for end_ms in [end_ms for end_ms in self.revised if end_ms <= time_ms]:
            del self.revised[end_ms]

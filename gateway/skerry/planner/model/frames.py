"""Frames: the windows of time over which the gateway aggregates a query's rows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from skerry.expressions import build
from skerry.expressions.expression import Expr
from skerry.sql.units import duration_text
from skerry_protocol.attributes import BY_NAME

#: Pieces of one window, each as long as the greatest common divisor of length and slide.
PANES_MAXIMUM = 10_000
#: How far behind the time a row may be to count, in ms.
LATENESS_MS = 3_600_000
#: Sums lie within this, or are NULL.
SUM_MAXIMUM = 2**53
#: Pieces times groups that are kept at most (8 bytes each, and 32 for each expression that is aggregated).
CELLS_MAXIMUM = 10_000_000
#: The epoch of a row, as queries group by it.
EPOCH = build.attribute(BY_NAME["epoch"])


@dataclass(frozen=True, slots=True)
class Window:
    """``length_ms`` 0: since the query began. A row for each ``slide_ms``."""

    length_ms: int
    slide_ms: int

    def __str__(self) -> str:
        length = (
            f"the last {duration_text(self.length_ms)}" if self.length_ms else "all since the query began"
        )
        return f"{length}, each {duration_text(self.slide_ms)}"

    def latest(self, time_ms: int) -> int:
        """End of the last one that is over at a time."""
        return time_ms // self.slide_ms * self.slide_ms


@dataclass(frozen=True, slots=True)
class Frame:
    """The windows of one query. It has a row at each end of the one with the shortest slide, which divides the others';
    those have what they had at their latest end.

    ``whole``: where a late row changes one group, the rows of all groups come again.
    """

    windows: tuple[Window, ...]
    whole: bool = False

    @property
    def slide_ms(self) -> int:
        """Time between rows."""
        return min(window.slide_ms for window in self.windows)

    @property
    def width_ms(self) -> int:
        """Of the longest pieces of time that all windows can be put together of."""
        return math.gcd(*(time for w in self.windows for time in (w.length_ms or w.slide_ms, w.slide_ms)))

    @property
    def lookback_ms(self) -> int:
        """How far before a row's end the earliest window with a length may begin."""
        return max(window.length_ms + window.slide_ms for window in self.windows) - self.slide_ms

    def epochs(self, period_ms: int) -> int:
        """Epochs that all its windows of one row span, one after the other: what an epoch leaves when divided by their number tells
        them apart there, so that groups by epoch do not grow in number with time."""
        return self.lookback_ms // period_ms

    @property
    def groups_maximum(self) -> int:
        """How many groups may have rows at once in its windows and the hour in which rows may be late: memory has room for
        :data:`CELLS_MAXIMUM` pieces of groups."""
        pieces = 2 * (self.lookback_ms + LATENESS_MS) // self.width_ms + 2
        return max(1, CELLS_MAXIMUM // pieces)

    @property
    def is_bounded(self) -> bool:
        """Whether no window is a landmark's."""
        return all(window.length_ms for window in self.windows)


def is_windowed(expr: Expr) -> bool:
    """Whether the node is an aggregate over a window."""
    return expr.final[:1] == ("window",)


def windows_of(exprs: Iterable[Expr]) -> list[Window]:
    """The windows in some expressions, each once."""
    nodes = [node for expr in exprs for node in expr.walk() if is_windowed(node)]
    return list(dict.fromkeys(window_of(node) for node in nodes))


def window_of(node: Expr) -> Window:
    """The window of an aggregate."""
    _, length, slide = node.final
    assert isinstance(length, int)
    assert isinstance(slide, int)
    return Window(length, slide)

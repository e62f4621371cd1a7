"""A user's query as the proxy sees it."""

from __future__ import annotations

from dataclasses import dataclass, field

from skerry.delivery.buffers import FeedBuffer
from skerry.execution.residual import Residual
from skerry.planner.model.plans import Feed, QueryPlan
from skerry.tables.join import Joiner
from skerry.windows.own_windows import OwnWindows


@dataclass(slots=True)
class Subscriber:
    """``begin``: row of the log that the query begins with; ``feeds``: which rows of which stream are the user's."""

    plan: QueryPlan
    residual: Residual
    buffer: FeedBuffer
    begin: int
    feeds: dict[int, Feed] = field(default_factory=dict)
    #: What joins its rows with tables, which it has no windows over.
    joiner: Joiner | None = None
    #: The windows that it has for itself.
    own: OwnWindows | None = None

    @property
    def has_windows(self) -> bool:
        """Whether its rows are those of windows."""
        return self.plan.window is not None or (self.plan.sources is not None and self.plan.sources.gathers)

    @property
    def shares_windows(self) -> bool:
        """Whether it has windows that others may have, too."""
        return self.plan.window is not None and self.own is None

"""Which rows of a stream are a query's: its conditions without its columns, as executors evaluate them.

A filter is a plain value that goes to executors as JSON, and takes nothing but the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from skerry.expressions.evaluate import Mask, Values
from skerry.expressions.expression import Expr, from_list
from skerry.expressions.ranges import RangeFilter, split_range
from skerry.planner.model.plans import Feed, QueryPlan
from skerry.planner.model.waits import told_by

if TYPE_CHECKING:
    from skerry.execution.residual import Rows

#: Places of rows in a batch.
Indices = NDArray[np.signedinteger[Any]]
#: How ``final`` of an aggregate begins whose code is the gateway's alone.
_EXTENSION = "extension"


@dataclass(frozen=True, slots=True)
class Filter:
    """One query's conditions. ``having`` is asked of ``aggregates``; ``told``: which rows of an aggregate are its own, see
    :meth:`skerry.execution.residual.Rows.told`.

    Nothing is left of a condition that the motes of a query of its own (aggregates, ONCE) have applied.
    """

    where: Expr | None
    having: Expr | None
    aggregates: tuple[Expr, ...]
    told: tuple[int, bool]
    period_ms: int

    @classmethod
    def of(cls, plan: QueryPlan) -> Filter:
        """A plan's."""
        alone = plan.aggregate or plan.once or plan.temporal or plan.columns
        where = None if alone and plan.where == plan.mote_where else plan.where
        # Without HAVING no aggregate decides.
        aggregates = tuple(plan.aggregates()) if plan.having is not None else ()
        return cls(where, plan.having, aggregates, (told_by(plan.wait_ms), plan.revises), plan.period_ms)

    @property
    def range(self) -> RangeFilter | None:
        """What an index can look up: see :func:`skerry.expressions.ranges.split_range`."""
        return split_range(self.where)[0]

    @property
    def rest(self) -> Expr | None:
        """What is left of the condition besides ``range``."""
        return split_range(self.where)[1]

    @property
    def in_executors(self) -> Filter:
        """The part that executors evaluate: without a HAVING that needs code which only the gateway has."""
        if any(node.final[:1] == (_EXTENSION,) for node in self.aggregates):
            return replace(self, having=None, aggregates=())
        return self

    def select(self, rows: Rows, feed: Feed, candidates: Indices | None = None) -> Indices:
        """Places of the query's rows, ascending: in its feed, and passing its conditions.

        ``candidates``: places known to pass ``range``, of which to choose; None: of all rows.
        """
        condition = self.where if candidates is None else self.rest
        if self.having is not None:
            rows.prepare(self.aggregates)
        evaluate = rows.evaluate if candidates is None else rows.evaluate.at(candidates)
        passing = in_feed(evaluate.sample_ms, feed)
        if rows.query.aggregate:
            told = rows.told(*self.told)
            passing &= told if candidates is None else told[candidates]
        if condition is not None:
            passing &= evaluate.truth(condition, self.period_ms)
        if self.having is not None:
            passing &= evaluate.truth(self.having, self.period_ms)
        return np.flatnonzero(passing) if candidates is None else candidates[passing]

    def to_list(self) -> list[Any]:
        """For JSON."""
        where, having = (None if expr is None else expr.to_list() for expr in (self.where, self.having))
        return [where, having, [node.to_list() for node in self.aggregates], list(self.told), self.period_ms]

    @classmethod
    def from_list(cls, data: Sequence[Any]) -> Filter:
        """What :meth:`to_list` wrote."""
        where, having = (None if expr is None else from_list(expr) for expr in data[:2])
        by, revises = data[3]
        return cls(where, having, tuple(map(from_list, data[2])), (by, revises), data[4])


def in_feed(sample_ms: Values, feed: Feed) -> Mask:
    """``feed.passes`` for many sample times."""
    passing = sample_ms >= feed.since_ms
    if feed.until_ms is not None:
        passing &= sample_ms < feed.until_ms
    previous = sample_ms - feed.stream_period_ms
    if feed.before_ms is not None:
        previous = np.where(previous < feed.since_ms, feed.before_ms, previous)
    if feed.period_ms != feed.stream_period_ms or feed.before_ms is not None:
        passing &= sample_ms // feed.period_ms != previous // feed.period_ms
    return passing

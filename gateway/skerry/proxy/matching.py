"""Which rows of one stream's batch are whose."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from skerry.plan.expression import Expr
from skerry.plan.model import Feed
from skerry.plan.residual import Residual, Rows
from skerry.proxy.feeds import Delivery
from skerry.proxy.index import Int64, Places, RangeIndex, Sorted, in_order

#: A column and the phase of the rows sorted by it: (attribute, user's period, stream's period) in ms.
Key = tuple[str, int, int]
#: Conditions without an index whose rows a batch remembers for others with the same.
REMEMBERED = 32


class Part:
    """The rows of one stream in a batch, and what was found out about them for one user and helps others.

    Made by one thread, read by any: what is remembered is only ever added.
    """

    def __init__(self, stream: int, rows: Rows, numbers: Int64) -> None:
        #: ``numbers``: the rows' numbers in the log, ascending.
        self.stream, self.rows, self.numbers = stream, rows, numbers
        self._first, self._last = int(rows.sample_ms.min()), int(rows.sample_ms.max())
        self._sorted: dict[Key, Sorted] = {}
        self._found: dict[tuple[object, ...], Places] = {}

    def by(self, key: Key) -> Sorted:
        """The rows that know an attribute and are the first in an epoch of the user's period, by its value."""
        found = self._sorted.get(key)
        if found is None:
            name, period, stream_period = key
            values, chosen = self.rows.column(name)
            if period != stream_period:
                samples = self.rows.sample_ms
                chosen = chosen & (samples // period != (samples - stream_period) // period)
            places = np.flatnonzero(chosen)
            found = self._sorted[key] = in_order(values[places], places)
        return found

    def places(self, residual: Residual, feed: Feed) -> Places:
        """A user's rows, ascending."""
        key = index_key(residual, feed)
        if key is None or self.rows.query.aggregate:
            return self._unindexed(residual, feed)
        condition = residual.range
        assert condition is not None
        if feed.before_ms is not None and not self._settled(feed):
            # The cut-over decides which row is the first of an epoch: the phase is not the usual one.
            return residual.select(self.rows, feed)
        found = self.by(key).within(condition.low, condition.high)
        if not len(found) or (residual.rest is None and self._settled(feed)):
            return found
        return residual.select(self.rows, feed, found)

    def delivery(self, residual: Residual, feed: Feed) -> Delivery | None:
        """A user's rows, if any, as he sees them."""
        places = self.places(residual, feed)
        return Delivery(self.numbers[places], residual.project(self.rows, places)) if len(places) else None

    def _settled(self, feed: Feed) -> bool:
        """Whether all rows lie in the feed, far enough from its begin for a cut-over not to matter."""
        since = feed.since_ms + (feed.stream_period_ms if feed.before_ms is not None else 0)
        return since <= self._first and (feed.until_ms is None or self._last < feed.until_ms)

    def _unindexed(self, residual: Residual, feed: Feed) -> Places:
        key = condition_key(residual, feed)
        found = self._found.get(key)
        if found is None:
            found = residual.select(self.rows, feed).astype(np.int32)
            if len(self._found) < REMEMBERED:
                self._found[key] = found
        return found


def index_key(residual: Residual, feed: Feed) -> Key | None:
    """How the user's rows are looked up; None: his condition bounds no attribute."""
    condition = residual.range
    return None if condition is None else (condition.name, feed.period_ms, feed.stream_period_ms)


def condition_key(
    residual: Residual, feed: Feed
) -> tuple[Expr | None, Expr | None, int, int, int, int | None, int | None]:
    """The same for users who get the same rows."""
    limits = feed.since_ms, feed.until_ms, feed.before_ms
    return residual.where, residual.plan.having, feed.period_ms, feed.stream_period_ms, *limits


@dataclass(frozen=True, slots=True)
class Listener:
    """A user of a stream."""

    user: str
    residual: Residual
    feed: Feed


class Audience:
    """The users of one stream, arranged so that a batch costs what it matches."""

    def __init__(self, listeners: Iterable[Listener], aggregate: bool) -> None:
        ranges: dict[Key, list[tuple[str, int | None, int | None]]] = {}
        self._others: list[str] = []
        for listener in listeners:
            key, condition = index_key(listener.residual, listener.feed), listener.residual.range
            if key is None or condition is None or aggregate or listener.feed.before_ms is not None:
                self._others.append(listener.user)
            else:
                ranges.setdefault(key, []).append((listener.user, condition.low, condition.high))
        self._indexes = {key: RangeIndex(entries) for key, entries in ranges.items()}

    def hits(self, part: Part) -> list[str]:
        """Users who have rows in it as far as an index tells; those whom none answers are always among them."""
        found = list(self._others)
        for key, index in self._indexes.items():
            found += index.hits(part.by(key))
        return found

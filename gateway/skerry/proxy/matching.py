"""Which rows of one stream's batch are whose."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from skerry.plan.model import Feed
from skerry.plan.residual import Residual, Rows
from skerry.proxy.feeds import Delivery
from skerry.proxy.index import LEAST, MOST, Int64, Places, RangeIndex, Sorted, in_order

#: A column and the phase of the rows sorted by it: (attribute, user's period, stream's period) in ms.
Key = tuple[str, int, int]
#: Conditions without an index whose rows a batch remembers for others with the same.
REMEMBERED = 32


class View:
    """A user's query on one stream, with what is looked up for every batch at hand.

    ``key`` says how his rows are looked up, with ``low`` and ``high``; None: his condition bounds no attribute.
    """

    __slots__ = ("feed", "high", "key", "low", "residual", "same", "until", "whole_from")

    def __init__(self, residual: Residual, feed: Feed) -> None:
        self.residual, self.feed = residual, feed
        condition = residual.range
        self.key: Key | None = None
        self.low, self.high = LEAST, MOST
        if condition is not None:
            self.key = (condition.name, feed.period_ms, feed.stream_period_ms)
            self.low = LEAST if condition.low is None else np.int64(condition.low)
            self.high = MOST if condition.high is None else np.int64(condition.high)
        #: Sample times between these (ms, the second exclusive) are his, and no cut-over decides which is the first of
        #: an epoch.
        self.whole_from = feed.since_ms + (feed.stream_period_ms if feed.before_ms is not None else 0)
        self.until: float = float("inf") if feed.until_ms is None else feed.until_ms
        #: The same for users who get the same rows.
        self.same = (
            residual.where, residual.plan.having, feed.period_ms, feed.stream_period_ms,
            feed.since_ms, feed.until_ms, feed.before_ms,
        )  # fmt: skip


class Part:
    """The rows of one stream in a batch, and what was found out about them for one user and helps others.

    Made by one thread, read by any: what is remembered is only ever added.
    """

    def __init__(self, rows: Rows, numbers: Int64) -> None:
        #: ``numbers``: the rows' numbers in the log, ascending.
        self.rows, self.numbers = rows, numbers
        rows.numbers = numbers
        self._first, self._last = int(rows.sample_ms.min()), int(rows.sample_ms.max())
        self._aggregate = rows.query.aggregate
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

    def places(self, view: View) -> Places:
        """A user's rows, ascending."""
        key = view.key
        if key is None or self._aggregate:
            return self._unindexed(view)
        settled = view.whole_from <= self._first and self._last < view.until
        if not settled and view.feed.before_ms is not None:
            # The cut-over decides which row is the first of an epoch: the phase is not the usual one.
            return view.residual.select(self.rows, view.feed)
        found = self.by(key).within(view.low, view.high)
        if not len(found) or (settled and view.residual.rest is None):
            return found
        return view.residual.select(self.rows, view.feed, found)

    def delivery(self, view: View) -> Delivery | None:
        """A user's rows, if any, as he sees them."""
        places = self.places(view)
        if not len(places):
            return None
        places, columns = view.residual.rows(self.rows, places)
        return Delivery(self.numbers[places], columns) if len(places) else None

    def _unindexed(self, view: View) -> Places:
        found = self._found.get(view.same)
        if found is None:
            found = view.residual.select(self.rows, view.feed).astype(np.int32)
            if len(self._found) < REMEMBERED:
                self._found[view.same] = found
        return found


class Audience:
    """The users of one stream, arranged so that a batch costs what it matches."""

    def __init__(self, views: Iterable[tuple[str, View]], aggregate: bool) -> None:
        ranges: dict[Key, list[tuple[str, int, int]]] = {}
        self._others: list[str] = []
        for user, view in views:
            if view.key is None or aggregate or view.feed.before_ms is not None:
                self._others.append(user)
            else:
                ranges.setdefault(view.key, []).append((user, int(view.low), int(view.high)))
        self._indexes = {key: RangeIndex(entries) for key, entries in ranges.items()}

    def hits(self, part: Part) -> list[str]:
        """Users who have rows in it as far as an index tells; those whom none answers are always among them."""
        found = list(self._others)
        for key, index in self._indexes.items():
            found += index.hits(part.by(key))
        return found

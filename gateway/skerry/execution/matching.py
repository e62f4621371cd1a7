"""Which rows of one stream's batch are one query's, with what helps others found out once."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from skerry.execution.filters import Filter
from skerry.execution.joined import Join
from skerry.execution.range_index import LEAST, MOST, Int64, Places, Sorted, in_order
from skerry.execution.residual import Rows
from skerry.planner.model.plans import Feed

#: A column and the phase of the rows sorted by it: (attribute, user's period, stream's period) in ms.
Key = tuple[str, int, int]
#: Conditions without an index whose rows a batch remembers for others with the same.
REMEMBERED = 32


class View:
    """A query's filter on one stream, with what is looked up for every batch at hand.

    ``key`` says how its rows are looked up, with ``low`` and ``high``; None: its condition bounds no attribute. ``join``: what they are
    joined with (:meth:`skerry.tables.pairs.Pairing.to_text`).
    """

    __slots__ = (
        "_filter",
        "_rows",
        "feed",
        "high",
        "join",
        "key",
        "low",
        "made",
        "range_only",
        "until",
        "whole_from",
    )

    def __init__(
        self,
        filter_: Filter | str,
        feed: Feed,
        bounds: Sequence[Any] | None,
        *,
        range_only: bool,
        join: str | None = None,
    ) -> None:
        """``filter_``: as it is, or :meth:`Filter.to_list` as JSON; ``bounds``: its attribute's name and range, both ends included;
        ``range_only``: it has no other condition."""
        self._filter, self.feed, self.range_only, self.join = filter_, feed, range_only, join
        self._rows: Hashable = None
        #: What executors have made of ``join``.
        self.made: Join | None = None
        self.key: Key | None = None
        self.low, self.high = int(LEAST), int(MOST)
        if bounds is not None:
            name, self.low, self.high = bounds
            self.key = (name, feed.period_ms, feed.stream_period_ms)
        #: Sample times between these (ms, the second exclusive) are its own, and no cut-over decides which is the first of an epoch.
        self.whole_from = feed.since_ms + (feed.stream_period_ms if feed.before_ms is not None else 0)
        self.until = int(MOST) if feed.until_ms is None else feed.until_ms

    @classmethod
    def of(cls, filter_: Filter, feed: Feed, join: str | None = None) -> View:
        """Of a filter and the rows that it is about."""
        found = filter_.range
        if found is None:
            return cls(filter_, feed, None, range_only=False, join=join)
        low = int(LEAST) if found.low is None else found.low
        high = int(MOST) if found.high is None else found.high
        range_only = filter_.rest is None and filter_.having is None
        return cls(filter_, feed, (found.name, low, high), range_only=range_only, join=join)

    @property
    def filter(self) -> Filter:
        """Read when it is asked for first: of ten thousand users few need more than their ranges."""
        if not isinstance(self._filter, Filter):
            self._filter = Filter.from_list(json.loads(self._filter))
        return self._filter

    @property
    def same(self) -> Hashable:
        """Equal for those who get the same rows of a stream."""
        return self.rows, self.join

    @property
    def rows(self) -> Hashable:
        """Equal for those who get the same rows of a stream before they are joined."""
        if self._rows is None:
            self._rows = self.filter, replace(self.feed, user="", query=0)
        return self._rows

    def to_list(self) -> list[Any]:
        """For JSON."""
        feed, bounds = self.feed, None
        if self.key is not None:
            bounds = [self.key[0], self.low, self.high]
        times = [feed.period_ms, feed.stream_period_ms, feed.since_ms, feed.until_ms, feed.before_ms]
        return [bounds, self.range_only, times, json.dumps(self.filter.to_list()), self.join]

    @classmethod
    def from_list(cls, data: Sequence[Any]) -> View:
        """What :meth:`to_list` wrote."""
        bounds, range_only, times, filter_, join = data
        return cls(filter_, Feed("", 0, *times), bounds, range_only=range_only, join=join)


class Part:
    """The rows of one stream in a batch, and what was found out about them for one query and helps others."""

    def __init__(self, rows: Rows, numbers: Int64) -> None:
        #: ``numbers``: the rows' numbers in the log, ascending.
        self.rows, self.numbers = rows, numbers
        rows.numbers = numbers
        self.first, self.last = int(rows.sample_ms.min()), int(rows.sample_ms.max())
        self._sorted: dict[Key, Sorted] = {}
        self._found: dict[Hashable, Places] = {}

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
        """A query's rows, ascending."""
        key = view.key
        if key is None or self.rows.query.aggregate:
            return self._unindexed(view)
        settled = view.whole_from <= self.first and self.last < view.until
        if not settled and view.feed.before_ms is not None:
            # The cut-over decides which row is the first of an epoch: the phase is not the usual one.
            return view.filter.select(self.rows, view.feed)
        found = self.by(key).within(np.int64(view.low), np.int64(view.high))
        if not len(found) or (settled and view.range_only):
            return found
        return view.filter.select(self.rows, view.feed, found)

    def _unindexed(self, view: View) -> Places:
        same = view.rows
        found = self._found.get(same)
        if found is None:
            found = view.filter.select(self.rows, view.feed).astype(np.int32)
            if len(self._found) < REMEMBERED:
                self._found[same] = found
        return found

"""Which rows of one stream's batch are whose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from skerry.execution.deliveries import Delivery
from skerry.execution.range_index import LEAST, MOST, Int64, Places, RangeIndex, Sorted, in_order
from skerry.execution.residual import Residual, Rows
from skerry.execution.user_groups import GROUP_ROWS, GROUP_USERS, HELD_ROWS, LARGE_ROWS, ONE_IN, Group, Shares
from skerry.planner.model.plans import Feed

#: A column and the phase of the rows sorted by it: (attribute, user's period, stream's period) in ms.
Key = tuple[str, int, int]
#: Conditions without an index whose rows a batch remembers for others with the same.
REMEMBERED = 32


class View:
    """A user's query on one stream, with what is looked up for every batch at hand.

    ``key`` says how his rows are looked up, with ``low`` and ``high``; None: his condition bounds no attribute.
    """

    __slots__ = ("alike", "feed", "high", "key", "low", "residual", "same", "until", "whole_from")

    def __init__(self, residual: Residual, feed: Feed) -> None:
        self.residual, self.feed = residual, feed
        condition = residual.range
        self.key: Key | None = None
        self.low, self.high = LEAST, MOST
        if condition is not None:
            self.key = (condition.name, feed.period_ms, feed.stream_period_ms)
            self.low = LEAST if condition.low is None else np.int64(condition.low)
            self.high = MOST if condition.high is None else np.int64(condition.high)
        #: Whether his rows are a range and nothing else.
        self.alike = (
            self.key is not None
            and residual.rest is None
            and residual.join is None
            and residual.plan.having is None
            and feed.before_ms is None
        )
        #: Sample times between these (ms, the second exclusive) are his, and no cut-over decides which is the first of
        #: an epoch.
        self.whole_from = feed.since_ms + (feed.stream_period_ms if feed.before_ms is not None else 0)
        self.until: float = float("inf") if feed.until_ms is None else feed.until_ms
        #: The same for users who get the same rows.
        self.same = (
            residual.where, residual.plan.having, residual.told, feed.period_ms, feed.stream_period_ms,
            feed.since_ms, feed.until_ms, feed.before_ms,
        )  # fmt: skip


class Part:
    """The rows of one stream in a batch, and what was found out about them for one user and helps others.

    Made by one thread, read by any: what is remembered is only ever added.
    """

    def __init__(self, rows: Rows, numbers: Int64) -> None:
        #: ``numbers``: the rows' numbers in the log, ascending.
        self.rows, self.numbers = rows, numbers
        #: Whose rows may be taken out together; None: nobody's.
        self.audience: Audience | None = None
        self._together = False
        self._shares: dict[Group, Shares | None] = {}
        self._held = 0
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
        settled = self._settled(view)
        if not settled and view.feed.before_ms is not None:
            # The cut-over decides which row is the first of an epoch: the phase is not the usual one.
            return view.residual.select(self.rows, view.feed)
        found = self.by(key).within(view.low, view.high)
        if not len(found) or (settled and view.residual.rest is None):
            return found
        return view.residual.select(self.rows, view.feed, found)

    def hits(self, audience: Audience) -> list[str]:
        """Its users who have rows here as far as an index tells: see :meth:`Audience.hits`."""
        found = audience.hits(self)
        self.audience = audience
        crowded = len(found) * ONE_IN >= audience.users > GROUP_USERS
        self._together = crowded or len(self.numbers) >= LARGE_ROWS
        return found

    def delivery(self, view: View) -> Delivery | None:
        """A user's rows, if any, as he sees them."""
        if self.audience is not None and self._together and self._settled(view):
            group, user = self.audience.group(view)
            shares = None if group is None else self._of_group(group, view)
            if shares is not None:
                return shares.of(user)
        places = self.places(view)
        if not len(places):
            return None
        places, columns = view.residual.rows(self.rows, places)
        return Delivery(self.numbers[places], columns) if len(places) else None

    def _settled(self, view: View) -> bool:
        return view.whole_from <= self._first and self._last < view.until

    def _of_group(self, group: Group, view: View) -> Shares | None:
        """What a group has; None where it is too much to be held, or has to be computed for each user."""
        if group in self._shares:
            return self._shares[group]
        assert view.key is not None
        columns, shares = self.rows.shared(view.residual), None
        if columns is not None:
            most = min(GROUP_ROWS, HELD_ROWS - self._held)
            shares = group.shares(self.by(view.key), self.numbers, columns, most)
        if shares is not None:
            self._held += len(shares.numbers)
        self._shares[group] = shares
        return shares

    def _unindexed(self, view: View) -> Places:
        found = self._found.get(view.same)
        if found is None:
            found = view.residual.select(self.rows, view.feed).astype(np.int32)
            if len(self._found) < REMEMBERED:
                self._found[view.same] = found
        return found


class Audience:
    """The users of one stream, arranged so that a batch costs what it matches."""

    def __init__(self, views: Sequence[tuple[str, View]], aggregate: bool) -> None:
        #: How many there are.
        self.users = len(views)
        ranges: dict[Key, list[tuple[str, int, int]]] = {}
        self._others: list[str] = []
        for user, view in views:
            if view.key is None or aggregate or view.feed.before_ms is not None:
                self._others.append(user)
            else:
                ranges.setdefault(view.key, []).append((user, int(view.low), int(view.high)))
        self._indexes = {key: RangeIndex(entries) for key, entries in ranges.items()}
        self._groups = _groups([view for _, view in views if view.alike]) if not aggregate else {}

    def group(self, view: View) -> tuple[Group | None, int]:
        """With whom a user's rows of a large batch may be taken out, and his place among them."""
        return self._groups.get(view, (None, 0))

    def hits(self, part: Part) -> list[str]:
        """Users who have rows in it as far as an index tells; those whom none answers are always among them."""
        found = list(self._others)
        for key, index in self._indexes.items():
            found += index.hits(part.by(key))
        return found


def _groups(views: Iterable[View]) -> dict[View, tuple[Group | None, int]]:
    """Those who see the same columns, so many at a time."""
    alike: dict[tuple[Key | None, str], list[View]] = {}
    for view in views:
        alike.setdefault((view.key, view.residual.layout), []).append(view)
    groups: dict[View, tuple[Group | None, int]] = {}
    for same in alike.values():
        for i in range(0, len(same), GROUP_USERS):
            some = same[i : i + GROUP_USERS]
            group = Group([(view.low, view.high) for view in some])
            groups |= {view: (group, place) for place, view in enumerate(some)}
    return groups

"""Rows that executors have matched, as users see them: taken out of a batch when their readers come."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from skerry.execution.deliveries import Delivery
from skerry.execution.matched import Matched
from skerry.execution.range_index import Places
from skerry.execution.residual import Residual, Rows
from skerry.execution.user_groups import GROUP_ROWS, GROUP_USERS, HELD_ROWS, LARGE_ROWS, ONE_IN, Group, Shares
from skerry.planner.model.plans import Feed
from skerry.streams.stream import Stream
from skerry.tables.join import Joiner

#: Entries whose places a batch remembers for others with the same.
REMEMBERED = 32


@dataclass(frozen=True, slots=True, eq=False)
class UserView:
    """A user's query on one stream: by which entry of the users' index he gets rows, and how he sees them. ``rest``: whether something is
    left of his conditions that executors do not evaluate; ``joiner``: what makes his rows of pairs that executors have found."""

    entry: int
    residual: Residual
    feed: Feed
    joiner: Joiner | None = None

    @property
    def rest(self) -> bool:
        return self.residual.filter.in_executors is not self.residual.filter


class Audience:
    """The users of one stream, arranged so that rows of many may be taken out of a large batch together."""

    def __init__(self, views: Iterable[UserView]) -> None:
        alike: dict[str, list[UserView]] = {}
        #: How many there are.
        self.users = 0
        for view in views:
            self.users += 1
            if view.residual.join is None and not view.rest:
                alike.setdefault(view.residual.layout, []).append(view)
        self._groups: dict[UserView, tuple[Group, int]] = {}
        for same in alike.values():
            for i in range(0, len(same), GROUP_USERS):
                some = same[i : i + GROUP_USERS]
                group = Group([view.entry for view in some])
                self._groups |= {view: (group, place) for place, view in enumerate(some)}

    def group(self, view: UserView) -> tuple[Group | None, int]:
        """With whom a user's rows may be taken out, and his place among them."""
        return self._groups.get(view, (None, 0))


class MatchedRows:
    """Rows of one stream in a part of a batch, and what was found out about them for one user and helps others.

    Made by one thread, read by any: what is remembered is only ever added.
    """

    def __init__(self, found: Matched, stream: Callable[[int], Stream | None], audience: Audience) -> None:
        """``stream``: what a number means, of those that readers ask for."""
        self._found, self._stream, self._audience = found, stream, audience
        crowded = len(found.hits) * ONE_IN >= audience.users > GROUP_USERS
        self._together = crowded or len(found.numbers) >= LARGE_ROWS
        self._made: Rows | None = None
        self._shares: dict[Group, Shares | None] = {}
        self._places: dict[int, Places] = {}
        self._held = 0

    @property
    def rows(self) -> Rows:
        """Made when the first reader comes: rows that nobody reads cost nothing."""
        if self._made is None:
            stream = self._stream(self._found.stream)
            assert stream is not None
            made = Rows(self._found.batch, stream.mote_query)
            made.numbers = self._found.numbers
            made.sessions = np.full(len(made.numbers), stream.session)
            self._made = made
        return self._made

    def delivery(self, view: UserView) -> Delivery | None:
        """A user's rows, if any, as he sees them."""
        if self._together:
            group, user = self._audience.group(view)
            shares = None if group is None else self._of_group(group, view)
            if shares is not None:
                return shares.of(user)
        pairs = [] if view.joiner is None else self._found.joined.pairs(view.entry)
        if view.joiner is not None and pairs:
            left, columns = view.joiner.rows(self.rows, pairs)
            return Delivery(self._found.numbers[left], columns)
        places = self._of_entry(view.entry)
        if not len(places):
            return None
        if view.rest:
            places = view.residual.select(self.rows, view.feed, places)
        places, columns = view.residual.rows(self.rows, places)
        return Delivery(self._found.numbers[places], columns) if len(places) else None

    def _of_entry(self, entry: int) -> Places:
        """Joins tell places that they have seen by their identity."""
        places = self._places.get(entry)
        if places is None:
            places = self._found.of(entry)
            if len(self._places) < REMEMBERED:
                self._places[entry] = places
        return places

    def _of_group(self, group: Group, view: UserView) -> Shares | None:
        """What a group has; None where it is too much to be held, or has to be computed for each user."""
        if group in self._shares:
            return self._shares[group]
        columns, shares = self.rows.shared(view.residual), None
        if columns is not None:
            shares = group.shares(self._found, columns, min(GROUP_ROWS, HELD_ROWS - self._held))
        if shares is not None:
            self._held += len(shares.numbers)
        self._shares[group] = shares
        return shares

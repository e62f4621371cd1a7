"""How users come to read a mote query, from their beginning on or from a cut-over on, and how it comes to be read no more."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import replace

from skerry.planner.model.periods import ceiling
from skerry.planner.model.plans import Feed, MoteQuery, QueryPlan
from skerry.sharing.cutover import Reading, choose_cut
from skerry.sharing.demand_state import Serving, User
from skerry.sharing.groups import is_made_of, view_of
from skerry.sharing.mote_queries import MoteQueries, Running
from skerry.sharing.shared_pulses import family, view


class Changeover:
    """``changed``: gets the users whose feeds have changed."""

    def __init__(self, users: dict[str, User], queries: MoteQueries, changed: set[str]) -> None:
        self._users, self._queries, self._changed = users, queries, changed

    # --- what somebody reads ---

    def reads(self, user: str) -> Feed | None:
        """The feed that has the user's rows from now on; None: he has none yet."""
        feeds = self._users[user].feeds
        return feeds[-1] if feeds else None

    def source_of(self, feed: Feed) -> int:
        """The mote query that a feed's rows come from in the end."""
        running = self._queries[feed.query]
        return running.made_of[-1].query if running.made_of else feed.query

    def reads_of(self, user: str, query: int) -> bool:
        """Whether the user's rows come from a mote query, or from what is made of it, in the end."""
        feed = self.reads(user)
        return feed is not None and feed.query in self._queries and self.source_of(feed) == query

    def reading(self, user: str, running: Running) -> Reading | None:
        """What changes for a user who is to read it; None: he has read nothing yet."""
        feed, plan = self.reads(user), self._users[user].plan
        if feed is None:
            return None
        wanted = self.wanted(plan, running.mote_query)
        return _reading(feed, running.period_ms if wanted is None else wanted.period_ms)

    @staticmethod
    def wanted(plan: QueryPlan, query: MoteQuery) -> MoteQuery | None:
        """What the gateway is to make of a mote query for a plan; None: the plan reads it itself."""
        return view(plan, query) if family(plan) is not None else view_of(plan, query)

    # --- who comes to read what ---

    def start(self, user: str, serving: Serving, group: int, running: Running, since_ms: int) -> None:
        """The user's first row is that of his first own epoch from ``since_ms`` on; of ONCE, of the query's next epoch."""
        state = self._users[user]
        plan = state.plan
        wanted = self.wanted(plan, running.mote_query)
        if plan.once and not running.mote_query.once:
            first = ceiling(since_ms, running.period_ms)
            state.since_ms = first if wanted is None else first // plan.period_ms * plan.period_ms
        else:
            state.since_ms = ceiling(since_ms, plan.period_ms)
        state.until_ms = None if state.length_ms is None else state.since_ms + state.length_ms
        read = (
            running if wanted is None else self._view(user, serving, group, wanted, running, running.cut_ms)
        )
        self._set(user, self._feed(user, read, state.since_ms, None))

    def hand_over(self, user: str, serving: Serving, group: int, running: Running, cut_ms: int) -> None:
        """The user's rows come from what he reads up to the cut, and from ``running`` from then on."""
        state, feed = self._users[user], self.reads(user)
        assert feed is not None
        wanted = self.wanted(state.plan, running.mote_query)
        reading = _reading(feed, running.period_ms if wanted is None else wanted.period_ms)
        if not reading.loses_none(cut_ms):
            cut_ms = choose_cut(cut_ms, [reading])
        if feed.since_ms >= cut_ms:
            self.unset(user, feed.query)
            self.start(user, serving, group, running, feed.since_ms)
            return
        ends_before = state.until_ms is not None and state.until_ms <= cut_ms
        self._set(user, replace(feed, until_ms=state.until_ms if ends_before else cut_ms))
        if not ends_before:
            read = running if wanted is None else self._view(user, serving, group, wanted, running, cut_ms)
            self._set(user, self._feed(user, read, cut_ms, reading.last_ms(cut_ms)))

    def go_on(self, user: str, query: int) -> None:
        """The user's rows come from a query for longer than they were to."""
        state = self._users[user]
        for feed in state.feeds:
            if feed.query == query:
                self._set(user, replace(feed, until_ms=state.until_ms))

    def switch(self, serving: Serving, running: Running, cut_ms: int, members: Container[str]) -> set[int]:
        """What the gateway makes for a group's members, and still has to, is made of this mote query from the cut on; which, by number.
        Who is no member any more reads on as before until another group serves him."""
        switched = set[int]()
        for wanted, numbers in serving.views.items():
            for number in numbers if is_made_of(wanted, running.mote_query) else ():
                if any(user in members for user in self._queries.readers(number)):
                    self._queries.make_of(self._queries[number], running, cut_ms)
                    switched.add(number)
        return switched

    def _view(
        self, user: str, serving: Serving, group: int, wanted: MoteQuery, running: Running, since_ms: int
    ) -> Running:
        """What is made for the group's users, or, for one who has read that before and has left it, another such."""
        numbers = serving.views.setdefault(wanted, [])
        had = {feed.query for feed in self._users[user].feeds}
        for made in (self._queries[number] for number in numbers if number not in had):
            if not made.made_of or made.made_of[-1].query != running.query:
                self._queries.make_of(made, running, since_ms)
            return made
        made = self._queries.make(wanted, running, since_ms, group)
        numbers.append(made.query)
        return made

    def _feed(self, user: str, read: Running, since_ms: int, before_ms: int | None) -> Feed:
        state = self._users[user]
        period = state.plan.period_ms
        return Feed(user, read.query, period, read.period_ms, since_ms, state.until_ms, before_ms)

    # --- feeds ---

    def _set(self, user: str, feed: Feed) -> None:
        state = self._users[user]
        self._changed.add(user)
        state.feeds = [f for f in state.feeds if f.query != feed.query] + [feed]
        state.feeds.sort(key=lambda f: f.since_ms)
        self._queries.read(feed)

    def unset(self, user: str, query: int) -> None:
        """The user has no rows of a query, and had none."""
        state = self._users[user]
        if any(feed.query == query for feed in state.feeds):
            self._changed.add(user)
            self._queries.unread(query, user)
            state.feeds = [feed for feed in state.feeds if feed.query != query]

    def call_off(self, users: Iterable[str], query: int) -> None:
        """Users do not come to read a query: they go on with what they read before, until something else takes its place."""
        for user in list(users):
            feeds = self._users[user].feeds
            place = next(i for i, feed in enumerate(feeds) if feed.query == query)
            gone, before, after = feeds[place], feeds[:place][-1:], feeds[place + 1 :][:1]
            self.unset(user, query)
            goes_on = before[0] if before and before[0].until_ms == gone.since_ms else None
            if goes_on is not None and not after:
                self.go_on(user, goes_on.query)
            elif after:
                self._bring_together(user, goes_on, after[0])

    def _bring_together(self, user: str, before: Feed | None, after: Feed) -> None:
        """What was between two feeds of a user, or before his first, is gone."""
        state = self._users[user]
        if before is None:
            state.since_ms = ceiling(after.since_ms, state.plan.period_ms)
            state.until_ms = None if state.length_ms is None else state.since_ms + state.length_ms
            self._set(user, replace(after, since_ms=state.since_ms, until_ms=state.until_ms, before_ms=None))
            return
        reading = _reading(before, after.stream_period_ms)
        cut = choose_cut(after.since_ms, [reading])
        self._set(user, replace(before, until_ms=cut))
        self._set(user, replace(after, since_ms=cut, before_ms=reading.last_ms(cut)))

    def leave(self, users: Iterable[str], query: int) -> None:
        """The same of all of them."""
        for user in list(users):
            self.unset(user, query)


def _reading(feed: Feed, new_ms: int) -> Reading:
    """What changes for a feed's user whose samples come so many ms apart from then on."""
    return Reading(feed.period_ms, feed.stream_period_ms, new_ms, feed.since_ms, feed.before_ms)

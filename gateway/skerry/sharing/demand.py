"""What the network is asked to run, so that every user gets his rows: a stream for each group of users.

Plain queries form one group and share one mote query; aggregates share by period and condition; ONCE
stands alone. When users come or go, the group's mote query may change: the new one is installed under a
new id, rows are taken from it from a cut-over on (:mod:`skerry.sharing.cutover`), and the old one is stopped
a little later, so that users see neither gap nor duplicate. Demand-driven rates: Fjords 2001, section 3.

Nothing here knows a clock or a network: ``now`` is network time in seconds, and the caller sends what a
:class:`~skerry.planner.model.plans.Difference` says.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from skerry.planner.features.queueing import held_ms, waits_ms
from skerry.planner.features.srt import Srt
from skerry.planner.model.frames import PERIODS_BEHIND
from skerry.planner.model.periods import ceiling, last_sample_before
from skerry.planner.model.plans import Difference, Feed, Installation, MoteQuery, QueryPlan
from skerry.planner.physical.merge import Union, merge
from skerry.planner.physical.program import encode
from skerry.planner.physical.srt_routes import routed, routed_as
from skerry.sharing.cutover import choose_cut
from skerry.sharing.demand_state import OVER_MS, Group, User
from skerry.sharing.flood_times import (
    ASKED_FOR,
    BEFORE_MS,
    SLOW_FROM_S,
    control_windows,
    frames_of,
    keeps_awake,
    keeps_some_awake,
    spread_ms,
)
from skerry.sharing.grouping import key_of
from skerry.sharing.mote_queries import MoteQueries, Running
from skerry.sharing.shared_pulses import cut_step_ms, family, serve, view
from skerry.sql.errors import QueryError
from skerry_protocol.packets import FOREVER

#: From the window in which the last motes hear of a query to its first epoch, in ms; in a slow network as long as ``lead_seconds``:
#: who knows that something is missing asks again each 4 s.
_HEARD_MS = 2_000
#: In a round rows climb so many hops, whatever the slots are.
_CLIMB_HOPS = 8
#: Rows of a join that come later behind each other than this do not come: two windows of a network that has nothing fast to do, and some.
_QUIET_MS = 40_000


class Demand:
    """Users, their plans, and the mote queries that serve them.

    ``speed``: s of network time in one of this machine's, which may change.
    ``lead_seconds``: time that the network needs to spread a query before it shall begin everywhere, at least.
    ``linger_seconds``: how long rows of an ended query may be under way before it is stopped, at least.
    ``forget_seconds``: how long a stopped query is remembered, so that late rows are understood.
    """

    def __init__(
        self, speed: float = 1.0, lead_seconds: int = 8, linger_seconds: int = 10, forget_seconds: int = 600
    ) -> None:
        self.speed = speed
        self._lead_seconds, self._linger_seconds = lead_seconds, linger_seconds
        self._forget = forget_seconds
        self._users: dict[str, User] = {}
        self._queries = MoteQueries()
        self._groups: dict[Hashable, Group] = {}
        #: From the root to the farthest mote, as far as that is known.
        self.hops = 0
        #: Whose feeds have changed since that was asked last.
        self._changed: set[str] = set()
        self._srts: tuple[Srt, ...] = ()

    @property
    def _before_ms(self) -> int:
        """What gateway and line take of this machine's time, in network time."""
        return round(BEFORE_MS * max(1.0, self.speed))

    @property
    def _late(self) -> int:
        return -(-self._before_ms // 1000) - 1

    @property
    def _lead(self) -> int:
        return self._lead_seconds + self._late

    @property
    def _linger(self) -> int:
        return self._linger_seconds + self._late

    # --- what callers ask ---

    def users(self) -> dict[str, QueryPlan]:
        """Plans by user."""
        return {user: state.plan for user, state in self._users.items()}

    def has(self, user: str) -> bool:
        """Whether the user is there."""
        return user in self._users

    def changed(self) -> set[str]:
        """Whose feeds may have changed since this was asked last; some of them may have gone."""
        found, self._changed = self._changed, set()
        return found

    def feeds(self, user: str) -> tuple[Feed, ...]:
        """The user's feeds, oldest first. Raises KeyError for an unknown user."""
        return tuple(self._users[user].feeds)

    def feeds_of(self, query: int) -> tuple[Feed, ...]:
        """Feeds of all users that read a mote query; () for one that nobody reads."""
        return tuple(self._queries.readers(query).values())

    def installation(self, query: int) -> Installation | None:
        """A mote query that runs, or was stopped lately; None for any other."""
        running = self._queries.get(query)
        return running.installation if running else None

    def cut_ms(self, query: int) -> int:
        """From which sample time on users read a mote query. Raises KeyError for an unknown one."""
        return self._queries[query].cut_ms

    def installations(self) -> tuple[Installation, ...]:
        """All that motes are to run now, the ones due to be stopped included."""
        return tuple(running.installation for running in self._queries.asked())

    def views(self, query: int) -> tuple[Installation, ...]:
        """What the gateway makes of a mote query's rows, as if motes ran it beside."""
        return tuple(running.installation for running in self._queries.views(query))

    def joins(self, plan: QueryPlan) -> tuple[int | None, bool]:
        """The mote query of the stream that a plan would join (None: a new stream), and whether it
        would serve the plan as it is."""
        group = self._groups.get(key_of(plan, ""))
        if group is None or group.current not in self._queries:
            return None, False
        wanted = self._merged(group, plan)
        return group.current, wanted == self._queries[group.current].installation.mote_query

    def shared(self, plan: QueryPlan) -> bool:
        """Whether another user's query may ever join a plan's."""
        return key_of(plan, "") == key_of(plan, "another")

    def check_room(self, plan: QueryPlan, now: float) -> None:
        """Raises QueryError where :meth:`add_user` would, as the motes have no room for a plan's query."""
        group = self._groups.get(key_of(plan, ""))
        current = None if group is None else self._queries.get(group.current)
        if group is None or current is None:
            return self._queries.check_room(now, leaving=False)
        as_it_is = current.installation.mote_query == self._merged(group, plan)
        if not as_it_is or not self._lasts(current, User(plan, _length(plan)), now):
            # What nobody has read yet makes room for what takes its place.
            self._queries.check_room(now, leaving=current.cut_ms > now * 1000)

    @property
    def srts(self) -> tuple[Srt, ...]:
        """The semantic routing trees by which queries are routed."""
        return self._srts

    def would_serve(self, plan: QueryPlan) -> tuple[MoteQuery, list[QueryPlan]]:
        """The mote query that would serve a plan with those of its stream, and these plans."""
        group = self._groups.get(key_of(plan, ""))
        if group is None:
            return routed(_program([plan]), self._srts), [plan]
        return self._merged(group, plan), [*(self._users[user].plan for user in group.users), plan]

    def served(self) -> dict[int, list[QueryPlan]]:
        """The plans that each mote query serves."""
        return {
            group.current: [self._users[user].plan for user in group.users] for group in self._groups.values()
        }

    # --- what changes ---

    def route_by(self, srts: Iterable[Srt]) -> None:
        """There are these semantic routing trees now; :meth:`advance` changes the queries that take another way by them."""
        self._srts = tuple(srts)
        for group in self._groups.values():
            running = self._queries.get(group.current)
            if running is not None and running.installation.mote_query != self._merged(group):
                group.stale = True

    def add_user(self, user: str, plan: QueryPlan, now: float) -> Difference:
        """A user comes. Raises QueryError when the motes have no room for his query, ValueError when the
        name is taken; then nothing has changed."""
        if user in self._users:
            raise ValueError(f"user {user!r} has a query already: remove it first")
        key = key_of(plan, user)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group()
        self._users[user] = User(plan, _length(plan))
        group.users[user] = None
        group.union.add(plan)
        self._changed.add(user)
        try:
            return self._change(group, now, newcomer=user)
        except QueryError:
            self._drop(user, key, group)
            raise

    def remove_user(self, user: str, now: float) -> Difference:
        """A user goes. Raises KeyError for an unknown one."""
        state = self._users[user]
        key = key_of(state.plan, user)
        group = self._groups[key]
        self._drop(user, key, group)
        if not group.users:
            ids = [query for query in (group.previous, group.current) if query is not None]
            return Difference(stop=self._queries.stop(ids, now))
        return self._narrow(group, now)

    def advance(self, now: float, heard: float = math.inf) -> Difference:
        """Time goes on: stops what is due, ends users whose FOR is over. ``heard``: for how long the root has been heard without a break,
        in s; while it is not, it and the motes keep the rows."""
        total = Difference(stop=self._queries.stop(self._queries.due(now), now))
        since = now if heard >= self._linger else now - self._forget
        ended = [user for user, state in self._users.items() if self._is_over(state, since)]
        for user in ended:
            total = _both(total, self.remove_user(user, now))
        for group in self._groups.values():
            if group.stale:
                total = _both(total, self._narrow(group, now))
        for query in self._queries.stopped_by(now - self._forget):
            self._forget_query(query)
        return replace(total, finished=tuple(ended))

    def _is_over(self, state: User, now: float) -> bool:
        """Whether a user's FOR or ONCE is over, and no row can be under way any more."""
        if state.until_ms is None or state.plan.creates:
            # A storage point is there until it is dropped, filled or not.
            return False
        over_ms = state.until_ms + self._last_rows_s * 1000 + _late_ms(state.plan)
        if state.plan.reads:
            # The rows of storage points go out as the radio has room, behind their epoch as well.
            running = (self._queries.get(feed.query) for feed in state.feeds)
            over_ms = max([over_ms, *(one.row_ms + _QUIET_MS for one in running if one is not None)])
        return over_ms <= now * 1000

    @property
    def _last_rows_s(self) -> int:
        """For how long the rows of an epoch may be under way."""
        return self._linger + max(0, self.hops - _CLIMB_HOPS)

    def _has_ended(self, user: str, now: float) -> bool:
        """Whether a user's FOR or ONCE has had its time: he stays until his last rows have had theirs to come, and begins with no query
        any more."""
        until_ms = self._users[user].until_ms
        return until_ms is not None and until_ms <= _ms(now)

    def row_came(self, query: int, now: float) -> None:
        """Motes have sent a row of a mote query, or a partial state."""
        running = self._queries.get(query)
        if running is not None:
            running.row_ms = _ms(now)

    def restart(self, last: float, now: float) -> Difference:
        """Network time began anew (the root has rebooted): all streams begin again, under new ids.

        ``last``: the last network time seen before, which tells how much of each FOR is left. All queries
        of the time before are forgotten: send QUERY_STOP 0 first.
        """
        self._queries.clear()
        for user, state in self._users.items():
            if state.until_ms is None or state.length_ms is None:
                continue
            rest = state.until_ms - ceiling(max(_ms(last), state.since_ms), state.plan.period_ms)
            # The rows of a single epoch may all have been under way. A storage point is there until it is dropped.
            again = state.plan.creates or (state.plan.once and not self._is_over(state, last))
            if rest > 0 or again:
                # One that has had its epochs keeps its rows and stores no more.
                least = 0 if state.plan.creates else state.plan.period_ms
                state.length_ms, state.until_ms = max(least, rest), None
            else:
                self._changed.add(user)
                state.feeds, state.until_ms = [], OVER_MS
        total = Difference()
        for group in self._groups.values():
            if all(self._users[user].until_ms == OVER_MS for user in group.users):
                # :meth:`advance` ends them.
                group.current, group.previous = 0, None
                continue
            wanted = self._merged(group)
            total = _both(total, self._begin(group, wanted, now))
        return total

    # --- how the mote query of a group changes ---

    def _merged(self, group: Group, more: QueryPlan | None = None) -> MoteQuery:
        """What serves the group's users, and one plan more, with its route. What has a memory keeps the route that it has."""
        first = self._users[next(iter(group.users))].plan
        if family(first) is not None:
            plans = [self._users[user].plan for user in group.users]
            merged = serve(plans if more is None else [*plans, more])
        else:
            merged = group.union.merged() if more is None else group.union.with_one_more(more)
        running = self._queries.get(group.current)
        if running is not None and (first.once or first.budget or first.clauses or first.temporal):
            return routed_as(merged, running.installation.mote_query)
        return routed(merged, self._srts)

    def _narrow(self, group: Group, now: float) -> Difference:
        """After users went: less may do. Without room for the change, it waits."""
        try:
            return self._change(group, now)
        except QueryError:
            group.stale = True
            return Difference()

    def _change(self, group: Group, now: float, newcomer: str | None = None) -> Difference:
        """Makes the group's query what its users need now."""
        wanted = self._merged(group)
        current = self._queries.get(group.current)
        if current is None:
            return self._begin(group, wanted, now)
        comes = None if newcomer is None else self._users[newcomer]
        if current.installation.mote_query == wanted and self._lasts(current, comes, now):
            group.stale = False
            return Difference() if newcomer is None else self._join(group, newcomer, now)
        if current.cut_ms <= now * 1000:
            return self._follow(group, wanted, group.current, None, now)
        # Nobody has read the current query yet: it is replaced, not followed.
        before = self._queries.get(group.previous)
        if before is None or before.stop_at is None or before.stopped_at is not None:
            return self._begin(group, wanted, now, cancelled=group.current)
        if before.installation.mote_query == wanted and before.installation.end == FOREVER:
            return self._revert(group, now)
        return self._follow(group, wanted, before.installation.query, group.current, now)

    def _lasts(self, current: Running, newcomer: User | None, now: float) -> bool:
        """Whether the program runs as long as a newcomer's FOR."""
        if newcomer is None or current.installation.end == FOREVER:
            return True
        since = ceiling(_since_ms(newcomer, current, now), newcomer.plan.period_ms)
        return (
            newcomer.length_ms is not None
            and _end(since + newcomer.length_ms, current.period_ms) <= current.installation.end
        )

    def _join(self, group: Group, user: str, now: float) -> Difference:
        """The current query serves the newcomer as it is."""
        current = self._queries[group.current]
        self._start_reading(user, current, _since_ms(self._users[user], current, now))
        return Difference()

    def _begin(self, group: Group, wanted: MoteQuery, now: float, cancelled: int | None = None) -> Difference:
        """A first query: all its users begin with it."""
        self._queries.check_room(now, leaving=cancelled is not None)
        stop = self._cancel(cancelled, now)
        cut, known = ceiling(_ms(now), 1000) + self._lead * 1000, self._known_ms(wanted, now)
        if any(self._users[user].length_ms is not None for user in group.users):
            # Others begin late on a mote that hears of them late; of these it would have missed some epochs, of ONCE the only one.
            cut = known
        running = self._reserve(wanted, cut, known)
        group.current, group.previous, group.stale = running.installation.query, None, False
        for user in group.users:
            self._users[user].feeds.clear()
            if not self._has_ended(user, now):
                self._start_reading(user, running, cut)
        return Difference(install=(self._program(running, group),), stop=stop)

    def _known_ms(self, wanted: MoteQuery, now: float) -> int:
        """Network time by which all motes have heard of a query that is asked now."""
        news = [
            running.installation.program
            for running in self._queries
            if running.known_ms > _ms(now) and running.stopped_at is None and running.source is None
        ]
        frames = frames_of([*news, encode(wanted, 0, FOREVER)])
        count = control_windows(self.hops, frames)
        soon = spread_ms(_ms(now) + self._before_ms, count, slow=False)
        if self._slow(now, soon):
            if any(keeps_some_awake(running.installation.mote_query) for running in self._queries):
                count = control_windows(self.hops, max(frames, ASKED_FOR))
            return spread_ms(_ms(now) + self._before_ms, count, slow=True) + self._lead * 1000
        return max(ceiling(_ms(now), 1000) + self._lead * 1000, soon + _HEARD_MS)

    def _slow(self, now: float, until_ms: int) -> bool:
        """Whether motes may be listening for queries seldom before then: all, or those that have not heard of a fast one yet."""
        return until_ms >= SLOW_FROM_S * 1000 and not any(
            keeps_awake(running.installation.mote_query)
            and running.stopped_at is None
            and running.source is None
            and running.known_ms <= _ms(now)
            for running in self._queries
        )

    def _follow(
        self, group: Group, wanted: MoteQuery, old: int, cancelled: int | None, now: float
    ) -> Difference:
        """A query that takes over from ``old`` at a cut-over."""
        self._queries.check_room(now, leaving=cancelled is not None)
        stop = self._cancel(cancelled, now)
        before = self._queries[old]
        known = self._known_ms(wanted, now)
        cut = self._cut(before, wanted, group, known)
        running = self._reserve(wanted, cut, known)
        before.stop_at = -(-cut // 1000) + self._last_rows_s
        group.current, group.previous, group.stale = running.installation.query, old, False
        last = last_sample_before(cut, before.period_ms)
        for user in group.users:
            if self._reading(user, old) is not None or not self._has_ended(user, now):
                self._hand_over(user, old, running, last)
        return Difference(install=(self._program(running, group),), stop=stop)

    def _revert(self, group: Group, now: float) -> Difference:
        """The query before is what is needed again, and the one that was to follow has not begun."""
        assert group.previous is not None
        stop = self._cancel(group.current, now)
        running = self._queries[group.previous]
        running.stop_at = None
        group.current, group.previous, group.stale = group.previous, None, False
        for user in group.users:
            state = self._users[user]
            feed = self._reading(user, group.current)
            if feed is not None:
                self._set_feed(state, replace(feed, until_ms=state.until_ms))
            elif not self._has_ended(user, now):
                self._start_reading(user, running, _since_ms(state, running, now))
        return Difference(stop=stop)

    def _cut(self, before: Running, wanted: MoteQuery, group: Group, earliest: int) -> int:
        old = before.installation.query
        periods = [self._users[user].plan.period_ms for user in group.users if self._reading(user, old)]
        earliest = ceiling(earliest, cut_step_ms(self._users[user].plan for user in group.users))
        return choose_cut(earliest, before.period_ms, wanted.period_ms, periods)

    def _hand_over(self, user: str, old: int, running: Running, last: int) -> None:
        """The user's rows come from ``old`` up to the cut, and from the new query from then on."""
        state = self._users[user]
        feed = self._reading(user, old)
        cut = running.cut_ms
        if feed is None or feed.since_ms >= cut:
            if feed is not None:
                self._unset_feed(state, feed.query)
            self._start_reading(user, running, cut if feed is None else feed.since_ms)
            return
        ends_before = state.until_ms is not None and state.until_ms <= cut
        self._set_feed(state, replace(feed, until_ms=state.until_ms if ends_before else cut))
        if not ends_before:
            self._set_feed(state, self._feed(user, running, cut, last))

    def _start_reading(self, user: str, running: Running, since_ms: int) -> None:
        """The user's first row is that of his first own epoch from ``since_ms`` on."""
        state = self._users[user]
        state.since_ms = ceiling(since_ms, state.plan.period_ms)
        state.until_ms = None if state.length_ms is None else state.since_ms + state.length_ms
        self._set_feed(state, self._feed(user, running, state.since_ms, None))

    def _feed(self, user: str, running: Running, since_ms: int, before_ms: int | None) -> Feed:
        state = self._users[user]
        query = self._read_by(state.plan, running)
        return Feed(user, query, state.plan.period_ms, running.period_ms, since_ms, state.until_ms, before_ms)

    def _read_by(self, plan: QueryPlan, running: Running) -> int:
        """The query whose rows a plan reads where motes run this one: itself, or what the gateway makes of it."""
        source = running.installation.query
        wanted = view(plan, running.installation.mote_query)
        if wanted is None:
            return source
        for made in self.views(source):
            if made.mote_query == wanted:
                return made.query
        return self._reserve(wanted, running.cut_ms, running.known_ms, source).installation.query

    def _reading(self, user: str, query: int) -> Feed | None:
        """The user's feed of a mote query, or of what is made of it."""
        for feed in self._users[user].feeds:
            running = self._queries.get(feed.query)
            if feed.query == query or (running is not None and running.source == query):
                return feed
        return None

    # --- feeds, ids, room ---

    def _set_feed(self, state: User, feed: Feed) -> None:
        self._changed.add(feed.user)
        state.feeds = [f for f in state.feeds if f.query != feed.query] + [feed]
        state.feeds.sort(key=lambda f: f.since_ms)
        self._queries.read(feed)

    def _unset_feed(self, state: User, query: int) -> None:
        for feed in state.feeds:
            if feed.query == query:
                self._changed.add(feed.user)
                self._queries.unread(query, feed.user)
        state.feeds = [feed for feed in state.feeds if feed.query != query]

    def _drop(self, user: str, key: Hashable, group: Group) -> None:
        state = self._users.pop(user)
        for feed in state.feeds:
            self._queries.unread(feed.query, user)
        del group.users[user]
        group.union.remove(state.plan)
        if not group.users:
            del self._groups[key]

    def _reserve(self, wanted: MoteQuery, cut_ms: int, known_ms: int, source: int | None = None) -> Running:
        """An id for a query; :meth:`_program` completes it once its users' ends are known, unless it is made of ``source``."""
        query = self._queries.next_id()
        self._forget_query(query)
        return self._queries.begin(query, wanted, cut_ms, known_ms, source)

    def _program(self, running: Running, group: Group) -> Installation:
        ends = [self._users[user].until_ms for user in group.users]
        known = [until for until in ends if until is not None]
        plain = running.installation
        end = FOREVER if len(known) < len(ends) else _end(max(known), plain.mote_query.period_ms)
        program = encode(plain.mote_query, plain.start, end)
        running.installation = replace(plain, end=end, program=program)
        return running.installation

    def _cancel(self, query: int | None, now: float) -> tuple[int, ...]:
        if query is None:
            return ()
        for one in (query, *(made.query for made in self.views(query))):
            for user in list(self._queries.readers(one)):
                self._unset_feed(self._users[user], one)
        return self._queries.stop([query], now)

    def _forget_query(self, query: int) -> None:
        for user in list(self._queries.readers(query)):
            self._unset_feed(self._users[user], query)
        self._queries.forget(query)

    # --- kept over a restart ---

    def to_dict(self) -> dict[str, Any]:
        """Everything but users and mote queries, for JSON."""
        return {
            "last_id": self._queries.last_id,
            "groups": [group.to_dict() for group in self._groups.values()],
        }

    def query_texts(self, changed: bool = False) -> dict[str, str | None]:
        """All mote queries, or those that :meth:`remembered` has not seen as they are, in JSON by number; None: of one forgotten."""
        return self._queries.texts(changed)

    def remembered(self) -> None:
        """What :meth:`query_texts` said has been written."""
        self._queries.remembered()

    def user_text(self, user: str) -> str | None:
        """A user in JSON; None: there is none."""
        state = self._users.get(user)
        return state.text() if state is not None else None

    @classmethod
    def from_dict(
        cls,
        data: dict[str, Any],
        queries: Iterable[Mapping[str, Any]],
        users: Mapping[str, dict[str, Any]],
        plans: Mapping[str, QueryPlan],
        speed: float = 1.0,
    ) -> Demand:
        """What :meth:`to_dict`, :meth:`query_texts` and :meth:`user_text` wrote; ``plans`` of its users: who has none any more has gone."""
        demand = cls(speed)
        demand._queries.last_id = data["last_id"]
        for entry in queries:
            demand._queries.restore(entry)
        members: dict[Hashable, dict[str, QueryPlan]] = {}
        for name, known in users.items():
            if name not in plans:
                continue
            state = demand._users[name] = User.from_dict(known, plans[name])
            members.setdefault(key_of(state.plan, name), {})[name] = state.plan
            for feed in state.feeds:
                demand._queries.read(feed)
        demand._changed = set(demand._users)
        for entry in data["groups"]:
            # An older gateway listed all of a group.
            user: str | None = entry["users"][0] if "users" in entry else entry["user"]
            if user not in demand._users:
                user = demand._reader_of(entry["current"])
            if user is None:
                demand._end({entry["current"], entry["previous"]})
                continue
            key, group = key_of(plans[user], user), Group.from_dict(entry, members[key_of(plans[user], user)])
            former = demand._groups.setdefault(key, group)
            if former is not group:
                # An older gateway asked for approximate answers beside exact ones: one stream begins that serves both.
                demand._end({former.current, group.current})
                former.current, former.previous, former.stale = 0, None, True
        for key in [key for key in members if key not in demand._groups]:
            demand._begin_anew(key, members[key])
        for group in demand._groups.values():
            # What served those who have gone, too, may be more than is needed.
            group.stale |= len(demand._users) < len(users)
        demand.remembered()
        return demand

    def _end(self, queries: Iterable[int | None]) -> None:
        """Those of them that are known are due to be stopped."""
        for running in map(self._queries.get, queries):
            if running is not None:
                running.stop_at = 0

    def _begin_anew(self, key: Hashable, plans: Mapping[str, QueryPlan]) -> None:
        """Users who were known by their feeds alone, and had none yet, or whom an older gateway let share with others."""
        self._groups[key] = Group(dict.fromkeys(plans), stale=True, union=Union(plans.values()))
        for state in (self._users[user] for user in plans):
            for feed in tuple(state.feeds):
                self._unset_feed(state, feed.query)

    def _reader_of(self, query: int) -> str | None:
        """One who reads a mote query, or what is made of it; None: nobody does."""
        return next((user for user in self._users if self._reading(user, query) is not None), None)


def _since_ms(state: User, running: Running, now: float) -> int:
    """From when on a user who comes now reads what runs: with FOR, from when all motes do."""
    return max(_ms(now), running.cut_ms, 0 if state.length_ms is None else running.known_ms)


def _program(plans: list[QueryPlan]) -> MoteQuery:
    """What motes run for the plans of a group."""
    return merge(plans) if family(plans[0]) is None else serve(plans)


def _length(plan: QueryPlan) -> int | None:
    if plan.window is not None and plan.duration_ms is not None:
        return plan.duration_ms + PERIODS_BEHIND * plan.period_ms
    return plan.period_ms if plan.once else plan.duration_ms


def _end(until_ms: int, period_ms: int) -> int:
    """Network second from which motes begin no epoch, so that the last one lies before ``until_ms``: what they store and do with rows
    more than FOR says the gateway could not take back."""
    if until_ms % 1000 == 0:
        return until_ms // 1000
    return (until_ms - 1) // period_ms * period_ms // 1000 + 1


def _late_ms(plan: QueryPlan) -> int:
    """How much longer than others its rows may be under way because they wait, on motes or to be put in order."""
    waits = waits_ms(plan)
    return waits + held_ms(plan) if waits else 0


def _both(a: Difference, b: Difference) -> Difference:
    """One change, then another. What the second stops is not installed in the first place."""
    install = tuple(i for i in a.install if i.query not in b.stop)
    sent = {i.query for i in a.install}
    return Difference(install + b.install, a.stop + tuple(query for query in b.stop if query not in sent))


def _ms(now: float) -> int:
    return int(now * 1000)

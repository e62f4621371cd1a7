"""What a network is asked to run, so that every user gets his rows.

Who shares a mote query is chosen elsewhere (:mod:`skerry.sharing.placement`). When a group's query changes, the new one is installed
under a new id, rows are taken from it from a cut-over on (:mod:`skerry.sharing.cutover`), and the old one is stopped a little later,
so that users see neither gap nor duplicate. Where motes have no room for both, a change waits until they have, and what runs goes on.
Demand-driven rates: Fjords 2001, section 3.

Nothing here knows a clock or a network: ``now`` is network time in seconds, and the caller sends what a
:class:`~skerry.planner.model.plans.Difference` says.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from skerry.planner.features.queueing import held_ms, waits_ms
from skerry.planner.features.srt import Srt
from skerry.planner.model.clause import Clause
from skerry.planner.model.pairing import delay_ms, pairs_clause
from skerry.planner.model.periods import ceiling
from skerry.planner.model.plans import Difference, Feed, Installation, MoteQuery, QueryPlan
from skerry.planner.model.waits import late_ms
from skerry.planner.physical.program import encode
from skerry.planner.physical.srt_routes import routed, routed_as
from skerry.sharing.changeover import Changeover
from skerry.sharing.cutover import choose_cut
from skerry.sharing.demand_state import OVER_MS, Serving, User
from skerry.sharing.groups import Group
from skerry.sharing.mote_queries import MoteQueries, Running
from skerry.sharing.needs import Kind
from skerry.sharing.placement import Placement
from skerry.sharing.search import in_steps
from skerry.sharing.shared_pulses import cut_step_ms
from skerry.sharing.spreading import Spreading
from skerry_protocol.packets import FOREVER, QUERIES_MAXIMUM, Aggregate

#: In a round rows climb so many hops, whatever the slots are.
_CLIMB_HOPS = 8
#: By so much a beginning may move behind what was said first, for others who ask meanwhile.
_PATIENCE_MS = 8_000
#: Rows of a join that come later behind each other than this do not come: two windows of a network that has nothing fast to do, and some.
_QUIET_MS = 40_000


class Demand:
    """Users, their plans, and the mote queries that serve them in one network.

    ``speed``: s of network time in one of this machine's, which may change.
    ``lead_seconds``: time that the network needs to spread a query before it shall begin everywhere, at least.
    ``linger_seconds``: how long rows of an ended query may be under way before it is stopped, at least.
    ``forget_seconds``: how long a stopped query is remembered, so that late rows are understood.
    ``placement``: who shares with whom, in all networks that have it; None: in this one alone.
    """

    def __init__(
        self,
        speed: float = 1.0,
        lead_seconds: int = 8,
        linger_seconds: int = 10,
        forget_seconds: int = 600,
        placement: Placement | None = None,
    ) -> None:
        self._spreading = Spreading(speed, lead_seconds)
        self._linger_seconds = linger_seconds
        self._forget = forget_seconds
        self._alone = placement is None
        self.placement = placement or Placement()
        self._changes = self.placement.watch()
        self._users: dict[str, User] = {}
        self._serving: dict[int, Serving] = {}
        self._queries = MoteQueries()
        #: Whose feeds have changed since that was asked last.
        self._changed: set[str] = set()
        self._readers = Changeover(self._users, self._queries, self._changed)
        self._srts: tuple[Srt, ...] = ()
        #: Where pairs of motes are joined, by the text of the query.
        self._placements: Mapping[str, Clause] = {}

    @property
    def speed(self) -> float:
        """S of network time in one of this machine's."""
        return self._spreading.speed

    @speed.setter
    def speed(self, speed: float) -> None:
        self._spreading.speed = speed

    @property
    def _linger(self) -> int:
        return self._linger_seconds + self._spreading.late_s

    @property
    def hops(self) -> int:
        """From the root to the farthest mote, as far as that is known."""
        return self._spreading.hops

    @hops.setter
    def hops(self, hops: int) -> None:
        self._spreading.hops = hops

    # --- what callers ask ---

    def users(self) -> dict[str, QueryPlan]:
        """Plans by user."""
        return {user: state.plan for user, state in self._users.items()}

    def has(self, user: str) -> bool:
        """Whether the user is there."""
        return user in self._users

    def changed(self) -> set[str]:
        """Whose feeds may have changed since this was asked last; some of them may have gone."""
        found = set(self._changed)
        self._changed.clear()
        return found

    def feeds(self, user: str) -> tuple[Feed, ...]:
        """The user's feeds, oldest first; () while he waits for room. Raises KeyError for an unknown user."""
        return tuple(self._users[user].feeds)

    def begins_ms(self, user: str, now: float) -> int | None:
        """From when on the user has rows; of one who waits for room, at the earliest: with what is free next. None: when his event
        comes, or that is not known yet. Raises KeyError for an unknown user."""
        state = self._users[user]
        if state.feeds or _waits_for_event(state.plan):
            return state.since_ms if state.feeds and not _waits_for_event(state.plan) else None
        leaving = [r.gone_ms for r in self._queries if r.stopped_at is not None and r.gone_ms > _ms(now)]
        wanted = self._wanted(self.placement.group_of(user), None)
        free = min(leaving, default=_ms(now)) / 1000
        return ceiling(self._spreading.known_ms(wanted, self._queries, free), state.plan.period_ms)

    def feeds_of(self, query: int) -> tuple[Feed, ...]:
        """Feeds of all users that read a mote query; () for one that nobody reads."""
        return tuple(self._queries.readers(query).values())

    def wait_ms(self, user: str) -> int | None:
        """For how long a user waits for an epoch; None: as long as is usual. Raises KeyError for an unknown one."""
        return self._users[user].plan.wait_ms

    def installation(self, query: int) -> Installation | None:
        """A mote query that runs, or was stopped lately; None for any other."""
        running = self._queries.get(query)
        return running.installation if running else None

    def cut_ms(self, query: int) -> int:
        """From which sample time on users read a mote query. Raises KeyError for an unknown one."""
        return self._queries[query].cut_ms

    def installations(self) -> tuple[Installation, ...]:
        """All that motes are to run now, the ones due to be stopped included."""
        return tuple(running.installation for running in self._queries.active())

    def views(self, query: int) -> tuple[tuple[Installation, int, int | None], ...]:
        """What the gateway makes of a mote query's rows, as if motes ran it beside, of epochs from when on and up to when (ms)."""
        return tuple(
            (made.installation, part.since_ms, part.until_ms)
            for made in self._queries.views(query)
            for part in made.made_of or ()
            if part.query == query
        )

    def made(self) -> tuple[Installation, ...]:
        """All that the gateway makes of rows, or has made lately."""
        return tuple(made.installation for made in self._queries.made())

    @property
    def srts(self) -> tuple[Srt, ...]:
        """The semantic routing trees by which queries are routed."""
        return self._srts

    def query_of(self, user: str) -> int | None:
        """The id of the mote query that serves a user's group; None: it has none yet."""
        serving = self._serving.get(self.placement.group_of(user).number)
        return serving.current or None if serving is not None else None

    def current(self, group: int) -> Installation | None:
        """What serves a group; None: nothing does yet."""
        serving = self._serving.get(group)
        return self.installation(serving.current) if serving is not None else None

    def would_begin_ms(self, plan: QueryPlan, wanted: MoteQuery, group: int | None, now: float) -> int | None:
        """When a plan that were asked now would have its first rows, of a query that serves a ``group`` as it is, or else of another.
        None: when its event comes, or that is not known."""
        if _waits_for_event(plan):
            return None
        running = self._queries.get(self._serving[group].current) if group in self._serving else None
        if running is not None:
            period = running.period_ms if plan.once and not running.mote_query.once else plan.period_ms
            return ceiling(max(_ms(now), running.cut_ms), period)
        known = self._spreading.known_ms(wanted, self._queries, now)
        return ceiling(self._spreading.soon_ms(now) if _at_once(plan) else known, plan.period_ms)

    def served(self) -> dict[int, list[QueryPlan]]:
        """The plans that each mote query serves."""
        return {
            serving.current: group.plans()
            for number, serving in self._serving.items()
            if serving.current and (group := self.placement.groups().get(number)) is not None
        }

    # --- what changes ---

    def route_by(self, srts: Iterable[Srt]) -> None:
        """There are these semantic routing trees now; :meth:`advance` changes the queries that take another way by them."""
        self._srts = tuple(srts)
        self._take_another_way()

    def place_by(self, placements: Mapping[str, Clause]) -> None:
        """Pairs of motes are joined there now, by the text of the query; :meth:`advance` changes the queries that this is new for."""
        self._placements = placements
        self._take_another_way()

    def _take_another_way(self) -> None:
        for number, serving in self._serving.items():
            group, running = self.placement.groups().get(number), self._queries.get(serving.current)
            if (
                group is not None
                and running is not None
                and running.mote_query != self._wanted(group, running)
            ):
                serving.stale = serving.stale or 0.0

    def add_user(self, user: str, plan: QueryPlan, now: float) -> Difference:
        """A user comes. Raises QueryError when the motes have no room for his query, ValueError when the
        name is taken; then nothing has changed."""
        if user in self._users:
            raise ValueError(f"user {user!r} has a query already: remove it first")
        if user not in self.placement:
            self.placement.add(user, plan)
        self._users[user] = User.of(plan)
        self._changed.add(user)
        self._changes.users.add(user)
        self._changes.groups.add(self.placement.group_of(user).number)
        return self.settle(now)

    def remove_user(self, user: str, now: float) -> Difference:
        """A user goes. Raises KeyError for an unknown one."""
        state = self._users.pop(user)
        for feed in state.feeds:
            self._queries.unread(feed.query, user)
        self._changed.add(user)
        group = self.placement.place(user)
        if group is not None:
            self._changes.groups.add(group)
        if self._alone:
            self.placement.remove(user)
        return self.settle(now)

    def refused(self, query: int) -> None:
        """Motes refuse a query for what it is. Of several whom it was to serve, those who have come to it share with nobody any more, so
        that whoever was there before goes on as he was; :meth:`settle` changes that."""
        number = next((n for n, serving in self._serving.items() if serving.current == query), None)
        group = self.placement.groups().get(number or 0)
        if group is None or len(group.needs) < 2:
            return
        here = [user for user in group.users if user in self._users]
        new = [user for user in here if all(self._is_of(feed, query) for feed in self._users[user].feeds)]
        stay = {group.users[user] for user in here if user not in new}
        if not stay:
            # One of those who came together is as good as the other.
            stay = {group.users[here[0]]}
        for user in new:
            if group.users[user] not in stay:
                self.placement.part(user)

    def _is_of(self, feed: Feed, query: int) -> bool:
        return feed.query not in self._queries or self._readers.source_of(feed) == query

    def advance(self, now: float, heard: float = math.inf) -> Difference:
        """Time goes on: stops what is due, ends users whose FOR is over. ``heard``: for how long the root has been heard without a break,
        in s; while it is not, it and the motes keep the rows."""
        total = Difference(stop=self._stop(self._queries.due(now), now))
        since = now if heard >= self._linger else now - self._forget
        ended = [user for user, state in self._users.items() if self._is_over(state, since)]
        for user in ended:
            total = _both(total, self.remove_user(user, now))
        if self._alone and self.is_settled():
            self.placement.improve()
        total = _both(total, self.settle(now))
        for query in self._queries.stopped_by(now - self._forget):
            self._forget_query(query)
        return replace(total, finished=tuple(ended))

    def is_settled(self) -> bool:
        """Whether no change is on its way, and none is due."""
        stopping = any(running.stop_at is not None for running in self._queries.active())
        return not stopping and all(serving.stale is None for serving in self._serving.values())

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
        self._serving.clear()
        for user, state in self._users.items():
            self._changed.add(user)
            state.feeds = []
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
                state.until_ms = OVER_MS
        self._changes.groups.update(self.placement.groups())
        self._changes.users.update(self._users)
        return self.settle(now)

    # --- how the mote query of a group changes ---

    def settle(self, now: float) -> Difference:
        """Brings all groups that have changed to what they are to be, as far as motes have room."""
        touched, moved = set(self._changes.groups), set(self._changes.users)
        self._changes.groups.clear()
        self._changes.users.clear()
        self._changed.update(moved & self._users.keys())
        waiting = {number for number, serving in self._serving.items() if serving.stale is not None}
        self._leave_groups(touched)
        total = Difference()
        changing = touched | waiting
        for number in sorted(changing, key=self._order) if len(changing) > 1 else changing:
            group = self.placement.groups().get(number)
            if group is not None:
                total = _both(total, self._serve(group, moved if number not in waiting else None, now))
        total = _both(total, Difference(stop=self._retire(now)))
        made, ended = self._queries.take_made()
        return replace(total, made=made, ended=ended)

    def _order(self, number: int) -> tuple[bool, float, int]:
        """Groups by who makes room, and then who has waited longest."""
        serving = self._serving.get(number)
        since = serving.stale if serving is not None and serving.stale is not None else math.inf
        return not self._releases(number), since, number

    def _releases(self, number: int) -> bool:
        """Whether a query is stopped once another one serves a group: all who read it are of the group."""
        return any(self._reading(running) == {number} for running in self._queries.active())

    def _leave_groups(self, touched: Iterable[int]) -> None:
        """Groups without users have no query."""
        for number in touched:
            group = self.placement.groups().get(number)
            if group is None or not any(user in self._users for user in group.users):
                self._serving.pop(number, None)

    def _wanted(self, group: Group, running: Running | None) -> MoteQuery:
        """What serves the group's users, with its route. What has a memory keeps the route that it has."""
        query = group.query()
        plan = next(iter(group.users.values())).plan
        if plan.pairing is not None:
            clause = self._placements.get(plan.text)
            return query if clause is None else replace(query, clauses=(clause,))
        if group.kind is Kind.OWN and (plan.once or plan.budget or plan.clauses or plan.temporal):
            return routed_as(query, running.mote_query) if running is not None else routed(query, self._srts)
        return routed(query, self._srts)

    def _serve(self, group: Group, moved: set[str] | None, now: float) -> Difference:
        """Makes the group's query what its users need now. ``moved``: those who may not read it yet; None: any may."""
        serving = self._serving.setdefault(group.number, Serving())
        current = self._queries.get(serving.current)
        wanted = self._wanted(group, current)
        newcomers = self._not_reading(group, current, moved, now)
        if current is None and not newcomers:
            # All have had their time.
            return Difference()
        as_it_is = current is not None and current.mote_query == wanted
        if current is not None and as_it_is and all(self._suits(user, current, now) for user in newcomers):
            serving.stale = None
            for user in newcomers:
                self._join(user, serving, group, current, now)
            return Difference()
        return self._change(serving, group, wanted, now)

    def _not_reading(
        self, group: Group, current: Running | None, moved: set[str] | None, now: float
    ) -> list[str]:
        """Users of the group who do not read its query, and would."""
        candidates = group.users if moved is None else [user for user in group.users if user in moved]
        here = [user for user in candidates if user in self._users]
        ended = {user for user in here if self._users[user].has_ended(_ms(now))}
        left = [user for user in here if user not in ended]
        return left if current is None else [u for u in left if not self._readers.reads_of(u, current.query)]

    def _suits(self, user: str, current: Running, now: float) -> bool:
        """Whether a newcomer can read the query: it runs as long as his FOR, and he has not read and left it before."""
        state = self._users[user]
        if any(feed.query == current.query for feed in state.feeds):
            return False
        if current.installation.end == FOREVER:
            return True
        if state.length_ms is None:
            return False
        since = ceiling(max(_ms(now), current.cut_ms), state.plan.period_ms)
        return _end(since + state.length_ms, current.period_ms) <= current.installation.end

    def _join(self, user: str, serving: Serving, group: Group, current: Running, now: float) -> None:
        """The query serves a newcomer as it is."""
        state = self._users[user]
        if self._readers.reads(user) is not None:
            earliest = max(_ms(now) + 1000, current.cut_ms)
            reading = self._readers.reading(user, current)
            cut = choose_cut(earliest, [reading] if reading is not None else [])
            self._readers.hand_over(user, serving, group.number, current, cut)
            return
        since = max(_ms(now), current.cut_ms, 0 if state.length_ms is None else current.known_ms)
        self._readers.start(user, serving, group.number, current, since)

    def _change(self, serving: Serving, group: Group, wanted: MoteQuery, now: float) -> Difference:
        """Another query for the group; where motes have no room for it, it waits."""
        current = self._queries.get(serving.current)
        before = self._queries.get(serving.previous)
        unread = current is not None and not current.is_read(_ms(now))
        goes_on = before is not None and before.stopped_at is None and before.installation.end == FOREVER
        if unread and goes_on and before is not None and before.mote_query == wanted:
            return self._revert(serving, group, now)
        # Nobody has read the current query yet: it is replaced, not followed.
        leaving = serving.current if unread else None
        room = self._queries.has_room(wanted, self.placement.memory, _ms(now))
        if not room or not self._leaves_a_way(group) or (unread and self._would_delay(serving, wanted, now)):
            serving.stale = now if serving.stale is None else serving.stale
            return Difference()
        stop = self._cancel(leaving, now) if leaving is not None else ()
        if not unread and current is not None:
            serving.previous = current.query
        installed = self._install(serving, group, wanted, now)
        if not unread:
            serving.promised_ms = self._queries[installed.query].cut_ms
        return Difference(install=(installed,), stop=stop)

    def _would_delay(self, serving: Serving, wanted: MoteQuery, now: float) -> bool:
        """Whether somebody is to have his first row of a query that has not begun, and another in its place would begin much later than
        he was promised: those who come after him wait, or he would as long as others come."""
        if self._spreading.known_ms(wanted, self._queries, now) <= serving.promised_ms + _PATIENCE_MS:
            return False
        feeds = (state.feeds for state in self._users.values())
        return any(
            len(mine) == 1
            and mine[0].query in self._queries
            and self._readers.source_of(mine[0]) == serving.current
            for mine in feeds
        )

    def _leaves_a_way(self, group: Group) -> bool:
        """Whether all that wait can still begin, one after the other, once this group has."""
        waiting = {number for number, serving in self._serving.items() if serving.stale is not None}
        waiting -= {group.number}
        if not waiting:
            return True
        staying = {serving.current for number, serving in self._serving.items() if number not in waiting}
        staying -= {self._serving[group.number].current}
        asked = self._queries.active()
        ending = [
            frozenset(self._reading(running)) & waiting for running in asked if running.query not in staying
        ]
        begin = [frozenset({number}) for number in waiting]
        return in_steps(begin, ending, QUERIES_MAXIMUM - 1 - len(asked))

    def _reading(self, running: Running) -> set[int | None]:
        """The groups of those who read a query, or what is made of it, until something else takes its place."""
        queries = [running.query, *(made.query for made in self._queries.views(running.query))]
        feeds = (feed for query in queries for feed in self._queries.readers(query).values())
        return {self.placement.place(feed.user) for feed in feeds if feed.until_ms is None}

    def _install(self, serving: Serving, group: Group, wanted: MoteQuery, now: float) -> Installation:
        """Begins a query for all users of a group: who reads another one changes over."""
        users = [user for user in group.users if user in self._users]
        left = [user for user in users if not self._users[user].has_ended(_ms(now))]
        reading = [user for user in users if self._readers.reads(user) is not None]
        known = self._spreading.known_ms(wanted, self._queries, now)
        early = [user for user in left if user not in reading and _at_once(self._users[user].plan)]
        cut = known
        if reading:
            step = cut_step_ms(self._users[user].plan for user in users)
            probe = Running(Installation(0, wanted, 0, FOREVER, b""), known, known)
            readings = (self._readers.reading(user, probe) for user in reading)
            cut = choose_cut(ceiling(known, step), [r for r in readings if r is not None])
        elif len(early) == len(left):
            cut = self._spreading.soon_ms(now)
        running = self._reserve(wanted, cut, known)
        running.early_ms = self._spreading.soon_ms(now) if early and reading else None
        serving.current, serving.stale = running.query, None
        switched = self._readers.switch(serving, running, cut, group.users)
        for user in users:
            feed = self._readers.reads(user)
            if feed is not None and feed.query in switched:
                continue
            if feed is not None:
                self._readers.hand_over(user, serving, group.number, running, cut)
            elif user in left:
                since = self._spreading.soon_ms(now) if user in early else cut
                self._readers.start(user, serving, group.number, running, since)
        return self._program(running, users)

    def _revert(self, serving: Serving, group: Group, now: float) -> Difference:
        """The query before is what is needed again, and the one that was to follow has not begun."""
        assert serving.previous is not None
        running = self._queries[serving.previous]
        stop = self._cancel(serving.current, now)
        serving.current, serving.previous, serving.stale = running.query, None, None
        for user in (user for user in group.users if user in self._users):
            feed = self._readers.reads(user)
            if feed is not None and self._readers.source_of(feed) == running.query:
                self._readers.go_on(user, feed.query)
            elif not self._users[user].has_ended(_ms(now)):
                self._join(user, serving, group, running, now)
        return Difference(stop=stop)

    def _retire(self, now: float) -> tuple[int, ...]:
        """What serves no group is stopped when the last of its rows have had their time, or at once where nobody reads it."""
        for made in self._queries.idle():
            self._queries.end(made, now)
            serving = self._serving.get(made.group or 0)
            if serving is not None and made.query in serving.views.get(made.mote_query, ()):
                serving.views[made.mote_query].remove(made.query)
        current = {serving.current for serving in self._serving.values()}
        stop: list[int] = []
        for running in self._queries.active():
            if running.query in current:
                stop_at = None
            else:
                until_ms = self._queries.until_ms(running)
                needed_ms = self._spreading.needed_until_ms(running, self._queries, now)
                if until_ms == 0 and needed_ms <= _ms(now):
                    stop.append(running.query)
                    continue
                rows_s = 0 if not until_ms else -(-until_ms // 1000) + self._last_rows_s
                stop_at = None if until_ms is None else max(rows_s, -(-needed_ms // 1000))
            if running.stop_at != stop_at:
                running.stop_at = stop_at
                self._queries.touch(running.query)
        return self._stop(stop, now)

    def _stop(self, queries: list[int], now: float) -> tuple[int, ...]:
        """Those of them that run, which the caller is to stop."""
        return (
            self._queries.stop(queries, now, self._spreading.gone_ms(self._queries, now)) if queries else ()
        )

    # --- ids ---

    def _reserve(self, wanted: MoteQuery, cut_ms: int, known_ms: int) -> Running:
        """An id for a query; :meth:`_program` completes it once its users' ends are known."""
        query = self._queries.next_id()
        self._forget_query(query)
        return self._queries.begin(query, wanted, cut_ms, known_ms)

    def _program(self, running: Running, users: Iterable[str]) -> Installation:
        ends = [self._users[user].until_ms for user in users]
        known = [until for until in ends if until is not None]
        plain = running.installation
        end = FOREVER if len(known) < len(ends) else _end(max(known), plain.mote_query.period_ms)
        pairs = pairs_clause(plain.mote_query)
        if pairs is not None and end < FOREVER:
            # Motes join an epoch's rows some epochs later.
            end += -(-delay_ms(pairs, plain.mote_query.period_ms) // 1000)
        start = plain.start if running.early_ms is None else min(plain.start, running.early_ms // 1000)
        program = encode(plain.mote_query, start, end)
        running.installation = replace(plain, start=start, end=end, program=program)
        self._queries.touch(running.query)
        return running.installation

    def _cancel(self, query: int, now: float) -> tuple[int, ...]:
        """A query that nobody has read is not to begin, nor what was to be made of it."""
        self._readers.call_off(self._queries.readers(query), query)
        for made in list(self._queries.views(query)):
            if self._queries.unmake(made, query):
                self._readers.call_off(self._queries.readers(made.query), made.query)
        return self._stop([query], now)

    def _forget_query(self, query: int) -> None:
        self._readers.leave(self._queries.readers(query), query)
        self._queries.forget(query)

    # --- kept over a restart ---

    def last_ids(self) -> dict[str, int]:
        """The ids of mote queries that were given last, to be kept."""
        return {"last_mote_query": self._queries.last_id, "last_view": self._queries.last_made}

    def serving_rows(self) -> list[dict[str, Any]]:
        """How groups are served, to be kept."""
        return [serving.row(number) for number, serving in self._serving.items()]

    def query_rows(self, changed: bool = False) -> dict[int, dict[str, Any] | None]:
        """All mote queries, or those that :meth:`remembered` has not seen as they are, by number; None: of one forgotten."""
        return self._queries.rows(changed)

    def remembered(self) -> None:
        """What :meth:`query_rows` said has been written."""
        self._queries.remembered()

    def user_dict(self, user: str) -> dict[str, Any] | None:
        """A user, to be kept; None: there is none."""
        state = self._users.get(user)
        return state.to_dict(self.placement.place(user)) if state is not None else None

    @classmethod
    def restored(
        cls,
        known: Mapping[str, Any],
        plans: Mapping[str, QueryPlan],
        speed: float = 1.0,
        placement: Placement | None = None,
    ) -> Demand:
        """What :meth:`last_ids` said, and :meth:`serving_rows` as ``serving``, :meth:`query_rows` as ``queries``, and :meth:`user_dict` as
        ``served``, by user; ``plans`` of its users: who has none any more has gone. ``placement``: where all are, unless it is this
        network's alone, which is among what is known then."""
        demand, users = cls(speed, placement=placement), known["served"]
        if placement is None:
            places = {user: had["sharing_group"] for user, had in users.items()}
            groups, last, memory = known["sharing_groups"], known["last_group"], known["mote_memory"]
            demand.placement.restore(groups, last, memory, places, plans)
        demand._queries.last_id, demand._queries.last_made = known["last_mote_query"], known["last_view"]
        for row in known["queries"]:
            demand._queries.restore(row)
        for row in known["serving"]:
            demand._serving[row["sharing_group"]] = Serving.from_row(row)
        for made in demand._queries.made():
            serving = demand._serving.get(made.group or 0)
            if serving is not None and made.stopped_at is None:
                serving.views.setdefault(made.mote_query, []).append(made.query)
        for user, had in users.items():
            if user in plans:
                state = demand._users[user] = User.from_dict(had, plans[user])
                for feed in state.feeds:
                    demand._queries.read(feed)
        demand._changed.update(demand._users)
        # What served those who have gone, too, may be more than is needed.
        demand._changes.users.clear()
        demand._changes.groups.clear()
        if len(demand._users) < len(users):
            demand._changes.groups.update(demand._serving, demand.placement.groups())
            demand._changes.users.update(demand._users)
        demand.remembered()
        return demand


def _at_once(plan: QueryPlan) -> bool:
    """Whether its first rows are not to wait until all motes can have heard of it: somebody said so, or an event starts it."""
    return plan.start_now or _waits_for_event(plan)


def _waits_for_event(plan: QueryPlan) -> bool:
    return any(clause.kind is Aggregate.ON_EVENT for clause in plan.clauses)


def _end(until_ms: int, period_ms: int) -> int:
    """Network second from which motes begin no epoch, so that the last one lies before ``until_ms``: what they store and do with rows
    more than FOR says the gateway could not take back."""
    if until_ms % 1000 == 0:
        return until_ms // 1000
    return (until_ms - 1) // period_ms * period_ms // 1000 + 1


def _late_ms(plan: QueryPlan) -> int:
    """How much longer than others its rows may be under way because they wait, on motes or to be put in order."""
    waits = waits_ms(plan)
    return (waits + held_ms(plan) if waits else 0) + (late_ms(plan.wait_ms) if plan.aggregate else 0)


def _both(a: Difference, b: Difference) -> Difference:
    """One change, then another. What the second stops is not installed in the first place."""
    install = tuple(i for i in a.install if i.query not in b.stop)
    sent = {i.query for i in a.install}
    return Difference(
        install + b.install,
        a.stop + tuple(query for query in b.stop if query not in sent),
        made=a.made + b.made,
        ended=a.ended + b.ended,
    )


def _ms(now: float) -> int:
    return int(now * 1000)

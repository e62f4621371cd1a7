"""How the mote query of a group changes: installed, joined, replaced by another from a cut-over on, taken back, retired.

Where motes have no room for both, a change waits until they have, and what runs goes on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from skerry.planner.features.srt import Srt
from skerry.planner.model.clause import Clause
from skerry.planner.model.pairing import delay_ms, over_ms, pairs_clause, window_ms, with_pairs
from skerry.planner.model.periods import ceiling
from skerry.planner.model.plans import Difference, Installation, MoteQuery, QueryPlan
from skerry.planner.physical.program import encode
from skerry.planner.physical.srt_routes import routed, routed_as
from skerry.sharing.changeover import Changeover
from skerry.sharing.cutover import choose_cut
from skerry.sharing.demand_state import Serving, User
from skerry.sharing.groups import Group
from skerry.sharing.mote_queries import MoteQueries, Running
from skerry.sharing.needs import Kind
from skerry.sharing.placement import Changes, Placement
from skerry.sharing.search import in_steps
from skerry.sharing.shared_pulses import cut_step_ms
from skerry.sharing.spreading import Spreading
from skerry_protocol.codes import Aggregate
from skerry_protocol.limits import FOREVER, QUERIES_MAXIMUM

#: In a round rows climb so many hops, whatever the slots are.
_CLIMB_HOPS = 8
#: By so much a beginning may move behind what was said first, for others who ask meanwhile.
_PATIENCE_MS = 8_000


class GroupChanges:
    """The groups of one network that have users in it, and the mote queries that serve them.

    ``users``, ``serving``, ``queries``: the network's, which these changes are made in; ``changed``: whose feeds have changed;
    ``linger_seconds``: how long rows of an ended query may be under way before it is stopped, at least.
    """

    def __init__(
        self,
        users: dict[str, User],
        serving: dict[int, Serving],
        queries: MoteQueries,
        readers: Changeover,
        spreading: Spreading,
        placement: Placement,
        changes: Changes,
        changed: set[str],
        linger_seconds: int,
    ) -> None:
        self._users, self._serving, self._queries, self._readers = users, serving, queries, readers
        self._spreading, self._placement = spreading, placement
        self._changes, self._changed = changes, changed
        self._linger_seconds = linger_seconds
        self.srts: tuple[Srt, ...] = ()
        #: Where pairs of motes are joined, by the text of the query.
        self.placements: Mapping[str, Clause] = {}
        #: Clauses that are others than when their query was asked, by its text.
        self.amended: Mapping[str, tuple[Clause, ...]] = {}
        #: How long the windows of such pairs take to fill, if longer than where each row passes.
        self.filled_ms: Mapping[str, int] = {}

    @property
    def linger_s(self) -> int:
        """For how long rows of an ended query may be under way, at the speed that time goes at."""
        return self._linger_seconds + self._spreading.late_s

    @property
    def last_rows_s(self) -> int:
        """For how long the rows of an epoch may be under way."""
        return self.linger_s + max(0, self._spreading.hops - _CLIMB_HOPS)

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
            group = self._placement.groups().get(number)
            if group is not None:
                total = both(total, self._serve(group, moved if number not in waiting else None, now))
        total = both(total, Difference(stop=self._retire(now)))
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
            group = self._placement.groups().get(number)
            if group is None or not any(user in self._users for user in group.users):
                self._serving.pop(number, None)

    def wanted(self, group: Group, running: Running | None) -> MoteQuery:
        """What serves the group's users, with its route. What has a memory keeps the route that it has."""
        query = group.query()
        plan = next(iter(group.users.values())).plan
        if plan.pairing is not None:
            clause = self.placements.get(plan.text)
            return query if clause is None else replace(query, clauses=with_pairs(clause, query.clauses))
        amended = self.amended.get(plan.text)
        if amended is not None:
            query = replace(query, clauses=amended)
        if group.kind is Kind.OWN and (plan.once or plan.budget or plan.clauses or plan.temporal):
            return routed_as(query, running.mote_query) if running is not None else routed(query, self.srts)
        return routed(query, self.srts)

    def _serve(self, group: Group, moved: set[str] | None, now: float) -> Difference:
        """Makes the group's query what its users need now. ``moved``: those who may not read it yet; None: any may."""
        serving = self._serving.setdefault(group.number, Serving())
        current = self._queries.get(serving.current)
        wanted = self.wanted(group, current)
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
        ended = {user for user in here if self._users[user].has_ended(to_ms(now))}
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
        since = ceiling(max(to_ms(now), current.cut_ms), state.plan.period_ms)
        return _end(since + state.length_ms, current.period_ms) <= current.installation.end

    def _join(self, user: str, serving: Serving, group: Group, current: Running, now: float) -> None:
        """The query serves a newcomer as it is."""
        state = self._users[user]
        if self._readers.reads(user) is not None:
            earliest = max(to_ms(now) + 1000, current.cut_ms)
            reading = self._readers.reading(user, current)
            cut = choose_cut(earliest, [reading] if reading is not None else [])
            self._readers.hand_over(user, serving, group.number, current, cut)
            return
        since = max(to_ms(now), current.cut_ms, 0 if state.length_ms is None else current.known_ms)
        self._readers.start(user, serving, group.number, current, since)

    def _change(self, serving: Serving, group: Group, wanted: MoteQuery, now: float) -> Difference:
        """Another query for the group; where motes have no room for it, it waits."""
        current = self._queries.get(serving.current)
        before = self._queries.get(serving.previous)
        unread = current is not None and not current.is_read(to_ms(now))
        goes_on = before is not None and before.stopped_at is None and before.installation.end == FOREVER
        if unread and goes_on and before is not None and before.mote_query == wanted:
            return self._revert(serving, group, now)
        # Nobody has read the current query yet: it is replaced, not followed.
        leaving = serving.current if unread else None
        room = self._queries.has_room(wanted, self._placement.memory, to_ms(now))
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
        return {self._placement.place(feed.user) for feed in feeds if feed.until_ms is None}

    def _install(self, serving: Serving, group: Group, wanted: MoteQuery, now: float) -> Installation:
        """Begins a query for all users of a group: who reads another one changes over."""
        users = [user for user in group.users if user in self._users]
        left = [user for user in users if not self._users[user].has_ended(to_ms(now))]
        reading = [user for user in users if self._readers.reads(user) is not None]
        known = self._spreading.known_ms(wanted, self._queries, now)
        early = [user for user in left if user not in reading and at_once(self._users[user].plan)]
        cut = known
        filled_ms = self._filled_ms(group, wanted) if reading else 0
        if reading:
            # Windows begin to fill when all motes have heard of it.
            known_then = known + filled_ms
            step = cut_step_ms(self._users[user].plan for user in users)
            probe = Running(Installation(0, wanted, 0, FOREVER, b""), known_then, known)
            readings = (self._readers.reading(user, probe) for user in reading)
            cut = choose_cut(ceiling(known_then, step), [r for r in readings if r is not None])
        elif len(early) == len(left):
            cut = self._spreading.soon_ms(now)
        running = self._reserve(wanted, cut, known, filled_ms)
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

    def _filled_ms(self, group: Group, wanted: MoteQuery) -> int:
        """How long windows of pairs take to fill; 0: it has none."""
        pairs = pairs_clause(wanted)
        if pairs is None:
            return 0
        plan = next(iter(group.users.values())).plan
        return max(window_ms(pairs, wanted.period_ms), self.filled_ms.get(plan.text, 0))

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
            elif not self._users[user].has_ended(to_ms(now)):
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
                if until_ms == 0 and needed_ms <= to_ms(now):
                    stop.append(running.query)
                    continue
                joined_ms = over_ms(running.mote_query.clauses, running.period_ms)
                rows_s = 0 if not until_ms else -(-(until_ms + joined_ms) // 1000) + self.last_rows_s
                stop_at = None if until_ms is None else max(rows_s, -(-needed_ms // 1000))
            if running.stop_at != stop_at:
                running.stop_at = stop_at
                self._queries.touch(running.query)
        return self.stop(stop, now)

    def stop(self, queries: list[int], now: float) -> tuple[int, ...]:
        """Those of them that run, which the caller is to stop."""
        return (
            self._queries.stop(queries, now, self._spreading.gone_ms(self._queries, now)) if queries else ()
        )

    # --- ids ---

    def _reserve(self, wanted: MoteQuery, cut_ms: int, known_ms: int, filled_ms: int = 0) -> Running:
        """An id for a query; :meth:`_program` completes it once its users' ends are known."""
        query = self._queries.next_id()
        self.forget(query)
        return self._queries.begin(query, wanted, cut_ms, known_ms, filled_ms)

    def _program(self, running: Running, users: list[str]) -> Installation:
        ends = [self._users[user].until_ms for user in users]
        known = [until for until in ends if until is not None]
        plain = running.installation
        end = FOREVER if len(known) < len(ends) else _end(max(known), plain.mote_query.period_ms)
        pairs = pairs_clause(plain.mote_query)
        if pairs is not None and end < FOREVER:
            # Motes join an epoch's rows some epochs later.
            end += -(-delay_ms(pairs, plain.mote_query.period_ms) // 1000)
        start = plain.start if running.early_ms is None else min(plain.start, running.early_ms // 1000)
        if any(self._users[user].longer and waits_for_event(self._users[user].plan) for user in users):
            # Motes that have started with the root tell so: he had asked.
            start = 0
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
        return self.stop([query], now)

    def forget(self, query: int) -> None:
        self._readers.leave(self._queries.readers(query), query)
        self._queries.forget(query)


def at_once(plan: QueryPlan) -> bool:
    """Whether its first rows are not to wait until all motes can have heard of it: somebody said so, or an event starts it."""
    return plan.start_now or waits_for_event(plan)


def waits_for_event(plan: QueryPlan) -> bool:
    """Whether an event starts it."""
    return any(clause.kind is Aggregate.ON_EVENT for clause in plan.clauses)


def _end(until_ms: int, period_ms: int) -> int:
    """Network second from which motes begin no epoch, so that the last one lies before ``until_ms``: what they store and do with rows
    more than FOR says the gateway could not take back."""
    if until_ms % 1000 == 0:
        return until_ms // 1000
    return (until_ms - 1) // period_ms * period_ms // 1000 + 1


def both(a: Difference, b: Difference) -> Difference:
    """One change, then another. What the second stops is not installed in the first place."""
    install = tuple(i for i in a.install if i.query not in b.stop)
    sent = {i.query for i in a.install}
    return Difference(
        install + b.install,
        a.stop + tuple(query for query in b.stop if query not in sent),
        made=a.made + b.made,
        ended=a.ended + b.ended,
    )


def to_ms(now: float) -> int:
    """Network time in ms."""
    return int(now * 1000)

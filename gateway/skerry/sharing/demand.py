"""What a network is asked to run, so that every user gets his rows.

Who shares a mote query is chosen elsewhere (:mod:`skerry.sharing.placement`). When a group's query changes
(:mod:`skerry.sharing.group_changes`), the new one is installed under a new id, rows are taken from it from a cut-over on
(:mod:`skerry.sharing.cutover`), and the old one is stopped a little later, so that users see neither gap nor duplicate.
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
from skerry.planner.model.pairing import over_ms
from skerry.planner.model.periods import ceiling
from skerry.planner.model.plans import Difference, Feed, Installation, MoteQuery, QueryPlan
from skerry.planner.model.waits import late_ms
from skerry.sharing.changeover import Changeover
from skerry.sharing.demand_state import OVER_MS, Serving, User
from skerry.sharing.group_changes import GroupChanges, at_once, both, to_ms, waits_for_event
from skerry.sharing.mote_queries import MoteQueries
from skerry.sharing.placement import Placement
from skerry.sharing.spreading import Spreading

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
        self._groups = GroupChanges(
            self._users, self._serving, self._queries, self._readers, self._spreading, self.placement, self._changes, self._changed,
            linger_seconds,
        )  # fmt: skip

    @property
    def speed(self) -> float:
        """S of network time in one of this machine's."""
        return self._spreading.speed

    @speed.setter
    def speed(self, speed: float) -> None:
        self._spreading.speed = speed

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
        if state.feeds or waits_for_event(state.plan):
            return state.since_ms if state.feeds and not waits_for_event(state.plan) else None
        leaving = [r.gone_ms for r in self._queries if r.stopped_at is not None and r.gone_ms > to_ms(now)]
        wanted = self._groups.wanted(self.placement.group_of(user), None)
        free = min(leaving, default=to_ms(now)) / 1000
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
        return self._groups.srts

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
        if waits_for_event(plan):
            return None
        running = self._queries.get(self._serving[group].current) if group in self._serving else None
        if running is not None:
            period = running.period_ms if plan.once and not running.mote_query.once else plan.period_ms
            return ceiling(max(to_ms(now), running.cut_ms), period)
        known = self._spreading.known_ms(wanted, self._queries, now)
        return ceiling(self._spreading.soon_ms(now) if at_once(plan) else known, plan.period_ms)

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
        self._groups.srts = tuple(srts)
        self._take_another_way()

    def place_by(self, placements: Mapping[str, Clause], filled_ms: Mapping[str, int] | None = None) -> None:
        """Pairs of motes are joined there now, by the text of the query; :meth:`advance` changes the queries that this is new for.
        ``filled_ms``: how long their windows take to fill, if longer than where each row passes."""
        self._groups.placements, self._groups.filled_ms = placements, filled_ms or {}
        self._take_another_way()

    def amend(self, clauses: Mapping[str, tuple[Clause, ...]]) -> None:
        """These are the clauses of queries now, by their text, as they have changed since they were asked; :meth:`advance` changes the
        queries that this is new for."""
        self._groups.amended = clauses
        self._take_another_way()

    def _take_another_way(self) -> None:
        for number, serving in self._serving.items():
            group, running = self.placement.groups().get(number), self._queries.get(serving.current)
            if (
                group is not None
                and running is not None
                and running.mote_query != self._groups.wanted(group, running)
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
        total = Difference(stop=self._groups.stop(self._queries.due(now), now))
        since = now if heard >= self._groups.linger_s else now - self._forget
        ended = [user for user, state in self._users.items() if self._is_over(state, since)]
        for user in ended:
            total = both(total, self.remove_user(user, now))
        if self._alone and self.is_settled():
            self.placement.improve()
        total = both(total, self.settle(now))
        for query in self._queries.stopped_by(now - self._forget):
            self._groups.forget(query)
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
        reads = [one for feed in state.feeds if (one := self._queries.get(feed.query)) is not None]
        # Where its pairs are joined now they may be waited for longer than where they were at first.
        joined = max((over_ms(one.mote_query.clauses, one.period_ms) for one in reads), default=0)
        end_ms = state.until_ms + self._groups.last_rows_s * 1000 + max(joined, _late_ms(state.plan))
        if state.plan.reads:
            # The rows of storage points go out as the radio has room, behind their epoch as well.
            end_ms = max([end_ms, *(one.row_ms + _QUIET_MS for one in reads)])
        return end_ms <= now * 1000

    def row_came(self, query: int, now: float) -> None:
        """Motes have sent a row of a mote query, or a partial state."""
        running = self._queries.get(query)
        if running is not None:
            running.row_ms = to_ms(now)

    def restart(self, last: float, now: float) -> Difference:
        """Network time began anew (the root has rebooted): all streams begin again, under new ids.

        ``last``: the last network time seen before, which tells how much of each FOR is left. All queries
        of the time before are forgotten: send QUERY_STOP 0 first.
        """
        self._queries.clear()
        self._serving.clear()
        for user, state in self._users.items():
            self._changed.add(user)
            state.feeds, state.longer = [], True
            if state.until_ms is None or state.length_ms is None:
                continue
            rest = state.until_ms - ceiling(max(to_ms(last), state.since_ms), state.plan.period_ms)
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

    def settle(self, now: float) -> Difference:
        """Brings all groups that have changed to what they are to be, as far as motes have room."""
        return self._groups.settle(now)

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


def _late_ms(plan: QueryPlan) -> int:
    """How much longer than others its rows may be under way because they wait, on motes or to be put in order."""
    waits = waits_ms(plan)
    joined = over_ms(plan.clauses, plan.period_ms)
    return (waits + held_ms(plan) if waits else 0) + (late_ms(plan.wait_ms) if plan.aggregate else 0) + joined

"""Users' windows over streams: who shares which panes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from skerry.execution.filters import Filter
from skerry.execution.matching import Part, View
from skerry.execution.partial_panes import PartialPanes
from skerry.execution.residual import Residual
from skerry.execution.window_rows import NULL
from skerry.execution.window_selection import WindowSelection
from skerry.expressions.expression import Expr
from skerry.planner.model.frames import EPOCH, LATENESS_MS, is_windowed
from skerry.planner.model.plans import Feed, QueryPlan
from skerry.planner.model.waits import behind_ms, grace_ms
from skerry.windows.courses import Course, Key
from skerry.windows.group_bounds import Given as GroupsGiven
from skerry.windows.group_bounds import GroupNumbers, too_many_groups
from skerry.windows.panes import Panes
from skerry.windows.window_parts import ALWAYS, WindowPart, WindowView, part_of

#: What a window's rows are kept under in a batch: its panes, by number, and itself.
WindowKey = tuple[int, Key]
#: What of rows is to be folded: see :meth:`Windows.wanted`.
Wanted = tuple[int, int]


def last_end(plan: QueryPlan, ends: Iterable[int | None]) -> int:
    """When the last window of a query may end, whose rows of a session end at ``ends``: with its FOR. Others' rows may go on, and the
    rows behind it are there to bring that window, not to be counted."""
    found = list(ends)
    known = [end for end in found if end is not None]
    if plan.duration_ms is None or len(known) < max(1, len(found)):
        return ALWAYS
    return max(known) - behind_ms(plan.period_ms, plan.wait_ms)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which rows of which streams go into panes of which width, by which group.

    ``feeds``: by stream, of one session of the network, by time; for all users alike, whenever they came. What of them is new or has
    changed since the panes numbered ``after``, which these go on from; 0: they go on from none. ``off``: streams that these had, and that
    were called off.
    """

    where: Expr | None
    groups: tuple[Expr, ...]
    period_ms: int
    width_ms: int
    after: int
    feeds: tuple[tuple[int, Feed], ...]
    off: tuple[int, ...] = ()
    #: Of groups by epoch, so many that they are told apart: see :meth:`skerry.planner.model.frames.Frame.epochs`.
    epochs: int = 0
    #: See :func:`skerry.planner.model.waits.grace_ms`.
    grace_ms: int = 0


@dataclass
class Shared:
    """The panes of a selection, and who has windows over them. ``views``: of the streams that may still bring rows."""

    number: int
    selection: Selection
    panes: Panes
    views: dict[int, View]
    groups: GroupNumbers = field(default_factory=GroupNumbers)
    users: dict[str, Key] = field(default_factory=dict)
    #: What was noted last as :attr:`wanted`.
    noted: Wanted | None = None
    #: The row of the log before which all is in them already, whoever has them; None: they are made of the rows since their users came.
    begin: int | None = None

    def __post_init__(self) -> None:
        if not self.selection.groups:
            self.groups.known[()] = 0

    @property
    def wanted(self) -> Wanted:
        """Another one when something else is to be folded: more is aggregated when users come."""
        return self.number, len(self.panes.arguments())


@dataclass(slots=True)
class Brought:
    """What rows brought: what windows gave, by :data:`WindowKey`, and whose they are."""

    parts: dict[Hashable, WindowPart] = field(default_factory=dict)
    users: set[str] = field(default_factory=set)


class Windows:
    """The windows of all users. Not for several threads at once.

    ``session`` of a stream's number: network time begins anew with each. Windows are of one session each, by its time, unless
    there is ``utc``: of a stream's number and a network time, UTC in ms that go as network time does, ``speed`` s of it in one of
    UTC's; they are of all sessions then, by that.
    """

    def __init__(
        self,
        session: Callable[[int], int | None],
        utc: Callable[[int, int], int] | None = None,
        speed: float = 1.0,
    ) -> None:
        self._session, self._utc, self._speed = session, utc, speed
        self._shared: dict[Selection, Shared] = {}
        self._wanted: dict[Wanted, Callable[[], WindowSelection]] = {}
        self._of_user: dict[str, dict[int, Shared]] = {}
        self._views: dict[str, dict[Hashable, WindowView]] = {}
        #: By user, why there are no more windows.
        self.exceeded: dict[str, str] = {}
        #: The number given last to panes.
        self.last = 0
        #: Of users who went on from what was kept, the row before which their windows have all.
        self._went_on: dict[str, int] = {}

    def set_feeds(
        self, user: str, residual: Residual, feeds: Mapping[int, Feed], row: int, oldest: int = 0
    ) -> dict[Hashable, WindowView]:
        """A user's windows, from row ``row`` of the log on over these streams; returns where his rows will be and were, by
        :data:`WindowKey`, those of rows from ``oldest`` on."""
        plan, window = residual.plan, residual.plan.window
        assert window is not None
        if user in self.exceeded:
            return dict(self._views.get(user, {}))
        had, mine = self._of_user.get(user, {}), dict[int, Shared]()
        views = self._views.setdefault(user, {})
        current: list[Hashable] = []
        for session in dict.fromkeys(self._course(number) for number in feeds):
            if session is None:
                continue
            of_session = {n: feed for n, feed in feeds.items() if self._course(n) == session}
            since = min(self._time(n, feed.since_ms) for n, feed in of_session.items())
            shared = self._selected(plan, of_session, had.get(session), self._went_on.get(user))
            first = 0 if window.is_bounded else -(-since // window.slide_ms) * window.slide_ms
            nodes = [node for node in plan.aggregates() if is_windowed(node)]
            old = had.get(session)
            course = (window, first)
            if old is not None and old is not shared and course in old.panes.courses:
                shared.panes.adopt(old.panes, course)
            shared.panes.want({node.args[0] for node in nodes if node.args}, window, first)
            self._note(shared)
            shared.users[user] = course
            mine[session] = shared
            place: WindowKey = shared.number, course
            current.append(place)
            ends = (None if f.until_ms is None else self._time(n, f.until_ms) for n, f in of_session.items())
            until = last_end(plan, ends)
            if place not in views:
                views[place] = WindowView(residual, since, row, ALWAYS, until)
            elif views[place].until_ms != until:
                views[place] = replace(views[place], until_ms=until)
        for other, view in list(views.items()):
            if other not in current and view.end == ALWAYS:
                views[other] = replace(view, end=row)
            elif view.end <= oldest:
                # Of each change of what motes run there is one.
                del views[other]
        self._leave(user, [shared for session, shared in had.items() if shared is not mine.get(session)])
        self._of_user[user] = mine
        return dict(views)

    def _course(self, number: int) -> int | None:
        """Streams with the same one are of the same windows."""
        session = self._session(number)
        return session if session is None or self._utc is None else 0

    def _time(self, number: int, network_ms: int) -> int:
        return network_ms if self._utc is None else self._utc(number, network_ms)

    def remove(self, user: str) -> None:
        """The user is gone."""
        self._leave(user, self._of_user.pop(user, {}).values())
        self._views.pop(user, None)
        self._went_on.pop(user, None)
        self.exceeded.pop(user, None)

    def _leave(self, user: str, places: Iterable[Shared]) -> None:
        for shared in places:
            course = shared.users.pop(user)
            if course not in shared.users.values():
                del shared.panes.courses[course]
            if not shared.users:
                self._forget(shared)

    def _selected(
        self, plan: QueryPlan, feeds: Mapping[int, Feed], before: Shared | None, begin: int | None
    ) -> Shared:
        """The panes for a plan: those he had where his feeds are what they were, or made of them where the feeds have gone on. ``begin``:
        as :attr:`Shared.begin`, of new ones."""
        window = plan.window
        assert window is not None
        width = window.width_ms
        known = {} if before is None else before.views
        fresh = self._fresh(feeds, before)
        going = {n: view for n, view in known.items() if not self._is_over(n, view.feed, before)}
        # Motes may send rows by them until they hear of it.
        off = tuple(n for n in going if n not in feeds)
        if before is not None and not fresh and not off:
            return before
        after = 0 if before is None else before.number
        selection = Selection(
            plan.where,
            plan.groups,
            plan.period_ms,
            width,
            after,
            tuple(fresh.items()),
            off,
            window.epochs(plan.period_ms) if EPOCH in plan.groups else 0,
            grace_ms(plan.period_ms, plan.wait_ms),
        )
        found = self._shared.get(selection)
        if found is None:
            base = Filter.of(plan.without_windows())
            views = {n: view for n, view in going.items() if n in feeds}
            views |= {number: View.of(base, feed) for number, feed in fresh.items()}
            self.last += 1
            panes = Panes(width, selection.grace_ms) if before is None else before.panes.copy()
            found = Shared(self.last, selection, panes, views, begin=begin)
            if before is not None:
                found.groups, found.begin = before.groups.copy(), before.begin
            self._shared[selection] = found
        return found

    def _fresh(self, feeds: Mapping[int, Feed], before: Shared | None) -> dict[int, Feed]:
        """Those of a user's feeds that panes do not have yet, or not so, as they are for all users alike, by time."""
        known = {} if before is None else before.views
        sessions = {self._session(number) for number in known}
        fresh = {}
        for number, feed in sorted(feeds.items(), key=lambda item: item[1].since_ms):
            seen, session = known.get(number), self._session(number)
            if seen is None and self._is_over(number, feed, before):
                continue
            # Windows begin behind a user's begin anyway, so that the time when he came does not keep users apart.
            first = session not in sessions if seen is None else seen.feed.since_ms == NULL
            sessions.add(session)
            alike = replace(feed, user="", since_ms=NULL if first else feed.since_ms)
            if seen is None or seen.feed != alike:
                fresh[number] = alike
        return fresh

    def _is_over(self, number: int, feed: Feed, shared: Shared | None) -> bool:
        """Whether no row of a feed can come that panes would still count in."""
        now_ms = None if shared is None else shared.panes.now_ms
        if now_ms is None or feed.until_ms is None:
            return False
        return self._time(number, feed.until_ms) <= now_ms - LATENESS_MS

    def begins(self, users: Mapping[str, int]) -> dict[int, int]:
        """By number of what is shared, with which row it begins that is not in it yet, given those that its users' queries begin with."""
        return {
            shared.number: min(users[user] for user in shared.users) if shared.begin is None else shared.begin
            for shared in self._shared.values()
        }

    # ---- what is kept over a restart: see skerry.windows.snapshot ----

    def shared(self) -> list[Shared]:
        """All panes that somebody has windows over."""
        return [shared for shared in self._shared.values() if shared.users]

    def of_user(self, user: str) -> Mapping[int, Shared]:
        """A user's panes by session."""
        return self._of_user.get(user, {})

    def take_up(self, shared: Iterable[Shared], last: int) -> None:
        """Go on with panes that were kept, of which there are no others. ``last``: as :attr:`last`."""
        self.last = last
        for one in shared:
            self._shared[one.selection] = one
            self._note(one)

    def go_on(self, user: str, places: Mapping[int, Shared], row: int) -> None:
        """A user whose panes, by session, are kept from before row ``row`` of the log."""
        self._of_user[user], self._went_on[user] = dict(places), row

    def process(
        self, parts: Mapping[int, Part], only: Collection[int] | None = None
    ) -> tuple[dict[Hashable, WindowPart], set[str]]:
        """The next rows of all streams: what windows give, by :data:`WindowKey`, and whose they are. ``only``: numbers of what is shared
        that the rows are for; None: all."""
        found = Brought()
        for shared in list(self._shared.values()):
            if (only is None or shared.number in only) and shared.views.keys() & parts.keys():
                self._give(shared, self._of_rows(shared, parts), found)
        return found.parts, found.users

    def merge(
        self,
        streams: Collection[int],
        folded: Callable[[Wanted], Sequence[PartialPanes] | None],
        rows: Callable[[], Mapping[int, Part]],
    ) -> tuple[dict[Hashable, WindowPart], set[str]]:
        """The same, where they have been folded. ``streams``: those that have some; ``folded``: of what is asked; None: it was not known
        yet; ``rows``: the rows themselves, which not all may be wanted of."""
        found = Brought()
        for shared in list(self._shared.values()):
            if shared.views.keys().isdisjoint(streams):
                continue
            parts = folded(shared.wanted)
            given = shared.groups.merge(shared.panes, parts) if parts else None
            self._give(shared, given or self._of_rows(shared, rows()), found)
        return found.parts, found.users

    def _of_rows(self, shared: Shared, parts: Mapping[int, Part]) -> GroupsGiven:
        return shared.groups.process(shared.panes, self._selection(shared).input(parts, shared.groups.known))

    def _give(self, shared: Shared, given: GroupsGiven, found: Brought) -> None:
        """What the windows of a selection gave."""
        selection = shared.selection
        brought = {key for key, result in given.results.items() if len(result)}
        for key in brought:
            result = given.results[key]
            found.parts[shared.number, key] = part_of(
                result,
                Course(*key),
                selection.groups,
                given.groups[key],
                result.ends_utc_ms(self._speed),
                selection.period_ms,
            )
        if brought:
            found.users.update(user for user, key in shared.users.items() if key in brought)
        if given.ended:
            self._end(shared, given.ended)

    def wanted(self) -> Mapping[Wanted, Callable[[], WindowSelection]]:
        """What is to be folded of rows, wherever that is done."""
        return self._wanted

    def _note(self, shared: Shared) -> None:
        """Something else may be wanted: who comes with a window of his own looks at no others."""
        if shared.noted == shared.wanted:
            return
        if shared.noted is not None:
            del self._wanted[shared.noted]
        shared.noted = shared.wanted
        self._wanted[shared.noted] = partial(self._selection, shared)

    def _forget(self, shared: Shared) -> None:
        del self._shared[shared.selection]
        if shared.noted is not None:
            del self._wanted[shared.noted]

    def _selection(self, shared: Shared) -> WindowSelection:
        selection, panes = shared.selection, shared.panes
        return WindowSelection(
            shared.views,
            selection.groups,
            panes.arguments(),
            selection.period_ms,
            selection.epochs,
            None if self._utc is None else self._speed,
            panes.width_ms,
            panes.grace_ms,
        )

    def _end(self, shared: Shared, ended: Sequence[Key]) -> None:
        """Windows whose groups are too many are over for those who have them."""
        for user, key in list(shared.users.items()):
            if key in ended:
                del shared.users[user]
                self._of_user[user] = {s: one for s, one in self._of_user[user].items() if one is not shared}
                self.exceeded[user] = too_many_groups(key[0])
        if not shared.users:
            self._forget(shared)

"""Windows that one query has for itself: over rows joined with tables, and over the past and what follows it.

Tables change and may not be there, and the past takes its time: such windows are therefore computed when their reader
comes, from the log. A table that is missing makes that query wait, and no other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from skerry.execution.deliveries import Delivery, in_order
from skerry.execution.filters import Filter
from skerry.execution.matching import Part, View
from skerry.execution.range_index import Int64
from skerry.execution.residual import Residual, Rows
from skerry.execution.window_rows import Input, Piece, as_input, with_epochs
from skerry.expressions.evaluate import Vector
from skerry.planner.model.frames import EPOCH, LATENESS_MS
from skerry.planner.model.plans import Feed, QueryPlan
from skerry.planner.model.waits import grace_ms
from skerry.streams.stream import common_ms
from skerry.tables.columns import TableError
from skerry.tables.join import Joiner
from skerry.windows.courses import Course, Key
from skerry.windows.group_bounds import GroupNumbers, too_many_groups
from skerry.windows.panes import Panes
from skerry.windows.shared_windows import last_end
from skerry.windows.window_parts import Texts, WindowView, part_of

#: Rows of the log that are looked at at a time.
STEP = 65_536
#: The same where each of them meets many others of the stream's past.
SELF_STEP = 1024
#: Rows of windows that are kept for readers of one query.
KEPT_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class Chosen:
    """Rows of one session, or of all, in the order of the log, of which those at ``places`` are in the query: where they stand in
    ``rows``. ``all``: where all of them do."""

    session: int
    numbers: Int64
    rows: Rows
    all: Int64
    places: Int64


class Past(Protocol):
    """Rows of the past, as :class:`skerry.storage.history.answer.PastRows` has them."""

    #: Where the query's span begins, UTC in ms.
    since_ms: int

    def first(self) -> int:
        """A row of the log before which there are none."""

    def read(self, start: int, end: int) -> list[Chosen]:
        """Rows ``start`` .. ``end`` - 1 of the log."""


@dataclass
class OwnWindows:
    """What one query's windows are made of. ``begin``: row of the log from which on rows come by its ``feeds``; before it they
    are the past's. ``parts``: rows of the log from .. to - 1, with some attributes, by stream; ``session`` of a stream's number;
    ``utc``, ``speed``: as of :class:`skerry.windows.shared_windows.Windows`."""

    plan: QueryPlan
    begin: int
    parts: Callable[[int, int, Collection[int]], Iterator[Mapping[int, Part]]]
    session: Callable[[int], int | None]
    joiner: Joiner | None = None
    past: Past | None = None
    utc: Callable[[int, int], int] | None = None
    speed: float = 1.0
    feeds: Mapping[int, Feed] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.residual = Residual(self.plan)
        self._alone = Filter.of(self.plan.without_windows())
        aggregates = [node.args[0] for node in self.plan.aggregates() if node.args]
        self.arguments = list(dict.fromkeys(aggregates))
        self.wanted = [*self.plan.groups, *self.arguments]

    def first(self) -> int:
        """The first row of the log that matters."""
        return self.begin if self.past is None else min(self.past.first(), self.begin)

    def until(self, start: int, end: int) -> int:
        """How far a step from a row goes: not over the end of the past."""
        step = SELF_STEP if any(probe.table.past_ms is not None for probe in self.plan.probes) else STEP
        return min(start + step, end, self.begin if start < self.begin else end)

    def grace_ms(self, start: int) -> int:
        """How far behind a window's end the row of a step is sampled that brings it: in the past all is there, in whatever order."""
        if self.past is not None and start < self.begin:
            return LATENESS_MS
        return grace_ms(self.plan.period_ms, self.plan.wait_ms)

    def read(self, start: int, end: int) -> list[Chosen]:
        """Rows of a step."""
        past = self.past.read if self.past is not None else lambda *_: []
        found = past(start, end) if start < self.begin else self._by_feeds(start, end)
        return found if self.utc is None else [replace(chosen, session=0) for chosen in found]

    def _by_feeds(self, start: int, end: int) -> list[Chosen]:
        found = []
        for parts in self.parts(start, end, self.plan.attributes):
            for number, part in parts.items():
                session, feed = self.session(number), self.feeds.get(number)
                if session is not None and feed is not None:
                    places = part.places(View.of(self._alone, feed)).astype(np.int64)
                    everything = np.arange(len(part.numbers))
                    found.append(Chosen(session, part.numbers, part.rows, everything, places))
        return found

    def values(self, chosen: Chosen) -> tuple[Int64, list[Vector | list[str | None]]]:
        """Places of the query's rows, of a join some several times, and what it groups by and aggregates. Raises TableError."""
        if self.joiner is not None:
            return self.joiner.columns(chosen.rows, chosen.places, self.wanted)
        evaluate = chosen.rows.evaluate.at(chosen.places)
        return chosen.places, [evaluate(expr, self.plan.period_ms) for expr in self.wanted]

    def times(self, chosen: Chosen) -> Int64:
        """When all its rows were sampled, in the time that the windows go by, in ms."""
        rows = chosen.rows
        if self.utc is not None:
            return common_ms(rows.utc_ms[chosen.all], self.speed)
        times: Int64 = rows.sample_ms[chosen.all]
        return times

    def since(self, session: int, chosen: Chosen) -> int:
        """From when on a session's windows may begin, given its first rows."""
        if self.past is not None:
            behind = round((int(chosen.rows.utc_ms[chosen.all[0]]) - self.past.since_ms) * self.speed)
            return max(0, int(self.times(chosen)[0]) - behind)
        if self.utc is not None:
            return min(self.utc(n, feed.since_ms) for n, feed in self.feeds.items())
        return min(feed.since_ms for n, feed in self.feeds.items() if self.session(n) == session)

    def last_end(self, session: int) -> int:
        """When the last of a session's windows may end."""
        feeds = [(n, f) for n, f in self.feeds.items() if self.utc is not None or self.session(n) == session]
        if self.utc is None:
            return last_end(self.plan, (feed.until_ms for _, feed in feeds))
        return last_end(
            self.plan, (None if f.until_ms is None else self.utc(n, f.until_ms) for n, f in feeds)
        )


@dataclass
class OwnSession:
    """The windows of one session of the network, or of all."""

    panes: Panes
    key: Key
    view: WindowView
    groups: GroupNumbers
    #: UTC of the latest sample in the last step.
    utc_ms: int = 0


class Run:
    """One way through the log."""

    def __init__(self, own: OwnWindows) -> None:
        self.own = own
        #: The row of the log that comes next.
        self.at = own.first()
        self.sessions: dict[int, OwnSession] = {}
        self.texts: Texts = {}
        self._kept: deque[Delivery] = deque()
        self._rows = 0
        #: Rows of windows up to this row of the log are no longer kept.
        self.floor = -2

    def go_on(self, at: int) -> None:
        """From this row on; what those before it brought is not kept."""
        self.at, self.floor = at, at - 1

    def behind(self, position: int) -> list[Delivery]:
        """What is kept of the windows that rows behind a position brought."""
        found = [d.behind(position) for d in self._kept if d.numbers[-1] > position]
        return [delivery for delivery in found if len(delivery.numbers)]

    def step(self, end: int) -> None:
        """The next rows of the log, before ``end``. Raises TableError; then it is tried again with the same rows."""
        upto = self.own.until(self.at, end)
        pieces: dict[int, list[Piece]] = {}
        firsts: dict[int, Chosen] = {}
        for chosen in self.own.read(self.at, upto):
            if len(chosen.numbers):
                firsts.setdefault(chosen.session, chosen)
                pieces.setdefault(chosen.session, []).append(self._piece(chosen))
        for number, chosen in firsts.items():
            if number not in self.sessions:
                self.sessions[number] = self._begun(number, chosen)
        inputs: list[tuple[OwnSession, int, Input]] = []
        for number, mine in pieces.items():
            session = self.sessions[number]
            rows = as_input(mine, session.groups.known, len(self.own.plan.groups), self.own.arguments)
            inputs.append((session, self.own.last_end(number), rows))
        for session, _, _ in inputs:
            session.panes.grace_ms = self.own.grace_ms(self.at)
        found = [d for one in inputs if (d := self._given(*one)) is not None]
        if self.at < upto == self.own.begin:
            # Of the past all is there now: who waits for rows to come need not wait for what they would bring.
            found += self._over(upto, self.own.grace_ms(upto), self.own.last_end)
        self._keep(in_order(found))
        self.at = upto

    def finish(self) -> None:
        """No more rows come: windows are over that end a period before the last one."""
        self._keep(
            in_order(self._over(self.at, self.own.plan.period_ms, lambda _: int(np.iinfo(np.int64).max)))
        )

    def _over(self, end: int, grace_ms: int, until: Callable[[int], int]) -> list[Delivery]:
        """What the windows give that end so long before the last sample of those before row ``end``."""
        found = []
        nothing = np.empty(0, np.int64)
        for number, session in self.sessions.items():
            if session.panes.now_ms is None:
                continue
            session.panes.grace_ms = grace_ms
            time, utc_ms = np.array([session.panes.now_ms], np.int64), np.array([session.utc_ms], np.int64)
            arguments = {argument: (nothing, nothing.astype(np.bool_)) for argument in self.own.arguments}
            rows = Input(np.array([end - 1], np.int64), time, utc_ms, nothing, nothing, arguments, nothing)
            delivery = self._given(session, until(number), rows)
            found += [delivery] if delivery is not None else []
        return found

    def _given(self, session: OwnSession, until: int, rows: Input) -> Delivery | None:
        """What a session's windows give that end before ``until``."""
        given = session.groups.process(session.panes, rows)
        if not session.panes.courses:
            raise TableError(too_many_groups(session.key[0]))
        result, groups = given.results[session.key], given.groups[session.key]
        session.utc_ms = int(rows.utc_ms[np.argmax(rows.sample_ms)])
        if not len(result):
            return None
        utc_ms, plan = result.ends_utc_ms(self.own.speed), self.own.plan
        course = Course(*session.key)
        part = part_of(result, course, plan.groups, groups, utc_ms, plan.period_ms, self.texts)
        return part.delivery(replace(session.view, until_ms=until))

    def _piece(self, chosen: Chosen) -> Piece:
        places, columns = self.own.values(chosen)
        vectors = [self._coded(column) if isinstance(column, list) else column for column in columns]
        # Where the places stand among this session's rows.
        among = np.searchsorted(chosen.all, places)
        utc_ms, times, plan = chosen.rows.utc_ms[chosen.all], self.own.times(chosen), self.own.plan
        if EPOCH in plan.groups and plan.window is not None:
            left = times[among] // plan.period_ms % plan.window.epochs(plan.period_ms)
            vectors = with_epochs(vectors, plan.groups, left)
        motes, _ = chosen.rows.column("nodeid")
        return Piece(chosen.numbers, times, utc_ms, among, vectors, motes[places])

    def _coded(self, texts: list[str | None]) -> Vector:
        codes = [0 if text is None else self.texts.setdefault(text, len(self.texts)) for text in texts]
        return np.array(codes, np.int64), np.array([text is not None for text in texts], np.bool_)

    def _begun(self, number: int, chosen: Chosen) -> OwnSession:
        plan, frame = self.own.plan, self.own.plan.window
        assert frame is not None
        since = self.own.since(number, chosen)
        first = 0 if frame.is_bounded else -(-since // frame.slide_ms) * frame.slide_ms
        panes = Panes(frame.width_ms, self.own.grace_ms(self.at))
        panes.want(self.own.arguments, frame, first)
        view = WindowView(self.own.residual, since, -1, int(np.iinfo(np.int64).max))
        return OwnSession(panes, (frame, first), view, GroupNumbers({} if plan.groups else {(): 0}))

    def _keep(self, found: list[Delivery]) -> None:
        for delivery in found:
            self._kept.append(delivery)
            self._rows += len(delivery.numbers)
        while len(self._kept) > 1 and self._rows > KEPT_ROWS:
            oldest = self._kept.popleft()
            self._rows -= len(oldest.numbers)
            self.floor = int(oldest.numbers[-1])

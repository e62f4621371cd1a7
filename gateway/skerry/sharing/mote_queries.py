"""Mote queries by their ids on the wire: those that run, those that were stopped lately, what the gateway makes of them as if motes
ran it beside, and who reads which."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from skerry.planner.model.pairing import pairs_clause, window_ms
from skerry.planner.model.periods import ceiling, last_sample_before
from skerry.planner.model.plans import Feed, Installation, MoteQuery
from skerry.planner.physical.fast_sampling import is_fast
from skerry.planner.physical.mote_memory import bytes_taken
from skerry_protocol.limits import FOREVER, QUERIES_MAXIMUM

#: Query ids on the wire: 1..255. What the gateway makes has those above.
_IDS = 255
#: So long before its cut-over a query of fast samples begins: no pulse is cut in two that is shorter.
_WARM_UP_SECONDS = 3


@dataclass(frozen=True, slots=True)
class Part:
    """A mote query of whose rows something is made, of those epochs that begin at ``since_ms`` or later and before ``until_ms``; None:
    of all from then on."""

    query: int
    since_ms: int
    until_ms: int | None = None


@dataclass(slots=True)
class Running:
    """A mote query in the network. ``cut_ms``: users read it from then on. ``known_ms``: all motes have heard of it by then.
    ``stop_at``: s, when it is due to be stopped; ``stopped_at``: s, when it was: it is remembered for rows still under way.
    ``made_of``: the mote queries that the gateway makes its rows of, one after the other; None: motes run it themselves. ``group``: of
    users, whom it is made for."""

    installation: Installation
    cut_ms: int
    known_ms: int
    stop_at: int | None = None
    stopped_at: int | None = None
    made_of: tuple[Part, ...] | None = None
    group: int | None = None
    #: From when on the first of them reads it, who would not wait; None: from the cut-over on.
    early_ms: int | None = None
    #: All motes have heard by then that it is stopped: until then some hold it.
    gone_ms: int = 0
    #: Network ms at which its last row came, as far as this gateway has heard.
    row_ms: int = 0
    #: What :meth:`row` said last, and of what: conditions of many users are long.
    _written: tuple[object, dict[str, Any]] = field(default=(None, {}), init=False, repr=False, compare=False)

    @property
    def query(self) -> int:
        """Its id."""
        return self.installation.query

    @property
    def mote_query(self) -> MoteQuery:
        """What it is."""
        return self.installation.mote_query

    @property
    def period_ms(self) -> int:
        """Sample period of the mote query."""
        return self.installation.mote_query.period_ms

    def is_read(self, now_ms: int) -> bool:
        """Whether somebody may have had rows of it."""
        return min(self.cut_ms, self.cut_ms if self.early_ms is None else self.early_ms) <= now_ms

    def row(self) -> dict[str, Any]:
        """To be kept; the same object while it stays as it is."""
        made = self.installation
        state = (
            id(made.mote_query),
            made.start,
            made.end,
            made.program,
            self.cut_ms,
            self.known_ms,
            self.stop_at,
            self.stopped_at,
            self.made_of,
            self.early_ms,
            self.gone_ms,
        )
        if self._written[0] != state:
            parts = (
                None
                if self.made_of is None
                else json.dumps([[p.query, p.since_ms, p.until_ms] for p in self.made_of])
            )
            row = {
                "query": made.query,
                "sharing_group": self.group,
                "statement": json.dumps(made.mote_query.to_dict()),
                "start": made.start,
                "end": made.end,
                "program": made.program,
                "made_of": parts,
                "cut_ms": self.cut_ms,
                "known_ms": self.known_ms,
                "early_ms": self.early_ms,
                "gone_ms": self.gone_ms,
                "stop_at": self.stop_at,
                "stopped_at": self.stopped_at,
            }
            self._written = state, row
        return self._written[1]

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Running:
        """What :meth:`row` said."""
        mote_query = MoteQuery.from_dict(json.loads(row["statement"]))
        installation = Installation(row["query"], mote_query, row["start"], row["end"], row["program"])
        parts = None if row["made_of"] is None else tuple(Part(*part) for part in json.loads(row["made_of"]))
        times = row["cut_ms"], row["known_ms"], row["stop_at"], row["stopped_at"]
        return cls(installation, *times, parts, row["sharing_group"], row["early_ms"], row["gone_ms"])


class MoteQueries:
    """What motes run, and what the gateway makes of it."""

    def __init__(self) -> None:
        #: Of motes, oldest first; of the gateway.
        self._running: dict[int, Running] = {}
        self._made: dict[int, Running] = {}
        #: What is made, or was, of a mote query, by its id.
        self._views: dict[int, dict[int, Running]] = {}
        self._readers: dict[int, dict[str, Feed]] = {}
        #: The ids that were given last, on the wire and above.
        self.last_id = 0
        self.last_made = _IDS
        #: As they were remembered last, and those that may be otherwise by now.
        self._written: dict[int, dict[str, Any]] = {}
        self._touched: set[int] = set()
        #: What the gateway makes, and what not any more, and for whom it may have nobody, since that was asked last.
        self._begun: list[int] = []
        self._ended: list[int] = []
        self._idle: set[int] = set()

    def __iter__(self) -> Iterator[Running]:
        """Those of motes, the ones stopped lately included, oldest first."""
        return iter(self._running.values())

    def __contains__(self, query: int) -> bool:
        return query in self._running or query in self._made

    def __getitem__(self, query: int) -> Running:
        """Raises KeyError for one that is not known."""
        found = self.get(query)
        if found is None:
            raise KeyError(query)
        return found

    def get(self, query: int | None) -> Running | None:
        """None for one that is not known, or where there is none."""
        return None if query is None else self._running.get(query) or self._made.get(query)

    def active(self) -> list[Running]:
        """Those that motes are to run now, the ones due to be stopped included."""
        return [running for running in self if running.stopped_at is None]

    def views(self, query: int) -> Iterable[Running]:
        """What the gateway makes, or made, of one's rows."""
        return self._views.get(query, {}).values()

    def made(self) -> Iterable[Running]:
        """All that it makes, or made lately."""
        return self._made.values()

    def has_room(self, wanted: MoteQuery, memory: int, now_ms: int) -> bool:
        """Whether all motes can take one more now: what was stopped is there until all have heard of that."""
        there = [running for running in self if running.stopped_at is None or running.gone_ms > now_ms]
        taken = sum(bytes_taken(running.mote_query) for running in there)
        return len(there) < QUERIES_MAXIMUM and taken + bytes_taken(wanted) <= memory

    def due(self, now: float) -> list[int]:
        """Those that are to be stopped by now, s of network time."""
        asked = self.active()
        return [r.query for r in asked if r.stop_at is not None and r.stop_at <= now]

    def stopped_by(self, then: float) -> list[int]:
        """Those that had been stopped at that time, s."""
        both = [*self._running.values(), *self._made.values()]
        return [r.query for r in both if r.stopped_at is not None and r.stopped_at <= then]

    # --- what changes ---

    def touch(self, query: int) -> None:
        """Something about it has been changed."""
        self._touched.add(query)

    def next_id(self) -> int:
        """An id for a query. They go round, so that one is used again as late as possible: forget who had it."""
        order = [(self.last_id + i) % _IDS + 1 for i in range(_IDS)]
        unused = [query for query in order if query not in self._running]
        stopped = [q for q in order if q in self._running and self._running[q].stopped_at is not None]
        self.last_id = (unused or stopped)[0]
        return self.last_id

    def begin(self, query: int, wanted: MoteQuery, cut_ms: int, known_ms: int, filled_ms: int = 0) -> Running:
        """One under this id; its end and program are still to be said. ``filled_ms``: how long windows of rows take to fill, if longer than
        where each row passes."""
        # What is true at the cut-over has become true before it. What motes store or queue begins with it.
        pairs = pairs_clause(wanted)
        early = _WARM_UP_SECONDS if is_fast(wanted.period_ms) and not wanted.clauses else 0
        if pairs is not None:
            # Windows are to hold what they would hold by then.
            early = -(-max(filled_ms, window_ms(pairs, wanted.period_ms)) // 1000)
        installation = Installation(query, wanted, max(0, cut_ms // 1000 - early), FOREVER, b"")
        running = self._running[query] = Running(installation, cut_ms, known_ms)
        self._readers[query] = {}
        self.touch(query)
        return running

    def make(self, wanted: MoteQuery, of: Running, since_ms: int, group: int) -> Running:
        """What the gateway makes of one's rows from then on, for a group of users."""
        self.last_made += 1
        installation = Installation(self.last_made, wanted, 0, FOREVER, b"")
        made = Running(installation, since_ms, of.known_ms, group=group, made_of=(Part(of.query, since_ms),))
        self._made[self.last_made] = made
        self._begun.append(self.last_made)
        self._readers[self.last_made] = {}
        self._views.setdefault(of.query, {})[self.last_made] = made
        self.touch(self.last_made)
        return made

    def make_of(self, made: Running, of: Running, since_ms: int) -> None:
        """It is made of another one from then on, of whatever it was to be made before."""
        parts = [part for part in made.made_of or () if part.since_ms < since_ms]
        if parts and parts[-1].query == of.query:
            parts[-1] = Part(of.query, parts[-1].since_ms)
        else:
            parts[-1:] = [Part(part.query, part.since_ms, since_ms) for part in parts[-1:]]
            parts.append(Part(of.query, since_ms))
        self._made_of(made, parts)

    def unmake(self, made: Running, of: int) -> bool:
        """It is not made of a mote query that nobody has read; whether it is made of none then."""
        parts = [part for part in made.made_of or () if part.query != of]
        parts[-1:] = [Part(part.query, part.since_ms) for part in parts[-1:]]
        self._made_of(made, parts)
        return not parts

    def _made_of(self, made: Running, parts: list[Part]) -> None:
        # Of what was forgotten nothing can come any more.
        parts = [part for part in parts if part.query in self._running]
        for gone in {part.query for part in made.made_of or ()} - {part.query for part in parts}:
            self._views.get(gone, {}).pop(made.query, None)
        made.made_of = tuple(parts)
        for part in parts:
            self._views.setdefault(part.query, {})[made.query] = made
        self.touch(made.query)

    def until_ms(self, running: Running) -> int | None:
        """Up to when a mote query is read, by users and by what is made of it; None: there is no end; 0: by nobody."""
        ends = [self._readers_end(running.query)]
        for made in self.views(running.query):
            end = self._readers_end(made.query)
            for part in made.made_of or ():
                if part.query == running.query and end != 0:
                    until = min((one for one in (part.until_ms, end) if one is not None), default=None)
                    if until is not None:
                        # The last epoch's sample may come behind its begin.
                        last = ceiling(last_sample_before(until, made.period_ms), running.period_ms)
                        until = max(until, last + 1)
                    ends.append(until)
        known = [end for end in ends if end is not None]
        return None if len(known) < len(ends) else max(known)

    def _readers_end(self, query: int) -> int | None:
        ends = [feed.until_ms for feed in self._readers.get(query, {}).values()]
        known = [end for end in ends if end is not None]
        return None if len(known) < len(ends) else max(known, default=0)

    def stop(self, queries: Iterable[int], now: float, gone_ms: int) -> tuple[int, ...]:
        """Those of them that ran, which the caller is to stop. ``gone_ms``: when all motes have heard of it."""
        stopped = []
        for query in queries:
            running = self._running.get(query)
            if running is not None and running.stopped_at is None:
                running.stopped_at, running.gone_ms = int(now), gone_ms
                self.touch(query)
                stopped.append(query)
                for made in list(self.views(query)):
                    if not made.made_of or made.made_of[-1].query == query:
                        self.end(made, now)
        return tuple(stopped)

    def end(self, made: Running, now: float) -> None:
        """The gateway makes it no more."""
        if made.stopped_at is None:
            made.stopped_at = int(now)
            self._ended.append(made.query)
            self.touch(made.query)

    def take_made(self) -> tuple[tuple[Installation, ...], tuple[int, ...]]:
        """What the gateway makes since this was asked last, and what it makes no more."""
        begun = tuple(self._made[query].installation for query in self._begun if query in self._made)
        ended = tuple(self._ended)
        self._begun, self._ended = [], []
        return begun, ended

    def idle(self) -> list[Running]:
        """What is made for readers who have all left since this was asked last."""
        found = [made for query in self._idle if (made := self._made.get(query)) is not None]
        self._idle.clear()
        return [made for made in found if made.stopped_at is None and not self._readers[made.query]]

    def forget(self, query: int) -> None:
        """Nothing is known of it any more. Its readers are to have stopped."""
        self._running.pop(query, None)
        made = self._made.pop(query, None)
        for part in (made.made_of if made is not None else None) or ():
            self._views.get(part.query, {}).pop(query, None)
        self._views.pop(query, None)
        self._readers.pop(query, None)
        self.touch(query)

    def clear(self) -> None:
        """Forgets all, and who read them."""
        self._touched.update(self._running, self._made)
        for known in (self._running, self._made, self._views, self._readers):
            known.clear()
        self._begun, self._ended = [], []
        self._idle.clear()

    # --- who reads them ---

    def readers(self, query: int) -> Mapping[str, Feed]:
        """Feeds by user; none of a query that is not known."""
        return self._readers.get(query, {})

    def read(self, feed: Feed) -> None:
        """A user reads one, or from another time on or until another than before."""
        self._readers.setdefault(feed.query, {})[feed.user] = feed

    def unread(self, query: int, user: str) -> None:
        """A user reads one no more."""
        readers = self._readers.get(query, {})
        readers.pop(user, None)
        if not readers and query in self._made:
            self._idle.add(query)

    # --- kept over a restart ---

    def rows(self, changed: bool = False) -> dict[int, dict[str, Any] | None]:
        """All, or those that :meth:`remembered` has not seen as they are, by number; None: of one forgotten."""
        if not changed:
            return {query: self[query].row() for query in (*self._running, *self._made)}
        found: dict[int, dict[str, Any] | None] = {}
        for query in sorted(self._touched):
            running = self.get(query)
            row = None if running is None else running.row()
            if row is not self._written.get(query):
                found[query] = row
        return found

    def remembered(self) -> None:
        """What :meth:`rows` said has been written."""
        for query, row in self.rows(changed=True).items():
            if row is None:
                self._written.pop(query, None)
            else:
                self._written[query] = row
        self._touched.clear()

    def restore(self, row: Mapping[str, Any]) -> None:
        """One that :meth:`rows` told of, which nobody reads yet."""
        running = Running.from_row(row)
        query = running.query
        if running.made_of is None:
            self._running[query] = running
        else:
            self._made[query] = running
            for part in running.made_of:
                self._views.setdefault(part.query, {})[query] = running
        self._readers[query] = {}
        self.touch(query)

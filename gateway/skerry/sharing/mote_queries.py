"""Mote queries by their ids on the wire: those that run, those that were stopped lately, and who reads which."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from skerry.planner.model.plans import Feed, Installation, MoteQuery
from skerry.planner.physical.fast_sampling import is_fast
from skerry.sharing.flood_times import SLOW_WINDOW_MS
from skerry.sql.errors import QueryError
from skerry_protocol.packets import FOREVER, QUERIES_MAXIMUM

#: Query ids on the wire: 1..255.
_IDS = 255
#: So long before its cut-over a query of fast samples begins: no pulse is cut in two that is shorter.
_WARM_UP_SECONDS = 3


@dataclass(slots=True)
class Running:
    """A mote query in the network. ``cut_ms``: users read it from then on. ``known_ms``: all motes have heard of it by then.
    ``stop_at``: s, when it is due to be stopped; ``stopped_at``: s, when it was: it is remembered for rows still under way.
    ``source``: the mote query that the gateway makes its rows from; None: motes run it themselves."""

    installation: Installation
    cut_ms: int
    known_ms: int
    stop_at: int | None = None
    stopped_at: int | None = None
    source: int | None = None
    #: Network ms at which its last row came, as far as this gateway has heard.
    row_ms: int = 0
    #: What :meth:`text` said last, and of what: conditions of many users are long.
    _written: tuple[object, str] = field(default=(None, ""), init=False, repr=False, compare=False)

    @property
    def period_ms(self) -> int:
        """Sample period of the mote query."""
        return self.installation.mote_query.period_ms

    def text(self) -> str:
        """In JSON; the same object while it stays as it is."""
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
        )
        if self._written[0] != state:
            data = {
                "query": made.query,
                "mote_query": made.mote_query.to_dict(),
                "start": made.start,
                "end": made.end,
                "program": made.program.hex(),
                "cut_ms": self.cut_ms,
                "known_ms": self.known_ms,
                "stop_at": self.stop_at,
                "stopped_at": self.stopped_at,
                "source": self.source,
            }
            self._written = state, json.dumps(data)
        return self._written[1]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Running:
        """What :meth:`text` said."""
        installation = Installation(
            data["query"],
            MoteQuery.from_dict(data["mote_query"]),
            data["start"],
            data["end"],
            bytes.fromhex(data["program"]),
        )
        # An older gateway took all to be known so long behind the cut-over.
        known_ms = data.get("known_ms", data["cut_ms"] + SLOW_WINDOW_MS)
        return cls(
            installation, data["cut_ms"], known_ms, data["stop_at"], data["stopped_at"], data.get("source")
        )


class MoteQueries:
    """What motes run, and what the gateway makes of it as if they ran it beside."""

    def __init__(self) -> None:
        self._running: dict[int, Running] = {}
        self._readers: dict[int, dict[str, Feed]] = {}
        #: The id that was given last.
        self.last_id = 0
        #: In JSON, as they were remembered last.
        self._written: dict[str, str] = {}

    def __iter__(self) -> Iterator[Running]:
        """All, those stopped lately included, oldest first."""
        return iter(self._running.values())

    def __contains__(self, query: int) -> bool:
        return query in self._running

    def __getitem__(self, query: int) -> Running:
        """Raises KeyError for one that is not known."""
        return self._running[query]

    def get(self, query: int | None) -> Running | None:
        """None for one that is not known, or where there is none."""
        return None if query is None else self._running.get(query)

    def asked(self) -> list[Running]:
        """Those that motes are to run now, the ones due to be stopped included."""
        return [running for running in self if running.stopped_at is None and running.source is None]

    def views(self, query: int) -> list[Running]:
        """What the gateway makes of one's rows."""
        return [running for running in self if running.source == query]

    def due(self, now: float) -> list[int]:
        """Those that are to be stopped by now, s of network time; what has been stopped stays among them."""
        return [query for query, r in self._running.items() if r.stop_at is not None and r.stop_at <= now]

    def stopped_by(self, then: float) -> list[int]:
        """Those that had been stopped at that time, s."""
        return [
            query for query, r in self._running.items() if r.stopped_at is not None and r.stopped_at <= then
        ]

    def check_room(self, now: float, *, leaving: bool) -> None:
        """Raises QueryError where motes have no room for one more; ``leaving``: one is about to go."""
        active = self.asked()
        if len(active) - leaving < QUERIES_MAXIMUM:
            return
        due = min((r.stop_at for r in active if r.stop_at is not None), default=None)
        wait = "" if due is None else f", or try again in {max(1, round(due - now))} s"
        raise QueryError(
            f"motes run at most {QUERIES_MAXIMUM} queries at once, and {len(active)} run already",
            f"stop one{wait}; plain queries share one, aggregates of equal period and condition too",
        )

    # --- what changes ---

    def next_id(self) -> int:
        """An id for a query. They go round, so that one is used again as late as possible: forget who had it."""
        order = [(self.last_id + i) % _IDS + 1 for i in range(_IDS)]
        unused = [query for query in order if query not in self]
        stopped = [query for query in order if query in self and self[query].stopped_at is not None]
        self.last_id = (unused or stopped)[0]
        return self.last_id

    def begin(
        self, query: int, wanted: MoteQuery, cut_ms: int, known_ms: int, source: int | None = None
    ) -> Running:
        """One under this id; its end and program are still to be said, unless it is made of ``source``."""
        # What is true at the cut-over has become true before it. What motes store or queue begins with it.
        early = _WARM_UP_SECONDS if is_fast(wanted.period_ms) and not wanted.clauses else 0
        installation = Installation(query, wanted, max(0, cut_ms // 1000 - early), FOREVER, b"")
        running = Running(installation, cut_ms, known_ms, source=source)
        self._running[query] = running
        self._readers[query] = {}
        return running

    def stop(self, queries: Iterable[int], now: float) -> tuple[int, ...]:
        """Those of them that ran, which the caller is to stop; what is made of them ends as well."""
        stopped = []
        for query in queries:
            running = self.get(query)
            if running is not None and running.stopped_at is None:
                running.stopped_at = int(now)
                stopped.append(query)
                for made in self.views(query):
                    made.stopped_at = int(now)
        return tuple(stopped)

    def forget(self, query: int) -> None:
        """Nothing is known of it any more. Its readers are to have stopped."""
        self._running.pop(query, None)
        self._readers.pop(query, None)

    def clear(self) -> None:
        """Forgets all, and who read them."""
        self._running.clear()
        self._readers.clear()

    # --- who reads them ---

    def readers(self, query: int) -> Mapping[str, Feed]:
        """Feeds by user; none of a query that is not known."""
        return self._readers.get(query, {})

    def read(self, feed: Feed) -> None:
        """A user reads one, or from another time on or until another than before."""
        self._readers.setdefault(feed.query, {})[feed.user] = feed

    def unread(self, query: int, user: str) -> None:
        """A user reads one no more."""
        self._readers.get(query, {}).pop(user, None)

    # --- kept over a restart ---

    def texts(self, changed: bool = False) -> dict[str, str | None]:
        """All, or those that :meth:`remembered` has not seen as they are, in JSON by number; None: of one forgotten."""
        texts: dict[str, str | None] = {str(query): r.text() for query, r in self._running.items()}
        if not changed:
            return texts
        other = {query: text for query, text in texts.items() if self._written.get(query) is not text}
        return other | dict.fromkeys(self._written.keys() - texts.keys())

    def remembered(self) -> None:
        """What :meth:`texts` said has been written."""
        self._written = {str(query): running.text() for query, running in self._running.items()}

    def restore(self, entry: Mapping[str, Any]) -> None:
        """One that :meth:`texts` told of, which nobody reads yet."""
        running = Running.from_dict(entry)
        self._running[running.installation.query] = running
        self._readers[running.installation.query] = {}

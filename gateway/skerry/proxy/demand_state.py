"""What :class:`~skerry.proxy.demand.Demand` knows of users, mote queries and groups, and how that is kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from typing import Any

from skerry.plan.merge import Union
from skerry.plan.model import Feed, Installation, MoteQuery, QueryPlan
from skerry.proxy.spreading import SLOW_WINDOW_MS

#: The end of what was over when network time began anew: long before that.
OVER_MS = -(1 << 62)


@dataclass(slots=True)
class User:
    """``feeds`` in the order of time. ``length_ms``: of FOR or ONCE, ``until_ms``: its end."""

    plan: QueryPlan
    length_ms: int | None
    since_ms: int = 0
    until_ms: int | None = None
    feeds: list[Feed] = field(default_factory=list)
    #: What :meth:`text` said last, and of what.
    _written: tuple[object, str] = (None, "")

    def text(self) -> str:
        """In JSON, without the plan."""
        state = self.length_ms, self.since_ms, self.until_ms, tuple(self.feeds)
        if self._written[0] != state:
            data = {
                "length_ms": self.length_ms,
                "since_ms": self.since_ms,
                "until_ms": self.until_ms,
                "feeds": [astuple(feed) for feed in self.feeds],
            }
            self._written = state, json.dumps(data)
        return self._written[1]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], plan: QueryPlan) -> User:
        """What :meth:`text` said; ``plan`` is that of its query."""
        feeds = [Feed(*feed) for feed in data["feeds"]]
        return cls(plan, data["length_ms"], data["since_ms"], data["until_ms"], feeds)


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


@dataclass(slots=True)
class Group:
    """Users of one stream. ``previous``: the query that ``current`` follows. ``stale``: a better query
    is due, but the motes had no room for it. ``union``: what its users ask together."""

    users: dict[str, None] = field(default_factory=dict)
    current: int = 0
    previous: int | None = None
    stale: bool = False
    union: Union = field(default_factory=Union)

    def to_dict(self) -> dict[str, Any]:
        """For JSON, with one user, who tells which group it is."""
        return {
            "user": next(iter(self.users)),
            "current": self.current,
            "previous": self.previous,
            "stale": self.stale,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], plans: Mapping[str, QueryPlan]) -> Group:
        """What :meth:`to_dict` wrote; ``plans`` of its users."""
        return cls(
            dict.fromkeys(plans), data["current"], data["previous"], data["stale"], Union(plans.values())
        )

"""What :class:`~skerry.sharing.demand.Demand` knows of users and groups, and how that is kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from typing import Any

from skerry.planner.model.plans import Feed, QueryPlan
from skerry.planner.physical.merge import Union

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

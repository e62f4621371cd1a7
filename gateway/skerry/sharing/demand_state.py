"""What :class:`~skerry.sharing.demand.Demand` knows of users and groups, and how that is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from skerry.planner.model.plans import Feed, MoteQuery, QueryPlan
from skerry.planner.model.waits import behind_ms

#: The end of what was over when network time began anew: long before that.
OVER_MS = -(1 << 62)


@dataclass(slots=True)
class User:
    """``feeds`` in the order of time. ``length_ms``: of FOR or ONCE, ``until_ms``: its end. ``longer``: he asked before network time
    began."""

    plan: QueryPlan
    length_ms: int | None
    since_ms: int = 0
    until_ms: int | None = None
    feeds: list[Feed] = field(default_factory=list)
    longer: bool = False

    @classmethod
    def of(cls, plan: QueryPlan) -> User:
        """One who comes."""
        length = plan.duration_ms
        if plan.window is not None and plan.duration_ms is not None:
            length = plan.duration_ms + behind_ms(plan.period_ms, plan.wait_ms)
        return cls(plan, plan.period_ms if plan.once else length)

    def has_ended(self, now_ms: int) -> bool:
        """Whether his FOR or ONCE has had its time: he stays until his last rows have had theirs to come, and begins with no query any
        more."""
        return self.until_ms is not None and self.until_ms <= now_ms

    def to_dict(self, group: int | None) -> dict[str, Any]:
        """To be kept, without the plan; ``group``: the number of his."""
        return {
            "sharing_group": group,
            "length_ms": self.length_ms,
            "since_ms": self.since_ms,
            "until_ms": self.until_ms,
            "feeds": list(map(asdict, self.feeds)),
            "longer": self.longer,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], plan: QueryPlan) -> User:
        """What :meth:`to_dict` said; ``plan`` is that of its query."""
        feeds = [Feed(**feed) for feed in data["feeds"]]
        longer = bool(data.get("longer", False))
        return cls(plan, data["length_ms"], data["since_ms"], data["until_ms"], feeds, longer)


@dataclass(slots=True)
class Serving:
    """How a group is served in one network. ``current``: the id of its mote query, 0: it has none yet; ``previous``: of the one that
    follows; ``stale``: since when, in s, another is due that waits; None: none is. ``promised_ms``: when the current query, or the first
    of those that it took the place of before they had begun, was to begin. ``views``: what the gateway makes for its users, by what motes
    would run for them."""

    current: int = 0
    previous: int | None = None
    stale: float | None = None
    promised_ms: int = 0
    views: dict[MoteQuery, list[int]] = field(default_factory=dict)

    def row(self, group: int) -> dict[str, Any]:
        """To be kept, without its views; ``group``: the number of it."""
        return {
            "sharing_group": group,
            "current": self.current,
            "previous": self.previous,
            "stale": self.stale,
            "promised_ms": self.promised_ms,
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Serving:
        """What :meth:`row` said."""
        return cls(row["current"], row["previous"], row["stale"], row["promised_ms"])

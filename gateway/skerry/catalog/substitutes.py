"""Motes by place and property, and who can stand in for a mote that is silent."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from skerry.catalog.catalog import Catalog, Mote
from skerry_protocol.attributes import BY_NAME

#: A mote reports every 32 s, in a slow network every 512 s: one that has said nothing for so long, in s, is silent.
SILENT_S = 1200.0


class PlaceError(ValueError):
    """A question about motes that cannot be answered; one line."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Motes that are asked for: ``near`` (m) and ``within`` (m), with all of ``has`` (attributes) and ``tags``."""

    near: tuple[float, float] | None = None
    within: float | None = None
    has: Sequence[str] = ()
    tags: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.within is not None and self.near is None:
            raise PlaceError("within what distance of which place: 'within' needs 'near'")
        if self.near is not None and not all(map(math.isfinite, self.near)):
            # Nothing is far from a place that is no number: all motes would fit.
            x, y = self.near
            raise PlaceError(f"near {x:g},{y:g} is no place: write two numbers of m, as in 10,20.5")
        if self.within is not None and not 0 <= self.within < math.inf:
            raise PlaceError(f"within {self.within:g} m is no distance: write a number of m, as in 5")
        for name in self.has:
            if name not in BY_NAME:
                raise PlaceError(f"unknown attribute '{name}': 'skerry catalog' shows those there are")

    def fits(self, mote: Mote, tags: Mapping[str, str]) -> bool:
        """Whether a mote with these tags is meant."""
        if self.within is not None and self.distance(mote) > self.within:
            return False
        return all(mote.acquires(BY_NAME[name]) for name in self.has) and self.tags.items() <= tags.items()

    def distance(self, mote: Mote) -> float:
        """From ``near``, in m; 0 without."""
        return 0.0 if self.near is None else math.dist(self.near, (mote.xpos, mote.ypos))


def place_of(x: float | None, y: float | None) -> tuple[float, float] | None:
    """A place in m; None: none is named. Raises PlaceError where half of it is."""
    if x is None and y is None:
        return None
    if x is None or y is None:
        raise PlaceError(f"a place has two numbers of m: {'x' if x is None else 'y'} is missing")
    return x, y


def silent(mote: Mote, catalog: Catalog, now: float) -> bool:
    """Whether a mote of the catalog has said nothing for too long; ``now``: UTC in s."""
    return mote.level != 0 and catalog.unheard(mote.nodeid, now) > SILENT_S


@dataclass(frozen=True, slots=True)
class Substitute:
    """A mote that stands in for another: its distance in m, and which of the wanted attributes it lacks."""

    nodeid: int
    distance: float
    lacks: tuple[str, ...]


def substitutes(
    catalog: Catalog, nodeid: int, now: float, has: Sequence[str] = (), count: int | None = None
) -> list[Substitute]:
    """Motes that are not silent, those that lack least of ``has`` first (without: of what the mote has), then the nearest.

    Raises PlaceError for an unknown mote or attribute, and for no number of motes.
    """
    if count is not None and count < 1:
        raise PlaceError(f"count {count} is no number of motes: write 1 or more, or leave it out for all")
    mote = known_mote(catalog, nodeid)
    wanted = Wanted(near=(mote.xpos, mote.ypos), has=has)
    names = list(has) or [
        name for name, entry in BY_NAME.items() if not entry.constant and mote.acquires(entry)
    ]
    found = [
        Substitute(
            other.nodeid, wanted.distance(other), tuple(n for n in names if not other.acquires(BY_NAME[n]))
        )
        for other in catalog.all()
        if other.nodeid != nodeid and other.level != 0 and not silent(other, catalog, now)
    ]
    return sorted(found, key=lambda one: (len(one.lacks), one.distance, one.nodeid))[:count]


def known_mote(catalog: Catalog, nodeid: int) -> Mote:
    """The mote. Raises PlaceError for one that has never reported."""
    mote = catalog.mote(nodeid)
    if mote is None:
        known = ", ".join(str(one.nodeid) for one in catalog.all()) or "none yet"
        raise PlaceError(f"mote {nodeid} has never reported: known are {known}")
    return mote

"""Ways that lie beside each other become one: algorithms 2 and 3 of Mihaylov et al. 2010, appendix E.

A mote on a way hears of a neighbour on another way. Where both ways begin at one producer, one may branch off the other; where both end at
one mote, the longer may go on by the shorter. The mote tells the producer, which tries it. In skerry motes sleep through their neighbours'
frames, so they hear of flows by gossip in control windows, once for each, not by data.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from skerry.joins.placement.multicast import links_to
from skerry.joins.placement.trees import Path

#: Flows through it that a mote remembers, and what it has told.
FLOWS = 5
#: A new tree is sent into the network where the one in use costs so much more: motes where it branches must be told.
BETTER = 1.1


@dataclass(frozen=True, slots=True)
class FlowSeen:
    """A flow through a mote: from whom it comes and to whom it goes on. ``hops``: left to its end."""

    source: int
    destination: int
    previous: int | None
    next: int
    hops: int


@dataclass(frozen=True, slots=True)
class Gossip:
    """A neighbour's flow. ``path``: from the neighbour to the end, both included."""

    neighbour: int
    next: int
    source: int
    destination: int
    path: Path


@dataclass(frozen=True, slots=True)
class Opportunity:
    """A link between ``one``, on a way to ``first``, and ``other``, on one to ``second``. ``path``: from ``other`` to the end where both
    ways have the same; otherwise empty."""

    one: int
    other: int
    first: int
    second: int
    path: Path = ()


@dataclass
class Mote:
    """What a mote knows for algorithm 2."""

    number: int
    neighbours: Set[int]
    root: int
    flows: list[FlowSeen] = field(default_factory=list)
    _told: list[Opportunity] = field(default_factory=list)

    def passes(self, flow: FlowSeen) -> None:
        """A flow leads by it; of more than :data:`FLOWS` the oldest is forgotten."""
        if flow in self.flows:
            self.flows.remove(flow)
        self.flows = [*self.flows, flow][-FLOWS:]

    def hear(self, gossip: Gossip) -> list[tuple[int, Opportunity]]:
        """Algorithm 2: whom to tell, and what."""
        if (
            self.number in (gossip.next, gossip.destination)
            or gossip.destination == self.root
            or any(
                (flow.source, flow.destination, flow.next) == (gossip.source, gossip.destination, gossip.neighbour)
                for flow in self.flows
            )
        ):  # fmt: skip
            return []
        found = []
        for flow in self.flows:
            opportunity = self._of(flow, gossip)
            if opportunity is not None and opportunity not in self._told:
                self._told = [*self._told, opportunity][-FLOWS:]
                found.append((flow.source, opportunity))
        return found

    def _of(self, flow: FlowSeen, gossip: Gossip) -> Opportunity | None:
        neighbour = gossip.neighbour
        if (
            flow.destination == self.root
            or flow.previous == self.number
            or neighbour in (flow.previous, flow.next)
        ):
            return None  # fmt: skip
        if flow.source == gossip.source:
            # Of two motes that hear of each other, one speaks.
            if gossip.next in self.neighbours or flow.destination >= gossip.destination:
                return None
            return Opportunity(self.number, neighbour, flow.destination, gossip.destination)
        if (
            flow.destination == gossip.destination
            and 1 < len(gossip.path) < flow.hops
            and flow.source > gossip.source
        ):
            return Opportunity(self.number, neighbour, flow.destination, flow.destination, gossip.path)
        return None


@dataclass
class Ways:
    """A producer's ways by their ends: the best that it knows, and those in use, which follow only where it is worth it."""

    best: dict[int, Path]
    used: dict[int, Path] = field(init=False)

    def __post_init__(self) -> None:
        self.used = dict(self.best)

    def apply(self, found: Opportunity) -> bool:
        """Algorithm 3: whether ways are better by it."""
        improved = self._tried(found)
        if not found.path:
            swapped = Opportunity(found.other, found.one, found.second, found.first)
            improved = self._tried(swapped) or improved
        return improved

    def _tried(self, found: Opportunity) -> bool:
        improved = False
        while (better := self._better(found)) is not None:
            self.best, improved = better, True
            if BETTER * cost(better) < cost(self.used):
                self.used = dict(better)
        return improved

    def _better(self, found: Opportunity) -> dict[int, Path] | None:
        """The ways with one of them changed so that they cost less; None: none can be."""
        for end, path in self.best.items():
            changed = self._changed(path, found)
            if changed is not None and cost(ways := {**self.best, end: changed}) < cost(self.best):
                return ways
        return None

    def _changed(self, path: Path, found: Opportunity) -> Path | None:
        if not _follows(path, found.one, found.first) or found.other in path:
            return None
        before, behind = path[: path.index(found.one)], path[path.index(found.one) :]
        if found.path:
            rest = path[path.index(found.first) + 1 :]
            return _simple((*before, found.one, *found.path, *rest))
        for other in self.best.values():
            if _follows(other, found.other, found.second) and found.one not in other:
                return _simple((*other[: other.index(found.other) + 1], *behind))
        return None


def cost(ways: Mapping[int, Path]) -> int:
    """Links that a row takes."""
    return len(links_to(ways.values()))


def _follows(path: Path, first: int, second: int) -> bool:
    return first in path and second in path[path.index(first) :]


def _simple(path: Path) -> Path | None:
    return path if len(set(path)) == len(path) else None


def collapse(
    ways: Mapping[int, Mapping[int, Path]], neighbours: Mapping[int, Set[int]], root: int, rounds: int = 3
) -> dict[int, dict[int, Path]]:
    """All producers' ways after so many rounds in which each mote on a way tells its neighbours its flows; those in use."""
    producers = {source: Ways(dict(own)) for source, own in ways.items()}
    motes: dict[int, Mote] = {}
    for _ in range(rounds):
        flows = [
            (source, end, path)
            for source, own in producers.items()
            for end, path in own.used.items()
            if len(path) > 1
        ]
        for mote in motes.values():
            mote.flows.clear()
        for source, end, path in flows:
            for place, number in enumerate(path[:-1]):
                mote = motes.setdefault(number, Mote(number, neighbours[number], root))
                previous = path[place - 1] if place else None
                mote.passes(FlowSeen(source, end, previous, path[place + 1], len(path) - 1 - place))
        improved = False
        for source, end, path in flows:
            for place, number in enumerate(path[:-1]):
                gossip = Gossip(number, path[place + 1], source, end, path[place:])
                for heard_by in sorted(neighbours[number]):
                    if heard_by in motes:
                        for producer, found in motes[heard_by].hear(gossip):
                            improved = producers[producer].apply(found) or improved
        if not improved:
            break
    return {source: own.used for source, own in producers.items()}

"""Groups of pairs that share producers, and algorithm 1: whether one is joined at the base or in the network (Mihaylov et al. 2010, 5.2).

Where a condition is transitive, as equality is, pairs fall into complete bipartite groups (or complete graphs, where a mote may be both):
each decides by itself. Each producer p reckons how much more it costs to join its pairs in the network,

    ΔC_p = σ_p Σ_j (D_pj + w σ_st N_pj D_jr) - σ_p D_pr,

and tells the group's coordinator, the mote of the lowest number in it, which adds all up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from skerry.joins.placement.estimates import Pair, Rates
from skerry.joins.placement.multicast import links_to
from skerry.joins.placement.prices import Prices
from skerry.joins.placement.trees import Link, Path, Tree, links_of

Decision = Literal["in network", "at base"]


@dataclass(frozen=True)
class Group:
    """Pairs that hang together. ``complete``: each s of it is a pair with each t."""

    pairs: tuple[Pair, ...]
    complete: bool

    @property
    def producers(self) -> frozenset[int]:
        """All motes in it."""
        return frozenset(mote for pair in self.pairs for mote in pair)


def groups_of(pairs: Iterable[Pair], *, symmetric: bool = False) -> list[Group]:
    """The groups, each as its pairs stand. ``symmetric``: pairs are of one relation with itself, each said once; a group is complete where
    all its motes are pairs."""
    pairs = list(dict.fromkeys(pairs))
    above: dict[tuple[str, int], tuple[str, int]] = {}

    def top(one: tuple[str, int]) -> tuple[str, int]:
        while above.setdefault(one, one) != one:
            above[one] = above[above[one]]
            one = above[one]
        return one

    def side(role: str) -> str:
        return "" if symmetric else role

    for s, t in pairs:
        above[top((side("s"), s))] = top((side("t"), t))
    found: dict[tuple[str, int], list[Pair]] = defaultdict(list)
    for pair in pairs:
        found[top((side("s"), pair[0]))].append(pair)
    return [Group(tuple(group), _complete(group, symmetric=symmetric)) for group in found.values()]


def _complete(pairs: Sequence[Pair], *, symmetric: bool) -> bool:
    if symmetric:
        edges = {frozenset(pair) for pair in pairs if pair[0] != pair[1]}
        count = len({mote for pair in pairs for mote in pair})
        return len(edges) == count * (count - 1) // 2
    return len(pairs) == len({s for s, _ in pairs}) * len({t for _, t in pairs})


@dataclass
class Sharing:
    """What goes by each link of the tree where all join at the base: each mote there counts it. ``records`` of an epoch, and whose."""

    tree: Tree
    records: dict[Link, float]
    producers: dict[Link, int]

    @classmethod
    def of(cls, producers: Mapping[int, frozenset[str]], tree: Tree, rates: Rates) -> Sharing:
        """Of all that have a partner."""
        found = cls(tree, defaultdict(float), defaultdict(int))
        for mote, roles in producers.items():
            for link in links_of(tree.way(mote)):
                found.records[link] += rates.sends(mote, roles)
                found.producers[link] += 1
        return found

    def home(self, producer: int, rate: float, prices: Prices) -> float:
        """D_pr σ_p, of which what several have in common falls on them in equal parts."""
        return sum(
            rate * prices.up(prices.row, self.records[link]) + prices.open / self.producers[link]
            for link in links_of(self.tree.way(producer))
        )


def difference(
    producer: int,
    places: Mapping[Pair, int],
    ways: Mapping[int, Path],
    sharing: Sharing,
    rates: Rates,
    prices: Prices,
) -> float:
    """ΔC_p of one of a group's producers: ``places`` where the group's pairs are joined in the network, ``ways`` from it to its join motes.

    Answers of a pair are half of either's; in the paper they are those that its own rows bring, which comes to the same in sum. Links
    that ways share are taken once, as in a multicast tree. Listening for answers falls on the pairs whose they are."""
    own = [pair for pair in places if producer in pair]
    roles = frozenset(role for pair in own for role, mote in zip("st", pair, strict=True) if mote == producer)
    rate, sent = rates.sends(producer, roles), len(links_to(ways.values()))
    at: dict[int, list[float]] = defaultdict(list)
    for pair, mote in places.items():
        at[mote].append(rates.of(pair).results)
    tree = sharing.tree
    total = sent * prices.by_way(rate)
    for s, t in own:
        estimates, mote = rates.of((s, t)), places[s, t]
        up = tree.hops(mote)
        side = (estimates.s if producer == s else 0) + (estimates.t if producer == t else 0)
        part = ((producer == s) + (producer == t)) / (2 * len(at[mote]))
        records = sum(at[mote])
        result = prices.up(prices.result, records)
        total += up * (side * estimates.window * estimates.pair * result + part * prices.open)
    return total - sharing.home(producer, rate, prices)


def decided(differences: Iterable[float]) -> Decision:
    """In the network where that is cheaper for the group as a whole."""
    return "in network" if sum(differences) < 0 else "at base"


@dataclass(frozen=True, slots=True)
class Told:
    """ΔC_p and the partners of a producer, to its coordinator; the higher ``sequence`` is the later one's."""

    producer: int
    sequence: int
    difference: float
    partners: frozenset[int]


@dataclass(frozen=True, slots=True)
class Lowest:
    """The lowest number that a producer knows of its group, to its partners."""

    coordinator: int


@dataclass(frozen=True, slots=True)
class Decided:
    """A coordinator's decision."""

    coordinator: int
    sequence: int
    decision: Decision


Message = Told | Lowest | Decided
#: To whom, and what.
Sent = tuple[int, Message]


@dataclass
class Producer:
    """One mote of a group in algorithm 1, and its coordinator where it has the lowest number. Messages come in any order; what was lost is
    made good by the next change."""

    mote: int
    partners: set[int] = field(default_factory=set)
    difference: float | None = None
    coordinator: int = field(init=False)
    decision: Decision | None = None
    _by: tuple[int, int] | None = None
    _told: dict[int, Told] = field(default_factory=dict)
    _sequence: int = 0
    _reports: int = 0
    _last: tuple[Decision, frozenset[int]] | None = None

    def __post_init__(self) -> None:
        self.coordinator = self.mote

    def found(self, partner: int, difference: float) -> list[Sent]:
        """A new pair, or another cost of one (lines 1 and 2): ΔC_p is now so much."""
        new = partner not in self.partners
        self.partners.add(partner)
        changed, self.difference = self.difference != difference, difference
        sent = self._lower(partner)
        if new and not sent:
            sent = [(partner, Lowest(self.coordinator))]
        return [*sent, *self._report()] if changed or new else sent

    def hear(self, message: Message) -> list[Sent]:
        """What it sends when a message has come."""
        match message:
            case Told():
                known = self._told.get(message.producer)
                if known is None or known.sequence < message.sequence:
                    self._told[message.producer] = message
                lower = self._lower(min(message.producer, *message.partners))
                return [*lower, *(self._report() if lower else []), *self._decide()]
            case Lowest(coordinator):
                lower = self._lower(coordinator)
                return [*lower, *self._report()] if lower else []
            case Decided(coordinator, sequence, decision):
                lower = self._lower(coordinator)
                if coordinator == self.coordinator and (
                    self._by is None or self._by[0] > coordinator or self._by[1] < sequence
                ):
                    self._by, self.decision = (coordinator, sequence), decision
                return [*lower, *self._report()] if lower else []

    def _lower(self, coordinator: int) -> list[Sent]:
        if coordinator >= self.coordinator:
            return []
        self.coordinator = coordinator
        return [(partner, Lowest(coordinator)) for partner in sorted(self.partners)]

    def _report(self) -> list[Sent]:
        if self.difference is None:
            return []
        self._reports += 1
        told = Told(self.mote, self._reports, self.difference, frozenset(self.partners))
        if self.coordinator != self.mote:
            # What it was told as a coordinator is the other's, too.
            passed = [(self.coordinator, one) for one in self._told.values() if one.producer != self.mote]
            self._told.clear()
            return [(self.coordinator, told), *passed]
        self._told[self.mote] = told
        return self._decide()

    def _decide(self) -> list[Sent]:
        """Lines 3 to 6: when all that are in the group have told."""
        if self.coordinator != self.mote:
            passed: list[Sent] = [(self.coordinator, one) for one in self._told.values()]
            self._told.clear()
            return passed
        members = {self.mote} | {mote for told in self._told.values() for mote in told.partners}
        if not members <= self._told.keys():
            return []
        # Those of a mote that two groups share would decide both.
        decision = decided(self._told[mote].difference for mote in sorted(members))
        if self._last == (decision, frozenset(members)):
            return []
        self._last = decision, frozenset(members)
        self._sequence += 1
        self._by, self.decision = (self.mote, self._sequence), decision
        return [
            (mote, Decided(self.mote, self._sequence, decision)) for mote in sorted(members - {self.mote})
        ]

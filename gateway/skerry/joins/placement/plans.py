"""What a strategy sends of all pairs of a query, and where: flows of rows and of answers, their expected cost, and what join motes keep."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from skerry.joins.placement.estimates import Pair, Rates
from skerry.joins.placement.prices import Prices
from skerry.joins.placement.relays import Relays
from skerry.joins.placement.trees import Link, Path, Tree, links_of

#: By bits: 1 as s, 2 as t.
ROLES = (frozenset[str](), frozenset("s"), frozenset("t"), frozenset("st"))


@dataclass(frozen=True, slots=True)
class Flow:
    """One mote's rows, or the answers of pairs that are joined at one mote, over links, each of which they take once. ``by_tree``: they
    share the tree's frames and cells, others have cells of a way. ``answers``: whose they are, where flows of rows have none; ``senders``:
    whose rows go by one way, and as what they pass, where they are not the source's own alone."""

    source: int
    links: tuple[Link, ...]
    by_tree: bool = True
    roles: frozenset[str] = frozenset()
    answers: tuple[Pair, ...] = ()
    senders: tuple[tuple[int, frozenset[str]], ...] = ()

    @property
    def rows(self) -> tuple[tuple[int, frozenset[str]], ...]:
        """Whose rows, and as what they pass."""
        return self.senders or ((self.source, self.roles),)

    def rate(self, rates: Rates) -> float:
        """Records in each epoch."""
        if self.answers:
            return sum(rates.of(pair).results for pair in self.answers)
        return sum(rates.sends(mote, roles) for mote, roles in self.rows)


@dataclass(frozen=True)
class Plan:
    """``places``: the mote at which each pair is joined; the root's are joined at the gateway."""

    name: str
    places: Mapping[Pair, int]
    flows: tuple[Flow, ...]

    def cost(self, rates: Rates, prices: Prices, tree: Tree | None = None) -> float:
        """Expected of an epoch. A link of the tree is listened to once, whatever comes on it; one of a way once for each way. ``tree``:
        with what is listened to in all of it, as motes do it (:func:`listened`), not in what the join uses of it alone."""
        total = 0.0 if tree is None else listened(prices, tree)
        up: dict[Link, list[tuple[float, float]]] = defaultdict(list)
        for flow in self.flows:
            rate = flow.rate(rates)
            if not flow.by_tree:
                total += len(flow.links) * prices.by_way(rate)
                continue
            for link in flow.links:
                up[link].append((rate, prices.result if flow.answers else prices.row))
        for records in up.values():
            number = sum(rate for rate, _ in records)
            total += sum(rate * prices.up(each, number) for rate, each in records)
            total += prices.open if tree is None else 0.0
        return total

    def stored(self, window: int) -> dict[int, int]:
        """Rows that each join mote keeps at most: a window of each producer and role, shared by its pairs."""
        kept: dict[int, set[tuple[str, int]]] = defaultdict(set)
        for (s, t), mote in self.places.items():
            kept[mote] |= {("s", s), ("t", t)}
        return {mote: window * len(producers) for mote, producers in kept.items()}


def listened(prices: Prices, tree: Tree) -> float:
    """To all motes of a tree in an epoch: a parent listens for as long to a child that says nothing as to one that has sent. The root,
    whose radio is on all that time whatever comes, is left out."""
    return prices.open * sum(above != tree.root for above in tree.parents.values())


def roles_of(pairs: Iterable[Pair]) -> dict[int, frozenset[str]]:
    """Of each mote that is in a pair: s, t or both."""
    found: dict[int, set[str]] = defaultdict(set)
    for s, t in pairs:
        found[s].add("s")
        found[t].add("t")
    return {mote: frozenset(roles) for mote, roles in found.items()}


def gathered(name: str, producers: Mapping[int, frozenset[str]], pairs: Iterable[Pair], tree: Tree) -> Plan:
    """All producers send to the root: naive with all that pass their own conditions, at base with those that have a partner."""
    flows = tuple(Flow(mote, links_of(tree.way(mote)), roles=roles) for mote, roles in producers.items())
    return Plan(name, dict.fromkeys(pairs, tree.root), flows)


def answers(places: Mapping[Pair, int], tree: Tree) -> list[Flow]:
    """Up the tree from each join mote."""
    joined: dict[int, list[Pair]] = defaultdict(list)
    for pair, mote in places.items():
        joined[mote].append(pair)
    return [
        Flow(mote, links_of(tree.way(mote)), answers=tuple(pairs))
        for mote, pairs in joined.items()
        if mote != tree.root
    ]


def at_ancestors(name: str, pairs: Iterable[Pair], tree: Tree) -> Plan:
    """Each pair at its lowest common ancestor."""
    return climbing(name, {pair: tree.ancestor(*pair) for pair in pairs}, tree)


def climbing(name: str, places: Mapping[Pair, int], tree: Tree) -> Plan:
    """Each pair at a mote above both; a mote's rows go up to the highest that joins them, and all on their way hear them."""
    up: dict[int, Path] = {}
    for pair, mote in places.items():
        for producer in pair:
            way = tree.way(producer)
            part = way[: way.index(mote) + 1]
            up[producer] = max(up.get(producer, ()), part, key=len)
    roles = roles_of(places)
    rows = (Flow(mote, links_of(path), roles=roles[mote]) for mote, path in up.items())
    return Plan(name, places, (*rows, *answers(places, tree)))


def through_base(name: str, pairs: Iterable[Pair], tree: Tree) -> Plan:
    """Rows of s go up to the root and down to all their partners, which join. A row that goes down takes each link once."""
    places = {pair: pair[1] for pair in pairs}
    partners: dict[int, list[int]] = defaultdict(list)
    for s, t in places:
        partners[s].append(t)
    flows = []
    for s, targets in partners.items():
        down = tuple(dict.fromkeys(link for t in targets for link in links_of(tree.way(t)[::-1])))
        role = frozenset({"s"})
        flows += [Flow(s, links_of(tree.way(s)), roles=role), Flow(s, down, by_tree=False, roles=role)]
    return Plan(name, places, (*flows, *answers(places, tree)))


def from_root(name: str, pairs: Iterable[Pair], tree: Tree) -> Plan:
    """The same as motes do it: one way leads from the root to each t, for the rows of all its partners."""
    places = {pair: pair[1] for pair in pairs}
    partners: dict[int, list[int]] = defaultdict(list)
    for s, t in places:
        if s != t:
            partners[t].append(s)
    role = frozenset({"s"})
    sources = dict.fromkeys(s for those in partners.values() for s in those)
    up = [Flow(s, links_of(tree.way(s)), roles=role) for s in sources]
    down = [
        Flow(
            tree.root,
            links_of(tree.way(t)[::-1]),
            by_tree=False,
            roles=role,
            senders=tuple((s, role) for s in those),
        )
        for t, those in partners.items()
    ]
    return Plan(name, places, (*up, *down, *answers(places, tree)))


def needed(places: Mapping[Pair, int]) -> dict[Link, int]:
    """By producer and the mote that joins rows of it, as what they pass: the bits of :data:`ROLES`."""
    found: dict[Link, int] = {}
    for pair, host in places.items():
        for bit, mote in zip((1, 2), pair, strict=True):
            if mote != host:
                found[mote, host] = found.get((mote, host), 0) | bit
    return found


def by_ways(name: str, places: Mapping[Pair, int], tree: Tree, relays: Relays | None = None) -> Plan:
    """Each pair at any mote, as motes do it: a way of the tree leads from each producer to each mote that needs rows of it, or from one
    that passes them on."""
    ways = []
    for (source, host), carried in (relays or Relays()).ways(needed(places)).items():
        senders = tuple((mote, ROLES[bits]) for mote, bits in carried.items())
        links = links_of(tree.between(source, host))
        ways.append(Flow(source, links, by_tree=False, roles=senders[0][1], senders=senders))
    return Plan(name, places, (*ways, *answers(places, tree)))


def with_ways(
    name: str, places: Mapping[Pair, int], trees: Mapping[int, Mapping[int, Path]], tree: Tree, *, multicast: bool
) -> Plan:  # fmt: skip
    """Rows go from each producer to the motes that join them. ``trees``: by producer and join mote the way there. With ``multicast`` links
    that several of a producer's ways share are taken once, otherwise each is a way of its own."""
    roles = roles_of(places)
    flows: list[Flow] = []
    for producer, ways in trees.items():
        links = [links_of(path) for path in ways.values()]
        if multicast:
            links = [tuple(dict.fromkeys(link for way in links for link in way))]
        flows += [Flow(producer, way, by_tree=False, roles=roles[producer]) for way in links if len(way) > 0]
    return Plan(name, places, (*flows, *answers(places, tree)))


def together(name: str, *parts: Plan) -> Plan:
    """Several plans of different pairs as one; a mote that sends up the tree in several of them does so once, to the highest."""
    places: dict[Pair, int] = {}
    flows: list[Flow] = []
    up: dict[int, Flow] = {}
    for part in parts:
        places |= part.places
        for flow in part.flows:
            if flow.answers or not flow.by_tree:
                flows.append(flow)
                continue
            other = up.get(flow.source)
            roles = flow.roles | (other.roles if other is not None else frozenset())
            links = max(flow.links, other.links if other is not None else (), key=len)
            up[flow.source] = Flow(flow.source, links, roles=roles)
    return Plan(name, places, (*up.values(), *flows))

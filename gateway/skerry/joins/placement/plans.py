"""What a strategy sends of all pairs of a query, and where: flows of rows and of answers, their expected cost, and what join motes keep."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from skerry.joins.placement.estimates import Pair, Rates
from skerry.joins.placement.prices import Prices
from skerry.joins.placement.trees import Link, Path, Tree, links_of


@dataclass(frozen=True, slots=True)
class Flow:
    """One mote's rows, or the answers of pairs that are joined at one mote, over links, each of which they take once. ``by_tree``: they
    share the tree's frames and cells, others have cells of a way. ``window``: whose answers they are, where flows of rows have none."""

    source: int
    links: tuple[Link, ...]
    by_tree: bool = True
    roles: frozenset[str] = frozenset()
    answers: tuple[Pair, ...] = ()

    def rate(self, rates: Rates) -> float:
        """Records in each epoch."""
        if self.answers:
            return sum(rates.of(pair).results for pair in self.answers)
        return rates.sends(self.source, self.roles)


@dataclass(frozen=True)
class Plan:
    """``places``: the mote at which each pair is joined; the root's are joined at the gateway."""

    name: str
    places: Mapping[Pair, int]
    flows: tuple[Flow, ...]

    def cost(self, rates: Rates, prices: Prices) -> float:
        """Expected of an epoch. A link of the tree is listened to once, whatever comes on it; one of a way once for each way."""
        total = 0.0
        up: dict[Link, list[tuple[float, float]]] = defaultdict(list)
        for flow in self.flows:
            rate = flow.rate(rates)
            if not flow.by_tree:
                total += len(flow.links) * (rate * prices.carried + prices.way)
                continue
            for link in flow.links:
                up[link].append((rate, prices.result if flow.answers else prices.row))
        for records in up.values():
            number = sum(rate for rate, _ in records)
            total += prices.listened(number) + sum(rate * prices.up(each, number) for rate, each in records)
        return total

    def stored(self, window: int) -> dict[int, int]:
        """Rows that each join mote keeps at most: a window of each producer and role, shared by its pairs."""
        kept: dict[int, set[tuple[str, int]]] = defaultdict(set)
        for (s, t), mote in self.places.items():
            kept[mote] |= {("s", s), ("t", t)}
        return {mote: window * len(producers) for mote, producers in kept.items()}


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
    """Each pair at its lowest common ancestor; a mote's rows go up to the highest that joins them, and all on their way hear them."""
    places = {pair: tree.ancestor(*pair) for pair in pairs}
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

"""All strategies for a query's pairs in one network, as plans (:mod:`skerry.joins.placement.plans`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from skerry.joins.placement.collapsing import collapse
from skerry.joins.placement.estimates import Pair, Rates
from skerry.joins.placement.groups import Decision, Sharing, decided, difference, groups_of
from skerry.joins.placement.multicast import straightened
from skerry.joins.placement.pair import BASE, at_base, best_on_ways
from skerry.joins.placement.plans import (
    Plan,
    at_ancestors,
    gathered,
    roles_of,
    through_base,
    together,
    with_ways,
)
from skerry.joins.placement.prices import Prices
from skerry.joins.placement.trees import Path, Tree

NAIVE, HASHED = "naive", "by hash"
ANCESTORS, THROUGH = "at ancestor", "through base"
PAIRWISE, GROUPED, COLLAPSED = "in network", "in network, groups", "in network, groups, collapsed"


@dataclass(frozen=True)
class Query:
    """Who takes part. ``passing``: roles of all motes that pass their own static conditions; ``keys``: what each pair has in common, where
    the condition is an equality. ``transitive``: pairs fall into groups; ``symmetric``: s and t are of one relation."""

    pairs: tuple[Pair, ...]
    passing: Mapping[int, frozenset[str]]
    keys: Mapping[Pair, tuple[int, ...]] | None = None
    transitive: bool = False
    symmetric: bool = False


@dataclass(frozen=True)
class Network:
    """What is known of ways: the tree; those from s to t that a search has found; who hears whom; by key the mote at its place, and the way
    there from any mote."""

    tree: Tree
    paths: Mapping[Pair, Sequence[Path]]
    neighbours: Mapping[int, Set[int]]
    key_mote: Callable[[tuple[int, ...]], int] | None = None
    to_place: Callable[[int, int], Path] | None = None


def naive(query: Query, network: Network) -> Plan:
    """All that pass their own conditions send to the root."""
    return gathered(NAIVE, query.passing, query.pairs, network.tree)


def base(query: Query, network: Network) -> Plan:
    """Those send that have a partner."""
    return gathered(BASE, roles_of(query.pairs), query.pairs, network.tree)


def ancestors(query: Query, network: Network) -> Plan:
    """Each pair at its lowest common ancestor."""
    return at_ancestors(ANCESTORS, query.pairs, network.tree)


def through(query: Query, network: Network) -> Plan:
    """Rows of s through the root to t."""
    return through_base(THROUGH, query.pairs, network.tree)


def hashed(query: Query, network: Network) -> Plan | None:
    """Rows of one key at the mote at its place; None: there is no key, or places are not known."""
    if query.keys is None or network.key_mote is None or network.to_place is None:
        return None
    places = {pair: network.key_mote(key) for pair, key in query.keys.items()}
    ways: dict[int, dict[int, Path]] = defaultdict(dict)
    for pair, mote in places.items():
        for producer in pair:
            if mote not in ways[producer]:
                ways[producer][mote] = network.to_place(producer, mote)
    return with_ways(HASHED, places, ways, network.tree, multicast=True)


@dataclass(frozen=True)
class InNetwork:
    """Pairs that are each joined at the cheapest mote of their ways; those not in ``places`` at the base."""

    places: dict[Pair, int]
    ways: dict[int, dict[int, Path]]


def placed(
    query: Query, network: Network, rates: Rates, prices: Prices, *, forced: bool = False
) -> InNetwork:
    """By each pair's own cost (3.1). ``forced``: nobody goes to the base, which groups decide."""
    places: dict[Pair, int] = {}
    ways: dict[int, dict[int, Path]] = defaultdict(dict)
    for pair in query.pairs:
        estimates = rates.of(pair)
        best = best_on_ways(pair, network.paths.get(pair, ()), network.tree, estimates, prices)
        if best is None or (not forced and best.cost >= at_base(pair, network.tree, estimates, prices).cost):
            continue
        places[pair] = best.mote
        place = best.path.index(best.mote)
        for producer, way in ((pair[0], best.path[: place + 1]), (pair[1], best.path[place:][::-1])):
            known = ways[producer].get(best.mote)
            if known is None or len(way) < len(known):
                ways[producer][best.mote] = way
    return InNetwork(places, dict(ways))


def _rest(query: Query, network: Network, places: Mapping[Pair, int]) -> Plan:
    left = [pair for pair in query.pairs if pair not in places]
    return gathered(BASE, roles_of(left), left, network.tree)


def pairwise(query: Query, network: Network, rates: Rates, prices: Prices) -> Plan:
    """Each pair decides by itself; each way to a join mote is one of its own."""
    own = placed(query, network, rates, prices)
    plan = with_ways(PAIRWISE, own.places, own.ways, network.tree, multicast=False)
    return together(PAIRWISE, plan, _rest(query, network, own.places))


def grouped(query: Query, network: Network, rates: Rates, prices: Prices, *, collapsed: bool = False) -> Plan:
    """Multicast trees, and groups that decide as a whole where pairs fall into such (5.2); with ``collapsed`` neighbouring ways become one
    (appendix E)."""
    name = COLLAPSED if collapsed else GROUPED
    own = placed(query, network, rates, prices, forced=query.transitive)
    chosen = own.places
    if query.transitive:
        chosen = {}
        sharing = Sharing.of(roles_of(query.pairs), network.tree, rates)
        for group in groups_of(query.pairs, symmetric=query.symmetric):
            places = {pair: own.places[pair] for pair in group.pairs if pair in own.places}
            if (
                len(places) == len(group.pairs)
                and decision(places, own.ways, sharing, rates, prices) == "in network"
            ):
                chosen |= places
    needed: dict[int, set[int]] = defaultdict(set)
    for pair, mote in chosen.items():
        for producer in pair:
            needed[producer].add(mote)
    ways = {
        producer: straightened([own.ways[producer][mote] for mote in sorted(motes)])
        for producer, motes in needed.items()
    }
    if collapsed:
        ways = collapse(ways, network.neighbours, network.tree.root)
    plan = with_ways(name, chosen, ways, network.tree, multicast=True)
    return together(name, plan, _rest(query, network, chosen))


def decision(
    places: Mapping[Pair, int], ways: Mapping[int, Mapping[int, Path]], sharing: Sharing, rates: Rates, prices: Prices
) -> Decision:  # fmt: skip
    """What a group's coordinator decides once all have told it (algorithm 1)."""
    needed: dict[int, set[int]] = defaultdict(set)
    for pair, mote in places.items():
        for producer in pair:
            needed[producer].add(mote)
    return decided(
        difference(producer, places, straightened([ways[producer][mote] for mote in sorted(motes)]), sharing, rates, prices)
        for producer, motes in needed.items()
    )  # fmt: skip


def plans(query: Query, network: Network, rates: Rates, prices: Prices) -> list[Plan]:
    """All strategies that this query and network allow."""
    found: Iterable[Plan | None] = (
        naive(query, network),
        base(query, network),
        ancestors(query, network),
        through(query, network),
        hashed(query, network),
        pairwise(query, network, rates, prices),
        grouped(query, network, rates, prices),
        grouped(query, network, rates, prices, collapsed=True),
    )
    return [plan for plan in found if plan is not None]

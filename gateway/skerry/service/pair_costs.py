"""What it costs by estimate to join pairs of motes where they are placed: rows, answers, and what is listened to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from skerry.joins.placement.estimates import Rates
from skerry.joins.placement.pair import BASE
from skerry.joins.placement.plans import Plan, by_ways, climbing, from_root, gathered, roles_of, together
from skerry.joins.placement.prices import Prices
from skerry.joins.placement.trees import Tree
from skerry.sensors.paired_motes import Pair
from skerry_protocol.codes import PairsWay


def plan_of(way: PairsWay, places: Mapping[Pair, int], tree: Tree) -> Plan:
    """What motes send whose rows go to hosts in this way; pairs at the root are the gateway's, to which their rows climb."""
    base = [pair for pair, mote in places.items() if mote == tree.root]
    hosted = {pair: mote for pair, mote in places.items() if mote != tree.root}
    name = way.name.lower()
    match way:
        case PairsWay.CLIMB:
            there = climbing(name, hosted, tree)
        case PairsWay.SENT:
            there = by_ways(name, hosted, tree)
        case PairsWay.FROM_ROOT:
            there = from_root(name, hosted, tree)
    return together(name, gathered(BASE, roles_of(base), base, tree), there)


def cost_of(way: PairsWay, places: Mapping[Pair, int], tree: Tree, rates: Rates, prices: Prices) -> float:
    """Of all motes in a sample period."""
    return plan_of(way, places, tree).cost(rates, prices, tree)


def cheapest(
    places: Mapping[Pair, int], groups: Iterable[Iterable[Pair]], tree: Tree, rates: Rates, prices: Prices
) -> dict[Pair, int]:
    """Which of the pairs are joined at their hosts in the network, and which at the root, so that all together cost least, as far as single
    changes find that: whole groups, which share rows, and then each pair. Never more than all at the root."""
    found = dict.fromkeys(places, tree.root)
    least = cost_of(PairsWay.SENT, found, tree, rates, prices)
    hosted = {pair: mote for pair, mote in places.items() if mote != tree.root}
    changes: list[Iterable[Pair]] = [hosted, *groups]
    if len(hosted) <= SINGLE_PAIRS:
        changes += [*([pair] for pair in hosted), *([pair] for pair in hosted)]
    for change in changes:
        pairs = [pair for pair in change if pair in hosted]
        back = all(found[pair] != tree.root for pair in pairs)
        tried = {**found, **{pair: tree.root if back else hosted[pair] for pair in pairs}}
        cost = cost_of(PairsWay.SENT, tried, tree, rates, prices)
        if cost < least:
            found, least = tried, cost
    return found


#: Of more pairs groups decide, not each pair.
SINGLE_PAIRS = 60

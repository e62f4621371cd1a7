"""What it costs by estimate to join pairs of motes where they are placed: rows, answers, and what is listened to."""

from __future__ import annotations

from collections.abc import Mapping

from skerry.joins.placement.estimates import Rates
from skerry.joins.placement.pair import BASE
from skerry.joins.placement.plans import Plan, by_ways, climbing, from_root, gathered, roles_of, together
from skerry.joins.placement.prices import Prices
from skerry.joins.placement.relays import Relays
from skerry.joins.placement.trees import Tree
from skerry.sensors.paired_motes import Pair
from skerry_protocol.codes import PairsWay


def plan_of(way: PairsWay, places: Mapping[Pair, int], tree: Tree, relays: Relays | None = None) -> Plan:
    """What motes send whose rows go to hosts in this way; pairs at the root are the gateway's, to which their rows climb."""
    base = [pair for pair, mote in places.items() if mote == tree.root]
    hosted = {pair: mote for pair, mote in places.items() if mote != tree.root}
    name = way.name.lower()
    match way:
        case PairsWay.CLIMB:
            there = climbing(name, hosted, tree)
        case PairsWay.SENT:
            there = by_ways(name, hosted, tree, relays)
        case PairsWay.FROM_ROOT:
            there = from_root(name, hosted, tree)
    return together(name, gathered(BASE, roles_of(base), base, tree), there)


def cost_of(way: PairsWay, places: Mapping[Pair, int], tree: Tree, rates: Rates, prices: Prices) -> float:
    """Of all motes in a sample period."""
    return plan_of(way, places, tree).cost(rates, prices, tree)

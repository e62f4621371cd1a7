"""Which mote joins each pair of a query, by what the query says; whether motes have room there is not asked here.

Source: Mihaylov et al., Dynamic Join Optimization in Multi-Hop Wireless Sensor Networks (VLDB 2010), sections 2 and 3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from skerry.catalog.catalog import Mote
from skerry.joins.placement.choosing import Choosing, Decided, transitive_groups
from skerry.joins.placement.estimates import Rates
from skerry.joins.placement.estimating import Estimate
from skerry.joins.placement.keys import nearest, place_of
from skerry.joins.placement.prices import Prices
from skerry.joins.placement.trees import Tree, links_of
from skerry.planner.model.pairing import (
    AT_ANCESTOR,
    AT_BASE,
    BY_HASH,
    IN_NETWORK,
    THROUGH_BASE,
    Pairing,
)
from skerry.sensors.paired_motes import Pair, key_of
from skerry.service.pair_room import Room
from skerry.service.pair_ways import Ways
from skerry.sql.join_strategies import NAIVE


@dataclass(frozen=True)
class Reckoning:
    """What hosts are chosen by: of one tree, with its motes; ``statics`` by mote, as integers. ``forced``: none is left to the base for
    its cost. ``most``: motes whose rows a way between hosts carries; ``others``: ways of other queries."""

    pairing: Pairing
    tree: Tree
    motes: Mapping[int, Mote]
    statics: Mapping[int, Mapping[str, int]]
    rates: Rates
    prices: Prices
    room: Room
    others: Ways
    forced: bool = False
    most: int = 0


#: Of more pairs placings are reckoned with ways of each mote's own.
RELAYED_PAIRS = 12
#: By what is counted.
LESS = {"energy": "less energy", "bytes": "fewer bytes"}
#: A pair's host; the root: the gateway joins it, and why.
Choice = tuple[int, str]


def chosen(reckoning: Reckoning, pairs: Sequence[Pair]) -> tuple[dict[Pair, Choice], list[Decided]]:
    """Of pairs whose motes are in the tree; and what groups of them have decided, where they do."""
    if reckoning.pairing.strategy == IN_NETWORK:
        return _in_network(reckoning, pairs)
    return _CHOICES[reckoning.pairing.strategy](reckoning, pairs), []


def _at_base(reckoning: Reckoning, pairs: Sequence[Pair]) -> dict[Pair, Choice]:
    return dict.fromkeys(pairs, (reckoning.tree.root, "all are joined at the base"))


def _at_ancestor(reckoning: Reckoning, pairs: Sequence[Pair]) -> dict[Pair, Choice]:
    return {pair: (reckoning.tree.ancestor(*pair), "no mote but the root is above both") for pair in pairs}


def _through_base(_: Reckoning, pairs: Sequence[Pair]) -> dict[Pair, Choice]:
    return {pair: (pair[1], "the root is the pair's t") for pair in pairs}


def _by_hash(reckoning: Reckoning, pairs: Sequence[Pair]) -> dict[Pair, Choice]:
    """The mote nearest to the place that a hash of the pair's key gives, in the rectangle in which the motes stand."""
    there = [
        (number, mote.xpos, mote.ypos)
        for number, mote in sorted(reckoning.motes.items())
        if reckoning.tree.up(number) is not None
    ]
    xs, ys = [x for _, x, _ in there], [y for _, _, y in there]
    sides = min(xs), min(ys), max(xs), max(ys)
    found = {}
    for pair in pairs:
        key = key_of(reckoning.pairing, pair, reckoning.statics)
        place = place_of((value & 0xFFFF for value in key), *sides)
        found[pair] = nearest(place, there), "the root stands nearest to the place of its key"
    return found


def _in_network(reckoning: Reckoning, pairs: Sequence[Pair]) -> tuple[dict[Pair, Choice], list[Decided]]:
    """Groups of pairs, each at motes of the ways between them where that costs least, by estimate, or at the base where that does."""
    tree, candidates = reckoning.tree, _between(reckoning, pairs)
    # Who passes rows on is reckoned for each placing where there are few, else once they are chosen.
    most = reckoning.most if len(pairs) <= RELAYED_PAIRS else 0
    estimate = Estimate(tree, reckoning.rates, reckoning.prices, most)

    def over(places: Mapping[Pair, int]) -> int:
        return reckoning.room.over_all(places, tree.root, reckoning.others)

    choosing = Choosing(candidates, tree.root, estimate.cost, over, forced=reckoning.forced)
    found, decided = choosing.chosen(transitive_groups(pairs))
    why = dict.fromkeys(pairs, "there is no mote but the root between both")
    why |= {
        pair: f"that takes {LESS[reckoning.prices.unit]} by estimate" for pair in pairs if candidates[pair]
    }
    # Cheaper, and yet at the base.
    for one in decided:
        if one.difference < 0 and all(found[pair] == tree.root for pair in one.group.pairs):
            why |= dict.fromkeys(one.group.pairs, "motes have no room for all of its group")
    return {pair: (found[pair], why[pair]) for pair in pairs}, decided


def _between(reckoning: Reckoning, pairs: Sequence[Pair]) -> dict[Pair, list[int]]:
    """By pair the motes of the way but the root, the best first; a row that goes to a mote already costs nothing more. Pairs that have
    fewest motes to choose from come first."""
    tree, found = reckoning.tree, dict[Pair, list[int]]()
    known: set[tuple[int, int]] = set()
    between = {pair: [mote for mote in tree.between(*pair) if mote != tree.root] for pair in pairs}
    for pair in sorted(pairs, key=lambda pair: (len(between[pair]), pair)):
        found[pair] = _ranked(reckoning, pair, between[pair], known)
        known |= {(producer, mote) for mote in found[pair][:1] for producer in pair}
    return {pair: found[pair] for pair in pairs}


def _ranked(reckoning: Reckoning, pair: Pair, motes: Sequence[int], known: set[tuple[int, int]]) -> list[int]:
    return sorted(motes, key=lambda mote: (cost(reckoning, pair, mote, known), mote))


def cost(reckoning: Reckoning, pair: Pair, mote: int, known: set[tuple[int, int]]) -> float:
    """Of a pair at a mote: rows by ways from both, but for those that go there already, and answers up the tree, where parents listen
    whether there are any or not."""
    tree, prices, estimates = reckoning.tree, reckoning.prices, reckoning.rates.of(pair)
    total = 0.0
    for producer, rate in zip(pair, (estimates.s, estimates.t), strict=True):
        if (producer, mote) not in known:
            total += len(links_of(tree.between(producer, mote))) * prices.by_way(rate)
    return total + tree.hops(mote) * estimates.results * prices.result


_CHOICES: dict[str, Callable[[Reckoning, Sequence[Pair]], dict[Pair, Choice]]] = {
    NAIVE: _at_base,
    AT_BASE: _at_base,
    AT_ANCESTOR: _at_ancestor,
    THROUGH_BASE: _through_base,
    BY_HASH: _by_hash,
}

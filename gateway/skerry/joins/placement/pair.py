"""One pair: what it costs to join it at the base, above both, through the base, or on a way from s to t, and the cheapest place
(Mihaylov et al. 2010, 3.1, 3.2 and appendix D)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from skerry.joins.placement.estimates import Estimates, Pair
from skerry.joins.placement.prices import Prices
from skerry.joins.placement.trees import Link, Path, Tree, links_of

BASE, ANCESTOR, THROUGH_BASE, IN_NETWORK = "at base", "at ancestor", "through base", "in network"


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a pair is joined. ``path``: from s to t by the mote where they meet, where that is on a way of its own."""

    pair: Pair
    strategy: str
    mote: int
    cost: float
    path: Path = ()


def at_base(pair: Pair, tree: Tree, estimates: Estimates, prices: Prices) -> Placed:
    """Both send to the root: D_sr σ_s + D_tr σ_t."""
    s, t = pair
    sent = estimates.s * tree.hops(s) + estimates.t * tree.hops(t)
    return Placed(pair, BASE, tree.root, sent * prices.row + _listened(pair, tree, prices))


def _listened(pair: Pair, tree: Tree, prices: Prices, until: int | None = None) -> float:
    """To the pair's rows, up to the root or to a mote on both ways."""
    links: set[Link] = set()
    for mote in pair:
        way = tree.way(mote)
        links.update(links_of(way if until is None else way[: way.index(until) + 1]))
    return len(links) * prices.open


def at_ancestor(pair: Pair, tree: Tree, estimates: Estimates, prices: Prices) -> Placed:
    """Both send up the tree until their ways meet; from there answers go up."""
    s, t = pair
    mote = tree.ancestor(s, t)
    if mote == tree.root:
        return Placed(pair, ANCESTOR, mote, at_base(pair, tree, estimates, prices).cost)
    above = tree.hops(mote)
    sent = estimates.s * (tree.hops(s) - above) + estimates.t * (tree.hops(t) - above)
    cost = sent * prices.row + estimates.results * above * prices.result
    listened = _listened(pair, tree, prices, mote) + above * prices.open
    return Placed(pair, ANCESTOR, mote, cost + listened)


def through_base(pair: Pair, tree: Tree, estimates: Estimates, prices: Prices) -> Placed:
    """s sends by the root to t, which joins: D_sr σ_s + D_tr (σ_s + (σ_s + σ_t) w σ_st)."""
    s, t = pair
    up, down = tree.hops(s), tree.hops(t)
    cost = (
        estimates.s * up * prices.row
        + down * prices.by_way(estimates.s)
        + estimates.results * down * prices.result
    )
    links = {*links_of(tree.way(s)), *links_of(tree.way(t))}
    listened = len(links) * prices.open
    return Placed(pair, THROUGH_BASE, t, cost + listened)


def on_way(pair: Pair, path: Path, place: int, tree: Tree, estimates: Estimates, prices: Prices) -> Placed:
    """Joined at the mote at a place of a way from s to t: D_sj σ_s + D_tj σ_t + D_jr (σ_s + σ_t) w σ_st."""
    mote = path[place]
    before, behind, above = place, len(path) - 1 - place, tree.hops(mote)
    cost = (
        before * prices.by_way(estimates.s)
        + behind * prices.by_way(estimates.t)
        + estimates.results * above * prices.result
        + above * prices.open
    )
    return Placed(pair, IN_NETWORK, mote, cost, path)


def best_on_ways(
    pair: Pair, paths: Iterable[Path], tree: Tree, estimates: Estimates, prices: Prices
) -> Placed | None:
    """The cheapest place on any of the ways that a search has found; of equal ones that nearest to s on the first way. None: there is no
    way."""
    found = (
        on_way(pair, path, place, tree, estimates, prices)
        for path in paths
        for place in range(len(path))
        if tree.up(path[place]) is not None
    )
    return min(found, key=lambda placed: placed.cost, default=None)


def considered(
    pair: Pair, paths: Iterable[Path], tree: Tree, estimates: Estimates, prices: Prices
) -> list[Placed]:
    """All places, the base first."""
    found = [
        at_base(pair, tree, estimates, prices),
        at_ancestor(pair, tree, estimates, prices),
        through_base(pair, tree, estimates, prices),
    ]
    in_network = best_on_ways(pair, paths, tree, estimates, prices)
    return found if in_network is None else [*found, in_network]


def cheapest(pair: Pair, paths: Iterable[Path], tree: Tree, estimates: Estimates, prices: Prices) -> Placed:
    """Never dearer than the base, which is taken where nothing is cheaper."""
    return min(considered(pair, paths, tree, estimates, prices), key=lambda placed: placed.cost)

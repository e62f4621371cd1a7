"""The strategies by the names that Aspen's figures have them under, with what they take before the first row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

import numpy as np

from bench.measuring.join_meter import ANSWER_VALUES, ROW_VALUES, Load, searched
from bench.measuring.join_network import Field
from bench.measuring.join_queries import Asked, query_0, query_1, query_2
from skerry.joins.placement import strategies
from skerry.joins.placement.choosing import Choosing, transitive_groups
from skerry.joins.placement.estimates import Pair, Rates
from skerry.joins.placement.pair import BASE, on_way
from skerry.joins.placement.plans import Plan, gathered, roles_of, together, with_ways
from skerry.joins.placement.prices import Prices
from skerry.joins.placement.trees import Path
from skerry.planner.cost.join_prices import FRAME_BYTES, ROOM, prices

#: σ_s : σ_t of the figures, and σ_st.
RATIOS = ((1 / 10, 1.0), (1 / 6, 1 / 2), (1 / 2, 1 / 2), (1 / 2, 1 / 6), (1.0, 1 / 10))
PAIR_SHARES = (0.2, 0.1, 0.05)
#: What groups with collapsed ways are held against.
BASIC = (strategies.NAIVE, BASE, strategies.THROUGH, strategies.HASHED, strategies.PAIRWISE)
NAMES = (
    strategies.NAIVE, BASE, strategies.ANCESTORS, strategies.THROUGH, strategies.HASHED, strategies.PAIRWISE, strategies.GROUPED,
    strategies.COLLAPSED,
)  # fmt: skip
#: Bytes of what one mote tells another of a pair: both motes, a sequence number, w and shares.
NOMINATION = 10
#: The gateway's own choice (skerry.joins.placement.choosing), and of how many motes for each pair.
CHOSEN = "in network, chosen"
CANDIDATES = 4
#: Of a join's program, at most (docs/protocol.md).
PROGRAM_BYTES = 192


@dataclass(frozen=True)
class Asking:
    """A query of the paper, with its window."""

    name: str
    window: int
    #: By which it is placed where one is enough: query 0 has no groups.
    strategy: str = strategies.COLLAPSED

    def of(self, field: Field, rng: np.random.Generator) -> Asked:
        """In a field."""
        return {"query 0": query_0, "query 1": query_1, "query 2": query_2}[self.name](field, rng)


PLACED = {one.name: one for one in (Asking("query 0", 3, CHOSEN), Asking("query 1", 3), Asking("query 2", 1))}
FIGURES = {"figure 2": PLACED["query 1"], "figure 3": PLACED["query 2"]}


def ratio_text(shares: tuple[float, float]) -> str:
    """As the figures have it."""
    return " : ".join("1" if share == 1 else f"1/{round(1 / share)}" for share in shares)


def priced(unit: str, period_s: float = 10.0) -> Prices:
    """For rows of u and answers of both motes'."""
    return prices(unit, ROW_VALUES, ANSWER_VALUES, period_s)


def plans(asked: Asked, rates: Rates, price: Prices) -> dict[str, Plan]:
    """By name."""
    return {plan.name: plan for plan in strategies.plans(asked.query, asked.network, rates, price)}


def placed_by(asked: Asked, strategy: str, price: Prices) -> Callable[[Rates], Plan]:
    """The plan of one strategy by such rates."""
    network, query = asked.network, asked.query
    return {
        CHOSEN: lambda rates: chosen(asked, rates, price),
        BASE: lambda _: strategies.base(query, network),
        strategies.COLLAPSED: lambda rates: strategies.grouped(query, network, rates, price, collapsed=True),
    }[strategy]


def chosen(asked: Asked, rates: Rates, price: Prices) -> Plan:
    """Hosts as the gateway chooses them, by what all of a placing costs, rows that share frames included; of each pair's motes on the ways
    that searches have found the :data:`CANDIDATES` best by themselves may be one, those of other pairs of its group, and the root."""
    tree, paths = asked.network.tree, asked.network.paths
    ways: dict[Pair, dict[int, tuple[Path, Path]]] = {}
    for pair in asked.query.pairs:
        placed = sorted(
            (
                on_way(pair, path, place, tree, rates.of(pair), price)
                for path in paths.get(pair, ())
                for place in range(len(path))
                if path[place] != tree.root
            ),
            key=lambda one: one.cost,
        )
        found = ways[pair] = {}
        for one in placed:
            at = one.path.index(one.mote)
            found.setdefault(one.mote, (one.path[: at + 1], one.path[at:][::-1]))
            if len(found) == CANDIDATES:
                break

    def plan(places: Mapping[Pair, int]) -> Plan:
        own: dict[int, dict[int, Path]] = defaultdict(dict)
        hosted = {pair: mote for pair, mote in places.items() if mote != tree.root}
        for pair, mote in hosted.items():
            # A mote that other pairs have on their ways: to it rows go by the tree.
            found = ways[pair].get(mote) or (tree.between(pair[0], mote), tree.between(pair[1], mote))
            for producer, way in zip(pair, found, strict=True):
                own[producer][mote] = min(own[producer].get(mote, way), way, key=len)
        left = [pair for pair in places if pair not in hosted]
        base = gathered(BASE, roles_of(left), left, tree)
        return together(CHOSEN, with_ways(CHOSEN, hosted, own, tree, multicast=True), base)

    candidates = {pair: list(found) for pair, found in ways.items()}
    choosing = Choosing(candidates, tree.root, lambda places: plan(places).cost(rates, price))
    return plan(choosing.chosen(transitive_groups(asked.query.pairs))[0])


def initiation(asked: Asked, plan: Plan) -> Load:
    """Bytes before the first row: at base each producer asks the root whether it has partners, and is told; in the network searches, then
    nominations from t to j and on to s, and what motes where ways branch are told. Trees and summaries are there already or not: they are
    :func:`formation`'s."""
    field, motes = asked.field, len(asked.field)
    if plan.name in (strategies.NAIVE, strategies.THROUGH):
        return Load.none(motes)
    load = Load.none(motes)
    if plan.name in (BASE, strategies.ANCESTORS, strategies.HASHED):
        for mote in roles_of(asked.query.pairs):
            way = field.tree.way(mote)
            if plan.name == strategies.HASHED:
                assert asked.query.keys is not None
                way = next(
                    field.geographic(mote, plan.places[pair]) for pair in asked.query.pairs if mote in pair
                )
            _tell(load, way)
            _tell(load, way[::-1])
        return load
    searches = asked.searches
    load = searched(motes, searches.sent, searches.received, searches.path_motes, ())
    for pair, mote in plan.places.items():
        for path in asked.network.paths[pair][:1]:
            if mote in path:
                at = path.index(mote)
                _tell(load, path[at:][::-1])
                _tell(load, path[: at + 1][::-1])
    for flow in plan.flows:
        if not flow.by_tree:
            for link in flow.links:
                load.frames(link, 1, NOMINATION, FRAME_BYTES)
    return load


def _tell(load: Load, way: tuple[int, ...]) -> None:
    for link in pairwise(way):
        load.frames(link, 1, NOMINATION, FRAME_BYTES)


def flooded(asked: Asked) -> Load:
    """What all motes send when a program takes the place of another's: each frame of it once, which each mote hears once."""
    load, frames = Load.none(len(asked.field)), ceil(PROGRAM_BYTES / ROOM)
    load.sent += PROGRAM_BYTES + frames * FRAME_BYTES
    load.received[1:] += PROGRAM_BYTES + frames * FRAME_BYTES
    return load


def formation(asked: Asked) -> float:
    """Bytes of trees other than the first, and of all summaries."""
    network = asked.searches.network
    return float((sum(network.formed[1:]) + network.told) * (FRAME_BYTES + 12))

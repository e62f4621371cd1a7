"""The strategies by the names that Aspen's figures have them under, with what they take before the first row."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from bench.measuring.join_meter import ANSWER_VALUES, ROW_VALUES, Load, searched
from bench.measuring.join_network import Field
from bench.measuring.join_queries import Asked, query_1, query_2
from skerry.joins.placement import strategies
from skerry.joins.placement.estimates import Rates
from skerry.joins.placement.pair import BASE
from skerry.joins.placement.plans import Plan, roles_of
from skerry.joins.placement.prices import Prices
from skerry.planner.cost.join_prices import FRAME_BYTES, prices

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


@dataclass(frozen=True)
class Asking:
    """A query of the paper, with its window."""

    name: str
    window: int

    def of(self, field: Field, rng: np.random.Generator) -> Asked:
        """In a field."""
        return {"query 1": query_1, "query 2": query_2}[self.name](field, rng)


FIGURES = {"figure 2": Asking("query 1", 3), "figure 3": Asking("query 2", 1)}


def ratio_text(shares: tuple[float, float]) -> str:
    """As the figures have it."""
    return " : ".join("1" if share == 1 else f"1/{round(1 / share)}" for share in shares)


def priced(unit: str, period_s: float = 10.0) -> Prices:
    """For rows of u and answers of both motes'."""
    return prices(unit, ROW_VALUES, ANSWER_VALUES, period_s)


def plans(asked: Asked, rates: Rates, price: Prices) -> dict[str, Plan]:
    """By name."""
    return {plan.name: plan for plan in strategies.plans(asked.query, asked.network, rates, price)}


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


def formation(asked: Asked) -> float:
    """Bytes of trees other than the first, and of all summaries."""
    network = asked.searches.network
    return float((sum(network.formed[1:]) + network.told) * (FRAME_BYTES + 12))

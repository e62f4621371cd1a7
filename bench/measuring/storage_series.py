"""Queries asked of an index in one of the ways that DIM 2004 compares: which order, with caches or without."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

import numpy as np

from bench.measuring.storage_load import Points, Query
from bench.measuring.storage_model import (
    DECOMPOSED,
    JOINT,
    NAME,
    QUERY,
    SINGLE,
    STATE,
    VALUE,
    Caches,
    Index,
    Order,
    Visit,
)  # fmt: skip
from bench.measuring.storage_network import HEADER, PAYLOAD, Meter, Network
from skerry.index.declaration import Question, learned
from skerry.index.prices import Format, Prices

Choice = Literal["best", "random", "worst", "planned"]
#: Bins with which four attributes fit in 1 KB, on a mote.
MOTE_BINS = 5
#: The paper's frames.
PAPER = Format(HEADER, PAYLOAD, QUERY, NAME, VALUE, STATE)


@dataclass(frozen=True)
class Series:
    """What of a figure is a line."""

    name: str
    parts: tuple[tuple[int, ...], ...]
    choice: Choice = "best"
    cached: bool = True
    fan_out: bool = True


SERIES = (
    Series("single", SINGLE, cached=False),
    Series("best", DECOMPOSED),
    Series("planned", DECOMPOSED, "planned"),
    Series("random", DECOMPOSED, "random"),
    Series("worst", DECOMPOSED, "worst"),
    Series("uncached", DECOMPOSED, cached=False),
    Series("joint", JOINT),
    Series("best, equation 1 alone", DECOMPOSED, fan_out=False),
)


class Asker:
    """Asks one index after the other's query, and keeps its caches."""

    def __init__(
        self, network: Network, points: Points, series: Series, *, states: bool, seed: int = 0, room: int | None = None
    ) -> None:  # fmt: skip
        self.index = index = Index(network, points, series.parts, fan_out=series.fan_out)
        self.series, self.states = series, states
        self.meter = Meter(index.network)
        self.caches = Caches(len(index.points), room) if series.cached else None
        self.rng = np.random.default_rng(seed)
        self.histogram = learned(index.code, index.points.tolist(), index.points.shape[1], MOTE_BINS)

    def ask(self, queries: Sequence[Query]) -> float:
        """Bytes that all these take, a query."""
        before = self.meter.total
        for query in queries:
            visits = self.index.visits(query, cached=self.series.cached)
            self.index.run(
                query, visits, self.order(query, visits), self.meter, self.caches, states=self.states
            )
        return (self.meter.total - before) / len(queries)

    def expected(self, queries: Sequence[Query], *, warm: bool) -> float:
        """Bytes a query, as a planner on a mote expects them: equation 1 by its histogram, without joins where they are in caches, and the
        query's own frames."""
        index = self.index
        prices = Prices(
            index.code, index.parts, self.histogram, PAPER, index.hop, cached=self.series.cached, fan_out=index.fan_out
        )  # fmt: skip
        questions = (Question(query.limits, query.measured) for query in queries)
        return fmean(prices.of(question, states=self.states, warm=warm).bytes for question in questions)

    def order(self, query: Query, visits: Sequence[Visit]) -> Order:
        """By equation 1 with what really matches, by a mote's histogram, or at random; no order knows what the caches have."""
        plan = self.index.plan(query, visits, states=self.states, cached=self.series.cached)
        if self.series.choice == "planned":
            box = self.index.code.box(self.index.points.shape[1], query.limits)
            return plan.estimate(self.histogram, box).best()[1]
        if self.series.choice == "random":
            return tuple(int(place) for place in self.rng.permutation(len(visits)))
        self.index.known(plan, visits)
        if self.series.choice == "worst":
            return max(itertools.permutations(range(len(visits))), key=plan.cost)
        return plan.best()[1]

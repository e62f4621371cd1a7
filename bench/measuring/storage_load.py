"""Tuples and queries of DIM 2004: uniform, Gaussian and redwood data; ranges and attributes as its section 5.2 draws them.

The paper leaves open: how long a uniform range is (here up to the whole of the attribute's range), the mean of an exponential one
(here a half), and how a Poisson distribution makes attributes hot (here they are drawn by its probabilities). Ranges are cut at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hil_tests.datasets import data
from skerry.index.code import LAST

Points = NDArray[np.int64]
Data = Literal["uniform", "gaussian", "independent", "redwood"]
Asked = Literal["uniform", "hot"]
Sizes = Literal["uniform", "exponential"]
ATTRIBUTES, TUPLES = 4, 4000
#: Poisson with a mean of 1: 0, 1, 2, 3.
HOT = np.array([0.368, 0.368, 0.184, 0.061])
REDWOOD = ("temperature", "humidity", "par_top", "voltage")


@dataclass(frozen=True)
class Panel:
    """One of figure 4's three: tuples, which attributes are asked, how long ranges are, and how many queries the paper asks."""

    name: str
    data: Data
    attributes: Asked
    sizes: Sizes
    queries: int


PANELS = (
    Panel("u, u, u", "uniform", "uniform", "uniform", 100),
    Panel("g, u, e", "gaussian", "uniform", "exponential", 200),
    Panel("redwood, h, u", "redwood", "hot", "uniform", 400),
)


@dataclass(frozen=True)
class Query:
    """Averages of some attributes, where others are in a range of points."""

    limits: dict[int, tuple[int, int]]
    measured: frozenset[int]
    issuer: int


def tuples_of(kind: Data, rng: np.random.Generator, count: int = TUPLES) -> Points:
    """Points of each attribute, a row for each tuple."""
    if kind == "uniform":
        values = rng.random((count, ATTRIBUTES))
    elif kind == "redwood":
        return _redwood(rng, count)
    else:
        pairs = (0.04, 0.039), (0.09, -0.089)
        drawn = [
            rng.multivariate_normal(
                (0.5, 0.5), [[v, c * (kind == "gaussian")], [c * (kind == "gaussian"), v]], count
            )
            for v, c in pairs
        ]
        values = np.hstack(drawn)
    return (np.clip(values, 0, 1) * LAST).astype(np.int64)


def _redwood(rng: np.random.Generator, count: int) -> Points:
    """Ranges are those of nearly all readings; what lies beyond has the point at the edge."""
    readings = pd.read_parquet(data("redwood-log.parquet"), columns=list(REDWOOD)).dropna()
    values = readings.sample(count, random_state=int(rng.integers(2**31))).to_numpy()
    low, high = np.quantile(readings.to_numpy(), [0.005, 0.995], axis=0)
    points: Points = (np.clip((values - low) / (high - low), 0, 1) * LAST).astype(np.int64)
    return points


def queries_of(
    attributes: Asked, sizes: Sizes, count: int, motes: int,
    rng: np.random.Generator,
) -> list[Query]:  # fmt: skip
    """Each attribute is measured or limited as often as not, but one at least is measured; the issuer is any mote."""

    def some(least: int) -> list[int]:
        number = max(least, int(rng.binomial(ATTRIBUTES, 0.5)))
        weights = HOT / HOT.sum() if attributes == "hot" else None
        return [int(a) for a in rng.choice(ATTRIBUTES, number, replace=False, p=weights)]

    return [
        Query({a: drawn_range(sizes, rng) for a in some(0)}, frozenset(some(1)), int(rng.integers(motes)))
        for _ in range(count)
    ]


def drawn_range(sizes: Sizes, rng: np.random.Generator) -> tuple[int, int]:
    """Points from one to another."""
    low = rng.random()
    size = rng.random() if sizes == "uniform" else rng.exponential(0.5)
    return int(low * LAST), int(min(1.0, low + size) * LAST)

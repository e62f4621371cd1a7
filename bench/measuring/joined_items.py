"""Three drawn streams of items, 1,000 rows/s of event time each, and their join: about one answer a row, whatever the window."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa

from skerry.joins import conditions
from skerry.joins.conditions import AllOf, Compared
from skerry.joins.join import Join
from skerry.joins.windows import Window, uniform

SECOND = 1_000_000
ALIASES = "abc"
#: The first rows' time, a day behind 1970: Spark's watermark begins at 1970, and its joins leave out as late what is of that very moment.
BEGIN_US = 86_400 * SECOND
SCHEMA = pa.schema([("item", pa.int64()), ("value", pa.float64())])
#: Ways of joining them on Spark.
OURS, CASCADE = "ours", "cascade"


def items_join(window_s: float) -> Join:
    """Three streams by item."""
    pairs = pairwise(ALIASES)
    equal = tuple(
        Compared("=", conditions.Column(one, "item"), conditions.Column(other, "item"))
        for one, other in pairs
    )
    return Join(
        {alias: f"stream_{alias}" for alias in ALIASES}, uniform(ALIASES, Window(int(window_s * SECOND))), AllOf(equal),
        tuple(conditions.Column(alias, "value") for alias in ALIASES), 10 * SECOND,
    )  # fmt: skip


def items_of(window_s: float) -> int:
    """So many items that there is about one answer for each row of a stream: those of the other two lie in 3 w² / items² of it."""
    return max(1, round(1_000 * window_s * 3**0.5))


def batch_of(first: int, rows: int, items: int, rng: np.random.Generator) -> dict[str, pa.Table]:
    """The next rows of all streams, a row of each in each ms."""
    at = np.arange(first, first + rows)
    return {
        f"stream_{alias}": pa.table(
            {
                "number": at * len(ALIASES) + place, "time": BEGIN_US + at * 1_000, "clock": BEGIN_US + at * 1_000,
                "item": rng.integers(0, items, rows), "value": rng.random(rows),
            }
        )
        for place, alias in enumerate(ALIASES)
    }  # fmt: skip

"""Drawn questions to an index: columns or aggregates of its tuples in a box of the attributes."""

from __future__ import annotations

import random
from typing import Any


def drawn(rng: random.Random, index: str, first: int, last: int, *, humidity: bool = False) -> str:
    """What follows SELECT, for tuples of some epochs; ``humidity``: the index has it, beside light and temp."""
    conditions = []
    if rng.random() < 0.7:
        low = rng.randrange(0, 1100)
        conditions.append(f"light BETWEEN {low} AND {low + rng.randrange(0, 500)}")
    if rng.random() < 0.7:
        conditions.append(f"temp {rng.choice(('<', '<=', '>', '>='))} {rng.randrange(150, 300) / 10}")
    if humidity and rng.random() < 0.4:
        conditions.append(f"humidity > {rng.randrange(20, 80)}")
    if rng.random() < 0.2:
        conditions.append(f"nodeid <> {rng.randrange(12)}")
    if rng.random() < 0.2:
        conditions.append(f"(light > {rng.randrange(1000)} OR temp < {rng.randrange(15, 30)})")
    what = rng.choice(
        (
            "nodeid, epoch, light, temp",
            "COUNT(*)",
            "COUNT(*), MIN(temp), MAX(light), SUM(light)",
            "nodeid, COUNT(*), MAX(temp)",
            *(["nodeid, epoch, humidity"] if humidity else []),
        )
    )
    group = " GROUP BY nodeid" if what.startswith("nodeid, C") else ""
    return (
        f"{what} FROM {index} WHERE {' AND '.join([f'epoch BETWEEN {first} AND {last}', *conditions])}{group}"
    )


def plain(rows: list[Any]) -> list[tuple[Any, ...]]:
    """In an order, as far as values go."""
    return sorted(tuple(round(v, 6) if isinstance(v, float) else v for v in row) for row in rows)

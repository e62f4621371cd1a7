"""Of values in ascending order, which one stands where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def at_share(pairs: Sequence[tuple[Any, ...]], millionths: int) -> Any:
    """The smallest value that a share of all does not exceed; None: there is none. ``pairs``: ascending, each value first, then how often
    it is there."""
    count = sum(pair[1] for pair in pairs)
    return _at_rank(pairs, max(1, -(-count * millionths // 1_000_000)))


def _at_rank(pairs: Iterable[tuple[Any, ...]], rank: int) -> Any:
    for pair in pairs:
        rank -= pair[1]
        if rank <= 0:
            return pair[0]
    return None

"""A stream cut into batches at random places, with the operator made anew from its bytes at each."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pyarrow as pa


def batches(table: pa.Table, seed: int, cuts: int = 20) -> Iterator[pa.Table]:
    """Some of them are empty."""
    drawn = random.Random(seed)
    at = [0, *sorted(drawn.randint(0, len(table)) for _ in range(cuts)), len(table)]
    for start, end in pairwise(at):
        yield table.slice(start, end - start)


def cut(made: Any, table: pa.Table, seed: int, add: Callable[[Any, pa.Table], Any]) -> tuple[Any, list[Any]]:
    """The operator that all batches were added to, and what each adding gave."""
    given = []
    for batch in batches(table, seed):
        given.append(add(made, batch))
        made = type(made).from_bytes(made.to_bytes())
    return made, given

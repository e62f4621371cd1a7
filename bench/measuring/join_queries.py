"""Queries 0 to 3 of Aspen's table 2 over a field of motes: attributes as in its table 1, pairs, and the ways that searches find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.measuring.join_network import TREES, Field, Searches
from firmware.tests.join.searching import BLOOM, BOX
from skerry.joins.placement.estimates import Pair
from skerry.joins.placement.keys import place_of
from skerry.joins.placement.strategies import Network, Query
from skerry.joins.placement.trees import Path

S, T = frozenset({"s"}), frozenset({"t"})
#: Pairs of query 0.
PAIRS = 10
#: m; of query 3.
NEAR_M = 5


@dataclass
class Asked:
    """A query in a field, ready to be placed."""

    field: Field
    query: Query
    network: Network
    searches: Searches


def statics(field: Field, rng: np.random.Generator) -> dict[str, NDArray[np.int64]]:
    """Table 1: x 7 to 60 and higher in the middle, y 0 to 10, cid and rid of a 4 by 4 grid."""
    low, high = field.places.min(axis=0), field.places.max(axis=0)
    shares = (field.places - low) / np.maximum(high - low, 1e-9)
    away = np.hypot(*(shares - 0.5).T) / np.hypot(0.5, 0.5)
    cells = np.minimum((shares * 4).astype(int), 3)
    return {
        "x": (7 + 53 * np.exp(-3 * away)).astype(int),
        "y": rng.integers(0, 11, len(field)),
        "cid": cells[:, 0],
        "rid": cells[:, 1],
    }


def query_0(field: Field, rng: np.random.Generator, trees: int = TREES) -> Asked:
    """One to one, motes at random."""
    chosen = rng.permutation(np.arange(1, len(field)))[: 2 * PAIRS].tolist()
    pairs = tuple(zip(chosen[::2], chosen[1::2], strict=True))
    values = {mote: (mote, 0) for mote in range(len(field))}
    searches = field.searched(BLOOM, values, trees)
    passing = {s: S for s, _ in pairs} | {t: T for _, t in pairs}
    partner = dict(pairs)
    return _asked(field, searches, pairs, passing, lambda s: ((partner[s], 0),) * 2, lambda pair: pair)


def query_1(field: Field, rng: np.random.Generator, trees: int = TREES) -> Asked:
    """Any number to any number, all over the network: s.x = t.y + 5."""
    found = statics(field, rng)
    share = len(field) / 100
    sources = {mote for mote in range(1, len(field)) if mote < 25 * share}
    targets = {mote for mote in range(1, len(field)) if mote > 50 * share}
    values = {mote: (int(y) + 5, 0) for mote, y in enumerate(found["y"])}
    pairs = tuple((s, t) for s in sorted(sources) for t in sorted(targets) if found["x"][s] == values[t][0])
    passing = dict.fromkeys(sources, S) | dict.fromkeys(targets, T)
    searches = field.searched(BLOOM, values, trees)
    return _asked(
        field, searches, pairs, passing, lambda s: ((int(found["x"][s]), 0),) * 2, lambda pair: (int(found["x"][pair[0]]),)
    )  # fmt: skip


def query_2(field: Field, rng: np.random.Generator, trees: int = TREES) -> Asked:
    """One edge of the field with the opposite one: s.cid = t.cid, and id the same modulo 4."""
    found = statics(field, rng)
    motes = range(1, len(field))
    sources, targets = ({mote for mote in motes if found["rid"][mote] == row} for row in (0, 3))
    values = {mote: (int(cid), 0) for mote, cid in enumerate(found["cid"])}
    pairs = tuple(
        (s, t) for s in sorted(sources) for t in sorted(targets) if values[s] == values[t] and s % 4 == t % 4
    )
    passing = dict.fromkeys(sources, S) | dict.fromkeys(targets, T)
    searches = field.searched(BLOOM, values, trees)
    return _asked(
        field,
        searches,
        pairs,
        passing,
        lambda s: (values[s],) * 2,
        lambda pair: (values[pair[0]][0], pair[0] % 4),
    )


def query_3(field: Field, trees: int = TREES, near_m: float = NEAR_M) -> Asked:
    """Neighbours by place: no key, nor groups. Places are told in decimetres."""
    apart = np.hypot(*(field.places[:, None] - field.places[None]).transpose(2, 0, 1))
    motes = range(1, len(field))
    pairs = tuple((s, t) for s in motes for t in motes if s < t and apart[s, t] < near_m)
    places = np.round(field.places * 10).astype(int)
    values = {mote: (int(x), int(y)) for mote, (x, y) in enumerate(places)}
    searches = field.searched(BOX, values, trees)
    reach = int(near_m * 10) + 1
    both = dict.fromkeys(motes, S | T)

    def box(s: int) -> tuple[tuple[int, int], tuple[int, int]]:
        x, y = values[s]
        return (x - reach, y - reach), (x + reach, y + reach)

    return _asked(field, searches, pairs, both, box, None)


def _asked(
    field: Field,
    searches: Searches,
    pairs: tuple[Pair, ...],
    passing: dict[int, frozenset[str]],
    sought: Callable[[int], tuple[tuple[int, int], tuple[int, int]]],
    key_of: Callable[[Pair], tuple[int, ...]] | None,
) -> Asked:
    paths: dict[Pair, list[Path]] = {}
    wanted = set(pairs)
    for s in sorted({s for s, _ in pairs}):
        for t, ways in searches.find(s, *sought(s)).items():
            if (s, t) in wanted:
                paths[s, t] = ways
    low, high = field.places.min(axis=0), field.places.max(axis=0)
    keys = {pair: key_of(pair) for pair in pairs} if key_of is not None else None
    network = Network(
        field.tree,
        paths,
        field.neighbours,
        lambda key: field.nearest(place_of(key, *low, *high)),
        field.geographic,
    )
    query = Query(pairs, passing, keys, transitive=keys is not None, symmetric=key_of is None)
    return Asked(field, query, network, searches)

"""One network for the model of joins: topologies of the paper's, ways by the firmware's own searches, and by GPSR."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import hypot
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path

from firmware.tests.join.searching import Network as Searched
from firmware.tests.join.searching import Outcome, Shape, optimised
from hil_tests.lab import links, positions
from skerry.joins.placement.trees import Path, Tree

#: Side of the paper's field.
SIDE_M = 256.0
#: Links of the lab over which fewer frames arrive, in either direction, are none: the most at which all are reached.
LAB_LEAST = 0.4
Topology = Literal["6", "7", "8", "13", "grid", "lab"]
TOPOLOGIES: tuple[Topology, ...] = ("6", "7", "8", "13", "grid", "lab")
TREES = 3


@dataclass
class Field:
    """Motes at places in m; the first is the root. ``mean_neighbours`` is what the topology came to."""

    places: NDArray[np.float64]
    neighbours: dict[int, set[int]]
    hops: NDArray[np.float64]
    before: NDArray[np.int32]
    tree: Tree = field(init=False)

    def __post_init__(self) -> None:
        self.tree = Tree(0, {mote: int(self.before[0, mote]) for mote in range(1, len(self.places))})

    @classmethod
    def of(cls, places: NDArray[np.float64], heard: NDArray[np.bool_]) -> Field | None:
        """Motes that hear each other so; None where they are not connected."""
        hops, before = shortest_path(heard, unweighted=True, directed=False, return_predecessors=True)
        if np.isinf(hops).any():
            return None
        neighbours = {mote: set(np.flatnonzero(row).tolist()) for mote, row in enumerate(heard)}
        return cls(places, neighbours, hops, before)

    @classmethod
    def drawn(cls, topology: Topology, motes: int, rng: np.random.Generator) -> Field:
        """As asked; random ones anew until all are connected, with a radius that gives as many neighbours on average."""
        if topology == "lab":
            return cls._lab()
        if topology == "grid":
            return cls._grid(motes, rng)
        for _ in range(10_000):
            places = rng.random((motes, 2)) * SIDE_M
            apart = _apart(places)
            # As many pairs hear each other as give that many neighbours.
            nearest = np.sort(apart[np.triu_indices(motes, 1)])
            reach = nearest[round(motes * int(topology) / 2) - 1]
            found = cls.of(places, (apart <= reach) & (apart > 0))
            if found is not None:
                return found
        raise ValueError(
            f"{motes} motes with {topology} neighbours are hardly ever connected: take more neighbours"
        )

    @classmethod
    def _grid(cls, motes: int, rng: np.random.Generator) -> Field:
        side = round(motes**0.5)
        places = np.array([(x, y) for x in range(side) for y in range(side)], float) * (SIDE_M / (side - 1))
        # The root is any of them; who stands next to another one, or across, hears it: 7 neighbours on average.
        places = rng.permutation(places)
        apart = _apart(places)
        found = cls.of(places, (apart <= 1.5 * SIDE_M / (side - 1)) & (apart > 0))
        assert found is not None
        return found

    @classmethod
    def _lab(cls) -> Field:
        stood, measured = positions(), links()
        motes = sorted(stood)
        heard = np.array(
            [[min(measured.get((a, b), 0), measured.get((b, a), 0)) >= LAB_LEAST for b in motes] for a in motes]
        )  # fmt: skip
        np.fill_diagonal(heard, val=False)
        hops = shortest_path(heard, unweighted=True, directed=False)
        reached = np.flatnonzero(np.isfinite(hops[0]))
        found = cls.of(np.array([stood[motes[one]] for one in reached]), heard[np.ix_(reached, reached)])
        assert found is not None
        return found

    def __len__(self) -> int:
        return len(self.places)

    @property
    def mean_neighbours(self) -> float:
        """Of all motes."""
        return float(np.mean([len(own) for own in self.neighbours.values()]))

    def shortest(self, one: int, other: int) -> Path:
        """A way of as few hops as there can be."""
        found = [other]
        while found[-1] != one:
            found.append(int(self.before[one, found[-1]]))
        return tuple(found[::-1])

    def nearest(self, place: tuple[float, float]) -> int:
        """The mote that stands nearest to a place."""
        return int(np.argmin(np.hypot(*(self.places - place).T)))

    def geographic(self, source: int, to: int) -> Path:
        """From neighbour to neighbour, each nearer to where a mote stands; around a hole by as few hops as lead to one that is
        nearer: no face of a planar graph has fewer."""
        path = [source]
        target = self.places[to]

        def apart(mote: int) -> float:
            return hypot(*(self.places[mote] - target))

        while path[-1] != to:
            at = path[-1]
            nearer = min(self.neighbours[at], key=lambda mote: (apart(mote), mote))
            if apart(nearer) < apart(at):
                path.append(nearer)
                continue
            beyond = min(
                (mote for mote in self.neighbours if apart(mote) < apart(at)),
                key=lambda mote: (self.hops[at, mote], mote),
            )
            path += self.shortest(at, beyond)[1:]
        return without_circles(path)

    def searched(
        self,
        kind: int,
        values: dict[int, tuple[int, int]],
        trees: int = TREES,
        *,
        low: int = 0,
        width: int = 0,
    ) -> Searches:
        """Trees with summaries of an attribute."""
        return Searches(
            self, Searched(optimised(), self.neighbours, 0, trees, Shape(low, width, kind), values)
        )


def without_circles(path: list[int]) -> Path:
    """The same way without what lies between two times at one mote."""
    found: list[int] = []
    for mote in path:
        if mote in found:
            del found[found.index(mote) + 1 :]
        else:
            found.append(mote)
    return tuple(found)


@dataclass
class Searches:
    """Searches for one attribute, and the frames that they took."""

    over: Field
    network: Searched
    #: Frames of searches by mote, the motes in their paths, and the longest chain.
    sent: dict[int, int] = field(default_factory=dict)
    received: dict[int, int] = field(default_factory=dict)
    path_motes: int = 0
    hops: int = 0

    def find(self, source: int, low: tuple[int, int], high: tuple[int, int]) -> dict[int, list[Path]]:
        """By mote that has it the ways that a search from ``source`` has gone, the shortest first."""
        found: Outcome = self.network.search(source, low, high)
        for mote, frames in found.sent.items():
            self.sent[mote] = self.sent.get(mote, 0) + frames
        for _, mote in found.visited:
            self.received[mote] = self.received.get(mote, 0) + 1
        self.path_motes += found.path_motes
        self.hops = max(self.hops, found.hops)
        return {mote: sorted(paths, key=len) for mote, paths in found.paths.items()}


def _apart(places: NDArray[np.float64]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1))
    return found

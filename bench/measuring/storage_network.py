"""A field of motes with shortest ways between them, and what each sends and receives: bytes times transmissions, no radio."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path

Floats = NDArray[np.floating[Any]]
#: Bytes in front of each message, and how much it has room for: the paper's, for TinyOS.
HEADER, PAYLOAD = 7, 36
RANGE_CM = 25_000


def framed(amount: NDArray[Any] | float) -> Floats:
    """Bytes with the headers of as many messages as they fill."""
    payload: Floats = np.asarray(amount, float)
    found: Floats = payload + HEADER * np.ceil(payload / PAYLOAD)
    return found


@dataclass
class Network:
    """Motes in a field; every mote that another one's messages pass is known before any is sent."""

    #: Positions in cm, one row each.
    places: NDArray[np.int64]
    side: int
    hops: NDArray[np.int64]
    #: By root and target: who lies on the way, both ends included.
    path: NDArray[np.bool_]
    parent: NDArray[np.int64]

    @classmethod
    def drawn(cls, motes: int, rng: np.random.Generator, connectivity: float = 9) -> Network:
        """Uniform over a square whose size makes so many neighbours; drawn anew until all are connected."""
        side = int(RANGE_CM * np.sqrt(np.pi * motes / connectivity))
        while True:
            found = cls.of(rng.integers(0, side, (motes, 2)), side, RANGE_CM)
            if found is not None:
                return found

    @classmethod
    def of(cls, places: NDArray[np.int64], side: int, reach: float) -> Network | None:
        """Motes that hear each other up to so many cm; None where they are not connected."""
        apart = np.hypot(*(places[:, None] - places[None]).astype(float).transpose(2, 0, 1))
        hops, before = shortest_path(
            (apart <= reach) & (apart > 0), unweighted=True, return_predecessors=True
        )
        if np.isinf(hops).any():
            return None
        count = len(places)
        path = np.zeros((count, count, count), bool)
        for root in range(count):
            for target in np.argsort(hops[root]):
                if target != root:
                    path[root, target] = path[root, before[root, target]]
                path[root, target, target] = True
        return cls(places, side, hops.astype(int), path, before.astype(int))

    def __len__(self) -> int:
        return len(self.places)

    @property
    def hop_cm(self) -> int:
        """Distance that a transmission covers, on average over all pairs that are not neighbours."""
        apart = np.hypot(*(self.places[:, None] - self.places[None]).astype(float).transpose(2, 0, 1))
        far = self.hops > 1
        return int((apart[far] / self.hops[far]).mean()) if far.any() else RANGE_CM

    def nearest(self, x: float, y: float) -> int:
        """The mote next to a place."""
        return int(np.argmin(np.hypot(*(self.places - (x, y)).T)))


@dataclass
class Meter:
    """Bytes that each mote has sent and received."""

    network: Network
    sent: Floats = field(init=False)
    received: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.sent, self.received = np.zeros(len(self.network)), np.zeros(len(self.network))

    @property
    def total(self) -> float:
        """Bytes sent, each as often as it was."""
        return float(self.sent.sum())

    @property
    def hottest(self) -> float:
        """Bytes sent and received by the most loaded mote."""
        return float((self.sent + self.received).max())

    def clear(self) -> None:
        """Begin anew."""
        self.sent[:] = self.received[:] = 0

    def unicast(self, amounts: Floats, to: int) -> None:
        """So many bytes of each mote go to one."""
        passed = amounts @ self.network.path[to]
        self.received += passed - amounts
        passed[to] = 0
        self.sent += passed

    def one(self, source: int, to: int, amount: float) -> None:
        """A message of one mote."""
        amounts = np.zeros(len(self.network))
        amounts[source] = amount
        self.unicast(amounts, to)

    def multicast(self, source: int, targets: Iterable[int], amount: float) -> None:
        """The same bytes go from one mote to many, along a tree: who passes them on sends once, for all behind it to hear."""
        reached = self._tree(source, targets)
        children = np.flatnonzero(reached & (np.arange(len(reached)) != source))
        self.sent[np.unique(self.network.parent[source, children])] += amount
        self.received[children] += amount

    def gather(self, to: int, sources: Iterable[int], amount: float) -> None:
        """Partial states go from many to one, along the same tree: each mote of it sends what it and those behind it have."""
        reached = self._tree(to, sources)
        children = np.flatnonzero(reached & (np.arange(len(reached)) != to))
        self.sent[children] += amount
        np.add.at(self.received, self.network.parent[to, children], amount)

    def _tree(self, root: int, ends: Iterable[int]) -> NDArray[np.bool_]:
        return np.asarray(self.network.path[root, list(ends)].any(axis=0))

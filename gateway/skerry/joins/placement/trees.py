"""The tree by which rows go to the root, as parents of motes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

#: A sender and a receiver.
Link = tuple[int, int]
Path = tuple[int, ...]


def links_of(path: Path) -> tuple[Link, ...]:
    """Its hops."""
    return tuple(pairwise(path))


@dataclass(frozen=True)
class Tree:
    """Parents of all motes but the root."""

    root: int
    parents: Mapping[int, int]
    _up: dict[int, Path | None] = field(default_factory=dict, compare=False, repr=False)

    def up(self, mote: int) -> Path | None:
        """The way to the root, both ends included; None: there is none, since a parent is not known or motes went round in a circle."""
        if mote not in self._up:
            path = [mote]
            while path[-1] != self.root:
                above = self.parents.get(path[-1])
                if above is None or above in path:
                    self._up[mote] = None
                    return None
                path.append(above)
            self._up[mote] = tuple(path)
        return self._up[mote]

    def way(self, mote: int) -> Path:
        """The same of a mote that has one. Raises KeyError."""
        path = self.up(mote)
        if path is None:
            raise KeyError(f"mote {mote} has no way to the root {self.root}")
        return path

    def hops(self, mote: int) -> int:
        """To the root."""
        return len(self.way(mote)) - 1

    def ancestor(self, one: int, other: int) -> int:
        """The lowest mote that is above both, or one of them."""
        above = set(self.way(one))
        return next(mote for mote in self.way(other) if mote in above)

    def between(self, one: int, other: int) -> Path:
        """The way up from one to the ancestor and down to the other."""
        meeting = self.ancestor(one, other)
        first, second = self.way(one), self.way(other)
        return first[: first.index(meeting) + 1] + second[: second.index(meeting)][::-1]

    def links(self, motes: Iterable[int]) -> tuple[Link, ...]:
        """All links on these motes' ways to the root, each once."""
        return tuple(dict.fromkeys(link for mote in motes for link in links_of(self.way(mote))))

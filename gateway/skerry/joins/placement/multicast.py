"""A producer's ways to its join motes as one tree (Mihaylov et al. 2010, appendix E): links that ways share are taken once, and motes where
it branches know its parts, so that a row says only whose it is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from skerry.joins.placement.trees import Link, Path, links_of


def links_to(ways: Iterable[Path]) -> tuple[Link, ...]:
    """All links of ways that begin at one mote, each once."""
    return tuple(dict.fromkeys(link for way in ways for link in links_of(way)))


def straightened(ways: Iterable[Path]) -> dict[int, Path]:
    """By its end, each way along what others of them have already: no mote is reached by two ways, so that all of them are a tree.
    Short ways come first."""
    reached: dict[int, Path] = {}
    found: dict[int, Path] = {}
    for way in sorted(ways, key=lambda way: (len(way), way)):
        last = max((place for place, mote in enumerate(way) if mote in reached), default=None)
        path = way if last is None else reached[way[last]] + way[last + 1 :]
        for end in range(len(path)):
            reached.setdefault(path[end], path[: end + 1])
        found[way[-1]] = reached[way[-1]]
    return found


def branches(ways: Iterable[Path]) -> dict[int, tuple[int, ...]]:
    """Motes that pass a row on to several, which keep state of it, and to whom."""
    following: dict[int, dict[int, None]] = defaultdict(dict)
    for sender, receiver in links_to(ways):
        following[sender][receiver] = None
    return {mote: tuple(motes) for mote, motes in following.items() if len(motes) > 1}

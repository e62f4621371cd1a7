"""Searches of motes for motes: what one of them asks the network, whom it has found, and what that took."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Protocol

from skerry.catalog.catalog import Mote
from skerry.sql.errors import QueryError
from skerry_protocol.attributes import BY_NAME, STATIC_FIRST
from skerry_protocol.limits import BROADCAST, NO_NODE, SEARCH_TREES
from skerry_protocol.searches import SearchCommand

#: Searches whose outcome is remembered.
REMEMBERED = 100
#: Of summary.h: intervals suit ranges of values, Bloom filters single ones.
_INTERVAL, _BLOOM = 1, 3
_DOWN = _HAS = 0x80
#: Between a number without a sign and what motes compare.
_ABOVE = 0x8000
#: Control windows in which new trees grow: some, and for each hop.
_WINDOWS, _WINDOWS_A_HOP = 8, 3


@dataclass
class Searched:
    """A search of ``mote`` for motes whose attribute is ``low`` to ``high``. ``roots``: of the trees; ``wait``: control windows until it
    begins. ``found``: hops of the answer by mote; ``frames``: that passed the search on; ``asked``: motes that it came to."""

    token: int
    mote: int
    attribute: int
    low: int
    high: int
    roots: Sequence[int]
    wait: int = 0
    #: In the network.
    motes: int = 0
    found: dict[int, int] = field(default_factory=dict)
    #: By mote and tree: frames with which it passed the search on, and hops from who searches.
    passed: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    #: Motes that said that they have it.
    having: set[int] = field(default_factory=set)

    @property
    def key(self) -> tuple[int, int, tuple[int, ...]]:
        """What motes keep trees and summaries for."""
        return self.attribute, kind(self), tuple(self.roots)

    @property
    def frames(self) -> int:
        """That passed the search on."""
        return sum(frames for frames, _ in self.passed.values())

    @property
    def complete(self) -> bool:
        """Whether all whom it was passed on to have told what became of it, and all that have the value have answered."""
        begun = {tree for mote, tree in self.passed if mote == self.mote}
        return (
            len(begun) == SEARCH_TREES
            and len(self.passed) >= SEARCH_TREES + self.frames
            and self.having <= set(self.found)
        )

    def hear(self, body: Any) -> None:
        """A FOUND record with its token."""
        if body.mote != NO_NODE:
            self.found.setdefault(body.mote, body.hops)
            return
        self.passed[body.node, body.tree & ~_HAS] = body.frames, body.hops
        if body.tree & _HAS:
            self.having.add(body.node)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "token": self.token,
            "mote": self.mote,
            "low": self.low,
            "high": self.high,
            "roots": list(self.roots),
            "wait": self.wait,
            "found": [{"mote": mote, "hops": hops} for mote, hops in sorted(self.found.items())],
            "motes": self.motes,
            "asked": len({mote for mote, _ in self.passed}),
            "having": len(self.having | set(self.found)),
            "search_frames": self.frames,
            "answer_frames": sum(self.found.values()),
            "complete": self.complete,
        }


class Numbers(Protocol):
    """Of attributes that a mote is told."""

    def number(self, name: str) -> int | None:
        """By name; None: there is none, or a mote is not told it."""


def check(attribute: str, low: int, high: int, mote: int, attributes: Numbers) -> int:
    """The attribute's number. Raises QueryError."""
    name = attribute.lower()
    number = BY_NAME["nodeid"].number if name == "nodeid" else attributes.number(name)
    if number is None:
        raise QueryError(
            f"motes cannot be searched for by '{attribute}'",
            "name nodeid, room, floor, group, or what CREATE ATTRIBUTE has made",
        )
    signed = name == "floor" or number >= STATIC_FIRST
    least, most = (1 - _ABOVE, _ABOVE - 1) if signed else (0, NO_NODE)
    if not least <= low <= high <= most:
        raise QueryError(
            f"{attribute} is never {low} to {high}", f"write a range upwards, of numbers {least} to {most}"
        )
    if not 0 <= mote < BROADCAST - 1:
        raise QueryError(f"{mote} is no mote", f"motes are 0 to {BROADCAST - 2}")
    return number


def check_seeker(mote: int, root: int, known: Iterable[Mote]) -> None:
    """Raises QueryError where the mote that is to search is neither the network's root nor one that has reported: a search that nobody
    begins would never be over."""
    there = sorted({root, *(one.nodeid for one in known)})
    if mote not in there:
        raise QueryError(
            f"mote {mote} is not in the network of root {root}", f"its motes are {_listed(there)}"
        )


def _listed(motes: Sequence[int]) -> str:
    """Ascending numbers, those that follow one another as a range."""
    runs = [
        [number for _, number in run]
        for _, run in groupby(enumerate(motes), key=lambda placed: placed[1] - placed[0])
    ]
    return ", ".join(", ".join(map(str, run)) if len(run) < 3 else f"{run[0]} to {run[-1]}" for run in runs)


def kind(searched: Searched) -> int:
    """Of the summaries."""
    return _BLOOM if searched.low == searched.high else _INTERVAL


def arguments(searched: Searched) -> bytes:
    """Those of a SEARCH."""
    number = searched.attribute
    signed = number == BY_NAME["floor"].number or number >= STATIC_FIRST
    less = 0 if signed else _ABOVE
    return bytes(
        SearchCommand.build(
            {
                "attribute": number, "kind": kind(searched), "seeker": searched.mote,
                "low": searched.low - less, "high": searched.high - less,
                "wait": searched.wait, "roots": list(searched.roots),
            }
        )
    )  # fmt: skip


def _ancestors(mote: int, motes: Mapping[int, Mote]) -> list[int]:
    """The mote, and those above it, up to the root."""
    above = [mote]
    while (known := motes.get(above[-1])) is not None:
        if known.parent is None or known.parent not in motes or known.parent in above:
            break
        above.append(known.parent)
    return above


def _apart(one: int, other: int, motes: Mapping[int, Mote]) -> int:
    """Hops by the tree, the only links that the gateway knows."""
    above, of_other = _ancestors(one, motes), _ancestors(other, motes)
    shared = next((mote for mote in above if mote in of_other), None)
    if shared is None:
        return len(above) + len(of_other)
    return above.index(shared) + of_other.index(shared)


def roots_of(root: int, motes: Iterable[Mote]) -> list[int]:
    """Roots of trees: the network's, and each next one as far from those before as possible."""
    known = {mote.nodeid: mote for mote in motes}
    roots = [root]
    while len(roots) < SEARCH_TREES:
        apart = {
            mote: min(_apart(mote, other, known) for other in roots) for mote in known if mote not in roots
        }
        roots.append(max(sorted(apart), key=lambda mote: apart[mote]) if apart else root)
    return roots


class Searches:
    """The latest ones by token. Not locked: its owner calls it under his lock."""

    def __init__(self) -> None:
        self._by_token: OrderedDict[int, Searched] = OrderedDict()

    def wait(self, searched: Searched, levels: int) -> int:
        """Control windows that a search has to wait so that there are trees and summaries: as the last one left them, or new."""
        last = next(reversed(self._by_token.values()), None)
        if last is not None and last.key == searched.key and last.passed:
            return 1
        return _WINDOWS + _WINDOWS_A_HOP * levels

    def add(self, searched: Searched) -> None:
        """One that is sent now."""
        self._by_token.pop(searched.token, None)
        self._by_token[searched.token] = searched
        if len(self._by_token) > REMEMBERED:
            self._by_token.popitem(last=False)

    def find(self, token: int) -> Searched | None:
        """One of them."""
        return self._by_token.get(token)

    def hear(self, body: Any) -> None:
        """A FOUND record. Those of searches that nobody remembers change nothing."""
        searched = self._by_token.get(body.token)
        if searched is not None:
            searched.hear(body)

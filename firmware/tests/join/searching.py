"""A network of motes that search by content, each with the firmware's own C (``firmware/join``); links lose nothing."""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from firmware.tests.query.host import FIRMWARE, TRAPS, build

SOURCES = tuple(FIRMWARE / "join" / f"{name}.c" for name in ("summary", "far_roots", "search"))
INTERVAL, BOX, BLOOM, HISTOGRAM = range(1, 5)
PASSED, FOUND, LONG, CIRCLE, REFUSED = range(5)
NOBODY = ALL_CHILDREN = 0xFFFF
PATH, BYTES = 20, 8

_U8, _U16, _I16 = ctypes.c_uint8, ctypes.c_uint16, ctypes.c_int16


class Shape(ctypes.Structure):
    """struct summary_shape."""

    _fields_ = (("low", _I16), ("width", _U8), ("kind", _U8))


class Summary(ctypes.Structure):
    """struct summary."""

    _fields_ = (("bytes", _U8 * BYTES),)


class Value(ctypes.Structure):
    """struct summary_value."""

    _fields_ = (("x", _I16), ("y", _I16))


class Ask(ctypes.Structure):
    """struct summary_ask."""

    _fields_ = (("low", Value), ("high", Value))


class Place(ctypes.Structure):
    """struct far_place."""

    _fields_ = (("root", _U16), ("parent", _U16), ("hops", _U8))


class Candidate(ctypes.Structure):
    """struct far_candidate."""

    _fields_ = (("mote", _U16), ("apart", _U8))


class Search(ctypes.Structure):
    """struct search."""

    _fields_ = (
        ("ask", Ask),
        ("path", _U16 * PATH),
        ("except_", _U16),
        ("length", _U8),
        ("tree", _U8),
        ("down", ctypes.c_bool),
    )


class Child(ctypes.Structure):
    """struct search_child."""

    _fields_ = (("mote", _U16), ("tree", _U8), ("known", ctypes.c_bool), ("summary", Summary))


class SearchMote(ctypes.Structure):
    """struct search_mote."""

    _fields_ = (
        ("mote", _U16), ("trees", _U8), ("more", _U8), ("has", ctypes.c_bool), ("value", Value), ("shape", Shape),
        ("in_trees", ctypes.POINTER(Place)), ("children", ctypes.POINTER(Child)), ("neighbours", ctypes.POINTER(_U16)),
        ("children_count", _U8), ("neighbours_count", _U8),
    )  # fmt: skip


_NEXT = ctypes.CFUNCTYPE(None, _U16, ctypes.POINTER(Search), ctypes.c_void_p)


def _loaded(name: str, flags: Sequence[str]) -> Any:
    library = ctypes.CDLL(str(build(name, SOURCES, flags)))
    for function in (
        "summary_may", "summary_asked", "summary_shape_check", "summary_ask_check", "far_hear",
    ):  # fmt: skip
        getattr(library, function).restype = ctypes.c_bool
    library.summary_count.restype = _U8
    library.search_hear.argtypes = (
        ctypes.POINTER(SearchMote),
        _U16,
        ctypes.POINTER(Search),
        _NEXT,
        ctypes.c_void_p,
    )
    library.search_start.argtypes = (ctypes.POINTER(SearchMote), ctypes.POINTER(Ask), _NEXT, ctypes.c_void_p)
    return library


@cache
def checked() -> Any:
    """The code as tests run it: undefined behaviour ends the process."""
    return _loaded("libskerry_search_checked.so", TRAPS)


@cache
def optimised() -> Any:
    """The code as benchmarks run it."""
    return _loaded("libskerry_search.so", ("-O2", "-fPIC", "-shared"))


@dataclass
class Outcome:
    """What a search came to. ``paths``: by mote that has what is asked for, a path for each tree that it was found in; ``sent``: frames by
    mote; ``path_motes``: motes in all paths sent; ``visited``: by tree the motes that it came to, as often as it did; ``hops``: of the
    longest chain of frames."""

    paths: dict[int, list[tuple[int, ...]]] = field(default_factory=dict)
    sent: dict[int, int] = field(default_factory=dict)
    path_motes: int = 0
    visited: list[tuple[int, int]] = field(default_factory=list)
    hops: int = 0
    refused: int = 0
    longer: int = 0
    turned: int = 0


class Network:
    """Motes, trees and summaries once nobody has anything new to tell. ``values``: of one attribute, x and y; who has none is not in it.
    ``room``: children in one tree that a mote keeps summaries of."""

    def __init__(
        self,
        code: Any,
        neighbours: Mapping[int, Set[int]],
        root: int,
        trees: int,
        shape: Shape,
        values: Mapping[int, tuple[int, int]],
        room: int = 255,
    ) -> None:
        self._code, self.neighbours, self.trees = code, neighbours, trees
        self.places = {mote: (Place * trees)() for mote in neighbours}
        #: Frames that each tree took to form, then those that summaries took.
        self.formed = [self._form(0, root)]
        self.roots = [root]
        while len(self.roots) < trees:
            self.roots.append(self._farthest(len(self.roots)))
            self.formed.append(self._form(len(self.roots) - 1, self.roots[-1]))
        self._motes: dict[int, SearchMote] = {}
        self._kept: list[Any] = []
        for mote in neighbours:
            self._motes[mote] = self._mote(mote, shape, values.get(mote), room)
        self.told = sum(self._tell(tree) for tree in range(trees))

    def _form(self, tree: int, root: int) -> int:
        for mote, places in self.places.items():
            self._code.far_begin(ctypes.byref(places[tree]))
            if mote == root:
                self._code.far_become_root(ctypes.byref(places[tree]), _U16(root))
        waiting, sent = deque([root]), 0
        while waiting:
            teller = waiting.popleft()
            own = self.places[teller][tree]
            sent += 1
            for mote in sorted(self.neighbours[teller]):
                if self._code.far_hear(
                    ctypes.byref(self.places[mote][tree]), _U16(mote), _U16(teller), _U16(own.root), _U8(own.hops)
                ) and mote not in waiting:  # fmt: skip
                    waiting.append(mote)
        return sent

    def _farthest(self, trees: int) -> int:
        best = Candidate(NOBODY, 0)
        for mote, places in self.places.items():
            own = Candidate()
            self._code.far_own(ctypes.byref(own), _U16(mote), places, _U8(trees))
            self._code.far_merge(ctypes.byref(best), ctypes.byref(own))
        return int(best.mote)

    def children(self, mote: int, tree: int) -> list[int]:
        """By number."""
        return sorted(child for child in self.neighbours[mote] if self.places[child][tree].parent == mote)

    def _mote(self, mote: int, shape: Shape, value: tuple[int, int] | None, room: int) -> SearchMote:
        more, children = 0, []
        for tree in range(self.trees):
            own = self.children(mote, tree)
            more |= (len(own) > room) << tree
            children += [Child(child, tree, False) for child in own[:room]]
        kept = (
            (Child * len(children))(*children),
            (_U16 * len(self.neighbours[mote]))(*sorted(self.neighbours[mote])),
        )
        self._kept.append(kept)
        return SearchMote(
            mote, self.trees, more, value is not None, Value(*(value or (0, 0))), shape,
            self.places[mote], *kept, len(children), len(self.neighbours[mote]),
        )  # fmt: skip

    def _tell(self, tree: int) -> int:
        """From the leaves up; each mote tells its parent once."""
        told = 0
        for mote in sorted(self.places, key=lambda one: -self.places[one][tree].hops):
            parent = self.places[mote][tree].parent
            if parent == NOBODY:
                continue
            summary = Summary()
            self._code.search_tell(ctypes.byref(self._motes[mote]), _U8(tree), ctypes.byref(summary))
            told += 1
            above = self._motes[parent]
            for place in range(above.children_count):
                child = above.children[place]
                if (child.mote, child.tree) == (mote, tree):
                    child.summary, child.known = summary, True
        return told

    def search(self, source: int, low: tuple[int, int], high: tuple[int, int]) -> Outcome:
        """All that a mote's search for values from ``low`` to ``high`` comes to."""
        outcome = Outcome()
        waiting: deque[tuple[int, int, Search, int]] = deque()
        at, hops = source, 0

        def send(to: int, search: Any, _: int | None) -> None:
            copy = Search.from_buffer_copy(search.contents)
            outcome.sent[at] = outcome.sent.get(at, 0) + 1
            outcome.path_motes += copy.length
            receivers = self.children(at, copy.tree) if to == ALL_CHILDREN else [to]
            waiting.extend((at, receiver, copy, hops + 1) for receiver in receivers)

        told = _NEXT(send)
        ask = Ask(Value(*low), Value(*high))
        self._code.search_start(ctypes.byref(self._motes[source]), ctypes.byref(ask), told, None)
        while waiting:
            sender, at, arrived, hops = waiting.popleft()
            search = Search.from_buffer_copy(arrived)
            came_down = search.down
            end = self._code.search_hear(
                ctypes.byref(self._motes[at]), sender, ctypes.byref(search), told, None
            )
            outcome.hops = max(outcome.hops, hops)
            outcome.refused += end == REFUSED
            outcome.longer += end == LONG
            if end == CIRCLE:
                continue
            outcome.visited.append((search.tree, at))
            outcome.turned += came_down and any(
                not other.down and other.tree == search.tree and by == at for by, _, other, _ in waiting
            )
            if end == FOUND:
                outcome.paths.setdefault(at, []).append(tuple(search.path[: search.length]))
        return outcome

    def hear(self, mote: int, sender: int, search: Search) -> int:
        """A forged one, whose further frames nobody takes."""
        nobody = _NEXT(lambda *_: None)
        return int(
            self._code.search_hear(
                ctypes.byref(self._motes[mote]), sender, ctypes.byref(search), nobody, None
            )
        )


def neighbours_of(links: Iterable[tuple[int, int]], motes: Iterable[int]) -> dict[int, set[int]]:
    """By mote, of links that go both ways."""
    found: dict[int, set[int]] = {mote: set() for mote in motes}
    for a, b in links:
        found[a].add(b)
        found[b].add(a)
    return found

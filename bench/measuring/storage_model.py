"""What an index costs in a network that stores its own readings, by a model: bytes on shortest ways, planned by the motes' own C.

A query goes from its issuer to the middle of what it asks of the first part, from there to the zones, and so on to the next part, with
the tuples that match; in the last part answers are gathered in the middle, and one message goes back. No frame is lost, listening costs
nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bench.measuring.storage_load import ATTRIBUTES, Points, Query
from bench.measuring.storage_network import HEADER, Meter, Network, framed
from skerry.index import placement
from skerry.index.code import (
    Box,
    Field,
    IndexCode,
    Load,
    Plan,
    Stop,
    motes_code,
)
from skerry.index.placement import PlacedPart

#: Bytes of a tuple's name (mote, sequence number), of a value, of a partial state, of a query with its ranges, of a request.
NAME, VALUE, STATE, QUERY, REQUEST = 4, 2, 6, 20, 8
Mask = NDArray[np.bool_]
Order = tuple[int, ...]
#: Attributes of each part.
SINGLE: tuple[tuple[int, ...], ...] = (tuple(range(ATTRIBUTES)),)
DECOMPOSED: tuple[tuple[int, ...], ...] = tuple((a,) for a in range(ATTRIBUTES))
JOINT: tuple[tuple[int, ...], ...] = ((0, 1), (2, 3))


@dataclass(frozen=True)
class Placed(PlacedPart):
    """A part of the index where it is stored."""

    #: Who stores each tuple.
    homes: NDArray[np.int64]


@dataclass
class Visit:
    """What a query asks of a part."""

    placed: Placed
    stop: Stop
    middle: int
    asked: list[int]
    matching: Mask


@dataclass
class Caches:
    """By part that has sent, part that it was sent to and attribute: the tuples whose value has gone. And, where room is limited, when each
    value that came was used last."""

    tuples: int
    #: Entries that a mote has room for; None: all.
    room: int | None = None
    sent: dict[tuple[int, int, int], Mask] = field(default_factory=dict)
    #: By part that keeps; 0: is not there.
    used: dict[int, NDArray[np.int64]] = field(default_factory=dict)
    evicted: dict[int, NDArray[np.bool_]] = field(default_factory=dict)
    now: int = 0
    #: The most entries that a mote has had.
    fullest: int = 0

    def gone(self, here: int, there: int, attribute: int) -> Mask:
        """By tuple."""
        return self.sent.setdefault((here, there, attribute), np.zeros(self.tuples, bool))

    def come(self, there: int, attribute: int, which: Mask, attributes: int) -> None:
        """These values are used now, or have come just now."""
        if there not in self.used:
            self.used[there] = np.zeros((attributes, self.tuples), int)
            self.evicted[there] = np.zeros((attributes, self.tuples), bool)
        self.used[there][attribute, which] = self.now + 1
        self.evicted[there][attribute, which] = False


class Index:
    """Tuples in the parts of an index."""

    def __init__(
        self, network: Network, points: Points, parts: Sequence[Sequence[int]], weights: Sequence[int] | None = None,
        code: IndexCode | None = None, fan_out: bool = True,
    ) -> None:  # fmt: skip
        self.network, self.points = network, points
        #: Whether tuples of a join travel on from the middle to the zones, as they must; the paper's equation 1 ends in the middle.
        self.fan_out = fan_out
        self.code = code or motes_code()
        self.hop = min(65535, network.hop_cm)
        whole = Field(0, 0, network.side, network.side)
        places = [(int(x), int(y)) for x, y in network.places]
        found = placement.place(self.code, whole, places, parts, weights)
        assert found is not None, "fewer places than parts"
        self.parts = [self._stored(part) for part in found]

    def _stored(self, part: PlacedPart) -> Placed:
        codes = np.array([owned.code for owned in part.owned])
        stored = np.array([self.code.code([int(p) for p in row]) for row in self.points[:, part.attributes]])
        nearest = np.argmin(stored[:, None] ^ codes[None], axis=1)
        return Placed(part.attributes, part.part, part.motes, part.owned, np.array(part.motes)[nearest])

    def insert(self, meter: Meter, rng: np.random.Generator) -> None:
        """Every tuple goes from the mote that made it to its owners, in a message for each part."""
        makers = rng.integers(0, len(self.network), len(self.points))
        for placed in self.parts:
            amount = HEADER + NAME + VALUE * len(placed.attributes)
            for home in set(placed.homes.tolist()):
                made = np.bincount(makers[placed.homes == home], minlength=len(self.network))
                meter.unicast(made * float(amount), home)

    def visits(self, query: Query, *, cached: bool) -> list[Visit]:
        """The parts that take part, and what they are asked."""
        box = self.code.box(self.points.shape[1], query.limits)
        needed = set(query.limits) | query.measured
        return [
            self._visit(placed, box, query, cached)
            for placed in self.parts
            if needed & set(placed.attributes)
        ]

    def _visit(self, placed: Placed, box: Box, query: Query, cached: bool) -> Visit:
        own = box.of(placed.attributes)
        stop = self.code.stop(placed.part, placed.bits, own, self.hop, everywhere=cached)
        stop.spread *= self.fan_out
        asked = placed.answering(self.code, box)
        matching = np.ones(len(self.points), bool)
        for attribute in set(placed.attributes) & set(query.limits):
            low, high = query.limits[attribute]
            matching &= (self.points[:, attribute] >= low) & (self.points[:, attribute] <= high)
        return Visit(placed, stop, self.network.nearest(stop.x, stop.y), asked, matching)

    def plan(self, query: Query, visits: Sequence[Visit], *, states: bool, cached: bool) -> Plan:
        """Orders of the visits. With caches all values travel, as others may ask for them."""
        measured = (1 << self.points.shape[1]) - 1 if cached else sum(1 << a for a in query.measured)
        load = Load(self.hop, NAME, VALUE, measured, (HEADER + STATE * len(query.measured)) * states)
        return self.code.plan([visit.stop for visit in visits], load)

    def known(self, plan: Plan, visits: Sequence[Visit]) -> Plan:
        """With the tuples that really match."""
        counts = []
        for chosen in range(1 << len(visits)):
            matching = np.ones(len(self.points), bool)
            for place, visit in enumerate(visits):
                if chosen >> place & 1:
                    matching &= visit.matching
            counts.append(int(matching.sum()))
        return plan.know(counts)

    def run(
        self, query: Query, visits: Sequence[Visit], order: Order, meter: Meter, caches: Caches | None, *, states: bool
    ) -> int:  # fmt: skip
        """Answer a query; how many tuples it is about. ``states``: partial states travel at the end, else matching tuples."""
        first, last = visits[order[0]], visits[order[-1]]
        asking = float(HEADER + QUERY)
        meter.one(query.issuer, first.middle, asking)
        meter.multicast(first.middle, first.asked, asking)
        matching, carried = first.matching, list(first.placed.attributes)
        for here, there in itertools.pairwise(visits[place] for place in order):
            meter.one(here.middle, there.middle, asking)
            meter.multicast(there.middle, there.asked, asking)
            self._move(query, here, there, matching, carried, meter, caches)
            matching = matching & there.matching
            carried += there.placed.attributes
            if caches is not None and caches.room is not None:
                self._keep(there, matching, carried, caches)
        if states:
            meter.gather(last.middle, last.asked, float(HEADER + STATE * len(query.measured)))
        else:
            left = np.bincount(last.placed.homes[matching], minlength=len(self.network))
            meter.unicast(framed(left * float(VALUE * len(query.measured))), last.middle)
        meter.one(last.middle, query.issuer, float(HEADER + STATE * len(query.measured)))
        return int(matching.sum())

    def _move(
        self, query: Query, here: Visit, there: Visit, matching: Mask, carried: list[int], meter: Meter,
        caches: Caches | None,
    ) -> None:  # fmt: skip
        """Tuples that match go to the next part, but for what went before: to the zones that are asked, or, for caches, to all."""
        asked = there.asked
        if caches is None:
            sizes = matching * float(NAME + VALUE * len(set(carried) & query.measured))
        else:
            asked, target, missing = there.placed.motes, there.placed.bits, np.zeros(len(matching))
            if target in caches.evicted:
                self._request(here, there, caches.evicted[target][carried].any(axis=0) & matching, meter)
            for attribute in carried:
                gone = caches.gone(here.placed.bits, target, attribute)
                unsent = matching & ~gone
                missing += unsent
                gone |= matching
                if caches.room is not None:
                    caches.come(target, attribute, unsent, self.points.shape[1])
            sizes = (missing > 0) * float(NAME) + missing * VALUE
        amounts = np.bincount(here.placed.homes, weights=sizes, minlength=len(self.network))
        if amounts.any():
            meter.unicast(framed(amounts), there.middle)
            if self.fan_out:
                meter.multicast(there.middle, asked, float(framed(amounts.sum())))

    def _request(self, here: Visit, there: Visit, evicted: Mask, meter: Meter) -> None:
        """Motes that had to drop something ask for it again."""
        asking = np.bincount(there.placed.homes[evicted & there.matching], minlength=len(self.network)) > 0
        meter.unicast(asking * float(HEADER + REQUEST), here.middle)

    def _keep(self, there: Visit, matching: Mask, carried: list[int], caches: Caches) -> None:
        """Values of tuples that are stored here are kept; the least recently used go where there is no room."""
        target = there.placed.bits
        for attribute in set(carried) - set(there.placed.attributes):
            caches.come(target, attribute, matching, self.points.shape[1])
        caches.now += 1
        used, evicted = caches.used[target], caches.evicted[target]
        for mote in there.placed.motes:
            mine = np.flatnonzero(there.placed.homes == mote)
            stamps = used[:, mine]
            count = int((stamps > 0).sum())
            caches.fullest = max(caches.fullest, count)
            assert caches.room is not None
            if count <= caches.room:
                continue
            # The oldest of those that are there.
            flat = np.argsort(np.where(stamps > 0, stamps, np.iinfo(int).max), axis=None, kind="stable")
            gone = flat[: count - caches.room]
            attributes, tuples = gone // len(mine), mine[gone % len(mine)]
            used[attributes, tuples] = 0
            evicted[attributes, tuples] = True
            for (_, to, attribute), sent in caches.sent.items():
                if to == target:
                    sent[tuples[attributes == attribute]] = False

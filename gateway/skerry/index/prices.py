"""What questions of an index cost, in which order its parts are best gone through, and how its tuples are best stored.

By equation 1 of DIM 2004 with the fan-out, as the motes reckon it, from a histogram; and the question's own frames.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from skerry.index.code import Histogram, IndexCode, Load, Stop
from skerry.index.declaration import Declaration, DeclarationError, Groups, Question
from skerry.index.placement import PlacedPart, Position, field_of, place

#: Equation 1 counts in these parts of a transmission: ORDER_HOP.
_HOP = 16
#: A way to who stores lapses where it begins after so many s without use (WAY_IDLE less 1, in rounds of 2 to the power WAY_EVERY_LEAST),
#: and a mote keeps so many (PLACES; firmware/net/transport/transport_conf.h).
WAY_KEPT_S, WAYS_KEPT = 60, 2


def opened_anew(period_s: float, parts: int, owners: int) -> float:
    """Share of a mote's tuples for which the way to one of a part's owners is opened anew, where tuples fall evenly on these: all, where
    ways lapse between two tuples, or an index has more parts than a mote keeps ways; else those for another owner than the one before."""
    return 1.0 if period_s >= WAY_KEPT_S or parts > WAYS_KEPT else 1 - 1 / owners


@dataclass(frozen=True, slots=True)
class Format:
    """Bytes of a frame around what it carries, and how much that may be; of a question with its ranges, a tuple's name, a value, a partial
    state; and what opens a way over one hop."""

    header: int
    payload: int
    query: int
    name: int
    value: int
    state: int
    opening: float = 0


@dataclass(frozen=True, slots=True)
class Price:
    """Of a question. ``order``: the parts that it goes through, by their number; ``motes``: how many are asked; ``bytes`` and ``frames``:
    that are sent, by all motes that pass them on."""

    order: tuple[int, ...]
    motes: int
    bytes: float
    frames: float


@dataclass(frozen=True)
class Prices:
    """Of an index where it lies. ``hop``: cm that a transmission covers; ``cached``: tuples that move go to all of the next part, once.
    ``fan_out``: whether they go on from the middle of what is asked, as they must; the paper's equation 1 ends there."""

    code: IndexCode
    parts: Sequence[PlacedPart]
    histogram: Histogram
    format: Format
    hop: int
    cached: bool = False
    fan_out: bool = True

    def of(self, question: Question, *, states: bool, warm: bool = False) -> Price:
        """Of one. ``states``: partial states travel at the end, in place of matching tuples; ``warm``: what joins send has been sent."""
        needed = set(question.limits) | question.measured
        concerned = [number for number, part in enumerate(self.parts) if needed & set(part.attributes)]
        box = question.box(self.code, self.histogram.attributes)
        stops = self._stops(concerned, question, everywhere=self.cached)
        plan = self.code.plan(stops, self._load(question, states))
        cost, order = plan.estimate(self.histogram, box).best()
        left = plan.counts.matching[(1 << len(stops)) - 1]
        # What is sent in the last part, and nothing for joins.
        ending = self.code.plan(stops, plan.load).know([0] * ((1 << len(stops)) - 1) + [left]).cost(order)
        if warm:
            cost = ending
        asked = self._stops(concerned, question, everywhere=False)
        ways = (
            math.hypot(asked[a].x - asked[b].x, asked[a].y - asked[b].y) for a, b in itertools.pairwise(order)
        )
        asking = sum(ways) / self.hop + sum(stop.spread for stop in asked) / _HOP
        own = self.format
        headers = 1 if states else 1 + own.header / own.payload
        last = stops[order[-1]].owners - 1 if states else ending / _HOP / own.payload
        return Price(
            tuple(concerned[place] for place in order),
            sum(len(self.parts[number].answering(self.code, box)) for number in concerned),
            cost / _HOP * headers + asking * (own.header + own.query),
            asking + last + (cost - ending) / _HOP / own.payload,
        )

    def insertion(self, positions: Sequence[Position], period_s: float = 0.0) -> float:
        """Bytes that are sent to store a tuple of a mote somewhere in the field, alone in its frames, and to open ways for it, where each
        mote has one in ``period_s``; 0: ways are open."""
        own = self.format
        return sum(
            (
                own.header
                + own.name
                + own.value * len(part.attributes)
                + own.opening * opened_anew(period_s, len(self.parts), len(part.motes)) * (period_s > 0)
            )
            * fmean(
                math.ceil(math.dist(maker, positions[owner]) / self.hop)
                for maker in positions
                for owner in part.motes
            )
            for part in self.parts
        )

    def _load(self, question: Question, states: bool) -> Load:
        # For caches all values travel, as others may ask for them.
        every = (1 << self.histogram.attributes) - 1
        measured = every if self.cached else sum(1 << attribute for attribute in question.measured)
        state = (self.format.header + self.format.state * len(question.measured)) * states
        return Load(self.hop, self.format.name, self.format.value, measured, state)

    def _stops(self, concerned: Sequence[int], question: Question, *, everywhere: bool) -> list[Stop]:
        box = question.box(self.code, self.histogram.attributes)
        found = []
        for part in (self.parts[number] for number in concerned):
            stop = self.code.stop(
                part.part, part.bits, box.of(part.attributes), self.hop, everywhere=everywhere
            )
            stop.spread *= self.fan_out
            found.append(stop)
        return found


@dataclass(frozen=True)
class Workload:
    """What an index is declared to be for: questions of the kind, tuples that are stored between two of them, whether partial states
    answer, whether the same is asked again and again, and s between two tuples of a mote (0: ways to who stores are open)."""

    questions: Sequence[Question]
    inserts: float
    states: bool = True
    again: bool = False
    period_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Organisation:
    """A way to store an index, and the bytes that are sent for an insert, for a question, and for a question with the inserts before it."""

    name: str
    groups: Groups
    insert: float
    question: float
    total: float


def organisations(
    code: IndexCode, declaration: Declaration, positions: Sequence[Position], histogram: Histogram, format: Format,
    hop: int, load: Workload,
) -> list[Organisation]:  # fmt: skip
    """All that the field has motes enough for, the cheapest first. Raises DeclarationError where there are none."""
    found = []
    for name, groups in declaration.organisations.items() if positions else ():
        parts = place(code, field_of(positions), positions, groups)
        if parts is None:
            continue
        prices = Prices(code, parts, histogram, format, hop, cached=len(groups) > 1)
        insert = prices.insertion(positions, load.period_s)
        question = fmean(prices.of(one, states=load.states, warm=load.again).bytes for one in load.questions)
        found.append(Organisation(name, groups, insert, question, insert * load.inserts + question))
    if not found:
        raise DeclarationError("no mote that stores has told its position: an index needs one at least")
    return sorted(found, key=lambda organisation: organisation.total)

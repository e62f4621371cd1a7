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


@dataclass(frozen=True, slots=True)
class Format:
    """Bytes of a frame around what it carries, and how much that may be; of a question with its ranges, a tuple's name, a value, a partial
    state."""

    header: int
    payload: int
    query: int
    name: int
    value: int
    state: int


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

    def insertion(self, positions: Sequence[Position]) -> float:
        """Bytes that are sent to store a tuple of a mote somewhere in the field, alone in its frames."""
        own = self.format
        return sum(
            (own.header + own.name + own.value * len(part.attributes))
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
    answer, and whether the same is asked again and again."""

    questions: Sequence[Question]
    inserts: float
    states: bool = True
    again: bool = False


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
        insert = prices.insertion(positions)
        question = fmean(prices.of(one, states=load.states, warm=load.again).bytes for one in load.questions)
        found.append(Organisation(name, groups, insert, question, insert * load.inserts + question))
    if not found:
        raise DeclarationError("no mote that stores has told its position: an index needs one at least")
    return sorted(found, key=lambda organisation: organisation.total)

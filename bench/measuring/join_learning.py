"""A join of the model that begins by estimates and is placed anew by what is counted, as the gateway does it with motes' joins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bench.measuring.join_meter import Load, Metered
from bench.measuring.join_queries import Asked
from bench.measuring.join_series import flooded, initiation
from skerry.joins.placement.estimates import Rates
from skerry.joins.placement.learning import EPOCHS, Counts, Role, learnt
from skerry.joins.placement.plans import Plan, roles_of
from skerry.joins.placement.prices import Prices
from skerry.service.pair_learning import DOUBLED, UNCHANGED, WORTH, filling

#: The plan of a strategy by such rates.
Planned = Callable[[Rates], Plan]


@dataclass(frozen=True)
class Stretch:
    """A plan that ran from one epoch to another, the latter not included; ``before`` is what motes were told of it."""

    plan: Plan
    begin: int
    end: int
    before: Load


@dataclass
class Learned:
    """What ran when: two plans at once where one took over from the other."""

    metered: Metered
    stretches: list[Stretch]

    @property
    def changes(self) -> int:
        """How often pairs were placed anew."""
        return len(self.stretches) - 1

    def load(self, begin: int, end: int) -> Load:
        """Of these epochs, changes in them included; what the first plan was told is initiation, and apart."""
        load = Load.none(self.metered.motes)
        for at, stretch in enumerate(self.stretches):
            first, last = max(begin, stretch.begin), min(end, stretch.end)
            if first < last:
                load += self.metered.load(stretch.plan, slice(first, last))
            if at and begin <= stretch.begin < end:
                load += stretch.before
        return load

    def twice(self) -> Load:
        """Of it what plans took that another one had taken over from, until its windows were full."""
        load = Load.none(self.metered.motes)
        for one, other in pairwise(self.stretches):
            load += self.metered.load(one.plan, slice(other.begin, one.end))
        return load

    def handed_over(self, both: int) -> Learned:
        """What it would be if motes sent their windows' rows once more, to the hosts that follow, and two plans ran for at most so many
        epochs. Motes do not do so."""
        found = list(self.stretches)
        for at, (one, other) in enumerate(pairwise(self.stretches)):
            found[at] = replace(found[at], end=min(one.end, other.begin + both))
            told = other.before + self.metered.window_rows(other.plan)
            found[at + 1] = replace(other, before=told)
        return Learned(self.metered, found)


def learned(asked: Asked, metered: Metered, planned: Planned, start: Rates, price: Prices) -> Learned:
    """Begins by ``start``. Each epoch it is looked whether enough has been counted; another plan runs beside the one before until its
    windows are full."""
    readings = metered.readings
    roles: list[Role] = [
        (mote, role) for mote, those in roles_of(asked.query.pairs).items() for role in sorted(those)
    ]
    passed = {(mote, role): readings.passes[role][mote].cumsum() for mote, role in roles}
    answers = {pair: metered.answers((pair,)).cumsum() for pair in asked.query.pairs}
    plan, assumed, since, needed = planned(start), start, 0, EPOCHS
    stretches = [Stretch(plan, 0, readings.epochs, initiation(asked, plan))]
    for now in range(1, readings.epochs + 1):
        if now - since < needed:
            continue

        counts = Counts(
            now - since,
            asked.query.pairs,
            {role: _between(sums, since, now) for role, sums in passed.items()},
            {pair: _between(sums, since, now) for pair, sums in answers.items()},
        )
        found = learnt(counts, assumed)
        if not found.off:
            if now - since >= UNCHANGED * needed:
                needed, since = max(EPOCHS, needed // 2), now
            continue
        since, assumed = now, found.rates
        other = planned(assumed)
        if other.cost(assumed, price) > WORTH * plan.cost(assumed, price):
            continue
        shares = (*assumed.s.values(), *assumed.t.values())
        least = min((share for share in shares if share > 0), default=1.0)
        until = min(readings.epochs, now + filling(metered.window, least))
        last = stretches[-1]
        stretches[-1] = Stretch(last.plan, last.begin, until, last.before)
        stretches.append(Stretch(other, now, readings.epochs, flooded(asked)))
        plan, needed = other, min(EPOCHS << DOUBLED, 2 * needed)
    return Learned(metered, [one for one in stretches if one.begin < readings.epochs])


def _between(sums: NDArray[np.int64], begin: int, end: int) -> int:
    return int(sums[end - 1] - (sums[begin - 1] if begin else 0))

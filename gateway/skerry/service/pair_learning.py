"""Where pairs of motes are joined by what is counted while the query runs: begun where it was cheapest by estimate, placed anew where
that was wrong.

Source: Mihaylov et al., Dynamic Join Optimization in Multi-Hop Wireless Sensor Networks (VLDB 2010), section 6.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import comb
from typing import Any

from skerry.ingest.join_tally import JoinTally
from skerry.joins.placement.estimates import Estimates, Rates
from skerry.joins.placement.learning import EPOCHS, Learnt, learnt
from skerry.planner.model.clause import Clause
from skerry.planner.model.pairing import BY_HASH, WAY_OF, Pairing, answered_ms, keeps_up, keys_of
from skerry.planner.model.plans import QueryPlan
from skerry.service.pair_places import Places
from skerry.sql.errors import QueryError
from skerry.sql.row_text import moment_text

log = logging.getLogger(__name__)

#: Another place is to cost so much less than the present one: a change takes a flood, and two queries at once for a while.
WORTH = 0.9
#: Each change doubles the epochs that are counted before the next one, up to so many times; where so many times the epochs have brought
#: none, they are halved again, and counting begins anew.
DOUBLED, UNCHANGED = 3, 4
#: Windows of rows are full but for one time in so many when another query takes over, where that takes so many epochs at most.
NOT_FULL, FILLING_MAXIMUM = 1000, 60
#: Changes that are remembered.
CHANGES = 8

#: Where pairs of a plan are joined best by such rates, what motes are told of it, and what it costs. Raises QueryError.
Weigh = Callable[[QueryPlan, Rates], tuple[Clause, Places, float]]


@dataclass(frozen=True, slots=True)
class Change:
    """From one strategy to another, or to other hosts of the same; ``at``: UTC in s."""

    at: float
    before: str
    after: str
    why: str

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "at": round(self.at, 3),
            "from": self.before.lower(),
            "to": self.after.lower(),
            "why": self.why,
        }


@dataclass
class Learning:
    """Of one query. ``rates``: by which its pairs are placed; ``assumed``: what is compared with what is counted, which may be newer where
    nothing was to be placed anew by it. ``since``: UTC in s, since when it is so."""

    strategy: str
    rates: Rates
    since: float
    assumed: Rates = field(default_factory=Rates)
    needed: int = EPOCHS
    counted: Learnt | None = None
    epochs: int = 0
    changes: list[Change] = field(default_factory=list)

    @classmethod
    def of(cls, pairing: Pairing, now: float) -> Learning:
        """At first."""
        rates = Rates(pairing.estimates)
        return cls(pairing.strategy, rates, now, rates)

    def plan(self, plan: QueryPlan, strategy: str | None = None) -> QueryPlan:
        """With its pairs joined by this strategy, or as they are now."""
        assert plan.pairing is not None
        known = self.rates.usual
        shares = known.s, known.t, known.pair
        return replace(plan, pairing=replace(plan.pairing, strategy=strategy or self.strategy, shares=shares))

    def filled_ms(self, plan: QueryPlan) -> int:
        """How long windows of rows take to fill, by what is known of its motes."""
        assert plan.pairing is not None
        assumed = self.assumed
        shares = (assumed.usual.s, assumed.usual.t, *assumed.s.values(), *assumed.t.values())
        # Who never sends fills no window.
        least = min((share for share in shares if share > 0), default=1.0)
        return filling(plan.pairing.rows, least) * plan.period_ms

    def described(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "since": round(self.since, 3),
            "assumed": _shares(self.assumed.usual),
            "counted": _shares(self.counted.rates.usual) if self.counted is not None else None,
            "epochs": self.epochs,
            "judged_from": self.needed,
            "changes": [change.to_dict() for change in self.changes],
        }


def _shares(of: Estimates) -> dict[str, float]:
    return {name: round(getattr(of, name), 4) for name in ("s", "t", "pair")}


def filling(rows: int, share: float) -> int:
    """Epochs in which a mote has at least so many rows, but for one time in :data:`NOT_FULL`, if such a share of them passes."""
    for epochs in range(rows, FILLING_MAXIMUM):
        fewer = sum(comb(epochs, had) * share**had * (1 - share) ** (epochs - had) for had in range(rows))
        if fewer * NOT_FULL <= 1:
            return epochs
    return FILLING_MAXIMUM if rows else 0


@dataclass(frozen=True)
class Moved:
    """Where pairs are joined from now on."""

    told: Clause
    places: Places


def look(
    learning: Learning, plan: QueryPlan, placed: Places, tally: JoinTally, weigh: Weigh,
    cost: Callable[[QueryPlan, Places, Rates], float], now: float,
) -> Moved | None:  # fmt: skip
    """What is counted of a query that runs, and what comes of it. ``placed``: where its pairs are joined now. None: they stay there."""
    counts = tally.counts()
    learning.epochs = counts.epochs
    if counts.epochs == 0:
        return None
    learning.counted = found = learnt(counts, learning.assumed)
    if counts.epochs < learning.needed:
        return None
    if not found.off:
        if counts.epochs >= UNCHANGED * learning.needed:
            learning.needed = max(EPOCHS, learning.needed // 2)
            tally.clear()
        return None
    rates, off = found.rates, _said(plan.pairing, found)
    tally.clear()
    learning.assumed = rates
    here = cost(learning.plan(plan), placed, rates)
    best = min(_tried(learning, plan, rates, weigh), key=lambda one: one[0], default=None)
    if best is None or best[0] > WORTH * here:
        log.info("a join stays %s, as nothing is so much cheaper: %s", learning.strategy, off)
        return None
    price, strategy, moved = best
    if moved.places == placed and strategy == learning.strategy:
        return None
    assert plan.pairing is not None
    less = f"{1 - price / here:.0%} {'fewer bytes' if plan.pairing.cost == 'bytes' else 'less energy'}"
    why = f"{off}, in {counts.epochs} epochs: so it takes {less}"
    learning.changes = [*learning.changes, Change(now, learning.strategy, strategy, why)][-CHANGES:]
    log.info("a join goes from %s to %s: %s", learning.strategy, strategy, why)
    learning.strategy, learning.rates, learning.since = strategy, rates, now
    learning.needed = min(EPOCHS << DOUBLED, 2 * learning.needed)
    return moved


def _tried(
    learning: Learning, plan: QueryPlan, rates: Rates, weigh: Weigh
) -> Iterator[tuple[float, str, Moved]]:
    """What each strategy that motes can follow would cost."""
    pairing = plan.pairing
    assert pairing is not None
    for words, way in WAY_OF.items():
        if pairing.within_ms is not None and answered_ms(plan.period_ms, way) > pairing.within_ms:
            continue
        if (words == BY_HASH and not keys_of(pairing.statics)) or not keeps_up(plan.period_ms, way):
            continue
        try:
            told, places, price = weigh(learning.plan(plan, words), rates)
        except QueryError:
            continue
        yield price, words, Moved(told, places)


def _said(pairing: Pairing | None, found: Learnt) -> str:
    assert pairing is not None
    names = {"s": pairing.aliases[0], "t": pairing.aliases[1], "pair": "pair"}
    return ", ".join(
        f"{names[name]} {before:.3g} % was assumed and {now:.3g} % counted"
        for name, (before, now) in ((name, (100 * was, 100 * is_)) for name, (was, is_) in found.off.items())
    )


def learning_lines(learning: dict[str, Any], aliases: tuple[str, str], runs: str) -> list[str]:
    """Of a query that runs, for people."""
    told = [f"  it runs, {runs} since {_moment(learning['since'])}"]
    told += [
        f"  {_moment(change['at'])}: from {change['from']} to {change['to']}, as {change['why']}"
        for change in learning["changes"]
    ]
    if learning["counted"] is not None:
        shares = [f"{100 * share:.3g} %" for share in learning["counted"].values()]
        named = ", ".join(map(" ".join, zip((*aliases, "pair"), shares, strict=True)))
        told.append(f"  counted in {learning['epochs']} epochs since: {named}")
    told.append(
        f"  pairs are placed anew where that is off by a third, after {learning['judged_from']} epochs at least"
    )
    return told


def _moment(at: float) -> str:
    return moment_text(datetime.fromtimestamp(round(at), UTC))

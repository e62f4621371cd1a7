"""LIFETIME: the sample period at which batteries last as long as the user wants.

The network is sampled at the rate that a mote with fresh batteries can afford; each mote then takes part in as few of
the epochs as its own battery allows, and reckons anew as its voltage falls (``firmware/query/sampling/budget.c``). Source:
TinyDB 2005, section 3.6; what idling and an epoch take was measured on emulated IRIS motes (docs/queries.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from skerry.planner.model.lifetime_budget import CAPACITY, LifetimeBudget
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import chosen
from skerry.planner.semantics.draft import Draft
from skerry.sql import ast
from skerry.sql.errors import QueryError
from skerry.sql.units import duration_text
from skerry_protocol.limits import PERIOD_MAXIMUM_MS, PERIOD_MINIMUM_MS


@dataclass(frozen=True, slots=True)
class _Upkeep:
    """What a mote that passes on the rows of another takes: without a query, mostly for its control windows, in uW; and with an
    epoch besides sampling, for its cell, its children's, and those after for repetitions, in nJ."""

    idle: int
    epoch: int


#: From this sample period on, where no other query is faster, a network has fewer control windows (firmware/net/schedule). In ms.
SLOW_MS = 10_000
_SLOW, _FAST = _Upkeep(360, 2_500_000), _Upkeep(1070, 1_200_000)
_MOST = 255
#: Sample periods are multiples of this, in ms, so that little of a battery is left over; from the second length on, of a second.
_GRID_MS, _COARSE_MS = 20, 100_000
_NANOJOULES, _MICROWATTS = 1e9, 1e6


def power_for(duration_ms: float) -> float:
    """What fresh batteries give for so long, in uW."""
    return CAPACITY / (duration_ms / 1000) * _MICROWATTS


def upkeep(period_ms: int) -> _Upkeep:
    """Of a network whose fastest query has this sample period."""
    return _SLOW if period_ms >= SLOW_MS else _FAST


def predicted_ms(period_ms: int, energy: int) -> float:
    """How long fresh batteries last at a sample period. ``energy``: nJ for an epoch."""
    return CAPACITY * _MICROWATTS / (upkeep(period_ms).idle + energy / period_ms) * 1000


def _affordable(power: float, sampling: float) -> int | None:
    """The shortest sample period in ms that takes no more than so many uW; None: there is none."""
    for taken, least, most in ((_FAST, PERIOD_MINIMUM_MS, SLOW_MS - 1), (_SLOW, SLOW_MS, math.inf)):
        if power <= taken.idle:
            continue
        energy = taken.epoch + sampling * _NANOJOULES
        exact = energy / (power - taken.idle)
        grid = _GRID_MS if exact < _COARSE_MS else 1000
        period = max(least, math.ceil(exact / grid) * grid)
        if period <= most:
            return period
    return None


def lifetime(draft: Draft) -> Draft:
    """The sample period that LIFETIME allows, and each mote's budget."""
    asked = draft.select.sampling
    if not isinstance(asked, ast.Lifetime):
        return draft
    period, budget = afford(asked, chosen(merge([draft.plan])).energy)
    return draft.planned(period_ms=period, budget=budget)


def afford(lifetime: ast.Lifetime, sampling: float) -> tuple[int, LifetimeBudget]:
    """Sample period in ms and budget. ``sampling``: J an epoch for the sensors. Raises QueryError where nothing can be afforded."""
    duration = float(lifetime.duration.milliseconds)
    period = _affordable(power_for(duration), sampling)
    if period is None:
        longest = duration_text(
            math.floor(predicted_ms(PERIOD_MAXIMUM_MS, _SLOW.epoch) / 86_400_000) * 86_400_000
        )
        raise QueryError(
            f"LIFETIME {duration_text(lifetime.duration.milliseconds)} is more than batteries hold",
            f"a mote that only keeps its place in the network lives for {longest}",
            lifetime.duration.span,
        )
    period, most = min(period, PERIOD_MAXIMUM_MS), _MOST
    if lifetime.least is not None:
        least = int(lifetime.least.milliseconds)
        if least < PERIOD_MINIMUM_MS or least > PERIOD_MAXIMUM_MS:
            bounds = f"from {duration_text(PERIOD_MINIMUM_MS)} to {duration_text(PERIOD_MAXIMUM_MS)}"
            hint = f"it is the longest time between samples, {bounds}"
            raise QueryError(
                f"MIN SAMPLE RATE {duration_text(least)} is out of range", hint, lifetime.least.span
            )
        period = min(period, least)
        most = min(_MOST, least // period)
    taken = upkeep(period)
    return period, LifetimeBudget(taken.epoch + round(sampling * _NANOJOULES), taken.idle, most)

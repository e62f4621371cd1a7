"""LIFETIME: the sample period at which batteries last as long as the user wants.

The network is sampled at the rate that a mote with fresh batteries can afford; each mote then takes part in as few of
the epochs as its own battery allows, and reckons anew as its voltage falls (``firmware/query/budget.c``). Source:
TinyDB 2005, section 3.6; what idling and an epoch take was measured on emulated IRIS motes (docs/queries.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from skerry.lang import ast
from skerry.lang.errors import QueryError
from skerry.lang.units import duration_text
from skerry_protocol.packets import PERIOD_MAXIMUM_MS, PERIOD_MINIMUM_MS, Budget

#: Two AA cells: 2,200 mAh (the paper's) at 3 V, in J.
CAPACITY = 23_760
#: Voltage of fresh ones, and the least at which the SHT21 works (data sheet, May 2010), in mV.
FULL, EMPTY = 3000, 2100
#: What a mote in the middle of a network takes without a query: mostly its control windows. In uW.
IDLE = 1400
#: What an epoch takes besides sampling, for a mote with a child: its slot, its child's, and those after for repetitions. In nJ.
EPOCH = 4_500_000
_MOST = 255
_NANOJOULES, _MICROWATTS = 1e9, 1e6


@dataclass(frozen=True, slots=True)
class LifetimeBudget:
    """What a program says of it. ``energy`` in nJ for an epoch; ``most``: epochs from sample to sample at most."""

    energy: int
    most: int

    def encode(self) -> bytes:
        """The code of a BUDGET field."""
        values = {
            "energy": self.energy,
            "idle": IDLE,
            "capacity": CAPACITY,
            "full": FULL,
            "empty": EMPTY,
            "most": self.most,
        }
        return bytes(Budget.build(values))


def power_for(duration_ms: float) -> float:
    """What fresh batteries give for so long, in uW."""
    return CAPACITY / (duration_ms / 1000) * _MICROWATTS


def predicted_ms(period_ms: int, energy: int) -> float:
    """How long fresh batteries last at a sample period."""
    return CAPACITY * _MICROWATTS / (IDLE + energy / period_ms) * 1000


def afford(lifetime: ast.Lifetime, sampling: float) -> tuple[int, LifetimeBudget]:
    """Sample period in ms and budget. ``sampling``: J an epoch for the sensors. Raises QueryError where nothing can be afforded."""
    duration = float(lifetime.duration.milliseconds)
    power = power_for(duration) - IDLE
    if power <= 0:
        longest = duration_text(math.floor(predicted_ms(PERIOD_MAXIMUM_MS, EPOCH) / 86_400_000) * 86_400_000)
        raise QueryError(
            f"LIFETIME {duration_text(lifetime.duration.milliseconds)} is more than batteries hold",
            f"a mote that only keeps its place in the network lives for {longest}",
            lifetime.duration.span,
        )
    energy = EPOCH + round(sampling * _NANOJOULES)
    period = max(PERIOD_MINIMUM_MS, math.ceil(energy / power / 1000) * 1000)
    if lifetime.least is None:
        return min(period, PERIOD_MAXIMUM_MS), LifetimeBudget(energy, _MOST)
    least = int(lifetime.least.milliseconds)
    if least < PERIOD_MINIMUM_MS or least > PERIOD_MAXIMUM_MS:
        hint = f"it is the longest time between samples, from {duration_text(PERIOD_MINIMUM_MS)} to {duration_text(PERIOD_MAXIMUM_MS)}"
        raise QueryError(f"MIN SAMPLE RATE {duration_text(least)} is out of range", hint, lifetime.least.span)
    period = min(period, least)
    return period, LifetimeBudget(energy, min(_MOST, least // period))

"""Many boxes at once, without a gateway: when each is decided, and what a nearest neighbour says after an exposure that all have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from examples.materials.boxes import LONGEST_S, SAFE, STEP_S, Box
from examples.materials.decision import Bounds, Outcome, decided, joined
from examples.materials.detector_response import Spectrum

Times = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Errors:
    """Shares: of safe boxes that were taken for others, of others that were taken for safe, of these others with the right name."""

    false_alarms: float
    misses: float
    named: float

    @classmethod
    def of(cls, boxes: list[Box], said: list[str]) -> Errors:
        """Where a material or ``safe`` was said of each."""
        safe = [one for box, one in zip(boxes, said, strict=True) if box.material == SAFE]
        others = [(box.material, one) for box, one in zip(boxes, said, strict=True) if box.material != SAFE]
        return cls(
            float(np.mean([one != SAFE for one in safe])), float(np.mean([one == SAFE for _, one in others])),
            float(np.mean([material == one for material, one in others])),
        )  # fmt: skip

    def at_most(self, other: Errors) -> bool:
        """Whether both kinds of error are as rare, or rarer."""
        return self.false_alarms <= other.false_alarms and self.misses <= other.misses


def sequentially(boxes: list[Box], seed: int, bounds: Bounds) -> tuple[list[str], Times]:
    """What is said of each box, and after how many seconds of exposure."""
    random = np.random.default_rng(seed)
    rates = np.array([box.rates for box in boxes])
    counts, said = np.zeros_like(rates), [SAFE] * len(boxes)
    seconds, at, undecided = np.zeros(len(boxes)), 0.0, np.arange(len(boxes))
    while len(undecided):
        counts[undecided] += random.poisson(rates[undecided] * STEP_S)
        at += STEP_S
        found = decided(counts[undecided], at, bounds, last=at >= LONGEST_S)
        for place, outcome, material in zip(undecided, found.outcomes, found.materials, strict=True):
            if outcome == Outcome.MATERIAL:
                said[place] = material
        seconds[undecided] = at
        undecided = undecided[[outcome == Outcome.MORE for outcome in found.outcomes]]
    return said, seconds


def by_nearest_neighbour(boxes: list[Box], stored: list[Box], seed: int, seconds: float) -> list[str]:
    """What the stored box with the nearest spectrum is, all exposed for as long. The root makes all channels' chance alike (Anscombe),
    without which the nearest is far worse."""
    random = np.random.default_rng(seed)

    def points(these: list[Box]) -> Spectrum:
        counts = joined(random.poisson(np.array([box.rates for box in these]) * seconds).astype(np.float64))
        return np.asarray(2 * np.sqrt(counts + 3 / 8))

    known = KNeighborsClassifier(1).fit(points(stored), [box.material for box in stored])
    return [str(one) for one in known.predict(points(boxes))]

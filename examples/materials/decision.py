"""When a box has been exposed for long enough: a sequential test for many materials of unknown strength, behind unknown iron, among natural
sources of unknown strength.

What is counted is Poisson's around a mixture of stored spectra: the background, natural sources, a material. Each hypothesis is fitted
(expectation maximisation, which keeps shares from falling below 0), and the logarithms of likelihoods are compared after each new
spectrum, after Wald and Lorden: a material is found when some mixture with it is so much likelier than the best one without; a box is safe
when that one is so much likelier than each mixture with as much of a material as would matter; in between, more data is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache

import numpy as np

from examples.materials import boxes
from examples.materials import detector_response as response
from examples.materials.boxes import MATERIALS, NATURAL, SAFE, WEAKEST
from examples.materials.detector_response import Spectrum

_ROUNDS = 40
#: Channels that are counted together: a line is wider than these.
_TOGETHER = 2


class Outcome(StrEnum):
    """What is known of a box."""

    SAFE = "safe"
    MATERIAL = "material"
    MORE = "more data"


@dataclass(frozen=True)
class Bounds:
    """Of log-likelihood ratios: for a material, and for safety."""

    material: float = 9.0
    safe: float = 4.5


@dataclass(frozen=True)
class Decided:
    """Of boxes, one place each: the outcome, the likeliest material, and how much likelier mixtures with it are."""

    outcomes: list[Outcome]
    materials: list[str]
    ratios: Spectrum


def joined(counts: Spectrum) -> Spectrum:
    """Neighbouring channels together, of each row."""
    gamma = counts[..., : response.CHANNELS]
    gamma = gamma.reshape(*gamma.shape[:-1], -1, _TOGETHER).sum(axis=-1)
    return np.concatenate([gamma, counts[..., response.CHANNELS :]], axis=-1)


@cache
def _without() -> Spectrum:
    """A row for what may be in a safe box."""
    stored = [response.background(), *(response.natural(lines) for lines in NATURAL.values())]
    return joined(np.array(stored))


@cache
def _material(name: str) -> Spectrum:
    """A material behind no iron and behind the most: what is between them is a mixture of both."""
    return joined(np.array([response.whole(name, 0.0), response.whole(name, boxes.IRON_CM)]))


def fitted(counts: Spectrum, parts: Spectrum, known: Spectrum) -> tuple[Spectrum, Spectrum]:
    """For each row of counts the likeliest strengths of these parts beside what is known to be there, and the logarithm of its
    likelihood, but for what all hypotheses have in common."""
    total = parts.sum(axis=1)
    strengths = (
        np.full((len(counts), len(parts)), 1e-3) + counts.sum(axis=1, keepdims=True) / len(parts) / total
    )
    for _ in range(_ROUNDS):
        expected = strengths @ parts + known + 1e-12
        strengths = strengths * ((counts / expected) @ parts.T) / total
    expected = strengths @ parts + known + 1e-12
    return strengths, (counts * np.log(expected) - expected).sum(axis=1)


def decided(counts: Spectrum, seconds: float, bounds: Bounds, last: bool = False) -> Decided:
    """What is known of boxes after so many seconds of exposure; ``counts``: a row for each. ``last``: no more data will come."""
    counts = joined(counts)
    none = np.zeros((1, counts.shape[1]))
    _, without = fitted(counts, _without(), none)
    free, least = [], []
    for name in MATERIALS:
        stored = _material(name)
        free.append(fitted(counts, np.concatenate([_without(), stored]), none)[1])
        least.append(
            fitted(counts, np.concatenate([_without(), stored]), WEAKEST * seconds * stored.mean(axis=0))[1]
        )
    best = np.array(free).argmax(axis=0)
    ratios = np.array(free).max(axis=0) - without
    # A mixture with at least so much of any material, against the best without.
    against = without - np.array(least).max(axis=0)
    outcomes = []
    for ratio, other in zip(ratios, against, strict=True):
        if ratio >= bounds.material or (last and ratio >= bounds.material / 2):
            outcomes.append(Outcome.MATERIAL)
        else:
            outcomes.append(Outcome.SAFE if last or other >= bounds.safe else Outcome.MORE)
    return Decided(outcomes, [MATERIALS[i] for i in best], ratios)


def filtered(counts: Spectrum) -> Spectrum:
    """What is left of each row where the likeliest of a safe box is taken away, in standard deviations of each channel."""
    together = joined(counts)
    strengths, _ = fitted(together, _without(), np.zeros((1, together.shape[1])))
    expected = strengths @ _without()
    return np.asarray((together - expected) / np.sqrt(expected + 1))


__all__ = ["SAFE", "Bounds", "Decided", "Outcome", "decided", "filtered", "fitted", "joined"]

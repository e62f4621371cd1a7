"""Boxes drawn by seed: safe ones, of which some have stone, salt or glazes in them, and others with a material."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from examples.materials import detector_response as response
from examples.materials import isotopes
from examples.materials.detector_response import Spectrum

MATERIALS = tuple(isotopes.GAMMA)
NATURAL = {
    "potassium": isotopes.POTASSIUM,
    "thorium": isotopes.THORIUM_SERIES,
    "radium": isotopes.RADIUM_SERIES,
}
#: Counts a second that a material brings, and how many centimetres of iron are before it.
WEAKEST, STRONGEST, IRON_CM = 30.0, 400.0, 1.5
#: A spectrum comes after so many seconds, and no box is exposed for longer than this.
STEP_S, LONGEST_S = 0.5, 60.0
SAFE = "safe"


@dataclass(frozen=True)
class Box:
    """``rates``: counts a second by channel, gamma rays' and then neutrons'."""

    number: int
    material: str
    rates: Spectrum


def drawn(random: np.random.Generator, number: int, material: str) -> Box:
    """A box with a material, or a safe one. Half of all have something natural in them, and each keeps some of the background off."""
    rates = response.background() * random.uniform(0.85, 1.0)
    if random.random() < 0.5:
        kind = list(NATURAL)[random.integers(len(NATURAL))]
        rates = rates + random.uniform(10, 120) * response.natural(NATURAL[kind])
    if material != SAFE:
        strength = np.exp(random.uniform(np.log(WEAKEST), np.log(STRONGEST)))
        rates = rates + strength * response.whole(material, random.uniform(0, IRON_CM))
    return Box(number, material, rates)


def many(seed: int, safe: int, others: int) -> list[Box]:
    """So many of each, as they come: mixed."""
    random = np.random.default_rng(seed)
    kinds = [SAFE] * safe + [MATERIALS[i % len(MATERIALS)] for i in range(others)]
    random.shuffle(kinds)
    return [drawn(random, number, kind) for number, kind in enumerate(kinds)]


def counted(random: np.random.Generator, rates: Spectrum, seconds: float) -> Spectrum:
    """What is counted within so many seconds (Poisson)."""
    return random.poisson(rates * seconds).astype(np.float64)

"""Gamma lines (keV, photons per 100 decays) and neutron spectra of what may be in a box, and of what is everywhere.

Lines are those of evaluated nuclear data (ENSDF, DDEP), rounded; weaker ones are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable

Lines = tuple[tuple[float, float], ...]

POTASSIUM: Lines = ((1460.82, 10.66),)
THORIUM_SERIES: Lines = (
    (238.63, 43.6), (338.32, 11.3), (510.77, 8.1), (583.19, 30.6), (727.33, 6.7), (860.56, 4.5), (911.20, 25.8), (968.97, 15.8),
    (1588.2, 3.2), (2614.51, 35.9),
)  # fmt: skip
RADIUM_SERIES: Lines = (
    (186.21, 3.6), (242.0, 7.3), (295.22, 18.4), (351.93, 35.6), (609.31, 45.5), (768.36, 4.9), (934.06, 3.1), (1120.29, 14.9),
    (1238.11, 5.8), (1377.67, 4.0), (1764.49, 15.3), (2204.06, 4.9),
)  # fmt: skip
GAMMA: dict[str, Lines] = {
    "Cs-137": ((661.66, 85.1),),
    "Co-60": ((1173.23, 99.85), (1332.49, 99.98)),
    "Ir-192": (
        (295.96, 28.7),
        (308.46, 29.7),
        (316.51, 82.9),
        (468.07, 47.8),
        (588.58, 4.5),
        (604.41, 8.2),
        (612.46, 5.3),
    ),
    "Ba-133": ((81.00, 32.9), (276.40, 7.2), (302.85, 18.3), (356.01, 62.1), (383.85, 8.9)),
    "U-235": ((143.76, 11.0), (163.36, 5.1), (185.72, 57.2), (205.31, 5.0)),
    # Per 10^5 decays of Pu-239, with what grows in of Am-241 behind a box's wall.
    "plutonium": ((129.30, 6.3), (345.01, 0.56), (375.05, 1.55), (413.71, 1.47), (662.4, 0.3)),
    # Its gamma rays of 4.4 MeV lie above the scale; what shows of them is below 3 MeV, as is hydrogen's capture of its neutrons.
    "AmBe": ((2223.25, 30.0), (1000.0, 4.0), (511.0, 12.0)),
}
#: Neutrons counted for each count of gamma rays.
NEUTRONS = {"plutonium": 0.06, "AmBe": 0.25}


def _watt(a: float, b: float) -> Callable[[float], float]:
    """Fission neutrons' spectrum over MeV."""
    return lambda energy: math.exp(-energy / a) * math.sinh(math.sqrt(b * energy))


def _ambe(energy: float) -> float:
    """As in ISO 8529-1, roughly: groups at 3.1, 4.9 and 7.7 MeV over a continuum that ends at 11."""
    groups = ((3.1, 0.7, 1.0), (4.9, 0.8, 0.9), (7.7, 0.9, 0.4), (1.0, 1.2, 0.5))
    return (
        sum(w * math.exp(-(((energy - at) / width) ** 2) / 2) for at, width, w in groups)
        if energy < 11.0
        else 0.0
    )


#: Over MeV. Pu-240's spontaneous fission; the background is what cosmic rays evaporate.
NEUTRON_SPECTRA: dict[str, Callable[[float], float]] = {
    "plutonium": _watt(0.799, 4.903),
    "AmBe": _ambe,
    "background": lambda energy: energy * math.exp(-energy / 1.1),
}

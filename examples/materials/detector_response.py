"""What a detector shows of gamma lines: a crystal of NaI(Tl), 3 by 3 inches, 256 channels of 12 keV, and 24 of 0.5 MeV for neutrons."""

from __future__ import annotations

from typing import Any

import numpy as np

from examples.materials import isotopes

Spectrum = np.ndarray[Any, np.dtype[np.float64]]
CHANNELS, KEV = 256, 12.0
NEUTRON_CHANNELS, MEV = 24, 0.5
ENERGIES = (np.arange(CHANNELS) + 0.5) * KEV
#: Of a line of 662 keV, as a share of it; it grows with the root of the energy.
RESOLUTION = 0.07
_LINE = 661.66
_ELECTRON = 511.0
_LEAST_KEV = 36.0
#: cm²/g at keV (NIST XCOM, rounded).
_AT = np.array([60, 80, 100, 150, 200, 300, 500, 662, 1000, 1500, 2000, 3000.0])
_IODIDE = np.array([6.6, 3.05, 1.67, 0.61, 0.33, 0.167, 0.096, 0.078, 0.059, 0.047, 0.0415, 0.0368])
_IRON = np.array([1.205, 0.595, 0.372, 0.196, 0.146, 0.110, 0.0841, 0.0736, 0.0600, 0.0488, 0.0426, 0.0362])
_IODIDE_DENSITY, _IRON_DENSITY, _LENGTH_CM = 3.67, 7.87, 7.62


def _through(table: Spectrum, energy: float) -> float:
    return float(np.exp(np.interp(np.log(energy), np.log(_AT), np.log(table))))


def line(energy: float) -> Spectrum:
    """Counts by channel for each photon that reaches the crystal: the peak with the detector's resolution, and below it what Compton's
    electrons leave, by Klein and Nishina."""
    caught = 1 - np.exp(-_through(_IODIDE, energy) * _IODIDE_DENSITY * _LENGTH_CM)
    in_peak = min(0.95, (energy / 150.0) ** -0.7)
    ratio = energy / _ELECTRON
    edge = energy * 2 * ratio / (1 + 2 * ratio)
    kept = ENERGIES / energy
    with np.errstate(divide="ignore", invalid="ignore"):
        left = kept / (1 - kept)
        continuum = 2 + (left / ratio) ** 2 + left * (kept - 2 / ratio)
    continuum = np.where(edge > ENERGIES, continuum, 0)
    found = in_peak * _peak(energy)
    if continuum.sum() > 0:
        found = found + (1 - in_peak) * _blurred(continuum / continuum.sum())
    return np.asarray(np.where(ENERGIES > _LEAST_KEV, caught * found, 0))


def _sigma(energy: Any) -> Any:
    return RESOLUTION * np.sqrt(_LINE * np.maximum(energy, 1)) / 2.3548


def _peak(energy: float) -> Spectrum:
    found = np.exp(-(((ENERGIES - energy) / _sigma(energy)) ** 2) / 2)
    return np.asarray(found / found.sum())


_BLUR = np.exp(-(((ENERGIES[:, None] - ENERGIES[None]) / _sigma(ENERGIES[None])) ** 2) / 2)
_BLUR /= _BLUR.sum(axis=0)


def _blurred(spectrum: Spectrum) -> Spectrum:
    return np.asarray(_BLUR @ spectrum)


def gamma(lines: isotopes.Lines, iron_cm: float = 0.0) -> Spectrum:
    """Of all lines behind so much iron, their counts together 1."""
    found = np.zeros(CHANNELS)
    for energy, intensity in lines:
        found += intensity * np.exp(-_through(_IRON, energy) * _IRON_DENSITY * iron_cm) * line(energy)
    return np.asarray(found / found.sum())


def neutrons(name: str) -> Spectrum:
    """Of a source, its counts together 1."""
    found = np.array([isotopes.NEUTRON_SPECTRA[name]((i + 0.5) * MEV) for i in range(NEUTRON_CHANNELS)])
    return np.asarray(found / found.sum())


def whole(name: str, iron_cm: float = 0.0) -> Spectrum:
    """A material's gamma spectrum, whose counts together are 1, and behind it that of its neutrons, which iron hardly stops."""
    share = isotopes.NEUTRONS.get(name, 0.0)
    behind = share * neutrons(name) if share else np.zeros(NEUTRON_CHANNELS)
    return np.concatenate([gamma(isotopes.GAMMA[name], iron_cm), behind])


def natural(lines: isotopes.Lines) -> Spectrum:
    """What is in stone, salt and glazes: it has no neutrons."""
    return np.concatenate([gamma(lines, 0.2), np.zeros(NEUTRON_CHANNELS)])


def background() -> Spectrum:
    """Counts a second where there is no box: stones around, and what the sky scatters."""
    sky = np.where(ENERGIES > _LEAST_KEV, np.exp(-ENERGIES / 180.0) + 0.02 * np.exp(-ENERGIES / 1200.0), 0)
    seen = (
        190 * sky / sky.sum()
        + 30 * gamma(isotopes.POTASSIUM)
        + 45 * gamma(isotopes.THORIUM_SERIES)
        + 35 * gamma(isotopes.RADIUM_SERIES)
    )
    return np.concatenate([seen, 0.6 * neutrons("background")])

"""A box's measured spectrum and the stored one that it was matched with, as a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from examples.materials import detector_response as response
from examples.materials.boxes import IRON_CM, NATURAL
from examples.materials.decision import fitted
from examples.materials.detector_response import Spectrum


def draw(path: Path, box: int, material: str, seconds: float, counts: Spectrum) -> None:
    """Writes PNG or SVG, by the name's ending."""
    safe = np.array([response.background(), *(response.natural(lines) for lines in NATURAL.values())])
    own = np.array([response.whole(material, iron) for iron in (0.0, IRON_CM)])
    strengths, _ = fitted(counts[None], np.concatenate([safe, own]), np.zeros((1, len(counts))))
    around, matched = strengths[0, : len(safe)] @ safe, strengths[0] @ np.concatenate([safe, own])
    figure = Figure(figsize=(10, 4.5), layout="constrained")
    gamma, neutron = figure.subplots(1, 2, width_ratios=[3, 1])
    for axes, places, energies, unit in (
        (gamma, slice(response.CHANNELS), response.ENERGIES, "keV"),
        (
            neutron,
            slice(response.CHANNELS, None),
            (np.arange(response.NEUTRON_CHANNELS) + 0.5) * response.MEV,
            "MeV",
        ),
    ):
        axes.step(
            energies,
            counts[places],
            where="mid",
            color="0.4",
            linewidth=0.8,
            label=f"measured, {seconds:g} s",
        )
        axes.plot(energies, around[places], color="tab:blue", label="background and natural")
        axes.plot(energies, matched[places], color="tab:red", label=f"matched: {material}")
        axes.set_xlabel(unit)
        axes.set_yscale("symlog", linthresh=1)
        axes.set_ylim(0, max(2.0, 1.5 * counts[places].max()))
    gamma.set_title(f"box {box}: gamma rays")
    gamma.set_ylabel("counts by channel")
    gamma.legend()
    neutron.set_title("neutrons")
    figure.savefig(path)

"""The gateway's part: tables of detectors and stored spectra, the query, and a decision for each row that it gives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import skerry
from examples.materials import detector_response as response
from examples.materials.boxes import LONGEST_S, MATERIALS, NATURAL, SAFE
from examples.materials.decision import Bounds, Outcome, decided
from examples.materials.detector_response import Spectrum
from examples.materials.judges import Judges, agreed

TABLES = (
    "CREATE SENSORS detectors (lane INT, reading STREAM (box INT, exposure DOUBLE 's', gamma INT[], neutron INT[]))",
    "CREATE SENSORS surroundings (name TEXT, counts DOUBLE[])",
    "CREATE SENSORS spectra (material TEXT, counts DOUBLE[])",
)
QUERY = """
SELECT d.lane AS lane, box, exposure, gamma, neutron, PEAKS(gamma, 40, 2) AS peaks,
       NEAREST(WITHOUT(gamma, 'surroundings', 'background', exposure), 'spectra') AS nearest
FROM detectors AS d WHERE box IS NOT NULL"""


@dataclass(frozen=True)
class Finding:
    """What is known of a box after a row. ``material``: of one that has some."""

    lane: int
    box: int
    seconds: float
    outcome: Outcome
    material: str | None
    says: dict[str, str]
    peaks: list[int]
    counts: Spectrum

    def __str__(self) -> str:
        return f"material: {self.material}" if self.material else str(self.outcome)


def prepare(client: skerry.Client, addresses: list[str]) -> None:
    """Make the tables and fill them. Raises GatewayError."""
    for statement in TABLES:
        client.execute(statement)
    lanes = ", ".join(f"({lane}, '{address}')" for lane, address in enumerate(addresses, 1))
    client.execute(f"INSERT INTO detectors VALUES {lanes}")
    client.execute(f"INSERT INTO surroundings VALUES ('background', '{_array(response.background())}')")
    stored = {name: response.whole(name, 0.5) for name in MATERIALS}
    stored |= {name: response.natural(lines) for name, lines in NATURAL.items()}
    values = ", ".join(f"('{name}', '{_array(spectrum)}')" for name, spectrum in stored.items())
    client.execute(f"INSERT INTO spectra VALUES {values}")


def _array(spectrum: Spectrum) -> str:
    return json.dumps([round(float(value), 9) for value in spectrum[: response.CHANNELS]])


def findings(rows: skerry.Rows, judges: Judges, bounds: Bounds) -> Iterator[Finding]:
    """One for each row of :data:`QUERY`; a box that is decided may have more."""
    for row in rows:
        counts = np.array([*row["gamma"], *row["neutron"]], np.float64)
        seconds = row["exposure"]
        found = decided(counts[None], seconds, bounds, last=seconds >= LONGEST_S)
        tree, cluster = judges.say(counts)
        nearest = row["nearest"] if row["nearest"] in MATERIALS else SAFE
        says = {"likeliest": found.materials[0], "nearest": nearest, "tree": tree, "cluster": cluster}
        outcome = found.outcomes[0]
        material = (
            agreed(found.materials[0], [nearest, tree, cluster]) if outcome == Outcome.MATERIAL else None
        )
        yield Finding(row["lane"], row["box"], seconds, outcome, material, says, row["peaks"], counts)

"""Exposure of boxes until it is known what is in them: the materials example's sequential test against a nearest neighbour's.

Boxes and counts are drawn by seed, so that every run gives the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column
from examples.materials.boxes import SAFE, many
from examples.materials.decision import Bounds
from examples.materials.sequential import Errors, by_nearest_neighbour, sequentially

#: Seconds that all boxes are exposed for.
EXPOSURES = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 60.0)


@dataclass(frozen=True)
class Boxes(SeedOptions):
    boxes: int = option(1000, "safe ones, and as many others; the nearest neighbour has as many stored")


def measure(options: Boxes, recorder: Recorder) -> None:
    """Both, over the same boxes."""
    boxes = many(options.seed, options.boxes, options.boxes)
    stored = many(options.seed + 1, options.boxes, options.boxes)
    said, seconds = sequentially(boxes, options.seed + 2, Bounds())
    own = Errors.of(boxes, said)
    safe = np.array([box.material == SAFE for box in boxes])
    columns = [
        Column(name, "%", ".1f")
        for name in ("safe ones taken for others", "others taken for safe", "others named rightly")
    ]
    table = recorder.table(
        "boxes", [Column("by"), Column("median exposure", "s", ".1f"), *columns], title="Exposure and errors"
    )

    def row(by: str, exposure: float, errors: Errors) -> None:
        table.row(by, exposure, 100 * errors.false_alarms, 100 * errors.misses, 100 * errors.named)

    row("sequential test", float(np.median(seconds)), own)
    fixed: float | None = None
    for exposure in recorder.steps(EXPOSURES):
        errors = Errors.of(boxes, by_nearest_neighbour(boxes, stored, options.seed + 3, exposure))
        row("nearest neighbour", exposure, errors)
        if fixed is None and errors.at_most(own):
            fixed = exposure
    if fixed is None:
        fixed = EXPOSURES[-1]
        recorder.remark(
            f"The nearest neighbour has more errors of one kind with any exposure: it is compared at {fixed:g} s."
        )
    median = float(np.median(seconds))
    recorder.figure(
        "exposure to a decision, median, against a nearest neighbour's at error rates as low",
        median / fixed,
        "×",
        ".2f",
        goal=0.5,
        main=True,
    )
    for name, those in (("safe boxes", safe), ("others", ~safe)):
        recorder.figure(
            f"exposure to a decision, median of {name}", float(np.median(seconds[those])), "s", ".1f"
        )
    recorder.figure("the longest", float(seconds.max()), "s", ".1f")


BENCHMARK = Benchmark(measure, quick=Boxes(boxes=50), minutes=5)

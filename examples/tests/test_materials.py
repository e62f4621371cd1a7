"""The materials example: physics that can be checked by hand, decisions over drawn boxes, and the program as a user starts it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from examples.materials import boxes, drawing, isotopes
from examples.materials import detector_response as response
from examples.materials.decision import Bounds
from examples.materials.sequential import Errors, by_nearest_neighbour, sequentially
from gateway.tests.process import started_by, wait_for
from skerry.mining.peaks import peaks_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["Cs-137", "Co-60"])
def test_peaks_are_where_the_isotopes_lines_are(name: str) -> None:
    spectrum = response.gamma(isotopes.GAMMA[name])
    found = [float(response.ENERGIES[place]) for place in peaks_of(spectrum, spectrum.max() / 2)]
    lines = [energy for energy, _ in isotopes.GAMMA[name]]
    assert len(found) == len(lines)
    assert all(abs(seen - line) <= response.KEV for seen, line in zip(found, lines, strict=True))


def test_comptons_electrons_end_at_their_edge() -> None:
    """477 keV for 662 keV; between it and the peak, which is wide by 7 %, there is next to nothing."""
    spectrum = response.line(661.66)
    assert spectrum[int(540 / response.KEV)] < spectrum[int(440 / response.KEV)] / 5
    half = np.flatnonzero(spectrum > spectrum.max() / 2)
    assert len(half) * response.KEV == pytest.approx(0.07 * 661.66, abs=response.KEV)


def test_iron_stops_soft_rays_first() -> None:
    bare, shielded = (response.gamma(isotopes.GAMMA["Ir-192"], iron) for iron in (0.0, 1.5))
    soft = int(310 / response.KEV)
    hard = int(468 / response.KEV)
    assert bare[soft] / bare[hard] > shielded[soft] / shielded[hard]


def test_boxes_are_decided_in_half_the_time_of_a_fixed_exposure() -> None:
    """Few ones; the benchmark has two thousand."""
    drawn = boxes.many(7, 40, 40)
    said, seconds = sequentially(drawn, 8, Bounds())
    own = Errors.of(drawn, said)
    assert own.false_alarms <= 0.05
    assert own.misses <= 0.05
    fixed = Errors.of(
        drawn, by_nearest_neighbour(drawn, boxes.many(9, 200, 200), 10, 2 * float(np.median(seconds)))
    )
    assert fixed.false_alarms + fixed.misses >= own.false_alarms + own.misses


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_measured_and_matched_spectrum_are_drawn(tmp_path: Path, ending: str) -> None:
    box = boxes.drawn(np.random.default_rng(1), 3, "Cs-137")
    path = tmp_path / f"box.{ending}"
    drawing.draw(path, 3, "Cs-137", 2.0, boxes.counted(np.random.default_rng(2), box.rates, 2.0))
    assert path.stat().st_size > 5000


@pytest.mark.spark
@pytest.mark.slow
def test_boxes_pass_a_gateway_and_ctrl_c_ends_everything(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-u",
        "-m",
        "examples.materials",
        "--boxes",
        "200",
        "--pictures",
        str(tmp_path),
    ]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if sum("more data" not in one for one in lines if one.startswith("lane")) >= 4:
                break
        children = started_by(process.pid)
        assert children, lines
        process.send_signal(signal.SIGINT)
        assert "stopped" in process.stdout.read(), lines
        assert process.wait(60) == 1
    wait_for(lambda: not any(Path(f"/proc/{child}").exists() for child in children))


@pytest.mark.spark
@pytest.mark.slow
def test_sigterm_ends_everything_too(tmp_path: Path) -> None:
    """Already while Spark starts."""
    command = [sys.executable, "-u", "-m", "examples.materials", "--pictures", str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        # The gateway, and what that has started.
        wait_for(lambda: len(started_by(process.pid)) >= 2)
        children = started_by(process.pid)
        process.send_signal(signal.SIGTERM)
        assert "stopped" in process.stdout.read()
        assert process.wait(60) == 1
    wait_for(lambda: not any(Path(f"/proc/{child}").exists() for child in children))

"""Error of three signals where one sample of four can be sent, by queue policy: the paper's table V on the emulated IRIS.

A mote samples each second, keeps at most 5 rows and sends one each 4 s, under each policy at once; a fourth query without limits
delivers every reading, which is what the others are compared with. A row stands for the samples that it combines, and from its
sample on until the next row's. The paper sampled each 64 ms, and so the traces are taken; how fast the mote takes them changes nothing.
Beside that the error is shown with straight lines between rows, which the paper does not say it drew.

Traces are of ../shared/data: an accelerometer and a magnetometer turned by hand, and the light of a room, from their beginnings.
The magnetometer's tenths of a uT are given to the mote as thousandths of a g, which has no magnetometer.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.machine import table
from hil_tests.datasets import data
from hil_tests.queries import ask, rows
from skerry_testbed.network import Network, check
from skerry_testbed.pytest import NetworkHandle, disc, line_of

SAMPLES, SIZE, K = 1000, 5, 4
INTERVAL_S = 0.064
SEED = 5
POLICIES = ("NAIVE", "WINAVG", "DELTA")
#: RMS errors of the paper: naive, winavg, delta.
PAPER = {"acceleration": (77, 64, 63), "light (steps)": (143, 129, 81), "magnetometer": (63, 54, 48)}

Signal = NDArray[np.float64]


def signals() -> dict[str, tuple[str, Signal]]:
    """By name: the attribute that carries it, and its samples. Ends the program without the traces."""
    hand = pd.read_parquet(data("imu-100hz.parquet"))
    at = np.searchsorted(hand["t_s"].to_numpy(), np.arange(SAMPLES) * INTERVAL_S)
    found = {
        f"{name}, {axis}": ("accel_x", hand[column.format(axis)].to_numpy()[at] * scale)
        for name, column, scale in (("acceleration", "acc_{}_g", 1), ("magnetometer", "mag_{}_uT", 0.01))
        for axis in "xy"
    }
    light = pd.read_parquet(data("light-steps.parquet"))["Light"].to_numpy()[:SAMPLES]
    return {**found, "light (steps)": ("light", light)}


def delivered(attribute: str, signal: Signal) -> dict[str, list[dict[str, Any]]]:
    """Rows of the mote by policy, in the order of their samples; "all": every reading."""
    motes = line_of(2, spacing=10)
    net = NetworkHandle(check(Network(name="queues", seed=SEED, mote=motes, radio=disc(15))))
    net.advance("2.5s")
    net.line.connect()
    net.advance("20s")
    clauses = {"all": ""} | {p: f"QUEUE {p} SIZE {SIZE} SEND PERIOD {K} s" for p in POLICIES}
    asked = {
        name: ask(net, number, f"SELECT {attribute} SAMPLE PERIOD 1 s FOR {SAMPLES} s {clause}")
        for number, (name, clause) in enumerate(clauses.items(), 1)
    }
    for value in signal:
        net.motes[1].sense(**{attribute: float(value)})
        net.advance(1)
    # The queries began some seconds late, and their last rows go when motes have forgotten them.
    net.advance("60s")
    found = {}
    for number, (name, query) in enumerate(asked.items(), 1):
        of_mote = [row for row in rows(net.line, number, query) if row["nodeid"] == 1]
        found[name] = sorted(of_mote, key=lambda row: int(row["epoch"]))
    return found


def errors(found: Mapping[str, list[dict[str, Any]]], attribute: str) -> dict[str, tuple[float, float, int]]:
    """By policy: RMS error with steps and with lines, in the attribute's resolution, and how many rows there were."""
    first = int(found["all"][0]["epoch"])
    original = np.array([row[attribute] for row in found["all"]], np.float64)
    assert [row["epoch"] for row in found["all"]] == list(range(first, first + len(original)))
    unit = 1 if attribute == "light" else 0.001
    result = {}
    for policy in POLICIES:
        arrived = found[policy]
        steps = np.full(len(original), float(arrived[0][attribute]))
        for row in arrived:
            steps[row["epoch"] - first - row["combined"] + 1 :] = row[attribute]
        middles = [row["epoch"] - first - (row["combined"] - 1) / 2 for row in arrived]
        lines = np.interp(np.arange(len(original)), middles, [row[attribute] for row in arrived])
        both = [float(np.sqrt(np.mean((drawn - original) ** 2))) / unit for drawn in (steps, lines)]
        result[policy] = (both[0], both[1], len(arrived))
    return result


def ratios(values: Sequence[float]) -> str:
    """Winavg and delta against naive."""
    return f"{values[1] / values[0]:.2f}, {values[2] / values[0]:.2f}"


def main() -> None:
    """Print the table."""
    shown = []
    for name, (attribute, signal) in signals().items():
        print(f"{name} …", file=sys.stderr)
        found = errors(delivered(attribute, signal), attribute)
        steps, lines = ([found[policy][i] for policy in POLICIES] for i in (0, 1))
        sent = ", ".join(str(found[policy][2]) for policy in POLICIES)
        paper = PAPER[name.split(",")[0]]
        shown.append(
            (
                name,
                f"{', '.join(f'{value:.1f}' for value in steps)}: {ratios(steps)} (lines {ratios(lines)}; rows {sent})",
                f"{', '.join(map(str, paper))}: {ratios(paper)}",
            )
        )
    table(
        f"RMS error of naive, winavg, delta, and the last two against naive: K = {K}, buffer {SIZE}, {SAMPLES} samples",
        shown,
    )


if __name__ == "__main__":
    main()

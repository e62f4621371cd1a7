"""Error of three signals where one sample of four can be sent, by queue policy: table V of TinyDB 2005 on the emulated IRIS.

A mote samples each second, keeps at most 5 rows and sends one each 4 s, under each policy at once; a fourth query without limits
delivers every reading, which is what the others are compared with. A row stands for the samples that it combines, and from its
sample on until the next row's. The paper sampled each 64 ms, and so the traces are taken; how fast the mote takes them changes nothing.
Beside that the error is shown with straight lines between rows, which the paper does not say it drew.

Traces are of ../shared/data: an accelerometer and a magnetometer turned by hand, and the light of a room, from their beginnings.
The magnetometer's tenths of a uT are given to the mote as thousandths of a g, which has no magnetometer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.measuring.emulated import described, started
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column
from hil_tests.datasets import data
from skerry_testbed.pytest import disc, line_of
from skerry_testbed.queries import ask, rows

SIZE, K = 5, 4
INTERVAL_S = 0.064
POLICIES = ("NAIVE", "WINAVG", "DELTA")
#: RMS errors of the paper: naive, winavg, delta.
PAPER = {"acceleration": (77, 64, 63), "light (steps)": (143, 129, 81), "magnetometer": (63, 54, 48)}

Signal = NDArray[np.float64]


@dataclass(frozen=True)
class Options(SeedOptions):
    seed: int = option(5, "what is random is drawn from it")
    samples: int = option(1000, "of each signal, from its beginning")


def signals(samples: int) -> dict[str, tuple[str, Signal]]:
    """By name: the attribute that carries it, and its samples. Ends the program without the traces."""
    hand = pd.read_parquet(data("imu-100hz.parquet"))
    at = np.searchsorted(hand["t_s"].to_numpy(), np.arange(samples) * INTERVAL_S)
    found = {
        f"{name}, {axis}": ("accel_x", hand[column.format(axis)].to_numpy()[at] * scale)
        for name, column, scale in (("acceleration", "acc_{}_g", 1), ("magnetometer", "mag_{}_uT", 0.01))
        for axis in "xy"
    }
    light = pd.read_parquet(data("light-steps.parquet"))["Light"].to_numpy()[:samples]
    return {**found, "light (steps)": ("light", light)}


def delivered(attribute: str, signal: Signal, seed: int) -> dict[str, list[dict[str, Any]]]:
    """Rows of the mote by policy, in the order of their samples; "all": every reading."""
    net = started(described("queues", line_of(2, spacing=10), disc(15), seed), 20)
    clauses = {"all": ""} | {p: f"QUEUE {p} SIZE {SIZE} SEND PERIOD {K} s" for p in POLICIES}
    asked = {
        name: ask(net, number, f"SELECT {attribute} SAMPLE PERIOD 1 s FOR {len(signal)} s {clause}")
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


def measure(options: Options, recorder: Recorder) -> None:
    """All signals, all policies at once."""
    names = [policy.lower() for policy in POLICIES]
    table = recorder.table(
        "errors",
        [
            Column("signal"), Column("rows stand for"), *(Column(name, form=".1f", better="less") for name in names),
            *(Column(f"{name} ÷ naive", form=".2f", better="less") for name in names[1:]), Column("rows sent"),
            *(Column(f"the paper's {name}", form=".0f") for name in names),
            *(Column(f"the paper's {name} ÷ naive", form=".2f") for name in names[1:]),
        ],
        title=f"RMS error in the attribute's resolution: one of {K} samples can be sent, {SIZE} are kept", labels=2,
    )  # fmt: skip
    worst = 0.0
    for name, (attribute, signal) in recorder.steps(list(signals(options.samples).items())):
        recorder.progress(name)
        found = errors(delivered(attribute, signal, options.seed), attribute)
        sent = ", ".join(str(found[policy][2]) for policy in POLICIES)
        paper = PAPER[name.split(",")[0]]
        for place, drawn in enumerate(("steps", "lines")):
            own = [found[policy][place] for policy in POLICIES]
            # Nothing where naive misses nothing, as of a signal that rests.
            ratios: list[float | None] = [one / own[0] if own[0] else None for one in own[1:]]
            table.row(name, drawn, *own, *ratios, sent, *paper, *(one / paper[0] for one in paper[1:]))
            if drawn == "steps":
                worst = max([worst, *(ratio for ratio in ratios if ratio is not None)])
    recorder.figure(
        "error of winavg and delta against naive, the worst signal",
        worst,
        "",
        ".2f",
        better="less",
        goal=1,
        main=True,
    )


BENCHMARK = Benchmark(measure, quick=Options(samples=80), minutes=2)

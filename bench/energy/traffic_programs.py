"""Power of the traffic mote's three programs: raw samples, a tuple for each vehicle, a count each second. Fjords 2001, figure 10.

Section 6 of the paper. An emulated IRIS mote beside the root samples its accelerometer 200 times a second (the paper: 180) while
vehicles pass, drawn from a seed: each over the sensor for 0.15 to 0.5 s, 1 s on average from one's end to the next one's beginning. The
second table prices the cycles, bits and conversions that were measured as the paper's table 1 does.
"""

from __future__ import annotations

import random
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from bench.measuring.emulated import described, started
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column
from skerry.planner.model.lifetime_budget import CAPACITY
from skerry_testbed.network import Environment
from skerry_testbed.pytest import disc, line_of
from skerry_testbed.queries import ask, rows

PROGRAMS = {
    "raw": "SELECT accel_x",
    "vehicle": "SELECT PULSE(accel_x > 0.3)",
    "count": "SELECT PULSES(accel_x > 0.3, 1 s)",
}
PERIOD_MS = 5
#: mW and days of figure 10 at 180 Hz (the third life is what the second's comes to at its power).
PAPER = {"raw": (13.0, 1.5), "vehicle": (1.1, 17.5), "count": (0.38, 50.7)}
PAPER_RATIOS = {"vehicle": 12, "count": 34}
#: Table 1 of the paper: J a bit, W of the processor at 1 MHz and idle, W and s of a conversion, J of the battery (100 mAh at 5 V).
BIT_J, ACTIVE_W, IDLE_W, ADC_W, ADC_S, BATTERY_J = 4.31e-6, 6e-3, 30e-6, 0.6e-3, 60e-6, 1800.0
CLOCK_HZ, PAPER_HZ = 8_000_000, 1_000_000
SETTLE_S, TRACE_STEP_S, DAY_S = 70, 0.01, 86_400
#: Preamble, SFD and length in front of a frame, and its check sum behind.
FRAME_BYTES = 6
NOTHING = "no query"


@dataclass(frozen=True)
class Options(SeedOptions):
    seed: int = option(10, "what vehicles are drawn from")
    seconds: int = option(120, "of virtual time, for each program")


@dataclass(frozen=True)
class Measured:
    """One program, per second: W by part, seconds of the processor, bits and frames sent, rows at the gateway."""

    processor_w: float
    sending_w: float
    listening_w: float
    sensor_w: float
    active_s: float
    bits: float
    frames: float
    rows: float

    @property
    def total_w(self) -> float:
        """All of it."""
        return self.processor_w + self.sending_w + self.listening_w + self.sensor_w

    @property
    def paper_w(self) -> float:
        """What the same cycles, bits and conversions cost by the paper's table 1."""
        active = self.active_s * CLOCK_HZ / PAPER_HZ
        idle = IDLE_W * max(0.0, 1 - active)
        return self.bits * BIT_J + active * ACTIVE_W + idle + 1000 / PERIOD_MS * ADC_S * ADC_W


def vehicles(seed: int, seconds: int, folder: Path) -> Path:
    """A recording of the accelerometer as a trace, the same for root and mote."""
    rng = random.Random(seed)
    steps = round(seconds / TRACE_STEP_S)
    shaken = [0.0] * steps
    at = 0.0
    while (at := at + 0.1 + rng.expovariate(1 / 0.9)) < seconds:
        length = rng.uniform(0.15, 0.5)
        for step in range(round(at / TRACE_STEP_S), min(steps, round((at + length) / TRACE_STEP_S))):
            shaken[step] = 0.6
        at += length
    noisy = [round(value + rng.gauss(0, 0.03), 3) for value in shaken]
    time = [step * TRACE_STEP_S for step in range(steps)]
    trace = pd.concat([pd.DataFrame({"time": time, "nodeid": node, "accel_x": noisy}) for node in (0, 1)])
    path = folder / "vehicles.parquet"
    trace.to_parquet(path)
    return path


def measured(select: str, trace: Path, options: Options) -> Measured:
    """A program, for so long."""
    seconds = options.seconds
    environment = Environment(trace=str(trace), columns={"accel_x": "accel_x"}, update="10 ms")
    network = described("traffic", line_of(2, spacing=10), disc(12), options.seed, environment=environment)
    net = started(network, SETTLE_S)
    query = (
        ask(net, 1, f"{select} FROM sensors WHERE nodeid = 1 SAMPLE PERIOD {PERIOD_MS} ms")
        if select
        else None
    )
    net.advance(30)
    net.frames.clear()
    heard = 0 if query is None else len(rows(net.line, 1, query))
    before = net.motes[1].energy
    net.advance(seconds)
    after = net.motes[1].energy
    per_s = {key: (after[key] - before[key]) / seconds for key in after}
    sent = [frame.psdu for frame in net.frames if net.bed.motes[frame.sender].id == 1]
    arrived = 0 if query is None else len(rows(net.line, 1, query)) - heard
    return Measured(
        processor_w=sum(per_s[f"cpu_{state}_j"] for state in ("active", "idle", "save")),
        sending_w=per_s["radio_tx_j"],
        listening_w=sum(per_s[f"radio_{state}_j"] for state in ("rx", "idle", "sleep", "off")),
        sensor_w=per_s["sensors_j"],
        active_s=per_s["cpu_active_s"],
        bits=sum(8 * (FRAME_BYTES + len(psdu)) for psdu in sent) / seconds,
        frames=len(sent) / seconds,
        rows=arrived / seconds,
    )


def measure(options: Options, recorder: Recorder) -> None:
    """All programs, and a mote without one."""
    own = recorder.table(
        "power",
        [
            Column("program"), Column("rows/s", form=".1f"), Column("frames/s", form=".1f"),
            *(Column(part, "mW", ".2f", better="less") for part in ("processor", "sending", "listening", "sensor", "all")),
            Column("raw is", "×", ".1f"), Column("days on two AA", form=".0f", better="more"),
        ],
        title=f"{1000 // PERIOD_MS} samples a second",
    )  # fmt: skip
    found: dict[str, Measured] = {}
    with tempfile.TemporaryDirectory() as folder:
        recorder.progress("drawing vehicles")
        trace = vehicles(options.seed, SETTLE_S + 60 + options.seconds, Path(folder))
        for name, select in recorder.steps([(NOTHING, ""), *PROGRAMS.items()]):
            recorder.progress(name)
            found[name] = measured(select, trace, options)
    raw = found["raw"]
    for name, one in found.items():
        parts = (one.processor_w, one.sending_w, one.listening_w, one.sensor_w, one.total_w)
        days = CAPACITY / one.total_w / DAY_S
        own.row(
            name, one.rows, one.frames, *(1e3 * watts for watts in parts), raw.total_w / one.total_w, days
        )
    priced = recorder.table(
        "paper",
        [
            Column("program"), Column("cycles a sample", form=",.0f", better="less"), Column("bits/s", form=".0f"),
            Column("power", "mW", ".2f", better="less"), Column("raw is", "×", ".1f"),
            Column("days on its 100 mAh", form=".1f", better="more"), Column("paper: power", "mW", "g"),
            Column("paper: raw is", "×", ".0f"), Column("paper: days", form="g"),
        ],
        title="The same by the prices of the paper's table 1",
    )  # fmt: skip
    for name in PROGRAMS:
        one = found[name]
        cycles = one.active_s * CLOCK_HZ / (1000 / PERIOD_MS)
        power, life = PAPER[name]
        priced.row(
            name, cycles, one.bits, 1e3 * one.paper_w, raw.paper_w / one.paper_w, BATTERY_J / one.paper_w / DAY_S,
            power, PAPER["raw"][0] / power, life,
        )  # fmt: skip
    for name, goal in PAPER_RATIOS.items():
        recorder.figure(
            f"power of raw samples ÷ that of the program {name}", raw.total_w / found[name].total_w, "", ".1f", better="more",
            goal=goal, reference="the paper", main=True,
        )  # fmt: skip
        recorder.figure(
            f"the same by the paper's prices, {name}",
            raw.paper_w / found[name].paper_w,
            "",
            ".1f",
            better="more",
            goal=goal,
        )


BENCHMARK = Benchmark(measure, quick=Options(seconds=5), minutes=0.5)

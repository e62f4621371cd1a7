"""Predicted against measured lifetime on a scaled battery: figure 5 of TinyDB 2005.

Emulated IRIS motes in a line run the paper's query on batteries of some joules for as many hours as give each mote the power that
two AA cells give for the paper's 24 weeks. Their voltage falls as their meters count; each mote reckons from it. Of a mote whose battery
is not empty when the time is over, the life is what its use comes to, as in the paper's linear fit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bench.measuring.emulated import advance_to, described, install, started
from bench.measuring.plans import plan_of
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column
from skerry.planner.model.lifetime_budget import CAPACITY, EMPTY, FULL
from skerry.planner.physical.merge import merge
from skerry_protocol.codes import PacketType
from skerry_testbed.network import Field
from skerry_testbed.pytest import MoteHandle, disc, line_of

SQL = "SELECT voltage, light FROM sensors"
#: What figure 5 was drawn for, and what its motes missed it by.
WEEKS, PAPER_ERROR = 24, 3.0
#: How often voltages follow the meters, in s.
STEP_S = 60


def joules(mote: MoteHandle) -> float:
    """All that a mote has taken since it started."""
    return sum(value for key, value in mote.energy.items() if key.endswith("_j"))


@dataclass(frozen=True)
class Options(SeedOptions):
    joules: int = option(24, "of the scaled battery")
    weeks: float = option(float(WEEKS), "that it stands for")
    motes: int = option(4, "in a line, the root first")


def measure(options: Options, recorder: Recorder) -> None:
    """One run, until the time that was asked for is over."""
    capacity = options.joules
    length = round(options.weeks * 604_800 * capacity / CAPACITY)
    plan = plan_of(f"{SQL} LIFETIME {options.weeks:g} weeks")
    assert plan.budget is not None
    query = merge([replace(plan, budget=replace(plan.budget, capacity=capacity))])
    fields = {"light": Field(base=300.0)}
    net = started(
        described("lifetime", line_of(options.motes, spacing=10), disc(12), options.seed, fields), 200
    )
    start = int(net.line.network_time()) + 12
    install(net, 1, query, start, start + length)
    advance_to(net, start)
    before = {node: joules(mote) for node, mote in net.motes.items() if node}
    # A battery holds charge: what a mote takes at a lower voltage counts for as much more of the joules that it gave at the full one.
    used, volts = dict.fromkeys(before, 0.0), dict.fromkeys(before, FULL / 1000)
    lived: dict[int, float] = {}
    for second in recorder.steps(range(STEP_S, length + STEP_S, STEP_S), "minutes"):
        net.advance(STEP_S)
        for node in before.keys() - lived.keys():
            total = joules(net.motes[node])
            taken = (total - before[node]) / volts[node] * FULL / 1000
            before[node] = total
            used[node] += taken
            left = 1 - used[node] / capacity
            if left <= 0:
                lived[node] = second - STEP_S * (used[node] - capacity) / taken
                net.motes[node].kill()
            else:
                volts[node] = (EMPTY + (FULL - EMPTY) * left) / 1000
                net.motes[node].sense(voltage=volts[node])
    recorder.figure("lifetime asked for", length / 3600, "h", ".3f")
    recorder.figure(
        "the network's sample period", plan.period_ms / 1000, "s", ".2f", reference="the paper's: 15.2 s"
    )
    table = recorder.table(
        "lives",
        [
            Column("mote"), Column("rows", form=",", better="more"), Column("battery used in the time asked for", "%", ".1f"),
            Column("lives", "h", ".3f"), Column("off by", "%", "+.2f"),
        ],
    )  # fmt: skip
    off = {}
    for node in sorted(before):
        rows = sum(record.body.node == node for record in net.line.of(PacketType.RESULT, 1))
        life = lived.get(node, length * capacity / used[node])
        off[node] = 100 * (life / length - 1)
        table.row(node, rows, 100 * used[node] / capacity, life / 3600, off[node])
    middle = max((off[node] for node in sorted(before)[:-1] or before), key=abs)
    recorder.figure(
        "lifetime of motes in the middle, off by at most", abs(middle), "%", ".2f", better="less", goal=2,
        reference=f"the paper's mote: {PAPER_ERROR:.0f} %", main=True,
    )  # fmt: skip


BENCHMARK = Benchmark(measure, quick=Options(joules=1, motes=3), minutes=3)

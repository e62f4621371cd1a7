"""What a query costs that waits for events, beside one that runs all the time: figure 7 of TinyDB 2005.

Four emulated IRIS motes in a line; events come at a rate, and after each the motes sample light for some seconds. The paper models the
sensors and the CPU; here all that a mote takes is measured, radio included.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.measuring.emulated import described, install, started
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column, Result
from skerry_protocol.codes import CommandOp
from skerry_protocol.commands import event_number
from skerry_protocol.limits import BROADCAST
from skerry_protocol.records import Event
from skerry_testbed.network import Field
from skerry_testbed.pytest import disc, line_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SAMPLES = "SELECT light FROM sensors SAMPLE PERIOD 1 s"
WARM_S = 300
#: For so many s motes sample after an event.
LASTS_S = (3, 10)
EVERY = "events an hour"


@dataclass(frozen=True)
class Options(SeedOptions):
    every: tuple[int, ...] = option((600, 120, 60, 30, 15), "s from an event to the next, in turn")
    seconds: int = option(1200, "of virtual time over which the mean is taken")


def power(sql: str, every_s: float | None, options: Options) -> tuple[float, float]:
    """Mean of the three motes behind the root in mW, and what of it the sensors take, while an event comes each so many s."""
    seconds = options.seconds
    net = started(
        described("events", line_of(4, spacing=10), disc(12), options.seed, {"light": Field(base=300.0)}), 20
    )
    install(net, 1, sql, int(net.line.network_time()) + 10)
    net.advance(WARM_S)

    def taken() -> tuple[float, float]:
        meters = [mote.energy for node, mote in net.motes.items() if node]
        return sum(v for m in meters for k, v in m.items() if k.endswith("_j")), sum(
            m["sensors_j"] for m in meters
        )

    before = taken()
    end = net.now + seconds
    token = 1
    while net.now < end:
        if every_s is not None:
            now = int(net.line.network_time())
            event = Event.build(
                {"event": event_number("look"), "node": 0, "x": 0, "y": 0, "seconds": now, "value": 0}
            )
            net.line.command(BROADCAST, CommandOp.EVENT, bytes(event), token)
            token += 1
        net.advance(min(every_s or seconds, end - net.now))
    total, sensors = (after - first for after, first in zip(taken(), before, strict=True))
    return total / seconds / 3 * 1e3, sensors / seconds / 3 * 1e3


def measure(options: Options, recorder: Recorder) -> None:
    """All rates of events, beside a query that runs all the time."""
    columns = [
        Column(f"for {lasts} s{what}", "mW", ".2f", better="less") for lasts in LASTS_S for what in ("", ", sensors alone")
    ]  # fmt: skip
    table = recorder.table("power", [Column(EVERY, form=".0f"), *columns], title="Mean power of a mote")
    rates: list[int | None] = [None, *options.every]
    for every in recorder.steps(rates):
        cells: list[float] = []
        for lasts in LASTS_S:
            cells += power(f"ON EVENT look {SAMPLES} FOR {lasts} s", every, options)
        table.row(3600 / every if every else 0.0, *cells)
        if every is None:
            recorder.figure(
                "a mote whose query waits for events, of which none comes",
                cells[0],
                "mW",
                ".2f",
                better="less",
                main=True,
            )
    total, sensors = power(SAMPLES, None, options)
    recorder.figure("a mote whose query runs all the time", total, "mW", ".2f", better="less", main=True)
    recorder.figure("the same, sensors alone", sensors, "mW", ".2f", better="less")


def draw(result: Result) -> Figure:
    """Figure 7 of the paper."""
    from bench.runner.charts import lines  # noqa: PLC0415 (what measures does without)

    names = [f"for {lasts} s" for lasts in LASTS_S]
    return lines(result, "power", EVERY, names, "mean power of a mote, mW")


BENCHMARK = Benchmark(measure, quick=Options(every=(60,), seconds=120), minutes=1, chart=draw)

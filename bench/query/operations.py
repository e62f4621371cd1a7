"""What an operation of the motes' expression machine takes: cycles and energy on an emulated IRIS.

Two programs that differ by twenty operations run for the same epochs; what their CPU times differ by is divided among the operations.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.measuring.emulated import advance_to, described, started
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column
from skerry_protocol.attributes import BY_NAME, ValueFormat
from skerry_protocol.bytecode import Op, constant, instruction
from skerry_protocol.codec import encode_program
from skerry_protocol.codes import Aggregate
from skerry_protocol.limits import FOREVER
from skerry_testbed.pytest import disc, line_of

OPERATIONS = 20
CLOCK_HZ = 8_000_000
#: CPU active at 3 V: 6.2 mA (the emulator's meter).
ACTIVE_W = 6.2e-3 * 3.0
_X = instruction(Op.ATTR, BY_NAME["nodeid"].number)
ADDITION = "constant, ADD"
#: What is repeated behind a value, and how it is called.
_REPEATED: dict[str, bytes] = {
    "NOT": instruction(Op.NOT),
    "IS NULL": instruction(Op.IS_NULL),
    "NEG": instruction(Op.NEG),
    "UPSCALE 0": instruction(Op.UPSCALE, 0),
    "DOWNSCALE 2": instruction(Op.DOWNSCALE, 2),
    ADDITION: constant(3) + instruction(Op.ADD),
    "constant, MUL": constant(3) + instruction(Op.MUL, 0),
    "constant, MUL, 10^2": constant(3) + instruction(Op.MUL, 2),
    "constant, DIV, 10^3": constant(3) + instruction(Op.DIV, 3),
    "constant, MOD": constant(7) + instruction(Op.MOD),
    "constant, HYPOT": constant(3) + instruction(Op.HYPOT),
    "constant, LT": constant(3) + instruction(Op.LT),
    "constant, AND": constant(1) + instruction(Op.AND),
    "attribute, ADD": _X + instruction(Op.ADD),
    "constant of 32 bits, SUB": constant(100_000) + instruction(Op.SUB),
}


@dataclass(frozen=True)
class Options(SeedOptions):
    epochs: int = option(100, "of 1 s, for each operation")


def active_s(code: bytes, options: Options) -> float:
    """CPU time of the mote over the epochs of a query that computes this."""
    net = started(described("operations", line_of(1, spacing=10), disc(12), options.seed), 10)
    # Nothing passes: no row goes out, whatever the value is.
    field = {"format": ValueFormat.I32.code, "aggregate": int(Aggregate.NONE), "code": _X}
    where = code + instruction(Op.NULL) + instruction(Op.AND)
    start = int(net.line.network_time()) + 5
    program = encode_program(flags=0, period=1000, start=start, end=FOREVER, where=where, fields=[field])
    net.line.install(1, program)
    advance_to(net, start + 0.5)
    before = net.motes[0].energy["cpu_active_s"]
    net.advance(options.epochs)
    return net.motes[0].energy["cpu_active_s"] - before


def measure(options: Options, recorder: Recorder) -> None:
    """All operations."""
    table = recorder.table(
        "operations",
        [Column("operation"), Column("cycles", form=",.0f", better="less"), Column("energy", "µJ", ".2f", better="less")],
    )  # fmt: skip
    empty = active_s(_X, options)
    for name, code in recorder.steps(list(_REPEATED.items())):
        recorder.progress(name)
        each = (active_s(_X + code * OPERATIONS, options) - empty) / OPERATIONS / options.epochs
        cycles, energy = each * CLOCK_HZ, each * ACTIVE_W * 1e6
        table.row(name, cycles, energy)
        if name == ADDITION:
            recorder.figure("an addition on a mote", cycles, "cycles", ",.0f", better="less", main=True)
            recorder.figure("the same, energy", energy, "µJ", ".2f", better="less")


BENCHMARK = Benchmark(measure, quick=Options(epochs=5), minutes=0.5)

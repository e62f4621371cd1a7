"""What an operation of the motes' expression machine takes: cycles and energy on an emulated IRIS. ``python -m bench.vm``

Two programs that differ by twenty operations run for the same epochs; what their CPU times differ by is divided among the operations.
"""

from __future__ import annotations

import argparse

from skerry_protocol.attributes import BY_NAME, ValueFormat
from skerry_protocol.bytecode import Op, constant, instruction
from skerry_protocol.codec import encode_program
from skerry_protocol.packets import FOREVER, Aggregate
from skerry_testbed.network import Environment, Network, check
from skerry_testbed.pytest import NetworkHandle, disc, line_of

OPERATIONS, EPOCHS = 20, 100
CLOCK_HZ = 8_000_000
#: CPU active at 3 V: 6.2 mA (the emulator's meter).
ACTIVE_W = 6.2e-3 * 3.0
_X = instruction(Op.ATTR, BY_NAME["nodeid"].number)
#: What is repeated behind a value, and how it is called.
_REPEATED: dict[str, bytes] = {
    "NOT": instruction(Op.NOT),
    "IS NULL": instruction(Op.IS_NULL),
    "NEG": instruction(Op.NEG),
    "UPSCALE 0": instruction(Op.UPSCALE, 0),
    "DOWNSCALE 2": instruction(Op.DOWNSCALE, 2),
    "constant, ADD": constant(3) + instruction(Op.ADD),
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


def active_s(code: bytes) -> float:
    """CPU time of the mote over the epochs of a query that computes this."""
    net = NetworkHandle(
        check(
            Network(name="vm", seed=1, mote=line_of(1, spacing=10), radio=disc(12), environment=Environment())
        )
    )
    net.advance("2.5s")
    net.line.connect()
    net.advance("10s")
    # Nothing passes: no row goes out, whatever the value is.
    field = {"format": ValueFormat.I32.code, "aggregate": int(Aggregate.NONE), "code": _X}
    where = code + instruction(Op.NULL) + instruction(Op.AND)
    start = int(net.line.network_time()) + 5
    program = encode_program(flags=0, period=1000, start=start, end=FOREVER, where=where, fields=[field])
    net.line.install(1, program)
    net.advance(start + 0.5 - net.line.network_time())
    before = net.motes[0].energy["cpu_active_s"]
    net.advance(EPOCHS)
    return net.motes[0].energy["cpu_active_s"] - before


def main() -> None:
    """Command line."""
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args()
    empty = active_s(_X)
    table = ["| operation | cycles | energy, µJ |", "| --- | --- | --- |"]
    for name, code in _REPEATED.items():
        each = (active_s(_X + code * OPERATIONS) - empty) / OPERATIONS / EPOCHS
        table.append(f"| {name} | {each * CLOCK_HZ:,.0f} | {each * ACTIVE_W * 1e6:.2f} |")
    print("\n".join(table))


if __name__ == "__main__":
    main()

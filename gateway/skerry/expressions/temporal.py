"""Temporal aggregates as nodes of expressions: functions of one mote's own rows over time, which motes compute.

:mod:`skerry.planner.semantics.temporal_aggregates` says how they are written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from skerry.expressions import build
from skerry.expressions.build import INT32_MAXIMUM
from skerry.expressions.expression import Expr
from skerry_protocol.codes import TEMPORAL_EPOCHS, Aggregate
from skerry_protocol.limits import WINDOW_MAXIMUM

PULSE_KINDS = (Aggregate.PULSE, Aggregate.PULSES)
PULSES_WINDOW_MAXIMUM = 0xFFFF


@dataclass(frozen=True, slots=True)
class Parameters:
    """Of a temporal aggregate, as :data:`skerry_protocol.programs.Temporal` has them. ``period_ms``: of the epochs that a
    window written in times counts; 0: it counts rows."""

    window: int
    slide: int
    power: int
    period_ms: int = 0

    def encode(self) -> bytes:
        """What its code begins with."""
        return bytes((self.window, self.slide, self.power | (TEMPORAL_EPOCHS if self.period_ms else 0)))


def is_temporal(expr: Expr) -> bool:
    """Whether the node is a temporal aggregate."""
    return expr.aggregate >= Aggregate.WINAVG


def is_pulse(expr: Expr) -> bool:
    """Whether it is one of a condition that becomes true and false again."""
    return expr.aggregate in PULSE_KINDS


def temporal_nodes(exprs: Iterable[Expr]) -> list[Expr]:
    """The temporal aggregates in some expressions, each once."""
    return list(dict.fromkeys(node for expr in exprs for node in expr.walk() if is_temporal(node)))


def parameters(node: Expr) -> Parameters:
    """What the aggregate's window is."""
    return Parameters(*(value for value in node.final[1:] if isinstance(value, int)))


def counts_epochs(node: Expr) -> bool:
    """Whether it is a window written in times."""
    return parameters(node).period_ms > 0


def pulses_window(node: Expr) -> int:
    """Epochs in the window of PULSES."""
    values = parameters(node)
    return values.window | values.slide << 8


def pulse_of(node: Expr) -> Expr:
    """PULSE of the condition of PULSE or PULSES."""
    return temporal_node(Aggregate.PULSE, node.args[0], Parameters(0, 0, 0))


def temporal_node(kind: Aggregate, argument: Expr, values: Parameters) -> Expr:
    # As row windows were before there were others: what a gateway has kept reads the same.
    final = (values.window, values.slide, values.power, *([values.period_ms] if values.period_ms else []))
    low, high, unit = argument.low, argument.high, argument.unit
    if kind in PULSE_KINDS:
        most = INT32_MAXIMUM if kind is Aggregate.PULSE else PULSES_WINDOW_MAXIMUM
        return build.temporal(kind, argument, final, 0, 0, most, "")
    if kind is Aggregate.WINCOUNT:
        return build.temporal(kind, argument, final, 0, 0, WINDOW_MAXIMUM, "")
    if kind is Aggregate.WINSUM:
        low, high = max(low * values.window, -INT32_MAXIMUM), min(high * values.window, INT32_MAXIMUM)
    if kind is Aggregate.TREND:
        # A slope beyond a mote's 32 bits is NULL, as a sum is.
        low, high = max(low - high, -INT32_MAXIMUM), min(high - low, INT32_MAXIMUM)
    factor = 10**values.power
    return build.temporal(
        kind, argument, final, argument.digits + values.power, low * factor, high * factor, unit
    )

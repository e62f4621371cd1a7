"""Exemplary aggregates pushed down: a reading that cannot change its window makes all that WHERE asks superfluous.

In ``SELECT WINMAX(light, 8 s, 8 s) … WHERE accel_x > 0.5`` a reading of light that is no brighter than the window's
brightest so far need not be counted, so that accel_x need not be sampled. The motes' CHANGES opcode says whether a
reading can change its window; as one more condition it drops epochs without changing any row. Source: TinyDB 2005,
4.2.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from skerry.expressions import build
from skerry.expressions.assembler import obstacle
from skerry.expressions.expression import Expr, attributes_of
from skerry.expressions.temporal import Parameters, counts_epochs, is_temporal, parameters
from skerry.planner.model.plans import Column, MoteQuery
from skerry_protocol.attributes import BY_NUMBER
from skerry_protocol.bytecode import Op
from skerry_protocol.codes import Aggregate

_EXEMPLARY = (Aggregate.WINMIN, Aggregate.WINMAX)


@dataclass(frozen=True, slots=True)
class Derived:
    """A condition that a query may ask besides its own: no row differs. ``share`` of epochs for which it is true, 0..1."""

    condition: Expr
    share: float


def derived(query: MoteQuery, passing: float) -> Derived | None:
    """Whether a query's readings can change its windows; None: it has no such windows, or something needs each epoch.

    ``passing``: share of epochs that pass the query's own conditions.
    """
    windows = {i: c.expr for i, c in enumerate(query.columns) if c.expr is not None and is_temporal(c.expr)}
    beside = [c for i, c in enumerate(query.columns) if i not in windows]
    if query.aggregate or not windows or any(map(_samples, beside)):
        return None
    if not all(map(_is_exemplary, windows.values())):
        return None
    condition = build.join(Op.OR, [build.changes(i, window) for i, window in windows.items()])
    assert condition is not None
    if obstacle(condition) is not None:
        return None
    unchanged = prod(1 - changing(parameters(window), passing) for window in windows.values())
    return Derived(condition, 1 - unchanged)


def _samples(column: Column) -> bool:
    return column.expr is not None and any(BY_NUMBER[number].energy for number in attributes_of(column.expr))


def _is_exemplary(window: Expr) -> bool:
    have = parameters(window)
    return window.aggregate in _EXEMPLARY and counts_epochs(window) and have.window <= have.slide


def changing(window: Parameters, passing: float) -> float:
    """Share of epochs whose reading changes its window's extreme so far, where a share of ``passing`` is counted.

    As the paper, this takes all readings to be drawn alike. The next one then exceeds j earlier ones with probability
    1 / (j + 1); of k - 1 epochs before it in its window, j are counted, binomially, which makes (1 - (1 - p)^k) / (k p)
    on average. Epochs of a slide longer than its window change nothing before the window begins.
    """
    epochs = range(1, window.window + 1)
    if passing <= 0:
        return window.window / window.slide
    return sum((1 - (1 - passing) ** k) / (k * passing) for k in epochs) / window.slide

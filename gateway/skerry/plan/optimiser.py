"""In which order motes ask a query's conditions, and what each order costs.

Sampling is what a mote pays for: a condition on a cheap sensor that is often false, asked first, saves the sensors
that only later conditions and the columns read. Conditions are a conjunction, so that any order gives the same rows.
Source: TinyDB 2005, section 5.1; with costs that conditions share (a sensor read once serves all), the orders of up to
:data:`TRIED` conditions are tried out, and beyond that the next best is taken each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations

from skerry.plan.expression import Expr, Kind, attributes_of, conjuncts, render
from skerry.plan.model import MoteQuery
from skerry_protocol.attributes import BY_NUMBER
from skerry_protocol.bytecode import Op

#: Conditions whose every order is considered: 120 orders.
TRIED = 5
#: Share of rows that pass where nothing is known (System R's, as in the paper's time).
_FIXED = {Op.EQ: 0.1, Op.NE: 0.9}
_OTHER = 1 / 3
_FLIPPED = {Op.LT: Op.GT, Op.GT: Op.LT, Op.LE: Op.GE, Op.GE: Op.LE}


@dataclass(frozen=True, slots=True)
class SamplingPlan:
    """Conditions in order; ``staged``: sensors are read as they are needed, else all at the epoch's start.

    ``energy`` in J is what sampling takes on average for an epoch of one mote.
    """

    conditions: tuple[Expr, ...]
    staged: bool
    energy: float

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        order = [render(condition) for condition in self.conditions]
        return {"conditions": order, "staged": self.staged, "energy_per_epoch": self.energy}


def selectivity(condition: Expr) -> float:
    """Estimated share of rows for which a condition is true, 0..1: readings are taken to be spread evenly over the
    attribute's range."""
    if condition.kind is Kind.NULL:
        return 0.0
    logical = condition.op in (Op.AND, Op.OR, Op.NOT)
    parts = [selectivity(part) for part in condition.args] if logical else []
    match condition.op:
        case Op.AND:
            return parts[0] * parts[-1]
        case Op.OR:
            return 1 - (1 - parts[0]) * (1 - parts[-1])
        case Op.NOT:
            return 1 - parts[0]
        case Op.LT | Op.LE | Op.GT | Op.GE:
            return _of_comparison(condition)
    return _FIXED.get(condition.op, _OTHER)


def _of_comparison(condition: Expr) -> float:
    (left, right), op = condition.args, condition.op
    if left.is_constant:
        left, right, op = right, left, _FLIPPED[op]
    if not right.is_constant or right.operand is None:
        return _OTHER
    low, high = float(left.low), float(left.high)
    if left.is_attribute and left.operand is not None:
        entry = BY_NUMBER[left.operand]
        low, high = entry.minimum * 10**left.digits, entry.maximum * 10**left.digits
    below = min(1.0, max(0.0, (right.operand - low) / (high - low))) if high > low else _OTHER
    return below if op in (Op.LT, Op.LE) else 1 - below


def _energy(attributes: frozenset[int]) -> float:
    return sum(BY_NUMBER[number].energy for number in attributes)


def expected_energy(order: Sequence[Expr], columns: frozenset[int]) -> float:
    """Of asking conditions in this order, and reading what columns need where all are true."""
    energy, share = 0.0, 1.0
    read = frozenset[int]()
    for condition in order:
        needs = attributes_of(condition) - read
        energy += share * _energy(needs)
        read |= needs
        share *= selectivity(condition)
    return energy + share * _energy(columns - read)


@lru_cache(maxsize=4096)
def considered(query: MoteQuery) -> tuple[SamplingPlan, ...]:
    """All plans that were thought of, the chosen one first."""
    columns = frozenset[int]().union(*(attributes_of(c.expr) for c in query.columns if c.expr is not None))
    conditions = tuple(conjuncts(query.where))
    everything = columns.union(*map(attributes_of, conditions))
    at_once = SamplingPlan(conditions, False, _energy(everything))
    if not conditions:
        return (at_once,)
    orders = list(permutations(conditions)) if len(conditions) <= TRIED else [_greedy(conditions)]
    staged = [SamplingPlan(order, True, expected_energy(order, columns)) for order in orders]
    # Of equal ones the first: as the user wrote it, and at once before one after the other.
    return tuple(sorted([at_once, *staged], key=lambda plan: plan.energy))


def _greedy(conditions: Sequence[Expr]) -> tuple[Expr, ...]:
    """The cheapest way to lose a row first: energy over the share that a condition drops, each time anew."""
    left, order = list(conditions), list[Expr]()
    read = frozenset[int]()
    while left:
        rank = {c: _energy(attributes_of(c) - read) / max(1e-9, 1 - selectivity(c)) for c in left}
        best = min(left, key=rank.__getitem__)
        left.remove(best)
        order.append(best)
        read |= attributes_of(best)
    return tuple(order)


def chosen(query: MoteQuery) -> SamplingPlan:
    """The plan that the mote query's program carries."""
    return considered(query)[0]

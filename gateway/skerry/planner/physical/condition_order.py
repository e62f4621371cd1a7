"""In which order motes ask a query's conditions, and what each order costs.

Sampling is what a mote pays for: a condition on a cheap sensor that is often false, asked first, saves the sensors
that only later conditions and the columns read. Conditions are a conjunction, so that any order gives the same rows.
Source: TinyDB 2005, section 4.2. Its series-parallel ordering of jobs is optimal where no two conditions share a sensor;
a sensor read once serves all here, so that the orders of up to :data:`TRIED` conditions are tried out, and beyond that
the best is found over the sets of sensors that have been read. Windows may ask one condition more
(:mod:`skerry.planner.physical.pushdown`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import permutations
from math import prod
from types import MappingProxyType

from skerry.expressions.expression import Expr, Kind, attributes_of, conjuncts, render
from skerry.planner.model.pairing import carried_columns, pairs_clause
from skerry.planner.model.plans import MoteQuery
from skerry.planner.physical.pushdown import derived
from skerry_protocol.attributes import BY_NAME, BY_NUMBER, EVENT_BY_NAME
from skerry_protocol.bytecode import Op

#: Conditions whose every order is considered: 120 orders.
TRIED = 5
#: Sets of conditions on the same sensors, beyond which the next best is taken each time: 4096 sets of these sets.
GROUPS = 12
_ESTIMATED: Mapping[Expr, float] = MappingProxyType({})
#: Share of rows that pass where nothing is known (System R's, as in the paper's time).
_FIXED = {Op.EQ: 0.1, Op.NE: 0.9}
_OTHER = 1 / 3
#: Attributes whose range, what a mote can be told, says nothing of where motes are.
_PLACES = frozenset(BY_NAME[name].number for name in ("xpos", "ypos")) | {
    EVENT_BY_NAME[name].number for name in ("event.xpos", "event.ypos")
}
_FLIPPED = {Op.LT: Op.GT, Op.GT: Op.LT, Op.LE: Op.GE, Op.GE: Op.LE}


@dataclass(frozen=True, slots=True)
class SamplingPlan:
    """Conditions in order; ``staged``: sensors are read as they are needed, else all at the epoch's start.

    ``energy`` in J is what sampling takes on average for an epoch of one mote. ``pushed``: a condition is one that the
    query did not ask, whether its readings can change its windows.
    """

    conditions: tuple[Expr, ...]
    staged: bool
    energy: float
    pushed: bool = False

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        order = [render(condition) for condition in self.conditions]
        return {
            "conditions": order,
            "staged": self.staged,
            "pushed_down": self.pushed,
            "energy_per_epoch": self.energy,
        }


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
    if not right.is_constant or right.operand is None or attributes_of(left) & _PLACES:
        return _OTHER
    low, high = float(left.low), float(left.high)
    if left.is_attribute and left.operand is not None:
        entry = BY_NUMBER[left.operand]
        low, high = entry.minimum * 10**left.digits, entry.maximum * 10**left.digits
    below = min(1.0, max(0.0, (right.operand - low) / (high - low))) if high > low else _OTHER
    return below if op in (Op.LT, Op.LE) else 1 - below


def _energy(attributes: frozenset[int]) -> float:
    return sum(BY_NUMBER[number].energy for number in attributes)


def expected_energy(
    order: Sequence[Expr], columns: frozenset[int], shares: Mapping[Expr, float] = _ESTIMATED
) -> float:
    """Of asking conditions in this order, and reading what columns need where all are true. ``shares``: of epochs for
    which a condition is true, where it is not for :func:`selectivity` to say."""
    energy, share = 0.0, 1.0
    read = frozenset[int]()
    for condition in order:
        needs = attributes_of(condition) - read
        energy += share * _energy(needs)
        read |= needs
        share *= shares[condition] if condition in shares else selectivity(condition)
    return energy + share * _energy(columns - read)


@lru_cache(maxsize=4096)
def considered(query: MoteQuery) -> tuple[SamplingPlan, ...]:
    """All plans that were thought of, the cheapest first."""
    # What actions and events are told is read where a row passes, as columns are.
    pairs = pairs_clause(query)
    own = query.columns if pairs is None else carried_columns(pairs, query.where)
    read = [column.expr for column in own] + [clause.expr for clause in query.clauses]
    columns = frozenset[int]().union(*(attributes_of(expr) for expr in read if expr is not None))
    conditions = tuple(conjuncts(query.where))
    everything = columns.union(*map(attributes_of, conditions))
    at_once = SamplingPlan(conditions, False, _energy(everything))
    if not conditions or query.at_once or conditions[0].kind is Kind.NUMBER:
        # A number says for which alias of a join a row is, and is carried, too.
        return (at_once,)
    shares = {condition: selectivity(condition) for condition in conditions}
    orders = [(order, False) for order in _orders(conditions, columns, shares)]
    more = derived(query, prod(shares.values()))
    if more is not None:
        shares[more.condition] = more.share
        orders += [(order, True) for order in _orders((*conditions, more.condition), columns, shares)]
    staged = [
        SamplingPlan(order, True, expected_energy(order, columns, shares), pushed) for order, pushed in orders
    ]
    # Of equal ones the first: as the user wrote it, and at once before one after the other.
    return tuple(sorted([at_once, *staged], key=lambda plan: plan.energy))


def _orders(
    conditions: Sequence[Expr], columns: frozenset[int], shares: Mapping[Expr, float]
) -> list[tuple[Expr, ...]]:
    """Orders worth considering, an optimal one among them (beyond GROUPS, a good one)."""
    if len(conditions) <= TRIED:
        return list(permutations(conditions))
    groups: dict[frozenset[int], _Group] = {}
    for condition in conditions:
        needs = frozenset(number for number in attributes_of(condition) if BY_NUMBER[number].energy)
        group = groups.setdefault(needs, _Group(needs))
        group.conditions.append(condition)
        group.share *= shares[condition]
    found = list(groups.values())
    chains = _best_chains(found, columns) if len(found) <= GROUPS else [_greedy(found)]
    return [tuple(condition for group in chain for condition in group.conditions) for chain in chains]


@dataclass(eq=False, slots=True)
class _Group:
    """Conditions that need the same sensors: once the first has been asked, the others cost nothing."""

    needs: frozenset[int]
    conditions: list[Expr] = field(default_factory=list)
    share: float = 1.0


def _best_chains(groups: Sequence[_Group], columns: frozenset[int]) -> list[list[_Group]]:
    """For each group the best order that begins with it.

    What is left to pay, for an epoch that has passed a set of groups, depends on the set alone and not on its order:
    rest(S) = min over g of energy(g's sensors not read by S) + share(g) * rest(S with g).
    """
    everything = (1 << len(groups)) - 1
    read = [frozenset[int]()] * (everything + 1)
    for asked in range(1, everything + 1):
        newest = asked.bit_length() - 1
        read[asked] = read[asked & ~(1 << newest)] | groups[newest].needs
    rest = [0.0] * (everything + 1)
    then = [0] * (everything + 1)
    rest[everything] = _energy(columns - read[everything])

    def cost(asked: int, index: int) -> float:
        group = groups[index]
        return _energy(group.needs - read[asked]) + group.share * rest[asked | 1 << index]

    for asked in range(everything - 1, -1, -1):
        left = [i for i in range(len(groups)) if not asked >> i & 1]
        costs = [cost(asked, i) for i in left]
        rest[asked] = min(costs)
        then[asked] = left[costs.index(rest[asked])]
    chains = []
    for first in range(len(groups)):
        order, asked = [first], 1 << first
        while asked != everything:
            order.append(then[asked])
            asked |= 1 << then[asked]
        chains.append([groups[i] for i in order])
    return chains


def _greedy(groups: Sequence[_Group]) -> list[_Group]:
    """The cheapest way to lose a row first: energy over the share that a group drops, each time anew."""
    left, order = list(groups), list[_Group]()
    read = frozenset[int]()
    while left:
        best = min(left, key=lambda group: _energy(group.needs - read) / max(1e-9, 1 - group.share))
        left.remove(best)
        order.append(best)
        read |= best.needs
    return order

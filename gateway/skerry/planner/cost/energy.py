"""What a mote query takes of a mote's battery: its sensors, and sending a record over one hop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from skerry.expressions.expression import conjuncts, render
from skerry.planner.cost.event_batching import rows_of
from skerry.planner.cost.radio import record_energy
from skerry.planner.features.queueing import sent_each
from skerry.planner.model.clause import aligned_ms
from skerry.planner.model.columns import IN_EVERY_ROW
from skerry.planner.model.plans import MoteQuery, QueryPlan
from skerry.planner.physical.condition_order import considered, selectivity
from skerry.planner.physical.fast_sampling import is_fast
from skerry.planner.physical.merge import merge
from skerry_protocol.attributes import BY_NUMBER
from skerry_protocol.codes import Aggregate
from skerry_protocol.limits import PERIOD_MINIMUM_MS, QUERIES_MAXIMUM, SERIES_BYTES_MAXIMUM
from skerry_protocol.records import AggregateState, Partial, Result

#: Rows of a query with one of these stay on their motes.
_KEPT = (Aggregate.STORE, Aggregate.INTO, Aggregate.SRT)
#: Users whose own queries are reckoned with; of more, these stand for the rest.
_RECKONED = 32


def record_bytes(query: MoteQuery) -> int:
    """Bytes of one RESULT or PARTIAL body."""
    if query.aggregate:
        fixed = sum(field.sizeof() for field in Partial.subcons[:-1])
        return int(fixed + AggregateState.sizeof() * len(query.columns))
    fixed = sum(field.sizeof() for field in Result.subcons[:-1])
    return int(fixed + sum(column.format.size for column in query.columns))


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one mote, on average, in J for each epoch of the period: sensors, and its own records over one hop."""

    period_ms: int
    sampling: float
    radio: float

    @property
    def watts(self) -> float:
        """The same all the time, so that different periods can be compared."""
        return (self.sampling + self.radio) * 1000 / self.period_ms

    def to_dict(self, what: str) -> dict[str, Any]:
        """For JSON."""
        energies = {"sampling_energy": self.sampling, "radio_energy": self.radio, "power": self.watts}
        return {"what": what, "period_ms": self.period_ms, **energies}


def stays(query: MoteQuery) -> bool:
    """Whether motes keep the rows, and send none."""
    return any(clause.kind in _KEPT for clause in query.clauses)


def _records(query: MoteQuery) -> float:
    """Records that an epoch sends on average: of rows, those that its condition is estimated to let pass."""
    if stays(query):
        return 0.0
    if query.aggregate:
        return prod(selectivity(condition) for condition in conjuncts(query.where))
    return min(rows_of(query), 1 / max(1, sent_each(query)))


def cost_of(query: MoteQuery) -> Cost:
    """What a mote query takes."""
    period = aligned_ms(query.clauses) or query.period_ms
    return Cost(period, considered(query)[0].energy, _records(query) * _record_energy(query))


def _record_energy(query: MoteQuery) -> float:
    """J of a record on its way, in parts where several rows travel in one."""
    size, row = record_bytes(query), sum(column.format.size for column in query.columns)
    together = 1
    if is_fast(query.period_ms) and not query.aggregate:
        together = max(1, min(SERIES_BYTES_MAXIMUM // row, PERIOD_MINIMUM_MS // query.period_ms))
    return record_energy(size + (together - 1) * row) / together


def decided(query: MoteQuery, plans: Sequence[QueryPlan]) -> dict[str, Any]:
    """What motes run for some users, and what else was there to run. Energies in J for an epoch of one mote, powers in W."""
    attributes = frozenset[int]().union(*(plan.attributes for plan in plans)) - IN_EVERY_ROW
    cost = cost_of(query)
    return {
        "users": len(plans),
        "attributes": [BY_NUMBER[number].name for number in sorted(attributes)],
        "where": render(query.where) if query.where is not None else None,
        "aggregated_by_motes": query.aggregate,
        # Costs are then of the time that it runs after an event, or each time of its timer.
        "waits": any(clause.kind is Aggregate.ON_EVENT for clause in query.clauses),
        **cost.to_dict("this"),
        "alternatives": [other.to_dict(what) for what, other in _others(query, plans)],
    }


def _others(query: MoteQuery, plans: Sequence[QueryPlan]) -> list[tuple[str, Cost]]:
    found = []
    if len(plans) > 1:
        reckoned = plans[:_RECKONED]
        own = [cost_of(merge([plan])) for plan in reckoned]
        scale = len(plans) / len(reckoned) * query.period_ms
        each = Cost(
            query.period_ms,
            sum(cost.sampling / cost.period_ms for cost in own) * scale,
            sum(cost.radio / cost.period_ms for cost in own) * scale,
        )
        room = "" if len(plans) <= QUERIES_MAXIMUM else f" (motes hold {QUERIES_MAXIMUM})"
        found.append((f"a query for each of {len(plans)} users{room}", each))
    if query.where is not None and not query.aggregate and not (stays(query) or plans[0].temporal):
        found.append(
            ("every row, with all conditions asked at the gateway", cost_of(replace(query, where=None)))
        )
    if query.aggregate and plans[0].aggregate:
        rows = merge(
            [replace(plans[0], aggregate=False, having=None, groups=(), outputs=(), mote_where=query.where)]
        )
        # Of rows every hop passes those of all motes below it: one hop is the least.
        found.append(
            (
                "rows of each mote, aggregated at the gateway; each hop carries those of all motes behind it",
                cost_of(rows),
            )
        )
    return found


def decided_lines(found: dict[str, Any]) -> list[str]:
    """For people."""
    runs = ", while it runs" if found["waits"] else ""
    users = f"{found['users']} user{'s' if found['users'] != 1 else ''}"
    lines = [f"  {_line(found)}: what it takes for {users}{runs}"]
    lines += [f"  {_line(other)}: {other['what']}" for other in found["alternatives"]]
    return lines


def _line(cost: dict[str, Any]) -> str:
    return (
        f"{cost['power'] * 1e6:9.1f} µW a mote ({cost['sampling_energy'] * 1e6:.4g} µJ for sensors and"
        f" {cost['radio_energy'] * 1e6:.3g} µJ to send over one hop, each {cost['period_ms'] / 1000:g} s)"
    )

"""Questions to an index that motes answer with states of aggregates, in place of tuples: those that are of one part, whose condition motes
can tell exactly, and whose tuples are each on one mote alone."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa

from skerry.index.questions import ALL_EPOCHS, LAST_EPOCH, point
from skerry.planner.features.indexing import Axis, Index, IndexPart
from skerry.planner.model import source_plans as plans
from skerry.planner.model import source_windows as windows
from skerry.planner.model.source_plans import SourcePlan, Term, conjuncts
from skerry.planner.model.source_windows import SourceAggregate, State
from skerry.sensors import aggregate_states
from skerry.sensors.answers import finished
from skerry.sensors.index_tables import EVERY, bounds_of, compared
from skerry_protocol.codes import Aggregate
from skerry_protocol.limits import GATHERED_MAXIMUM, INDEX_NUMBERS

#: Bytes of a question, and in place of a part's number that it asks for states.
_ROOM, _STATES = 20, 7
#: Of COUNT(*), in place of an attribute's.
_ALL = 15
#: A GatheredState: value and count.
_STATE = struct.Struct("<qI")
#: Decimal places in which sums are kept (:mod:`.aggregate_states`).
_PLACES = 9

#: An aggregate and the place of its attribute among the index's; None: COUNT(*).
Kind = tuple[Aggregate, int | None]
#: Of a state the sum or the extreme value, and how many values are in it.
Counted = tuple[int, int]


@dataclass(frozen=True, slots=True)
class StateQuestion:
    """``part``: its number. ``kinds``: what is asked for. ``limits``: by attribute the least and the greatest point. Of epochs ``first`` to
    ``last``."""

    part: int
    kinds: tuple[Kind, ...]
    limits: Mapping[int, tuple[int, int]]
    first: int
    last: int

    def arguments(self, index: Index) -> bytes:
        """As an INDEX_ASK has them."""
        columns = index.parts[self.part].columns
        limited = sum(1 << i for i, column in enumerate(columns) if column in self.limits)
        kinds = [
            kind << 4 | (_ALL if column is None else columns.index(column)) for kind, column in self.kinds
        ]
        told = struct.pack(
            "<HBB", index.number + _STATES * INDEX_NUMBERS, self.part | len(kinds) << 4, limited
        )
        told += bytes(kinds)
        told += b"".join(
            struct.pack("<HH", *self.limits[column]) for column in columns if column in self.limits
        )
        if (self.first, self.last) != (0, LAST_EPOCH):
            more = ALL_EPOCHS if self.last == LAST_EPOCH else self.last - self.first
            told += struct.pack("<IH", self.first, more)
        return told

    def read(self, record: bytes) -> list[Counted] | None:
        """A mote's states; None: it is no such record."""
        if len(record) != len(self.kinds) * _STATE.size:
            return None
        return list(_STATE.iter_unpack(record))

    def merged(self, told: Iterable[Sequence[Counted]]) -> dict[Kind, Counted]:
        """Of what motes have told, of each one its states."""
        found = dict.fromkeys(self.kinds, (0, 0))
        for states in told:
            found = {
                kind: _both(kind[0], found[kind], state)
                for kind, state in zip(self.kinds, states, strict=True)
            }
        return found


def _both(kind: Aggregate, one: Counted, other: Counted) -> Counted:
    """The state of what both are of."""
    if not one[1] or not other[1]:
        return one if one[1] else other
    merge = {Aggregate.MIN: min, Aggregate.MAX: max}.get(kind, int.__add__)
    return merge(one[0], other[0]), one[1] + other[1]


def states_of(plan: SourcePlan, index: Index) -> StateQuestion | None:
    """What motes are asked for a query; None: tuples are."""
    grouping = plan.grouping
    if grouping is None or grouping.groups or plan.lookups is not None:
        return None
    names = [axis.entry.name for axis in index.axes]
    kinds = [_kind(one, names) for one in grouping.aggregates]
    known = tuple(dict.fromkeys(kind for kind in kinds if kind is not None))
    limits = _limits(plan.where, index)
    if None in kinds or not 0 < len(known) <= GATHERED_MAXIMUM or limits is None:
        return None
    points, first, last = limits
    used = {*points, *(column for _, column in known if column is not None)}
    parts = [number for number, part in enumerate(index.parts) if used <= set(part.columns)]
    if not parts or (not used and len(parts) > 1) or _has_changed(index.parts[parts[0]]):
        return None
    question = StateQuestion(parts[0], known, points, first, last)
    return question if len(question.arguments(index)) <= _ROOM else None


def _has_changed(part: IndexPart) -> bool:
    """Whether a tuple may be on two motes, or has been."""
    return bool(part.away or part.added or part.lost)


def _kind(one: SourceAggregate, names: Sequence[str]) -> Kind | None:
    """What motes keep for an aggregate; None: they cannot."""
    if one.is_listed or one.distinct:
        return None
    if one.argument is None:
        return Aggregate.COUNT, None
    if one.argument.op != "column" or one.argument.value not in names:
        return None
    kind = Aggregate[one.kind]
    return Aggregate.SUM if kind is Aggregate.AVG else kind, names.index(str(one.argument.value))


def _limits(where: Term | None, index: Index) -> tuple[dict[int, tuple[int, int]], int, int] | None:
    """The points by attribute, and the epochs, that are asked for, neither more nor less; None: motes cannot tell them."""
    names = [axis.entry.name for axis in index.axes]
    bounds: dict[str, tuple[int, int]] = {}
    for part in conjuncts(where):
        found = list(compared(part, (plans.INT, plans.DECIMAL)))
        if not found:
            return None
        [(name, operator, value)] = found
        if name != "epoch" and name not in names:
            return None
        digits = index.axes[names.index(name)].entry.digits if name in names else 0
        least, most = bounds_of(operator, value.scaleb(digits))
        low, high = bounds.get(name, EVERY)
        bounds[name] = max(least, low), min(most, high)
    first, last = bounds.pop("epoch", EVERY)
    first, last = max(first, 0), LAST_EPOCH if last == EVERY[1] else last
    if first > last or (last != LAST_EPOCH and last - first >= ALL_EPOCHS):
        return None
    points = {}
    for name, (low, high) in bounds.items():
        column = names.index(name)
        exact = _points(index.axes[column], low, high)
        if exact is None:
            return None
        points[column] = exact
    return points, first, last


def _points(axis: Axis, low: int, high: int) -> tuple[int, int] | None:
    """Those of the values from low to high, if no other value has one of them."""
    if low > high:
        return None
    least, most = (point(axis.low, axis.high, value) for value in (low, high))
    alone = low == EVERY[0] or point(axis.low, axis.high, low - 1) < least
    alone = alone and (high == EVERY[1] or point(axis.low, axis.high, high + 1) > most)
    return (least, most) if alone else None


def answered_by_states(plan: SourcePlan, index: Index, found: Mapping[Kind, Counted]) -> pa.RecordBatch:
    """The answer to a query of :func:`states_of`, of all that motes have told."""
    assert plan.grouping is not None
    names = [axis.entry.name for axis in index.axes]
    aggregated = []
    for one in plan.grouping.aggregates:
        kind = _kind(one, names)
        assert kind is not None
        known = {state: _value(state, kind, found[kind], index) for state in one.states}
        aggregated.append([aggregate_states.value(one, known)])
    return finished(plan, aggregate_states.columns(plan.grouping, [()], aggregated), 1)


def _value(state: State, kind: Kind, counted: Counted, index: Index) -> int | Decimal | None:
    """A state, as the gateway keeps them."""
    value, count = counted
    if state.what in (windows.ROWS, windows.COUNT):
        return count
    assert kind[1] is not None
    digits = index.axes[kind[1]].entry.digits
    if state.what == windows.SUM:
        return value * 10 ** (_PLACES - digits) if digits else value
    if not count:
        return None
    return Decimal(value).scaleb(-digits) if digits else value

"""Questions to an index that motes answer with states of aggregates, in place of tuples: those that are of one part, whose condition motes
can tell exactly, and whose tuples are each on one mote alone. By group motes send states of each, and what is said of groups alone is
asked here."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from skerry.index.questions import ALL_EPOCHS, LAST_EPOCH, point
from skerry.planner.features.indexing import Axis, Index, IndexPart
from skerry.planner.model import source_plans as plans
from skerry.planner.model import source_windows as windows
from skerry.planner.model.source_plans import SourcePlan, Term, all_of, conjuncts
from skerry.planner.model.source_windows import SourceAggregate, State
from skerry.sensors import aggregate_states
from skerry.sensors.answers import finished
from skerry.sensors.evaluate import arrow_type, passes
from skerry.sensors.index_tables import EVERY, bounds_of, compared
from skerry_protocol.codes import Aggregate
from skerry_protocol.limits import GATHERED_MAXIMUM, INDEX_NUMBERS

#: Bytes of a question, in place of a part's number that it asks for states, and beside the part's that it does so by group.
_ROOM, _STATES, _GROUPED = 20, 7, 8
#: Of COUNT(*), and of what a tuple's name says, in place of an attribute's.
_ALL = 15
_OF_NAMES = {"nodeid": 14, "epoch": 13}
#: A GatheredState: value and count; the key of a group, and a GroupState; the key of NULL.
_STATE, _KEY, _GROUP_STATE = struct.Struct("<qI"), struct.Struct("<i"), struct.Struct("<iH")
_NULL = -(2**31)
#: Decimal places in which sums are kept (:mod:`.aggregate_states`).
_PLACES = 9

#: An aggregate and the place of its attribute among the index's; None: COUNT(*).
Kind = tuple[Aggregate, int | None]
#: Of a state the sum or the extreme value, and how many values are in it.
Counted = tuple[int, int]
#: Of a group, as motes call it, its states; a question without groups has one.
Told = tuple[int | None, Sequence[Counted]]
#: That of a question without groups.
ONLY = 0


@dataclass(frozen=True, slots=True)
class StateQuestion:
    """``part``: its number. ``kinds``: what is asked for. ``limits``: by attribute the least and the greatest point. Of epochs ``first`` to
    ``last``. ``group``: by what, an attribute of the part, ``nodeid`` or ``epoch``; ``of_groups``: what groups are asked here."""

    part: int
    kinds: tuple[Kind, ...]
    limits: Mapping[int, tuple[int, int]]
    first: int
    last: int
    group: Term | None = None
    of_groups: Term | None = None

    def arguments(self, index: Index) -> bytes:
        """As an INDEX_ASK has them."""
        columns = index.parts[self.part].columns
        limited = sum(1 << i for i, column in enumerate(columns) if column in self.limits)
        kinds = [
            kind << 4 | (_ALL if column is None else columns.index(column)) for kind, column in self.kinds
        ]
        grouped = bytes([] if self.group is None else [_by(self.group, index, columns)])
        part = self.part | (_GROUPED if grouped else 0) | len(kinds) << 4
        told = struct.pack("<HBB", index.number + _STATES * INDEX_NUMBERS, part, limited)
        told += grouped + bytes(kinds)
        told += b"".join(
            struct.pack("<HH", *self.limits[column]) for column in columns if column in self.limits
        )
        if (self.first, self.last) != (0, LAST_EPOCH):
            more = ALL_EPOCHS if self.last == LAST_EPOCH else self.last - self.first
            told += struct.pack("<IH", self.first, more)
        return told

    def united(self, body: Any) -> tuple[frozenset[int], Sequence[Counted]] | None:
        """Of which motes a STATES record tells, and what; None: it is of no such question."""
        kinds, more = bytes(kind for kind, _ in self.kinds), bytes(body.more)
        end = len(kinds) * (1 + _STATE.size)
        if more[: len(kinds)] != kinds or len(more) != end + 2 * body.motes:
            return None
        return frozenset(motes_of(body)), list(_STATE.iter_unpack(more[len(kinds) : end]))

    @property
    def group_size(self) -> int:
        """Bytes of a group's states."""
        return _KEY.size + len(self.kinds) * _GROUP_STATE.size

    def read(self, records: Sequence[bytes]) -> list[Told] | None:
        """All that a mote has told of groups, which may be of one more than once; None: these are no such records."""
        if any(len(record) % self.group_size for record in records):
            return None
        found = list[Told]()
        for record in records:
            for at in range(0, len(record), self.group_size):
                (key,) = _KEY.unpack_from(record, at)
                states = record[at + _KEY.size : at + self.group_size]
                found.append((None if key == _NULL else key, list(_GROUP_STATE.iter_unpack(states))))
        return found

    def merged(self, told: Iterable[Iterable[Told]]) -> dict[int | None, dict[Kind, Counted]]:
        """Of what motes have told, by group."""
        nothing = dict.fromkeys(self.kinds, (0, 0))
        found: dict[int | None, dict[Kind, Counted]] = {} if self.group is not None else {ONLY: nothing}
        for mote in told:
            for key, states in mote:
                had = found.get(key, nothing)
                found[key] = {
                    kind: _both(kind[0], had[kind], state)
                    for kind, state in zip(self.kinds, states, strict=True)
                }
        return found


def _by(group: Term, index: Index, columns: Sequence[int]) -> int:
    """What is grouped by, as motes call it."""
    name = str(group.value)
    return _OF_NAMES[name] if name in _OF_NAMES else columns.index(_names(index).index(name))


def _names(index: Index) -> list[str]:
    return [axis.entry.name for axis in index.axes]


def motes_of(body: Any) -> tuple[int, ...]:
    """Of which motes a STATES record is."""
    more, size = bytes(body.more), 2 * body.motes
    return struct.unpack(f"<{body.motes}H", more[-size:]) if 0 < size <= len(more) else ()


def _both(kind: Aggregate, one: Counted, other: Counted) -> Counted:
    """The state of what both are of."""
    if not one[1] or not other[1]:
        return one if one[1] else other
    merge = {Aggregate.MIN: min, Aggregate.MAX: max}.get(kind, int.__add__)
    return merge(one[0], other[0]), one[1] + other[1]


def states_of(plan: SourcePlan, index: Index) -> StateQuestion | None:
    """What motes can be asked for a query; None: tuples are."""
    grouping, names = plan.grouping, _names(index)
    if grouping is None or len(grouping.groups) > 1 or plan.lookups is not None:
        return None
    group = next(iter(grouping.groups), None)
    if group is not None and (group.op != "column" or group.value not in (*_OF_NAMES, *names)):
        return None
    by = None if group is None else str(group.value)
    kinds = [_kind(one, names) for one in grouping.aggregates]
    # A group is there for its rows, whatever is told of them.
    known = tuple(dict.fromkeys(kind for kind in kinds if kind is not None)) or ((Aggregate.COUNT, None),)
    limits = _limits(plan.where, index, by)
    if None in kinds or len(known) > GATHERED_MAXIMUM or limits is None:
        return None
    points, first, last = limits
    used = {*points, *(column for _, column in known if column is not None)}
    used |= {names.index(by)} if by in names else set()
    parts = [number for number, part in enumerate(index.parts) if used <= set(part.columns)]
    if not parts or (not used and len(parts) > 1) or _has_changed(index.parts[parts[0]]):
        return None
    asked = [part for part in conjuncts(plan.where) if by is not None and set(part.columns()) == {by}]
    question = StateQuestion(parts[0], known, points, first, last, group, all_of(asked))
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


def _limits(
    where: Term | None, index: Index, group: str | None
) -> tuple[dict[int, tuple[int, int]], int, int] | None:
    """The points by attribute, and the epochs, that are asked for, neither more nor less but of what is grouped by; None: motes cannot tell
    them."""
    names = _names(index)
    bounds: dict[str, tuple[int, int]] = {}
    for part in conjuncts(where):
        found = list(compared(part, (plans.INT, plans.DECIMAL)))
        of_group = group is not None and set(part.columns()) == {group}
        if of_group and (not found or found[0][0] == "nodeid"):
            continue
        if not found or (found[0][0] != "epoch" and found[0][0] not in names):
            return None
        [(name, operator, value)] = found
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
        told = _points(index.axes[column], low, high, exactly=name != group)
        if told is None:
            return None
        points[column] = told
    return points, first, last


def _points(axis: Axis, low: int, high: int, *, exactly: bool) -> tuple[int, int] | None:
    """Those of the values from low to high; ``exactly``: if no other value has one of them."""
    if low > high:
        return None
    least, most = (point(axis.low, axis.high, value) for value in (low, high))
    alone = low == EVERY[0] or point(axis.low, axis.high, low - 1) < least
    alone = alone and (high == EVERY[1] or point(axis.low, axis.high, high + 1) > most)
    return (least, most) if alone or not exactly else None


def answered_by_states(
    plan: SourcePlan, index: Index, asked: StateQuestion, found: Mapping[int | None, Mapping[Kind, Counted]]
) -> pa.RecordBatch:
    """The answer to a query of :func:`states_of`, of all that motes have told."""
    assert plan.grouping is not None
    names = _names(index)
    keys = [key for key, kept in zip(found, _are_kept(asked, index, list(found)), strict=True) if kept]
    keys.sort(key=lambda key: (key is None, key or 0))
    aggregated = []
    for one in plan.grouping.aggregates:
        kind = _kind(one, names)
        assert kind is not None
        known = (
            {state: _value(state, kind, found[key][kind], index) for state in one.states} for key in keys
        )
        aggregated.append([aggregate_states.value(one, states) for states in known])
    groups = [() if asked.group is None else (_meant(key, asked.group, index),) for key in keys]
    columns = aggregate_states.columns(plan.grouping, groups, aggregated)
    return finished(plan, columns, len(groups))


def _meant(key: int | None, group: Term, index: Index) -> int | Decimal | None:
    """A group's value, as the gateway has it."""
    name, names = str(group.value), _names(index)
    digits = index.axes[names.index(name)].entry.digits if name in names else 0
    return Decimal(key).scaleb(-digits) if digits and key is not None else key


def _are_kept(asked: StateQuestion, index: Index, keys: Sequence[int | None]) -> list[bool]:
    """Which groups a query is about."""
    if asked.group is None or asked.of_groups is None:
        return [True] * len(keys)
    values = pa.array([_meant(key, asked.group, index) for key in keys], arrow_type(asked.group.type))
    kept = passes(asked.of_groups, {str(asked.group.value): values}, len(keys))
    return [bool(one) for one in kept.to_pylist()]


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

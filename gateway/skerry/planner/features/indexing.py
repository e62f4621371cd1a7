"""CREATE INDEX: tuples that motes store for each other, where their values say. Source: DIM 2004, 3.1, 4.1."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from skerry.catalog.catalog import Mote
from skerry.expressions import build
from skerry.expressions.expression import Expr, attributes_of
from skerry.index.code import motes_code
from skerry.index.placement import Position, field_of, place
from skerry.planner.model.clause import Clause
from skerry.planner.model.plans import Column, QueryPlan
from skerry.planner.semantics.scope import SYNONYMS, event_parameter, event_value
from skerry.sql import ast, index_statements
from skerry.sql.errors import QueryError, did_you_mean
from skerry.sql.index_statements import CreateIndex
from skerry.sql.units import duration_text
from skerry_protocol import programs
from skerry_protocol.attributes import BY_NAME, BY_NUMBER, Attribute
from skerry_protocol.codes import Aggregate, EventFlag
from skerry_protocol.limits import (
    INDEX_ATTRIBUTES_MAXIMUM,
    PERIOD_MAXIMUM_MS,
    PERIOD_MINIMUM_MS,
    PLACE_MAXIMUM,
)

#: Boards that store tuples of others.
STORING = ("cc2538",)
#: Motes that a program names at last beside those that store when it is made.
SPARE_OWNERS = 2
#: Longest time for which tuples are kept, in ms: a year.
_KEEP_MAXIMUM_MS = 366 * 86_400_000
#: Tuples of events are named by the second of network time in which they are sampled. A mote samples one in so many of them, for the time
#: that all sensors take, one after the other, twice: those of another query may be under way.
SECOND_MS, _EVENTS_APART_S = 1000, 2


@dataclass(frozen=True, slots=True)
class Axis:
    """An indexed attribute: the integers from ``low`` to ``high`` are told apart. ``of_event``: it is what the event says of its mote."""

    attribute: int
    low: int
    high: int
    of_event: bool = False

    @property
    def entry(self) -> Attribute:
        """The attribute."""
        return BY_NUMBER[self.attribute]

    @property
    def read(self) -> Expr:
        """Where a mote has it from."""
        said = event_parameter(ast.Name(self.entry.name, ast.Span(0, 0))) if self.of_event else None
        return build.attribute(said or self.entry)


@dataclass(frozen=True, slots=True)
class IndexPart:
    """What is stored together: ``columns``, by their place among the index's axes. By short address where those stand, in dm, that store
    it: ``owners``, of whose zones nobody else has tuples, and ``added``, who have come, come back or moved; and where those stood that do
    not store now (``away``), which spans the field as before. ``lost``: added ones that are gone again. ``since``: when each of these
    became what it is, UTC in s."""

    columns: tuple[int, ...]
    owners: Mapping[int, Position]
    away: Mapping[int, Position] = field(default_factory=dict)
    added: Mapping[int, Position] = field(default_factory=dict)
    lost: frozenset[int] = frozenset()
    since: Mapping[int, float] = field(default_factory=dict)

    @property
    def storing(self) -> dict[int, Position]:
        """Those that tuples go to now."""
        return {**self.owners, **self.added}

    @property
    def holding(self) -> list[int]:
        """All that may have tuples."""
        return sorted({*self.owners, *self.away, *self.added, *self.lost})

    @property
    def told(self) -> list[tuple[int, Position]]:
        """As motes are told of them."""
        return [*self.owners.items(), *self.away.items(), *self.added.items()]


@dataclass(frozen=True, slots=True)
class Index:
    """``number``: how motes call it; ``revision``: how often its owners have changed, modulo 256; ``event``: with which a mote has a tuple,
    where it has none each ``period_ms``."""

    name: str
    number: int
    axes: tuple[Axis, ...]
    period_ms: int
    keep_ms: int
    parts: tuple[IndexPart, ...]
    revision: int = 0
    event: str | None = None

    @property
    def storing(self) -> dict[int, Position]:
        """Those of all parts that tuples go to now: none is of two."""
        return {node: place for part in self.parts for node, place in part.storing.items()}

    @property
    def holding(self) -> list[int]:
        """All that may have tuples of it."""
        return sorted(node for part in self.parts for node in part.holding)

    def names(self, part: IndexPart) -> str:
        """Of a part's attributes."""
        return ", ".join(self.axes[column].entry.name for column in part.columns)

    def encode(self) -> tuple[int, ...]:
        """An Index of the protocol."""
        more = [
            programs.IndexPart.build(
                {
                    "columns": sum(1 << column for column in part.columns),
                    "settled": len(part.owners),
                    "away": len(part.away),
                    "added": len(part.added),
                }
            )
            for part in self.parts
        ]
        more += [programs.IndexRange.build({"low": axis.low, "high": axis.high}) for axis in self.axes]
        more += [
            programs.IndexOwner.build({"node": node, "x": x, "y": y})
            for part in self.parts
            for node, (x, y) in part.told
        ]
        counts = {
            "index": self.number,
            "revision": self.revision,
            "parts": len(self.parts),
            "keep": math.ceil(self.keep_ms / 1000),
        }
        return tuple(programs.Index.build({**counts, "more": b"".join(more)}))

    def to_list(self) -> list[Any]:
        """For JSON."""
        return [
            self.name,
            self.number,
            [[axis.attribute, axis.low, axis.high, axis.of_event] for axis in self.axes],
            self.period_ms,
            self.keep_ms,
            [
                [
                    list(part.columns),
                    *(
                        [[node, *place] for node, place in places.items()]
                        for places in (part.owners, part.away, part.added)
                    ),
                    sorted(part.lost),
                    [list(one) for one in part.since.items()],
                ]
                for part in self.parts
            ],
            self.revision,
            self.event,
        ]

    @classmethod
    def from_list(cls, data: list[Any]) -> Index:
        """The index that :meth:`to_list` wrote."""
        name, number, axes, period_ms, keep_ms, parts, *more = data
        # One that was made before owners could change, or there were events.
        revision = more[0] if more else 0
        event = more[1] if len(more) > 1 else None
        stored = tuple(
            IndexPart(
                tuple(columns),
                _placed(owners),
                *_changed(changed),
            )
            for columns, owners, *changed in parts
        )
        axes = tuple(Axis(*axis) for axis in axes)
        return cls(name, number, axes, period_ms, keep_ms, stored, revision, event)

    def to_dict(self) -> dict[str, Any]:
        """For people and programs: ranges in SI."""
        ranges = [
            {
                "name": axis.entry.name,
                "low": axis.low / 10**axis.entry.digits,
                "high": axis.high / 10**axis.entry.digits,
                "unit": axis.entry.unit,
            }
            for axis in self.axes
        ]
        return {
            "name": self.name,
            "attributes": ranges,
            "period_ms": self.period_ms if self.event is None else None,
            "event": self.event,
            "keep_ms": self.keep_ms,
            "stored_by": sorted(self.storing),
            "parts": [
                {
                    "attributes": [self.axes[column].entry.name for column in part.columns],
                    "stored_by": sorted(part.storing),
                    "away": sorted({*part.away, *part.lost} - part.storing.keys()),
                }
                for part in self.parts
            ],
        }


def _changed(
    data: list[Any],
) -> tuple[dict[int, Position], dict[int, Position], frozenset[int], dict[int, float]]:
    """Of a part what has changed of its owners, as it was written; [] where nothing has."""
    away, added, lost, since = data or ([], [], [], [])
    return _placed(away), _placed(added), frozenset(lost), dict(since)


def _placed(data: Iterable[tuple[int, int, int]]) -> dict[int, Position]:
    """Where motes stand, as it was written."""
    return {node: (x, y) for node, x, y in data}


def define(statement: CreateIndex, number: int, taken: Collection[str], motes: Sequence[Mote]) -> Index:
    """The index of a CREATE INDEX; ``taken``: names of tables in lower case; ``motes``: of the network. Raises QueryError."""
    name = statement.name
    if name.name.lower() in taken:
        raise QueryError(f"there is a table '{name.name}' already", "choose another name", name.span)
    table, event = statement.table, None
    if isinstance(table, ast.Event):
        event = table.name.name
    elif table.name.lower() != "sensors":
        hint = "indexes are ON sensors, which are the motes, or ON EVENT name"
        raise QueryError(f"an index over '{table.name}'", hint, table.span)
    axes = _axes(statement)
    period = _period(statement)
    if not 1000 <= statement.keep_ms <= _KEEP_MAXIMUM_MS:
        hint = f"write {duration_text(1000)} to {duration_text(_KEEP_MAXIMUM_MS)}, as in KEEP 1 day"
        raise QueryError(f"KEEP {duration_text(statement.keep_ms)} is out of range", hint, statement.keep)
    _check_places(motes, name.span)
    places = {
        mote.nodeid: (round(mote.xpos * 10), round(mote.ypos * 10)) for mote in motes if mote.board in STORING
    }
    if not places:
        boards = ", ".join(sorted({mote.board for mote in motes}))
        hint = f"{' and '.join(STORING)} motes can, as they have the flash: add one"
        raise QueryError(f"no mote of this network can store: all are {boards}", hint, name.span)
    # Of those that stand in one place one.
    alone = {place: node for node, place in sorted(places.items(), reverse=True)}
    owners = {node: place for place, node in sorted(alone.items(), key=lambda one: one[1])}
    groups, next_column = [], 0
    for size in statement.parts:
        groups.append(tuple(range(next_column, next_column + size)))
        next_column += size
    parts = _parts(groups, owners, statement.weights, name.span)
    return Index(name.name, number, axes, period, int(statement.keep_ms), parts, event=event)


def with_owners(index: Index, count: int, weights: Sequence[int], span: ast.Span) -> Index:
    """The same where so many of its motes store, all over the field, and its parts have these weights. Raises QueryError."""
    order = sorted(index.storing.items())
    left = dict(order[i * len(order) // count] for i in range(count))
    return replace(index, parts=_parts([part.columns for part in index.parts], left, weights, span))


def with_spare(index: Index) -> Index:
    """The same with as many more named as are to have room when owners come back: by its size alone."""
    *others, last = index.parts
    return replace(index, parts=(*others, replace(last, added=dict.fromkeys(range(SPARE_OWNERS), (0, 0)))))


def _parts(
    groups: Sequence[tuple[int, ...]], owners: Mapping[int, Position], weights: Sequence[int], span: ast.Span
) -> tuple[IndexPart, ...]:
    """What is stored where: each part has motes in proportion to its weight. Raises QueryError."""
    nodes, places = list(owners), list(owners.values())
    found = place(motes_code(), field_of(places), places, groups, weights)
    if found is None:
        hint = "JOINT (light, temp) stores attributes together, in one part"
        text = (
            f"{len(groups)} parts are too many for {len(owners)} motes that store, as each takes one at least"
        )
        raise QueryError(text, hint, span)
    return tuple(
        IndexPart(part.attributes, {nodes[mote]: places[mote] for mote in part.motes}) for part in found
    )


def _axes(statement: CreateIndex) -> tuple[Axis, ...]:
    named = statement.attributes
    if len(named) > INDEX_ATTRIBUTES_MAXIMUM:
        hint = f"an index has {INDEX_ATTRIBUTES_MAXIMUM} at most: leave '{named[-1].name.name}' out"
        name = named[INDEX_ATTRIBUTES_MAXIMUM].name
        raise QueryError(f"{len(named)} attributes are too many", hint, name.span)
    said = _said(statement.table)
    axes = [_axis(one, said) for one in named]
    for i, (axis, one) in enumerate(zip(axes, named, strict=True)):
        if axis.attribute in [other.attribute for other in axes[:i]]:
            raise QueryError(f"'{one.name.name}' is said twice", "leave one of them out", one.name.span)
    return tuple(axes)


def _said(table: ast.Name | ast.Event) -> str | None:
    """The attribute whose value the event says; None: there is none. Raises QueryError."""
    named = event_value([table]) if isinstance(table, ast.Event) else None
    return None if named is None else SYNONYMS.get(named, named)


def _sampled() -> list[str]:
    return [entry.name for entry in BY_NAME.values() if entry.energy]


def _axis(one: index_statements.Indexed, said: str | None) -> Axis:
    name = SYNONYMS.get(one.name.name.lower(), one.name.name.lower())
    entry = BY_NAME.get(name)
    if entry is None or entry.name in ("epoch", "nodeid"):
        hint = f"{did_you_mean(name, _sampled())}attributes are {', '.join(_sampled())}"
        raise QueryError(f"'{one.name.name}' cannot be indexed", hint, one.name.span)
    scale = Decimal(10) ** entry.digits
    if one.low is None or one.high is None:
        if not entry.energy:
            # It is no sensor's.
            hint = f"say which values to expect, as in {entry.name} FROM 0 TO 100"
            raise QueryError(f"the attribute '{entry.name}' has no range", hint, one.name.span)
        low, high = (round(Decimal(bound) * scale) for bound in (entry.minimum, entry.maximum))
        return Axis(entry.number, low, high, entry.name == said)
    low, high = math.ceil(one.low * scale), math.floor(one.high * scale)
    if not entry.format.minimum <= low < high <= entry.format.maximum:
        least, most = (bound / float(scale) for bound in (entry.format.minimum, entry.format.maximum))
        hint = f"{entry.name} can be {least:g} to {most:g}, and the range ends above where it begins"
        raise QueryError(f"FROM {one.low} TO {one.high} is no range of {entry.name}", hint, one.range)
    return Axis(entry.number, low, high, entry.name == said)


def _period(statement: CreateIndex) -> int:
    period = statement.period_ms
    if period is None:
        return SECOND_MS
    if period % 1000 or not PERIOD_MINIMUM_MS <= period <= PERIOD_MAXIMUM_MS:
        hint = f"write whole seconds, from {duration_text(PERIOD_MINIMUM_MS)} to {duration_text(PERIOD_MAXIMUM_MS)}"
        raise QueryError(f"SAMPLE PERIOD {duration_text(period)} is out of range", hint, statement.period)
    return int(period)


def _check_places(motes: Iterable[Mote], span: ast.Span) -> None:
    """Whether it is known where the motes stand. Raises QueryError."""
    places = [(round(mote.xpos * 100), round(mote.ypos * 100)) for mote in motes]
    if len(places) < 2:
        hint = 'ask when skerry motes shows them; in a run of the testbed, a while after its begin: [[query]] with at = "2 min"'
        known = "only one mote is" if places else "no mote is"
        raise QueryError(f"{known} known yet, and an index needs several", hint, span)
    if len(set(places)) < 2:
        hint = "tell each mote where it stands, as in skerry run set_position 3.5,4 --mote 7"
        raise QueryError("the motes' positions are not known", hint, span)
    farthest = max(abs(side) for place in places for side in place)
    if farthest > PLACE_MAXIMUM * 10:
        hint = f"records are sent to places within {PLACE_MAXIMUM / 10:g} m of the origin along each axis"
        raise QueryError(f"a mote stands {farthest / 100:g} m away", hint, span)


def clauses_of(index: Index) -> tuple[Clause, ...]:
    """What motes are told of it."""
    kept = Clause(Aggregate.INDEX, index.name, values=index.encode())
    if index.event is None:
        return (kept,)
    flags = EventFlag.ALIGNED | EventFlag.EACH | EventFlag.HEARD | EventFlag.OWN
    return kept, Clause(Aggregate.ON_EVENT, index.event, values=(1, int(flags), 0, _EVENTS_APART_S))


def plan_of(index: Index, text: str) -> QueryPlan:
    """The query that keeps an index: each mote's rows go to those that store them."""
    columns = tuple(Column(axis.entry.name, axis.read, axis.entry.format) for axis in index.axes)
    read = (attributes_of(column.expr) for column in columns if column.expr is not None)
    return QueryPlan(
        text, index.period_ms, None, False, False, (), None, None, frozenset[int]().union(*read),
        columns=columns, clauses=clauses_of(index), creates=True, into=index.name.lower(),
    )  # fmt: skip

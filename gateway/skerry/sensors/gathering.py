"""SELECT aggregates FROM an index … AT MOTE n: asked and answered among motes, while the gateway may be away.

The mote's rows are the aggregates' values, as if it read them from a storage point of one row; HAVING is the condition of those rows.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from skerry.catalog.static_attributes import NO_STATICS, Statics
from skerry.expressions import build
from skerry.expressions.assembler import assemble
from skerry.expressions.expression import attributes_of
from skerry.index.code import NULL
from skerry.index.placement import Position
from skerry.index.questions import Names, Points, encoded, holders
from skerry.planner.features.indexing import Axis, Index, IndexPart
from skerry.planner.model.clause import Clause
from skerry.planner.model.plans import QueryPlan
from skerry.planner.model.storage_points import Point, PointField
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import check_program
from skerry.planner.planner import plan_select
from skerry.planner.semantics.scope import SYNONYMS, Scope, event_value
from skerry.sensors.event_questions import (
    check_event,
    conjuncts,
    mote_condition,
    reads_event,
    reads_nothing_but_the_event,
    with_event,
)
from skerry.sensors.index_tables import box_of, table_of
from skerry.sensors.planning import planned
from skerry.sql import ast
from skerry.sql.errors import QueryError, did_you_mean
from skerry.sql.parser import parse
from skerry_protocol import programs
from skerry_protocol.attributes import BY_NAME, EVENT_ATTRIBUTES, ValueFormat
from skerry_protocol.bytecode import Op
from skerry_protocol.codes import Aggregate
from skerry_protocol.limits import GATHERED_MAXIMUM, INDEX_NUMBERS, PLACE_MAXIMUM

_AT_MOTE = re.compile(r"\bat\s+mote\s+(\d+)\b", re.IGNORECASE)
#: Where it is not said how often it is asked, that is as often as tuples are sampled.
_PERIODIC = re.compile(r"\bsample\s+period\b|\bonce\b", re.IGNORECASE)
_BY_EVENT = re.compile(r"\s*on\b", re.IGNORECASE)
_KINDS = {
    kind.name: kind for kind in (Aggregate.COUNT, Aggregate.SUM, Aggregate.AVG, Aggregate.MIN, Aggregate.MAX)
}
#: Of COUNT(*), in a GatheredKind.
_ALL = 0xFF
#: What may be asked of a tuple beside what the index has.
_NAMES = {BY_NAME["nodeid"].number, BY_NAME["epoch"].number, *(entry.number for entry in EVENT_ATTRIBUTES)}
#: Clauses of SELECT that such a question has none of.
_OTHERS = {
    "groups": "GROUP BY", "order": "ORDER BY", "limit": "LIMIT", "into": "INTO", "combine": "COMBINE",
    "interpolate": "INTERPOLATE", "queue": "QUEUE", "approximate": "APPROXIMATE", "history": "HISTORY", "wait": "WAIT",
    "nested": "a nested query", "strategy": "where motes are joined",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class AtMote:
    """A question, and the mote that asks it. ``text``: without AT MOTE, as long as it was."""

    text: str
    mote: int
    span: ast.Span


def at_mote(sql: str) -> AtMote | None:
    """What a text asks AT MOTE n; None: it does not."""
    found = _AT_MOTE.search(sql)
    if found is None or sql[: found.start()].count("'") % 2 or sql[: found.start()].count('"') % 2:
        return None
    start, end = found.span()
    return AtMote(sql[:start] + " " * (end - start) + sql[end:], int(found[1]), ast.Span(start, end))


def plan_gathering(
    sql: str, indexes: Mapping[str, Index], places: Mapping[int, Position], statics: Statics = NO_STATICS
) -> QueryPlan:
    """The query that has a mote gather what an index says; ``sql``: one of those that are :func:`at_mote`; ``indexes``: by name in lower
    case; ``places``: where motes stand, in dm. Raises QueryError."""
    asked = at_mote(sql)
    assert asked is not None
    try:
        return _Gathering(asked, sql, indexes, places, statics).plan()
    except QueryError as error:
        raise QueryError(error.message, error.hint, error.span, sql) from None


class _Gathering:
    def __init__(
        self,
        asked: AtMote,
        sql: str,
        indexes: Mapping[str, Index],
        places: Mapping[int, Position],
        statics: Statics,
    ) -> None:
        periodic = _PERIODIC.search(asked.text) is not None
        by_event = _BY_EVENT.match(asked.text) is not None
        select = parse(
            asked.text if periodic else asked.text + (" ONCE" if by_event else " SAMPLE PERIOD 1 min")
        )
        if not isinstance(select, ast.Select):
            raise QueryError("AT MOTE is for SELECT", "leave it out", asked.span)
        self._asked, self._statics, self._periodic = asked, statics, periodic
        self._select = replace(select, text=sql)
        self._index = self._named(indexes)
        self._place = {**places, **self._index.storing}.get(asked.mote)
        self._scope = Scope(
            statics=statics,
            event_value=event_value(select.event.events) if select.event is not None else None,
        )
        #: What is gathered: aggregate and axis; None: COUNT(*).
        self._gathered: list[tuple[Aggregate, Axis | None]] = []

    def _named(self, indexes: Mapping[str, Index]) -> Index:
        [table, *more] = self._select.tables
        index = indexes.get(table.name.name.lower())
        if index is None or more:
            known = [one.name for one in indexes.values()]
            hint = f"{did_you_mean(table.name.name, known)}indexes are {', '.join(known) or 'none: CREATE INDEX makes one'}"
            raise QueryError("AT MOTE asks one index", hint, (more or [table])[0].name.span)
        return index

    def plan(self) -> QueryPlan:
        """The query of the mote's rows. Raises QueryError."""
        select, index, asked = self._select, self._index, self._asked
        for name, said in _OTHERS.items():
            if getattr(select, name):
                hint = "leave it out: the mote has one row in each period, of what is asked"
                raise QueryError(f"{said} is not for AT MOTE", hint, self._asked.span)
        check_event(select)
        place = self._standing()
        items = tuple(
            replace(item, expression=self._rewritten(item.expression), alias=item.alias or self._words(item))
            for item in select.items
        )
        having = self._rewritten(select.having) if select.having is not None else None
        if not 1 <= len(self._gathered) <= GATHERED_MAXIMUM:
            text = f"{len(self._gathered)} aggregates are gathered"
            raise QueryError(text, f"ask for 1 to {GATHERED_MAXIMUM}, as COUNT(*)", select.items[0].span)
        sampling = select.sampling
        if isinstance(sampling, ast.SamplePeriod) and not self._periodic:
            if index.event is not None:
                hint = "say how often it is asked, as in SAMPLE PERIOD 5 min, or ON EVENT name: SELECT …"
                raise QueryError(f"index {index.name} is of an event, and has no period", hint, asked.span)
            sampling = replace(
                sampling, period=replace(sampling.period, milliseconds=Decimal(index.period_ms))
            )
        made = replace(select, items=items, where=having, having=None, sampling=sampling)
        plan = plan_select(made, self._statics, {index.name.lower(): self._point()})
        clauses = tuple(clause for clause in plan.clauses if clause.kind is not Aggregate.FROM)
        plan = replace(plan, clauses=(self._clause(place), *clauses), reads=())
        of_event = [part for part in conjuncts(select.where) if reads_nothing_but_the_event(part)]
        plan = with_event(plan, select, of_event, self._scope)
        check_program(merge([plan]))
        return plan

    def _standing(self) -> Position:
        """Where the mote that asks stands."""
        mote, place = self._asked.mote, self._place
        if place is None:
            motes = ", ".join(map(str, sorted(self._index.storing)))
            hint = (
                f"say it by skerry run set_position, at (0, 0) as 0.1,0: who says (0, 0) may not have been told; or ask at one that"
                f" stores the index: {motes}"
            )
            raise QueryError(f"where mote {mote} stands is not known", hint, self._asked.span)
        if max(map(abs, place)) > PLACE_MAXIMUM:
            hint = f"records are sent to places within {PLACE_MAXIMUM / 10:g} m of the origin along each axis"
            raise QueryError(f"mote {mote} stands too far away", hint, self._asked.span)
        return place

    def _words(self, item: ast.SelectItem) -> str:
        span = item.expression.span
        return " ".join(self._asked.text[span.start : span.end].split())

    # ---- what is gathered ----

    def _rewritten(self, node: Any) -> Any:
        """An expression with names of what is gathered in place of aggregates."""
        if isinstance(node, ast.Call) and node.function.upper() in _KINDS:
            return ast.Name(f"gathered{self._number(node)}", node.span)
        if isinstance(node, ast.Name) and reads_event(node):
            return node
        if isinstance(node, ast.Name | ast.Star):
            hint = "ask for aggregates, as COUNT(*), AVG(temp)"
            raise QueryError("a mote gathers aggregates, not tuples", hint, node.span)
        if not dataclasses.is_dataclass(node) or isinstance(node, ast.Span):
            return node
        parts = {part.name: getattr(node, part.name) for part in dataclasses.fields(node)}
        return replace(node, **{name: self._each(part) for name, part in parts.items()})  # type: ignore[type-var]

    def _each(self, part: Any) -> Any:
        return tuple(map(self._rewritten, part)) if isinstance(part, tuple) else self._rewritten(part)

    def _number(self, call: ast.Call) -> int:
        kind = _KINDS[call.function.upper()]
        axis = None
        if call.distinct or not (call.star or len(call.arguments) == 1):
            raise QueryError("this is no aggregate that motes gather", "as COUNT(*), AVG(temp)", call.span)
        if not call.star:
            [argument] = call.arguments
            axis = self._axis(argument)
        one = kind, axis
        if one not in self._gathered:
            self._gathered.append(one)
        return self._gathered.index(one)

    def _axis(self, argument: ast.Expression) -> Axis:
        names = [axis.entry.name for axis in self._index.axes]
        name = (
            SYNONYMS.get(argument.name.lower(), argument.name.lower())
            if isinstance(argument, ast.Name)
            else None
        )
        if name not in names:
            hint = f"index {self._index.name} has {', '.join(names)}"
            raise QueryError("a mote gathers attributes of the index", hint, argument.span)
        return self._index.axes[names.index(name)]

    def _point(self) -> Point:
        """What is gathered as the one row of a storage point."""
        fields = []
        for number, (kind, axis) in enumerate(self._gathered):
            entry = None if kind is Aggregate.COUNT or axis is None else axis.entry
            low, high = -(2**31), 2**31 - 1
            if kind is Aggregate.COUNT:
                low = 0
            elif entry is not None and kind is not Aggregate.SUM:
                low, high = entry.format.minimum, entry.format.maximum
            digits, unit = (0, "") if entry is None else (entry.digits, entry.unit)
            fields.append(PointField(f"gathered{number}", ValueFormat.I32, digits, unit, low, high))
        return Point(self._index.name, 1, tuple(fields), 1, circular=True)

    # ---- what motes are told ----

    def _clause(self, place: Position) -> Clause:
        """A Gather of the protocol; ``place``: where the mote stands."""
        index = self._index
        # What the event alone decides is asked when it comes.
        of_tuples = [part for part in conjuncts(self._select.where) if not reads_nothing_but_the_event(part)]
        condition = build.join(Op.AND, [mote_condition(part, self._scope) for part in of_tuples])
        used = {axis.attribute for _, axis in self._gathered if axis is not None}
        used |= (attributes_of(condition) if condition is not None else frozenset()) - _NAMES
        box = self._box([part for part in of_tuples if not reads_event(part)])
        number, part = self._part(used)
        points: Points = [(0, NULL) if box is None else box[column] for column in part.columns]
        zones = {*holders(points, part.owners, part.away), *part.added}
        x, y = place
        code = assemble(condition) if condition is not None else b""
        kinds = [
            programs.GatheredKind.build(
                {"aggregate": int(kind), "attribute": _ALL if axis is None else axis.attribute}
            )
            for kind, axis in self._gathered
        ]
        told = programs.Gather.build(
            {
                "index": index.number + number * INDEX_NUMBERS, "mote": self._asked.mote, "x": x, "y": y,
                "zones": len(zones), "aggregates": len(kinds), "more": b"".join(kinds) + encoded(points, Names()) + code,
            }
        )  # fmt: skip
        return Clause(Aggregate.GATHER, index.name, values=tuple(told))

    def _box(self, where: list[ast.Expression]) -> Points | None:
        """The points that conditions ask for, at least; None: any."""
        index, text = self._index, self._asked.text
        if not where:
            return None
        said = " AND ".join(f"({text[part.span.start : part.span.end]})" for part in where)
        text = f"SELECT nodeid FROM {index.name} WHERE {said}"
        plan = planned(text, {index.name.lower(): table_of(index)}, statics=self._statics)
        assert plan is not None
        assert plan.sources is not None
        box = box_of(plan.sources.where, index)
        if box is None:
            raise QueryError("no tuple is in this range", "its bounds exclude each other", where[0].span)
        return box

    def _part(self, used: set[int]) -> tuple[int, IndexPart]:
        """A part that has all these attributes, and its number."""
        index = self._index
        columns = {column for column, axis in enumerate(index.axes) if axis.attribute in used}
        for number, part in enumerate(index.parts):
            if columns <= set(part.columns):
                return number, part
        names = " and ".join(index.axes[column].entry.name for column in sorted(columns))
        known = used <= {axis.attribute for axis in index.axes}
        hint = (
            "store them together, as in CREATE INDEX … (JOINT (light, temp))"
            if known
            else "ask for those that it has"
        )
        raise QueryError(f"{names} are not stored together in index {index.name}", hint, self._asked.span)

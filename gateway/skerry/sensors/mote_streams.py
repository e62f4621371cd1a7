"""Motes as a stream of a join: each alias's own conditions are a plain query that the gateway asks them, shared with others' as usual;
what that brings joins at the gateway. A row's time is its sample's, and one mote is one source.

What motes are to join by themselves (in the network) begins here, too: with which conditions are one alias's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from skerry.catalog.static_attributes import NO_STATICS, Statics
from skerry.planner.model import source_plans as plans
from skerry.planner.model.source_plans import Term
from skerry.planner.planner import plan_query, plan_select
from skerry.sensors.definitions import TIME, Column, Field, SensorTable
from skerry.sensors.found import Found
from skerry.sensors.resolver import Resolver
from skerry.sql import ast
from skerry.sql.ast import Span
from skerry.sql.errors import QueryError, did_you_mean
from skerry.sql.quoting import as_name
from skerry.sql.tree_builder import DEFAULT_PERIOD_MS
from skerry.sql.written import written
from skerry_protocol.attributes import ATTRIBUTES, BY_NAME, STATIC_ATTRIBUTES

NAME = plans.MOTES
_ALONE = "is for queries over motes alone"
_GATEWAY = "rows join at the gateway, and motes know nothing of joined ones: leave it out, or ask motes in a query of its own"
_MINED = "rows are mined at the gateway, and motes know nothing of what is found: leave it out, or ask motes in a query of its own"
_AT_MOTES = (
    "the gateway joins here: say where motes join, as in JOIN AT ANCESTOR, and the mote that joins acts"
)
#: Clauses that are asked of motes, none of which is of joined rows.
_OTHERS = {
    "event": "ON EVENT", "outputs": "OUTPUT ACTION", "signals": "SIGNAL", "nested": "OUTPUT ACTION (SELECT …)", "stops": "STOP ON",
    "into": "INTO", "combine": "COMBINE", "interpolate": "INTERPOLATE", "queue": "QUEUE", "approximate": "APPROXIMATE",
    "buffers": "BUFFER", "start_now": "START NOW", "no_interleave": "NO INTERLEAVE",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class MoteTable(SensorTable):
    """Motes, as a table of sensors without static columns. ``statics``: attributes that users have made."""

    statics: Statics = field(default_factory=dict)


def table_of(statics: Statics) -> MoteTable:
    """With all that a mote can report, its users' own attributes among it. Its number is no stream's."""
    built_in = [entry for entry in BY_NAME.values() if entry not in STATIC_ATTRIBUTES]
    fields = [Field(one.name, plans.DOUBLE if one.digits else plans.INT, one.unit) for one in built_in]
    fields += [Field(own.name, plans.INT, own.unit) for own in statics.values()]
    return MoteTable(NAME, "", -1, (Column(NAME, plans.TEXT, "", tuple(fields)),), statics)


def statics_of(tables: Iterable[SensorTable]) -> Statics:
    """Of those of a join's tables that are motes, their users' own attributes."""
    return next((table.statics for table in tables if isinstance(table, MoteTable)), NO_STATICS)


#: Of a mote's rows what is the same in all of them, as a column of batches.
NODEID = f"{NAME}.nodeid"
#: What * stands for.
STAR = frozenset(attribute.name for attribute in ATTRIBUTES)


@dataclass(frozen=True, slots=True)
class MoteResolver(Resolver):
    """Of an alias of motes."""

    def _name(self, node: ast.Name) -> Found:
        if node.stream is not None:
            hint = f"write {self.called}.{node.name}"
            raise QueryError(f"'{node.table}.{node.stream}.{node.name}' has three parts", hint, node.span)
        if node.table is not None and node.table.lower() not in (self.called, self.table.key):
            raise QueryError(f"unknown table '{node.table}'", f"it is {self.called}", node.span)
        name = node.name.lower()
        if name == TIME:
            return Found(Term("column", plans.TIMESTAMP, (), plans.TIME))
        known = {field.name.lower(): field for field in _fields(self.table)}
        if name not in known:
            hint = f"{did_you_mean(name, list(known))}attributes are listed in docs/queries.md"
            raise QueryError(f"unknown attribute '{node.name}'", hint, node.span)
        return Found(self.field(known[name]), known[name].unit)


def _fields(table: SensorTable) -> tuple[Field, ...]:
    assert table.stream is not None
    return table.stream.fields


def check_clauses(select: ast.Select) -> None:
    """Of a join that has motes, or what is mined of them. Raises QueryError."""
    mined = any(table.function is not None for table in select.tables)
    for name, said in _OTHERS.items():
        found: Any = getattr(select, name)
        if found:
            span = getattr(found[0] if isinstance(found, tuple) else found, "span", None)
            hint = _AT_MOTES if name in ("outputs", "signals") and _of_two_motes(select) else _GATEWAY
            raise QueryError(f"{said} {_ALONE}", _MINED if mined else hint, span)
    sampling = select.sampling
    if not isinstance(sampling, ast.SamplePeriod | ast.Recorded):
        said = "ONCE" if isinstance(sampling, ast.Once) else "LIFETIME"
        hint = "say how often they sample, as in SAMPLE PERIOD 10 s"
        raise QueryError(f"{said} {_ALONE}", hint, sampling.span)
    if select.history is not None and not mined:
        hint = "leave HISTORY out, or ask for the past of tables of sensors alone"
        raise QueryError("the past of motes joins no streams", hint, select.history.span)
    past = next((table for table in select.tables if table.past is not None), None)
    if past is not None:
        raise QueryError("the past of motes joins no streams", "leave HISTORY … AS out", past.name.span)


def _of_two_motes(select: ast.Select) -> bool:
    """Whether motes might join it."""
    return [table.name.name.lower() for table in select.tables] == [NAME, NAME]


def own_conditions(
    where: ast.Expression | None, motes: Iterable[str], alias_of: Any
) -> tuple[dict[str, list[ast.Expression]], ast.Expression | None]:
    """By alias of motes what of WHERE its own rows decide, and what is left. ``alias_of``: whose a name is."""
    own: dict[str, list[ast.Expression]] = {alias: [] for alias in motes}
    left: ast.Expression | None = None
    for part in ast.operands(where, "AND") if where is not None else []:
        aliases = {alias_of(node) for node in ast.walk(part) if isinstance(node, ast.Name)}
        if len(aliases) == 1 and (alias := aliases.pop()) in own:
            own[alias].append(part)
        else:
            left = part if left is None else ast.Binary("AND", left, part, left.span.to(part.span))
    return own, left


def questions(
    select: ast.Select,
    own: Mapping[str, list[ast.Expression]],
    needs: Mapping[str, Iterable[str]],
    statics: Statics,
    past_ms: int | None = None,
) -> dict[str, str]:
    """By alias the text of the query that motes are asked for it: with its own conditions, for the attributes that the join ``needs``. Two
    aliases with the same conditions have one. ``past_ms``: it is asked of rows as they were recorded, so far back. Raises QueryError."""
    known = [field.name.lower() for field in _fields(table_of(statics))]
    conditions = {alias: " AND ".join(map(written, parts)) for alias, parts in own.items()}
    attributes: dict[str, set[str]] = {}
    for alias, condition in conditions.items():
        attributes.setdefault(condition, {"nodeid"}).update(needs[alias])
    found = {}
    for alias, condition in conditions.items():
        names = [name for name in known if name in attributes[condition]]
        _check(select, alias, own[alias], names, statics)
        where = f" WHERE {condition}" if condition else ""
        when = _sampling(select) if past_ms is None else f"HISTORY {past_ms} ms ONLY"
        shown = [*map(as_name, names), *([TIME] if past_ms is not None else [])]
        found[alias] = f"SELECT {', '.join(shown)} FROM sensors{where} {when}"
        plan_query(found[alias], statics=statics)
    return found


def _check(
    select: ast.Select, alias: str, own: list[ast.Expression], names: list[str], statics: Statics
) -> None:
    """Plan the query that motes are asked as it stands in the user's text, so that what is wrong with it is told of that."""
    table = next(table for table in select.tables if table.called == alias)
    span = table.name.span
    where: ast.Expression | None = None
    for part in own:
        where = part if where is None else ast.Binary("AND", where, part, where.span.to(part.span))
    asked = replace(
        select,
        items=tuple(ast.SelectItem(ast.Name(name, span), name, span) for name in names),
        tables=(ast.Table(ast.Name(NAME, span), table.alias),),
        where=where,
        groups=(),
        having=None,
        order=(),
        limit=None,
        wait=None,
        sampling=_sampled(select),
        of_sensors=False,
        windows=(),
        lateness=None,
        using=None,
        every=None,
    )
    plan_select(asked, statics)


def _sampled(select: ast.Select) -> ast.SamplePeriod:
    if isinstance(select.sampling, ast.SamplePeriod):
        return select.sampling
    span: Span = select.sampling.span
    return ast.SamplePeriod(ast.Duration(Decimal(DEFAULT_PERIOD_MS), span), None, span, default=True)


def _sampling(select: ast.Select) -> str:
    sampling = _sampled(select)
    text = f"SAMPLE PERIOD {sampling.period.milliseconds:f} ms"
    match sampling.duration:
        case ast.Duration(milliseconds):
            return f"{text} FOR {milliseconds:f} ms"
        case ast.Rounds(count):
            return f"{text} FOR {count:f} rounds"
    return text

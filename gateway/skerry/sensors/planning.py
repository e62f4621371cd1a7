"""A SELECT over a table of sensors → its plan, with what static columns decide pushed below the streams."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from skerry.planner.model import source_plans as plans
from skerry.planner.model.plans import Past, QueryPlan
from skerry.planner.model.source_plans import SourceOutput, SourcePlan, Term
from skerry.sensors.call_resolver import ShapesOf, no_shapes
from skerry.sensors.definitions import SensorTable
from skerry.sensors.join_planning import plan_of_join, with_tables
from skerry.sensors.resolver import Found, Resolver
from skerry.sql import ast
from skerry.sql.errors import QueryError
from skerry.sql.parser import parse

#: Clauses of SELECT that are not for these, and what is said of each.
_OTHERS = {
    "groups": "GROUP BY", "having": "HAVING", "event": "ON EVENT", "outputs": "OUTPUT ACTION", "signals": "SIGNAL",
    "nested": "OUTPUT ACTION",
    "stops": "STOP ON", "into": "INTO", "combine": "COMBINE", "interpolate": "INTERPOLATE", "history": "HISTORY", "queue": "QUEUE",
    "approximate": "APPROXIMATE", "buffers": "BUFFER", "start_now": "START NOW", "wait": "WAIT",
}  # fmt: skip


def plan_of(select: ast.Select, tables: Mapping[str, SensorTable], shapes: ShapesOf = no_shapes) -> QueryPlan:
    """The plan of a query over one of these tables. Raises QueryError."""
    _check_clauses(select)
    if len(select.tables) > 1:
        return plan_of_join(select, tables)
    [of] = select.tables
    table = tables[of.name.name.lower()]
    resolver = Resolver(table, of.called, shapes)
    outputs = tuple(_outputs(select, resolver))
    where = resolver.condition(select.where) if select.where is not None else None
    order = tuple((resolver.expression(one.expression).term, one.descending) for one in select.order)
    terms = [output.term for output in outputs] + [term for term, _ in order] + ([where] if where else [])
    static = all(resolver.is_static(term) for term in terms)
    if not static and (select.order or select.limit is not None):
        what = select.order[0].span if select.order else select.limit.span if select.limit else None
        hint = "rows come as they come: leave it out, or select static columns alone"
        raise QueryError("a stream has no end that its rows could be sorted or counted at", hint, what)
    source = SourcePlan(
        table.key,
        None if static else table.stream_number,
        outputs,
        where,
        _static_part(where, resolver),
        order,
        int(select.limit.value) if select.limit is not None else None,
    )
    past = Past(0, only=True, recorded=True) if static else None
    return QueryPlan(
        select.text, 0, None, False, False, (), None, None, frozenset(), history=past, sources=source, notes=_notes(select.where)
    )  # fmt: skip


def _check_clauses(select: ast.Select) -> None:
    for name, said in _OTHERS.items():
        found: Any = getattr(select, name)
        if found:
            span = getattr(found[0] if isinstance(found, tuple) else found, "span", None)
            raise QueryError(f"{said} is for motes", "leave it out, where tables of sensors are asked", span)
    if not isinstance(select.sampling, ast.Recorded):
        hint = "leave it out: a source says by itself when it has something"
        raise QueryError("motes are sampled, other sensors are not", hint, select.sampling.span)


def _outputs(select: ast.Select, resolver: Resolver) -> list[SourceOutput]:
    found: list[SourceOutput] = []
    for item in select.items:
        if isinstance(item.expression, ast.Star):
            found += _star(resolver)
            continue
        known = resolver.expression(item.expression)
        name = item.alias or select.text[item.expression.span.start : item.expression.span.end]
        found.append(_output(" ".join(name.split()), known))
    names = [output.name for output in found]
    for output in found:
        if names.count(output.name) > 1:
            raise QueryError(
                f"two columns are named '{output.name}'", "name one of them with AS", select.items[0].span
            )
    return found


def _star(resolver: Resolver) -> list[SourceOutput]:
    """All static columns but the address, then all fields."""
    table, found = resolver.table, list[SourceOutput]()
    for column in table.columns:
        if not column.fields:
            found.append(_output(column.name, Found(resolver.column(column.name), column.unit)))
    if table.stream is not None:
        taken = {output.name.lower() for output in found}
        for field in table.stream.fields:
            name = field.name if field.name.lower() not in taken else f"{table.stream.name}.{field.name}"
            found.append(_output(name, Found(resolver.field(field), field.unit)))
    return found


def _output(name: str, found: Found) -> SourceOutput:
    return SourceOutput(name, found.term, found.unit)


def _static_part(where: Term | None, resolver: Resolver) -> Term | None:
    """Of what AND joins, the part that static columns decide."""
    if where is None:
        return None
    if where.op != "AND":
        return where if resolver.is_static(where) else None
    parts = [part for arg in where.args if (part := _static_part(arg, resolver)) is not None]
    if len(parts) < 2:
        return parts[0] if parts else None
    return Term("AND", plans.BOOLEAN, tuple(parts))


def _notes(where: ast.Expression | None) -> tuple[str, ...]:
    """That a condition is never true, as a column is asked to be two values at once."""
    if where is None:
        return ()
    asked: dict[str, tuple[str, str]] = {}
    for part in ast.operands(where, "AND"):
        if not (isinstance(part, ast.Binary) and part.operator == "=" and isinstance(part.left, ast.Name)):
            continue
        value = (
            part.right.value
            if isinstance(part.right, ast.Number)
            else part.right.text
            if isinstance(part.right, ast.Text)
            else None
        )
        name = ".".join(one for one in (part.left.table, part.left.stream, part.left.name) if one)
        key = part.left.name.lower()
        if value is None:
            continue
        if key in asked and asked[key][1] != str(value):
            other = f"{name} = {asked[key][1]} AND {name} = {value}"
            return (f"{other} is never true, so that no row can come: write OR for either",)
        asked[key] = name, str(value)
    return ()


_WORDS = re.compile(r"[A-Za-z_°][A-Za-z0-9_]*|\"[^\"]+\"")
#: What the motes' table is called, which users may call one of theirs: the paper does.
_MOTES = "sensors"


def planned(text: str, tables: Mapping[str, SensorTable], shapes: ShapesOf = no_shapes) -> QueryPlan | None:
    """The plan of a query over one of these tables; None: it is over others, or no query. ``shapes``: by the name of the table that has
    them, for functions over arrays. Raises QueryError."""
    if not any(word.strip('"').lower() in tables for word in _WORDS.findall(text)):
        return None
    statement = parse(text, tables)
    if not isinstance(statement, ast.Select) or not statement.of_sensors:
        return None
    statement = with_tables(statement, tables)
    keys = {table.name.name.lower() for table in statement.tables}
    try:
        unknown = [table for table in statement.tables if table.name.name.lower() not in tables]
        if unknown and keys & tables.keys() <= {_MOTES}:
            return None
        if unknown:
            hint = "tables of sensors are joined with each other: SHOW SENSORS lists them"
            raise QueryError(f"'{unknown[0].name.name}' is no table of sensors", hint, unknown[0].name.span)
        return plan_of(statement, tables, shapes)
    except QueryError as error:
        if keys == {_MOTES}:
            # A question to motes names other columns than those of a table that has their table's name.
            return None
        raise error.within(text) from None

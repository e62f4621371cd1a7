"""A SELECT over a table of sensors → its plan, with what static columns decide pushed below the streams."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from skerry.planner.model import source_plans as plans
from skerry.planner.model.plans import Past, QueryPlan
from skerry.planner.model.source_plans import WAIT_MS, SourceOutput, SourcePlan, Term
from skerry.sensors.call_resolver import ShapesOf, no_shapes
from skerry.sensors.definitions import SensorTable
from skerry.sensors.grouping import GroupedResolver, aggregates, grouping
from skerry.sensors.join_planning import plan_of_join, with_tables
from skerry.sensors.never_true import never_true
from skerry.sensors.resolver import Found, Resolver
from skerry.sql import ast
from skerry.sql.errors import QueryError
from skerry.sql.parser import parse
from skerry.sql.units import duration_text

#: The longest HISTORY: a source's rows may be of any time from 1970 on.
_PAST_MAXIMUM_MS = 100 * 366 * 86_400_000
#: The longest WAIT of a query FROM LATEST.
_WAIT_MAXIMUM_MS = 3_600_000

#: Clauses of SELECT that are not for these, and what is said of each.
_OTHERS = {
    "event": "ON EVENT", "outputs": "OUTPUT ACTION", "signals": "SIGNAL",
    "nested": "OUTPUT ACTION",
    "stops": "STOP ON", "into": "INTO", "combine": "COMBINE", "interpolate": "INTERPOLATE", "queue": "QUEUE",
    "approximate": "APPROXIMATE", "buffers": "BUFFER", "start_now": "START NOW",
}  # fmt: skip
#: The same for queries over several of them.
_OF_ONE = {"groups": "GROUP BY", "having": "HAVING", "history": "HISTORY", "wait": "WAIT"}


def plan_of(select: ast.Select, tables: Mapping[str, SensorTable], shapes: ShapesOf = no_shapes) -> QueryPlan:
    """The plan of a query over one of these tables. Raises QueryError."""
    _check_clauses(select)
    if len(select.tables) > 1:
        return plan_of_join(select, tables)
    [of] = select.tables
    table = tables[of.name.name.lower()]
    resolver = Resolver(table, of.called, shapes)
    where = resolver.condition(select.where) if select.where is not None else None
    grouped = GroupedResolver(resolver, select) if aggregates(select) else None
    names = grouped or resolver
    outputs = tuple(_outputs(select, names))
    order = tuple(
        (names.expression(_ordered(one.expression, select)).term, one.descending) for one in select.order
    )
    having = names.condition(select.having) if select.having is not None else None
    shown = [output.term for output in outputs] + [term for term, _ in order] + ([having] if having else [])
    terms = [*(shown if grouped is None else grouped.terms()), *([where] if where else [])]
    windowed, latest = grouped is not None and grouped.windows, of.latest is not None
    if latest and windowed:
        hint = "leave windows out: it is answered from one row of each source"
        raise QueryError("FROM LATEST has no windows", hint, of.latest)
    of_rows = windowed or latest or select.history is not None
    static = all(resolver.is_static(term) for term in terms) and not of_rows
    if not static and table.stream is None:
        hint = "it has columns alone: leave windows, LATEST and HISTORY out"
        raise QueryError(f"{table.name} has no stream", hint, of.name.span)
    past = _past(select)
    # Whether its rows are there now, and no others come.
    there = static or latest or past is not None
    shape = None
    if grouped is not None:
        shape = grouping(select, grouped, having, shown, static=there and not windowed)
    elif not latest and select.wait is not None:
        raise QueryError("nothing is waited for", "WAIT is for windows: leave it out", select.wait.span)
    if not there and grouped is None and (select.order or select.limit is not None):
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
        grouping=shape,
        latest=latest,
        once=isinstance(select.sampling, ast.Once),
        wait_ms=_wait_ms(select) if latest else WAIT_MS,
    )
    past = Past(0, only=True, recorded=True) if static else past
    return QueryPlan(
        select.text, 0, None, False, False, (), None, None, frozenset(), history=past, sources=source, notes=never_true(select.where)
    )  # fmt: skip


def _check_clauses(select: ast.Select) -> None:
    others = _OTHERS if len(select.tables) == 1 else _OTHERS | _OF_ONE
    for name, said in others.items():
        found: Any = getattr(select, name)
        if found:
            span = getattr(found[0] if isinstance(found, tuple) else found, "span", None)
            of = "one table of sensors" if name in _OF_ONE else "motes"
            raise QueryError(f"{said} is for {of}", "leave it out, where tables of sensors are asked", span)
    latest = select.tables[0].latest is not None
    if not isinstance(select.sampling, ast.Recorded) and not (
        latest and isinstance(select.sampling, ast.Once)
    ):
        hint = "leave it out: a source says by itself when it has something"
        raise QueryError("motes are sampled, other sensors are not", hint, select.sampling.span)


def _past(select: ast.Select) -> Past | None:
    """What HISTORY asks for. Raises QueryError."""
    asked = select.history
    if asked is None:
        return None
    if select.tables[0].latest is not None:
        raise QueryError("the newest rows have no past", "leave HISTORY out", asked.span)
    if not asked.only:
        hint = "write HISTORY … ONLY, and ask for what comes in a query of its own"
        raise QueryError("the past of sources does not go on into the present", hint, asked.span)
    if select.wait is not None:
        raise QueryError("HISTORY … ONLY waits for nothing", "leave WAIT out", select.wait.span)
    span = asked.duration.milliseconds
    if not 1 <= span <= _PAST_MAXIMUM_MS:
        hint = f"write at most {duration_text(_PAST_MAXIMUM_MS)}"
        raise QueryError(f"HISTORY {duration_text(span)}", hint, asked.span)
    return Past(int(span), only=True, recorded=True)


def _wait_ms(select: ast.Select) -> int:
    """For how long ONCE waits for sources that have brought no row yet."""
    if select.wait is None:
        return WAIT_MS
    asked = select.wait.duration.milliseconds
    if not isinstance(select.sampling, ast.Once):
        hint = "WAIT is for ONCE, which waits for the first row of each source: leave it out"
        raise QueryError("each row is answered as it comes", hint, select.wait.span)
    if not 0 <= asked <= _WAIT_MAXIMUM_MS:
        hint = f"write 0 s to {duration_text(_WAIT_MAXIMUM_MS)}"
        raise QueryError(f"WAIT {duration_text(asked)}", hint, select.wait.span)
    return int(asked)


def _outputs(select: ast.Select, resolver: Resolver) -> list[SourceOutput]:
    found: list[SourceOutput] = []
    for item in select.items:
        if isinstance(item.expression, ast.Star):
            if isinstance(resolver, GroupedResolver):
                raise QueryError(
                    "'*' is of a row, and this one is of many", "name groups and aggregates", item.span
                )
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


def _ordered(node: ast.Expression, select: ast.Select) -> ast.Expression:
    """What ORDER BY names: by its name or its number, a column of SELECT may be."""
    items = [
        (item.alias, item.expression) for item in select.items if not isinstance(item.expression, ast.Star)
    ]
    if (
        isinstance(node, ast.Number)
        and node.unit is None
        and 1 <= node.value <= len(items) == len(select.items)
    ):
        return items[int(node.value) - 1][1]
    if isinstance(node, ast.Name) and node.table is None:
        return next(
            (found for alias, found in items if alias is not None and alias.lower() == node.name.lower()),
            node,
        )
    return node


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

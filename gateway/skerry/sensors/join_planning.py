"""A SELECT over several tables of sensors → the plan of a join within windows (STEAM 2002, 6.2).

Of WHERE what static columns of an alias decide chooses its sources, what its own row decides is decided where rows are read, and what is
left joins.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any, get_args

import pyarrow as pa

from skerry.joins.choice import choose
from skerry.joins.conditions import AllOf, Condition, encode
from skerry.joins.join import LATENESS_US, Join, JoinError
from skerry.joins.rows import Algorithm
from skerry.joins.windows import Pair, Window, WindowError
from skerry.planner.model import source_plans as plans
from skerry.planner.model.plans import QueryPlan
from skerry.planner.model.source_plans import JoinedTable, JoinPlan, SourceOutput, SourcePlan, Term
from skerry.sensors.definitions import SensorTable
from skerry.sensors.join_conditions import calculated, column_of, condition_of, type_of
from skerry.sensors.join_resolver import JoinResolver, aliases_of, of_batches
from skerry.sensors.never_true import never_true
from skerry.sensors.resolver import Resolver
from skerry.sql import ast
from skerry.sql.errors import QueryError, did_you_mean
from skerry.sql.join_windows import is_of_rows, microseconds

#: The number of a plan's answers, until the query has an id.
UNNUMBERED = plans.ANSWERS


def with_tables(select: ast.Select, tables: Mapping[str, SensorTable]) -> ast.Select:
    """``FROM SensorTables A, B, C``: B and C follow the table that stands before them."""
    found: list[ast.Table] = []
    for table in select.tables:
        before = found[-1] if found else None
        own = table.name.name.lower() in tables or table.alias is not None
        if own or before is None or before.alias is None:
            found.append(table)
            continue
        followed = replace(table.name, name=before.name.name)
        found.append(replace(table, name=followed, alias=table.name.name))
    return replace(select, tables=tuple(found))


def plan_of_join(select: ast.Select, tables: Mapping[str, SensorTable]) -> QueryPlan:
    """The plan of a query over several of these tables. Raises QueryError."""
    aliases = tuple(_alias(table, tables, select) for table in select.tables)
    resolver = JoinResolver(aliases[0].table, aliases[0].called, aliases=aliases)
    outputs = _outputs(select, resolver)
    names = [one.called for one in aliases]
    where = resolver.condition(select.where) if select.where is not None else None
    if where is not None and "" in aliases_of(where):
        hint = f"write {names[0]}.time: an answer's own time comes of its rows"
        raise QueryError("'time' is of several tables", hint, select.where.span if select.where else None)
    own, conditions = _conditions(where, names, select)
    chosen = {one.called: _static_part(own[one.called], one) for one in aliases}
    streams = {
        one.called: json.dumps([one.table.stream_number, _listed(chosen[one.called])]) for one in aliases
    }
    columns = {name: column_of(term, term.type, "") for name, term in _selected(outputs).items()}
    lateness = int(select.lateness.milliseconds * 1000) if select.lateness is not None else LATENESS_US
    try:
        join = Join(
            streams,
            _windows(select, names),
            AllOf(tuple(conditions)) if conditions else None,
            tuple(dict.fromkeys(columns.values())),
            lateness,
        )
        fields = _fields(join, aliases)
        schemas = {stream: _schema(kinds) for stream, kinds in fields.items()}
        choice = choose(join, schemas, {}, _hint(select))
    except (JoinError, WindowError) as error:
        message, _, hint = str(error).partition(". ")
        message, _, hint = (message, "", hint) if hint else message.partition(": ")
        raise QueryError(message, hint, select.windows[0].span if select.windows else None) from None
    spec = {
        "streams": {
            streams[one.called]: {
                "number": one.table.stream_number,
                "chosen": _listed(chosen[one.called]),
                "fields": fields[streams[one.called]],
            }
            for one in aliases
        },
        "aliases": streams,
        "windows": [[*sorted(pair), window.us, window.rows] for pair, window in join.windows.items()],
        "where": encode(join.where).decode(),
        "select": {
            name: [column.alias, column.name, _selected(outputs)[name].type]
            for name, column in columns.items()
        },
        "lateness_us": lateness,
        "algorithm": choice.algorithm,
    }
    joined = tuple(
        JoinedTable(
            one.called,
            one.table.key,
            one.table.stream_number,
            chosen[one.called],
            _needs(one, where, outputs),
        )
        for one in aliases
    )
    plan = JoinPlan(joined, json.dumps(spec, separators=(",", ":")), choice.algorithm, choice.reason)
    source = SourcePlan(aliases[0].table.key, UNNUMBERED, outputs, None, None, join=plan)
    notes = never_true(select.where, joined=True)
    return QueryPlan(
        select.text, 0, None, False, False, (), None, None, frozenset(), sources=source, notes=notes
    )


def _alias(table: ast.Table, tables: Mapping[str, SensorTable], select: ast.Select) -> Resolver:
    found = tables.get(table.name.name.lower())
    if found is None:
        guess = did_you_mean(table.name.name, list(tables))
        raise QueryError(
            f"'{table.name.name}' is no table of sensors", f"{guess}joins are of streams", table.name.span
        )
    if found.stream is None:
        raise QueryError(f"{found.name} has no stream", "joins are of tables that have one", table.name.span)
    called = table.called
    if [other.called for other in select.tables].count(called) > 1:
        hint = f"give each a name of its own, as in FROM {found.name} AS a, {found.name} AS b"
        raise QueryError(f"two tables are called '{called}'", hint, table.name.span)
    if "." in called or not called:
        raise QueryError(
            f"'{called}' is no name for a table", "names here are of letters, digits and _", table.name.span
        )
    return Resolver(found, called)


def _listed(term: Term | None) -> list[Any] | None:
    return term.to_list() if term is not None else None


def _windows(select: ast.Select, names: list[str]) -> dict[Pair, Window]:
    """By pair. Raises QueryError, WindowError."""
    found: dict[Pair, Window] = {}
    general: set[Pair] = set()
    # One between all is what pairs without their own have.
    for window in sorted(select.windows, key=lambda one: one.pair is not None):
        size = window.size
        if is_of_rows(size):
            if size.value != size.value.to_integral_value() or not 1 <= size.value < 1 << 31:
                raise QueryError(
                    f"WINDOW {size.value} ROWS", "it holds 1 row or more, and whole ones", window.span
                )
            made = Window(None, int(size.value))
        else:
            made = Window(microseconds(size, "WINDOW"))
        pairs = [frozenset(pair) for pair in combinations(names, 2)]
        if window.pair is not None:
            pairs = [frozenset(name.name.lower() for name in window.pair)]
        for pair in pairs:
            before = None if pair in general and window.pair is not None else found.get(pair)
            general -= {pair} if window.pair is not None else set()
            if before is not None and (made.us is None) == (before.us is None):
                raise QueryError(
                    f"the window of {' and '.join(sorted(pair))} is said twice", "leave one out", window.span
                )
            if before is not None:
                made_both = Window(made.us if made.us is not None else before.us, made.rows or before.rows)
            found[pair] = made if before is None else made_both
            general |= {pair} if window.pair is None else set()
    return found


def _conditions(
    where: Term | None, names: list[str], select: ast.Select
) -> tuple[dict[str, Term | None], list[Condition]]:
    """What each alias's own row decides, and all conditions of the join."""
    own: dict[str, Term | None] = dict.fromkeys(names)
    between: list[Condition] = []
    for part in _conjuncts(where):
        of = aliases_of(part)
        if len(of) < 2:
            name = of[0] if of else names[0]
            before = own[name]
            own[name] = part if before is None else Term("AND", plans.BOOLEAN, (before, part))
            continue
        try:
            between.append(condition_of(part, names[0]))
        except QueryError as error:
            raise QueryError(error.message, error.hint, select.where.span if select.where else None) from None
    decided = [condition_of(part, name) for name, part in own.items() if part is not None]
    return own, [*decided, *between]


def _conjuncts(where: Term | None) -> list[Term]:
    if where is None:
        return []
    return [part for arg in where.args for part in _conjuncts(arg)] if where.op == "AND" else [where]


def _static_part(where: Term | None, one: Resolver) -> Term | None:
    """Of what AND joins, the part that an alias's static columns decide."""
    parts = [of_batches(part) for part in _conjuncts(where)]
    static = [part for part in parts if one.is_static(part)]
    made: Term | None = None
    for part in static:
        made = part if made is None else Term("AND", plans.BOOLEAN, (made, part))
    return made


def _outputs(select: ast.Select, resolver: JoinResolver) -> tuple[SourceOutput, ...]:
    found: list[SourceOutput] = []
    for item in select.items:
        if isinstance(item.expression, ast.Star):
            found += [output for one in resolver.aliases for output in _star(resolver, one)]
            continue
        known = resolver.expression(item.expression)
        name = item.alias or select.text[item.expression.span.start : item.expression.span.end]
        found.append(SourceOutput(" ".join(name.split()), known.term, known.unit))
    names = [output.name for output in found]
    for output in found:
        if names.count(output.name) > 1:
            raise QueryError(
                f"two columns are named '{output.name}'", "name one of them with AS", select.items[0].span
            )
    return tuple(found)


def _star(resolver: JoinResolver, one: Resolver) -> list[SourceOutput]:
    """All static columns of an alias but the address, then all fields."""
    span, stream, found = ast.Span(0, 0), one.table.stream, list[SourceOutput]()
    assert stream is not None
    for column in one.table.columns:
        if not column.fields:
            known = resolver.expression(ast.Name(column.name, span, one.called))
            found.append(SourceOutput(f"{one.called}.{column.name}", known.term, known.unit))
    for field in stream.fields:
        known = resolver.expression(ast.Name(field.name, span, one.called, stream=stream.name))
        found.append(SourceOutput(f"{one.called}.{stream.name}.{field.name}", known.term, known.unit))
    return found


def _selected(outputs: tuple[SourceOutput, ...]) -> dict[str, Term]:
    """Columns of answers that its user sees, by name."""

    def leaves(term: Term) -> list[Term]:
        return [term] if term.op == "column" else [leaf for arg in term.args for leaf in leaves(arg)]

    found = [leaf for output in outputs for leaf in leaves(output.term)]
    return {str(leaf.value): leaf for leaf in found if leaf.value != plans.TIME}


def _fields(join: Join, aliases: tuple[Resolver, ...]) -> dict[str, dict[str, str]]:
    """By stream the columns that the join reads, with their types."""
    found: dict[str, dict[str, str]] = {}
    for one in aliases:
        kinds = found.setdefault(join.streams[one.called], {})
        known = {column.name.lower(): column.type for column in one.table.columns}
        if one.table.stream is not None:
            prefix = one.table.stream.name.lower()
            known |= {f"{prefix}.{field.name.lower()}": field.full_type for field in one.table.stream.fields}
        known[plans.TIME] = plans.TIMESTAMP
        for name in join.columns(one.called):
            made = calculated(name)
            kinds[name] = made[0] if made is not None else known[name]
    return found


def _schema(kinds: Mapping[str, str]) -> pa.Schema:
    return pa.schema([(name, type_of(kind)) for name, kind in kinds.items()])


def _needs(one: Resolver, where: Term | None, outputs: tuple[SourceOutput, ...]) -> tuple[str, ...]:
    terms = [output.term for output in outputs] + ([where] if where is not None else [])
    names = {str(name) for term in terms for name in term.columns()}
    own = [name.partition(".") for name in names]
    return tuple(sorted(name for alias, _, name in own if alias == one.called))


def _hint(select: ast.Select) -> Algorithm | None:
    if select.using is None:
        return None
    known: dict[str, Any] = {name: name for name in get_args(Algorithm)}
    found: Algorithm | None = known.get(select.using.name.upper())
    if found is None:
        hint = "USING HW joins by hash, USING NLW by nested loops, USING MW by merging"
        raise QueryError(f"'{select.using.name}' is no algorithm for joins", hint, select.using.span)
    return found

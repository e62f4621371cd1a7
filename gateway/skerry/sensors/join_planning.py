"""A SELECT over several tables of sensors → the plan of a join within windows (STEAM 2002, 6.2).

Of WHERE what static columns of an alias decide chooses its sources, what its own row decides is decided where rows are read, and what is
left joins.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, get_args

import pyarrow as pa

from skerry.joins.choice import Choice, choose
from skerry.joins.conditions import encode
from skerry.joins.join import LATENESS_US, NEVER_LATE_US, Join, JoinError
from skerry.joins.rows import Algorithm
from skerry.joins.windows import Pair, Window, WindowError
from skerry.planner.model import source_plans as plans
from skerry.planner.model.plans import Past, QueryPlan
from skerry.planner.model.source_plans import JoinedTable, JoinPlan, SourcePlan, Term, all_of, conjuncts
from skerry.planner.model.table_lookups import Lookups
from skerry.sensors import mote_streams
from skerry.sensors.call_resolver import ShapesOf, no_shapes
from skerry.sensors.definitions import SensorTable
from skerry.sensors.grouping import Shown, grouping, shown_of
from skerry.sensors.join_conditions import calculated, column_of, type_of
from skerry.sensors.join_resolver import JoinResolver, aliases_of, of_batches
from skerry.sensors.join_volume import Volume
from skerry.sensors.lookup_planning import NO_FILES, Apart, Schemas, lookups_of
from skerry.sensors.made_streams import made_columns
from skerry.sensors.never_true import never_true
from skerry.sensors.outer_joins import conditions_of, joined_conditions, said_conditions
from skerry.sensors.outputs import outputs_of
from skerry.sensors.resolver import Resolver
from skerry.sensors.traffic import TrafficOf
from skerry.sql import ast
from skerry.sql.errors import QueryError, did_you_mean
from skerry.sql.join_windows import is_of_rows, microseconds

#: The number of a plan's answers, until the query has an id.
UNNUMBERED = plans.ANSWERS


def with_tables(select: ast.Select, tables: Collection[str]) -> ast.Select:
    """``FROM SensorTables A, B, C``: B and C follow the table that stands before them."""
    found: list[ast.Table] = []
    for table in select.tables:
        before = found[-1] if found else None
        own = (
            table.name.name.lower() == mote_streams.NAME
            or table.name.name.lower() in tables
            or table.alias is not None
        )
        if own or before is None or before.alias is None:
            found.append(table)
            continue
        followed = replace(table.name, name=before.name.name)
        found.append(replace(table, name=followed, alias=table.name.name))
    return replace(select, tables=tuple(found))


def plan_of_join(
    select: ast.Select,
    tables: Mapping[str, SensorTable],
    shapes: ShapesOf = no_shapes,
    traffic: TrafficOf | None = None,
    past: Past | None = None,
    made: str = "",
    *,
    apart: Apart | None = None,
    files: Schemas = NO_FILES,
) -> QueryPlan:
    """The plan of a query over several of these tables; ``past``: over what has come of them; ``made``: of CREATE STREAM with that name,
    which may be over one; ``apart``: the tables that its answers are joined with, of which some may be ``files``. Raises QueryError."""
    aliases = tuple(_alias(table, tables, select) for table in select.tables)
    resolver = JoinResolver(aliases[0].table, aliases[0].called, shapes, aliases)
    named = resolver if apart is None else replace(resolver, aliases=(*aliases, *apart.tables))
    shown = shown_of(select, named, outputs_of)
    outputs, names = shown.outputs, [one.called for one in aliases]
    pushed, left = _pushed(select, aliases, resolver)
    conditioned = conditions_of(left, resolver)
    asked_of = [*conditioned.joining, *conjuncts(conditioned.of_answers)]
    if "" in [one for term in asked_of for one in aliases_of(term)]:
        hint = f"write {names[0]}.time, as an answer's own time comes of its rows"
        raise QueryError("'time' is of several tables", hint, select.where.span if select.where else None)
    lookups, asked_last = _lookups(apart, named, shown, files, conditioned.of_answers)
    of_answers = [*shown.of_rows(), *(lookups.terms() if lookups else []), *conjuncts(asked_last)]
    own, where, steps = joined_conditions(conditioned, names, select)
    chosen = {one.called: _static_part(own[one.called], one) for one in aliases}
    needs = {one.called: _needs(one, [*asked_of, *of_answers]) for one in aliases}
    asked = _questions(select, pushed, needs, aliases)
    streams = {
        one.called: json.dumps(
            [mote_streams.NAME, asked[one.called]]
            if one.called in asked
            else [one.table.stream_number, _listed(chosen[one.called])]
        )
        for one in aliases
    }
    of_tables = lookups.own() if lookups is not None else {}
    selected = {name: term for name, term in _selected(of_answers).items() if name not in of_tables}
    columns = {name: column_of(term, term.type, "") for name, term in selected.items()}
    # What is made of others comes behind its time.
    behind = max(one.table.behind_us for one in aliases)
    lateness = (
        int(select.lateness.milliseconds * 1000) if select.lateness is not None else LATENESS_US + behind
    )
    alone = len(aliases) == 1
    if alone:
        check_unjoined(select)
        lateness = NEVER_LATE_US
    try:
        join = Join(
            streams,
            _windows(select, names),
            where,
            tuple(dict.fromkeys(columns.values())),
            lateness,
            steps,
        )
        fields = _fields(join, aliases)
        schemas = {stream: _schema(kinds) for stream, kinds in fields.items()}
        volume = Volume(join, aliases, chosen, own, traffic)
        choice = (
            Choice("MW", "that meets nobody") if alone else _chosen(join, schemas, volume.whole_rates, select)
        )
        keeps = "" if alone else volume.checked(choice.algorithm)
    except (JoinError, WindowError) as error:
        raise _refusal(error, select.windows[0].span if select.windows else None) from None
    spec = {
        "streams": {
            streams[one.called]: {
                "number": one.table.stream_number,
                "motes": asked.get(one.called),
                "chosen": _listed(chosen[one.called]),
                "fields": fields[streams[one.called]],
            }
            for one in aliases
        },
        "aliases": streams,
        "windows": [[*sorted(pair), window.us, window.rows] for pair, window in join.windows.items()],
        "where": encode(join.where).decode(),
        "select": {
            name: [column.alias, column.name, selected[name].type] for name, column in columns.items()
        },
        "steps": [[step.kind, encode(step.on).decode()] for step in steps],
        "lateness_us": lateness,
        "algorithm": choice.algorithm,
        # With FOR motes end at a time of each join's own.
        "alone": bool(asked) and getattr(select.sampling, "duration", None) is not None,
    }
    behind = behind if alone else lateness + join.reach_us
    windowed = shown.grouped is not None and shown.grouped.windows
    shape = grouping(select, shown, static=past is not None and not windowed, behind_us=behind)
    if made:
        columns_made = made_columns(outputs, select.items[0].span)
        written = [[name, term.to_list()] for name, term in columns_made.written]
        spec["made"] = {"written": written, "asked": _listed(asked_last), "behind_us": behind}
        asked_last, outputs = None, columns_made.read
    joined = tuple(
        JoinedTable(
            one.called,
            one.table.key,
            one.table.stream_number,
            chosen[one.called],
            needs[one.called],
            asked.get(one.called),
        )
        for one in aliases
    )
    plan = JoinPlan(
        joined, json.dumps(spec, separators=(",", ":")), choice.algorithm, f"a join by {choice.reason}", keeps
    )
    source = SourcePlan(
        aliases[0].table.key,
        UNNUMBERED,
        outputs,
        asked_last,
        None,
        shown.order,
        int(select.limit.value) if select.limit is not None else None,
        join=plan,
        grouping=shape,
        made=made,
        lookups=lookups,
    )
    notes = tuple(note for one in said_conditions(select) for note in never_true(one, joined=True))
    return QueryPlan(
        select.text,
        0,
        None,
        False,
        False,
        (),
        None,
        None,
        frozenset(),
        history=past,
        sources=source,
        notes=notes,
    )


def _lookups(
    apart: Apart | None, named: JoinResolver, shown: Shown, files: Schemas, of_answers: Term | None
) -> tuple[Lookups | None, Term | None]:
    """The tables that answers are joined with, and what is asked of them at last. Raises QueryError."""
    if apart is None:
        return None, of_answers
    return lookups_of(apart, named, shown.of_rows(), files, of_answers)


def check_unjoined(select: ast.Select) -> None:
    """Of rows that are joined with none. Raises QueryError."""
    for said, found in (
        ("WINDOW", select.windows[:1]),
        ("LATENESS", select.lateness),
        ("USING", select.using),
    ):
        if found:
            span = found[0].span if isinstance(found, tuple) else found.span
            raise QueryError(f"{said} is for joins", "leave it out, as one stream meets nobody", span)


def _alias(table: ast.Table, tables: Mapping[str, SensorTable], select: ast.Select) -> Resolver:
    found = tables.get(table.name.name.lower())
    if found is None:
        guess = did_you_mean(table.name.name, list(tables))
        raise QueryError(
            f"'{table.name.name}' is no table of sensors", f"{guess}joins are of streams", table.name.span
        )
    if found.stream is None:
        hint = "an index that motes store is joined with no stream"
        raise QueryError(f"{found.name} has no stream", hint, table.name.span)
    called = table.called
    if [other.called for other in select.tables].count(called) > 1:
        hint = f"give each a name of its own, as in FROM {found.name} AS a, {found.name} AS b"
        raise QueryError(f"two tables are called '{called}'", hint, table.name.span)
    if "." in called or not called:
        raise QueryError(
            f"'{called}' is no name for a table", "names here are of letters, digits and _", table.name.span
        )
    return mote_streams.MoteResolver(found, called) if found.of_motes else Resolver(found, called)


def _pushed(
    select: ast.Select, aliases: Sequence[Resolver], resolver: JoinResolver
) -> tuple[dict[str, list[ast.Expression]], ast.Select]:
    """By alias of motes what these are asked, and the query with what is left: of WHERE, or behind ON of an alias whose rows may be
    missing in answers."""
    motes = [one.called for one in aliases if one.table.of_motes]
    outer = [table.called for table in select.tables if table.joined is not None]

    def owner(name: ast.Name) -> str:
        return _owner(name, resolver)

    pushed, where = mote_streams.own_conditions(
        select.where, [name for name in motes if name not in outer], owner
    )
    tables = []
    for table in select.tables:
        if table.joined is not None and table.called in motes:
            of_on, on = mote_streams.own_conditions(table.joined.on, [table.called], owner)
            pushed |= of_on
            tables.append(replace(table, joined=replace(table.joined, on=on)))
        else:
            tables.append(table)
    return pushed, replace(select, where=where, tables=tuple(tables))


def _questions(
    select: ast.Select,
    pushed: Mapping[str, list[ast.Expression]],
    needs: Mapping[str, Sequence[str]],
    aliases: Sequence[Resolver],
) -> dict[str, str]:
    """By alias of motes what these are asked."""
    statics = mote_streams.statics_of(one.table for one in aliases)
    attributes = {name: map(_attribute, needs[name]) for name in pushed}
    return mote_streams.questions(select, pushed, attributes, statics)


def _owner(name: ast.Name, resolver: JoinResolver) -> str:
    one = resolver.owner(name) if resolver.constant(name) is None else None
    return one.called if one is not None else ""


def _attribute(column: str) -> str:
    """Of a column of motes' batches."""
    return column.rpartition(".")[2]


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


def _static_part(where: Term | None, one: Resolver) -> Term | None:
    """Of what AND joins, the part that an alias's static columns decide."""
    parts = [of_batches(part) for part in conjuncts(where)]
    return all_of([part for part in parts if one.is_static(part)])


def _selected(terms: Sequence[Term]) -> dict[str, Term]:
    """Columns of answers that these terms read, by name."""

    def leaves(term: Term) -> list[Term]:
        return [term] if term.op == "column" else [leaf for arg in term.args for leaf in leaves(arg)]

    found = [leaf for term in terms for leaf in leaves(term)]
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


def _needs(one: Resolver, terms: Sequence[Term]) -> tuple[str, ...]:
    """Columns of an alias that these terms read."""
    own = [str(name).partition(".") for name in {name for term in terms for name in term.columns()}]
    return tuple(sorted(name for alias, _, name in own if alias == one.called))


def _chosen(
    join: Join, schemas: Mapping[str, pa.Schema], rates: Mapping[str, float], select: ast.Select
) -> Choice:
    """Raises QueryError where USING cannot be followed."""
    try:
        return choose(join, schemas, rates, _hint(select))
    except JoinError as error:
        raise _refusal(error, select.using.span if select.using is not None else None) from None


def _refusal(error: JoinError | WindowError, span: ast.Span | None) -> QueryError:
    message, _, hint = str(error).partition(": ")
    return QueryError(message, hint, span)


def _hint(select: ast.Select) -> Algorithm | None:
    if select.using is None:
        return None
    known: dict[str, Any] = {name: name for name in get_args(Algorithm)}
    found: Algorithm | None = known.get(select.using.name.upper())
    if found is None:
        hint = "USING HW joins by hash, USING NLW by nested loops, USING MW by merging"
        raise QueryError(f"'{select.using.name}' is no algorithm for joins", hint, select.using.span)
    return found

"""A SELECT over a table of sensors → its plan, with what static columns decide pushed below the streams."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from skerry.catalog.static_attributes import NO_STATICS, Statics
from skerry.planner.model import source_plans as plans
from skerry.planner.model.joined_tables import Tables, TableSchema, Trouble
from skerry.planner.model.plans import Past, QueryPlan
from skerry.planner.model.source_plans import WAIT_MS, SourcePlan, Term
from skerry.sensors import file_tables, mote_streams
from skerry.sensors.call_resolver import ShapesOf, no_shapes
from skerry.sensors.definitions import SensorTable
from skerry.sensors.grouping import aggregates, grouping, shown_of
from skerry.sensors.join_planning import check_unjoined, plan_of_join, with_tables
from skerry.sensors.lookup_planning import (
    NO_FILES,
    Schemas,
    are_there,
    lookups_of,
    names_of,
    taken_apart,
)
from skerry.sensors.mining_planning import plan_of_mining
from skerry.sensors.never_true import never_true
from skerry.sensors.outputs import outputs_of
from skerry.sensors.resolver import Resolver
from skerry.sensors.table_functions import FUNCTIONS
from skerry.sensors.traffic import TrafficOf
from skerry.sql import ast, stream_statements
from skerry.sql.errors import QueryError, did_you_mean
from skerry.sql.parser import parse
from skerry.sql.stream_statements import CreateStream
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
#: The same for joins whose rows come as they come.
_OF_WINDOWS = {"order": "ORDER BY", "limit": "LIMIT"}
#: The same for streams that are made.
_OF_ROWS = {"groups": "GROUP BY", "having": "HAVING", "wait": "WAIT", "history": "HISTORY", **_OF_WINDOWS}
_WAIT_HINT = "leave WAIT out, which is for windows"


def plan_of(
    select: ast.Select,
    tables: Mapping[str, SensorTable],
    shapes: ShapesOf = no_shapes,
    traffic: TrafficOf | None = None,
    files: Schemas = NO_FILES,
) -> QueryPlan:
    """The plan of a query over one of these tables, or several, of which some may be ``files``. Raises QueryError."""
    apart = taken_apart(select, tables, files) if are_there(select, tables) else None
    said, select = select, select if apart is None else apart.streams
    asked = [tables[table.name.name.lower()] for table in select.tables]
    of_motes = any(table.of_motes for table in asked)
    coming = len(select.tables) > 1 and not aggregates(select) and select.history is None
    of_index = any(table.is_index for table in asked)
    _check_clauses(select, _OF_WINDOWS if coming else {}, of_motes=of_motes, of_index=of_index)
    if any(table.function is not None for table in select.tables):
        return plan_of_mining(select, tables, shapes, _past(select))
    if select.every is not None:
        hint = "leave it out, as it says how often a table function tells what it has found"
        raise QueryError("EVERY is for what is mined", hint, select.every.span)
    if len(select.tables) > 1 or (apart is not None and of_motes):
        if select.tables[0].latest is not None:
            hint = "leave LATEST out, as rows of several meet by their times"
            raise QueryError("FROM LATEST is of the newest rows of one stream", hint, select.tables[0].latest)
        if select.wait is not None and not aggregates(select):
            raise QueryError("nothing is waited for", _WAIT_HINT, select.wait.span)
        return plan_of_join(select, tables, shapes, traffic, _past(select), apart=apart, files=files)
    check_unjoined(select)
    [of] = select.tables
    table = tables[of.name.name.lower()]
    own = Resolver(table, of.called, shapes)
    among = names_of(own, apart, shapes) if apart is not None else None
    resolver = among or own
    where = of_stream = resolver.condition(select.where) if select.where is not None else None
    shown = shown_of(select, resolver, outputs_of)
    grouped, lookups = shown.grouped, None
    if apart is not None and among is not None:
        lookups, where = lookups_of(apart, among, shown.of_rows(), files, where)
    terms = [*shown.of_rows(), *([where] if where else []), *(lookups.terms() if lookups else [])]
    windowed, latest = grouped is not None and grouped.windows, of.latest is not None
    if latest and windowed:
        hint = "leave windows out, as it is answered from one row of each source"
        raise QueryError("FROM LATEST has no windows", hint, of.latest)
    of_rows = windowed or latest or select.history is not None
    static = all(resolver.is_static(term) for term in terms) and not of_rows
    if not static and table.stream is None:
        hint = "leave windows, LATEST and HISTORY out, as it has columns alone"
        raise QueryError(f"{table.name} has no stream", hint, of.name.span)
    past = _past(select)
    # Whether its rows are there now, and no others come.
    there = static or latest or past is not None
    shape = grouping(select, shown, static=there and not windowed, behind_us=table.behind_us)
    if shape is None and not latest and select.wait is not None:
        raise QueryError("nothing is waited for", _WAIT_HINT, select.wait.span)
    if not there and grouped is None and (select.order or select.limit is not None):
        what = select.order[0].span if select.order else select.limit.span if select.limit else None
        hint = (
            "leave it out, as rows come as they come, or ask of the newest row of each source (FROM LATEST), "
            "of the past (HISTORY 1 day ONLY), or of static columns alone"
        )
        raise QueryError("a stream has no end at which its rows could be sorted or counted", hint, what)
    source = SourcePlan(
        table.key,
        None if static else table.stream_number,
        shown.outputs,
        where,
        _static_part(of_stream, own),
        shown.order,
        int(select.limit.value) if select.limit is not None else None,
        grouping=shape,
        latest=latest,
        once=isinstance(select.sampling, ast.Once),
        wait_ms=_wait_ms(select) if latest else WAIT_MS,
        lookups=lookups,
    )
    past = Past(0, only=True, recorded=True) if static else past
    return QueryPlan(
        select.text, 0, None, False, False, (), None, None, frozenset(), history=past, sources=source, notes=never_true(said.where)
    )  # fmt: skip


def _plan_of_made(
    select: ast.Select,
    tables: Mapping[str, SensorTable],
    name: ast.Name,
    shapes: ShapesOf,
    traffic: TrafficOf | None,
) -> QueryPlan:
    """Of CREATE STREAM. Raises QueryError."""
    if are_there(select, tables):
        hint = f"make it of streams, and join the table in queries over {name.name}: … FROM {name.name} AS s, table AS t WHERE …"
        raise QueryError("a stream is made of streams", hint, select.items[0].span)
    if name.name.lower() == _MOTES:
        raise QueryError("motes are called 'sensors'", "take another name", name.span)
    of_motes = any(tables[table.name.name.lower()].of_motes for table in select.tables)
    _check_clauses(select, _OF_ROWS, of_motes=of_motes)
    mined = select.every is not None or any(table.function is not None for table in select.tables)
    if mined or select.tables[0].latest is not None or aggregates(select):
        hint = "make the stream of rows, and ask for aggregates or the newest rows of that"
        raise QueryError("a stream is made of rows", hint, select.items[0].span)
    return plan_of_join(select, tables, shapes, traffic, made=name.name)


def _check_clauses(
    select: ast.Select, others: dict[str, str], *, of_motes: bool, of_index: bool = False
) -> None:
    if of_motes:
        mote_streams.check_clauses(select)
    for name, said in (others if of_motes else _OTHERS | others).items():
        found: Any = getattr(select, name)
        if found:
            span = getattr(found[0] if isinstance(found, tuple) else found, "span", None)
            of, hint = "motes", "leave it out, where tables of sensors are asked"
            if of_index:
                hint = "leave it out, as an index is asked once and answers the gateway: motes act on what they sample, FROM sensors"
            if name in _OF_ROWS:
                of, hint = "rows that have an end", "leave it out, as rows come as they come"
            raise QueryError(f"{said} is for {of}", hint, span)
    latest = select.tables[0].latest is not None
    if (
        not of_motes
        and not isinstance(select.sampling, ast.Recorded)
        and not (latest and isinstance(select.sampling, ast.Once))
    ):
        if of_index:
            hint = "leave it out, and ask again for what has been stored since"
            raise QueryError("an index is asked once", hint, select.sampling.span)
        hint = "leave it out, as a source says by itself when it has something"
        if isinstance(select.sampling, ast.Once) and len(select.tables) == 1:
            hint += f"; FROM LATEST {select.tables[0].name.name} … ONCE asks of the newest row of each"
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
        hint = "leave WAIT out, which is for ONCE and the first row of each source"
        raise QueryError("each row is answered as it comes", hint, select.wait.span)
    if not 0 <= asked <= _WAIT_MAXIMUM_MS:
        hint = f"write 0 s to {duration_text(_WAIT_MAXIMUM_MS)}"
        raise QueryError(f"WAIT {duration_text(asked)}", hint, select.wait.span)
    return int(asked)


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


#: What the motes' table is called, which users may call one of theirs: the paper does.
_MOTES = mote_streams.NAME
_WORDS = re.compile(r"[A-Za-z_°][A-Za-z0-9_]*|\"[^\"]+\"")


def planned(
    text: str,
    tables: Mapping[str, SensorTable],
    shapes: ShapesOf = no_shapes,
    traffic: TrafficOf | None = None,
    statics: Statics = NO_STATICS,
    files: Callable[[], Tables] = dict,
) -> QueryPlan | None:
    """The plan of a query over one of these tables, or of a join of streams, of which motes may be one; None: it is over others, or no
    query. ``shapes``: by the name of the table that has them, for functions over arrays; ``traffic``: how fast rows come, by which joins
    are chosen and refused. One that was asked before is planned again without that. ``statics``: motes' attributes that users have made;
    ``files``: tables that streams may be joined with, beside those. Raises QueryError."""
    creating = stream_statements.parse(text)
    made = creating.name if isinstance(creating, CreateStream) else None
    asked = creating.select if isinstance(creating, CreateStream) else text
    words = [word.strip('"').lower() for word in _WORDS.findall(asked)]
    of_tables = any(word in tables for word in words)
    # Motes may join with these, or with each other, or be mined.
    mined = any(word in FUNCTIONS for word in words)
    maybe = _MOTES in words and (of_tables or words.count(_MOTES) > 1 or "window" in words or mined)
    # A table function over a table that there is not is told so.
    if made is None and not of_tables and not maybe and not mined:
        return None
    try:
        statement = parse(asked, {*tables, _MOTES} if maybe else tables)
    except QueryError as error:
        if made is None and not of_tables and _is_for_motes(text):
            return None
        raise error.within(text) from None
    try:
        found = None
        if isinstance(statement, ast.Select) and statement.strategy is not None:
            if made is not None:
                hint = "leave it out, as the gateway joins what a stream is made of"
                raise QueryError("motes make no streams", hint, statement.strategy.span)
            return None  # motes do it: it is a query of theirs
        if isinstance(statement, ast.Select) and statement.of_sensors:
            motes = mote_streams.table_of(statics)
            of_files = {name: one for name, one in files().items() if name not in tables and name != _MOTES}
            asked_of = with_tables(statement, {*tables, *of_files})
            found = _planned(asked_of, tables, motes, shapes, traffic, made, of_files)
        if found is None and made is not None:
            hint = (
                "make it of tables of sensors, or of other streams, which SHOW SENSORS and SHOW STREAMS list"
            )
            raise QueryError("a stream is made of streams", hint, made.span)
    except QueryError as error:
        raise error.within(text) from None
    return found


def _is_for_motes(text: str) -> bool:
    """Whether motes alone may be asked it: a table of a file may have a column that is called window."""
    with suppress(QueryError):
        parse(text)
        return True
    return False


def _planned(
    select: ast.Select,
    tables: Mapping[str, SensorTable],
    of_motes: SensorTable,
    shapes: ShapesOf,
    traffic: TrafficOf | None,
    made: ast.Name | None,
    files: Tables,
) -> QueryPlan | None:
    schemas: dict[str, TableSchema] = {}

    def plan(tables: Mapping[str, SensorTable]) -> QueryPlan:
        known = {**tables, **{name: file_tables.table_of(schema) for name, schema in schemas.items()}}
        if made is not None:
            return _plan_of_made(select, known, made, shapes, traffic)
        return plan_of(select, known, shapes, traffic, schemas)

    keys = {table.name.name.lower() for table in select.tables}
    mined = any(table.function is not None for table in select.tables)
    joined = len(select.tables) > 1 and (bool(select.windows) or keys != {_MOTES})
    join = _MOTES in keys and (joined or mined)
    motes = {**tables, _MOTES: of_motes}
    unknown = [table for table in select.tables if table.name.name.lower() not in tables]
    others = [table for table in unknown if table.name.name.lower() != _MOTES]
    # Motes' own queries are joined with files by others, unless motes meet each other in windows.
    of_files = bool(select.windows) and all(table.name.name.lower() in files for table in others)
    if unknown and keys & tables.keys() <= {_MOTES} and (not join or (others and not of_files)):
        return None
    for table in [*others]:
        found = files.get(table.name.name.lower())
        if isinstance(found, Trouble):
            raise QueryError(found.message, found.hint, table.name.span)
        if found is not None:
            schemas[table.name.name.lower()] = found
            others.remove(table)
            unknown.remove(table)
    if unknown and not others and join:
        return plan(motes)
    if unknown:
        unfit = (others or unknown)[0].name
        guess = did_you_mean(unfit.name, [*tables, _MOTES])
        hint = f"{guess}streams are joined of sensors, which are the motes, and of the tables that SHOW SENSORS and GET /tables list"
        raise QueryError(f"'{unfit.name}' is no table of sensors", hint, unfit.span)
    try:
        return plan(tables)
    except QueryError:
        # A question to motes names other columns than those of a table that has their table's name.
        if _MOTES not in keys:
            raise
        if not join:
            return None
        with suppress(QueryError):
            return plan(motes)
        raise

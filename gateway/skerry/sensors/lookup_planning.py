"""Tables that have no stream, in FROM beside streams: sources and windows are planned without them, and what comes of that is joined with
them.

A table's columns may stand wherever a row's or an answer's may; what of WHERE reads them is asked when the table's rows are met.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from skerry.planner.model.joined_tables import TableSchema
from skerry.planner.model.source_plans import Term, all_of, conjuncts
from skerry.planner.model.table_lookups import OF_SENSORS, Lookups, TableLookup
from skerry.sensors.call_resolver import ShapesOf
from skerry.sensors.definitions import SensorTable
from skerry.sensors.found import Found
from skerry.sensors.join_resolver import JoinResolver, aliases_of, of_alias
from skerry.sensors.resolver import Resolver
from skerry.sql import ast
from skerry.sql.errors import QueryError
from skerry.sql.quoting import as_name

#: Of files, by the key of the table that they are.
Schemas = Mapping[str, TableSchema]
NO_FILES: Schemas = {}


@dataclass(frozen=True, slots=True)
class LookupResolver(JoinResolver):
    """Of one stream and tables: the stream's columns have their own names, those of tables their alias before them. ``of``: the stream."""

    of: str = ""

    def _name(self, node: ast.Name) -> Found:
        one = self.owner(node)
        if one is None or one.called != self.of:
            return JoinResolver._name(self, node)
        return one._name(node)

    def is_static(self, term: Term) -> bool:
        """Whether no row of the stream decides it."""
        columns = [str(name) for name in term.columns()]
        called = {one.called for one in self.aliases if one.called != self.of}
        return all(self.table.place(name) is not None or name.partition(".")[0] in called for name in columns)

    def in_rows(self, one: Resolver, term: Term) -> Term:
        """A term over an alias's batches as one over rows."""
        return term if one.called == self.of else of_alias(one.called, term)


@dataclass(frozen=True, slots=True)
class FileResolver(Resolver):
    """Of a table of a file. ``unusable``: columns that it has, and why queries cannot have them."""

    unusable: tuple[tuple[str, str], ...] = ()

    def has(self, name: str) -> bool:
        return Resolver.has(self, name) or name.lower() in dict(self.unusable)

    def _name(self, node: ast.Name) -> Found:
        why = dict(self.unusable).get(node.name.lower())
        if why is not None:
            message = f"column {node.name.lower()} of table {self.table.name} cannot be used"
            raise QueryError(message, why, node.span)
        return Resolver._name(self, node)


@dataclass(frozen=True, slots=True)
class Apart:
    """A query in two: ``streams``, without what reads tables, and the tables. ``on``: by alias, of a LEFT JOIN its condition; ``asked``: of
    WHERE what reads any."""

    streams: ast.Select
    tables: tuple[Resolver, ...]
    on: Mapping[str, ast.Expression | None]
    asked: tuple[ast.Expression, ...]
    spans: Mapping[str, ast.Span]


def are_there(select: ast.Select, tables: Mapping[str, SensorTable]) -> bool:
    """Whether a query over several tables has one that is looked up in."""
    return len(select.tables) > 1 and any(_is_lookup(one, tables) for one in select.tables)


def _is_lookup(one: ast.Table, tables: Mapping[str, SensorTable]) -> bool:
    table = tables[one.name.name.lower()]
    return table.stream is None and not table.of_motes and not table.is_index


def resolver_of(
    table: ast.Table, tables: Mapping[str, SensorTable], files: Schemas, select: ast.Select
) -> Resolver:
    """A table that is looked up in. Raises QueryError."""
    called = table.called
    if [other.called for other in select.tables].count(called) > 1:
        hint = f"give each a name of its own, as in FROM {table.name.name} AS a, {table.name.name} AS b"
        raise QueryError(f"two tables are called '{called}'", hint, table.name.span)
    if "." in called or not called:
        hint = "names here are of letters, digits and _"
        raise QueryError(f"'{called}' is no name for a table", hint, table.name.span)
    found = tables[table.name.name.lower()]
    schema = files.get(found.key)
    return (
        Resolver(found, called) if schema is None else FileResolver(found, called, unusable=schema.unusable)
    )


def taken_apart(select: ast.Select, tables: Mapping[str, SensorTable], files: Schemas) -> Apart:
    """Streams come first, as rows come of these; without any, static columns of the first table that CREATE SENSORS made. Raises
    QueryError."""
    others, mine = _parted(select, tables, files)
    _check_streams(others, tables)
    resolvers = tuple(resolver_of(one, tables, files, select) for one in mine)
    called, on = {one.called for one in resolvers}, dict[str, ast.Expression | None]()
    for one in mine:
        if one.joined is not None:
            if one.joined.kind != "LEFT":
                hint = "its rows have no time: JOIN or LEFT JOIN it"
                raise QueryError(f"{one.joined.kind} JOIN with a table", hint, one.joined.span)
            on[one.called] = one.joined.on
    _check_windows(select, called)
    streams = tuple(Resolver(tables[one.name.name.lower()], one.called) for one in others)
    names = JoinResolver(streams[0].table, streams[0].called, aliases=(*streams, *resolvers))
    kept, asked = list[ast.Expression](), list[ast.Expression]()
    for part in ast.operands(select.where, "AND") if select.where is not None else []:
        (asked if _reads(part, names, called) else kept).append(part)
    for one in others:
        if one.joined is not None and one.joined.on is not None and _reads(one.joined.on, names, called):
            hint = "streams are joined before tables: ask for it in WHERE"
            raise QueryError("which rows of streams meet is said of a table", hint, one.joined.on.span)
    where: ast.Expression | None = None
    for part in kept:
        where = part if where is None else ast.Binary("AND", where, part, where.span.to(part.span))
    spans = {one.called: one.name.span for one in mine}
    return Apart(replace(select, tables=tuple(others), where=where), resolvers, on, tuple(asked), spans)


def _parted(
    select: ast.Select, tables: Mapping[str, SensorTable], files: Schemas
) -> tuple[list[ast.Table], list[ast.Table]]:
    """Streams, and tables. Raises QueryError."""
    for one in select.tables:
        if one.function is not None:
            hint = "ask in a query of its own"
            raise QueryError("what is mined is joined with nothing", hint, one.name.span)
    mine = [one for one in select.tables if _is_lookup(one, tables)]
    others = [one for one in select.tables if one not in mine]
    if not others:
        base = next((one for one in mine if one.name.name.lower() not in files), None)
        if base is None:
            hint = "one of them is a table that CREATE SENSORS made, or sensors"
            raise QueryError("tables of files alone are joined", hint, select.tables[0].name.span)
        mine.remove(base)
        others = [base]
    return others, mine


def _check_streams(streams: Sequence[ast.Table], tables: Mapping[str, SensorTable]) -> None:
    """Raises QueryError."""
    if any(tables[one.name.name.lower()].is_index for one in streams):
        hint = "ask the index alone, and join its answer yourself"
        raise QueryError("an index that motes store is joined with no table", hint, streams[0].name.span)
    joined = streams[0].joined
    if joined is not None:
        hint = "rows come of streams: write the stream first, and LEFT JOIN the table"
        raise QueryError(f"{joined.kind} JOIN of a stream with a table before it", hint, joined.span)


def _check_windows(select: ast.Select, called: AbstractSet[str]) -> None:
    """Raises QueryError."""
    for window in select.windows:
        for name in window.pair or ():
            if name.name.lower() in called:
                hint = "only streams' rows have a time: leave this window out"
                raise QueryError(f"{name.name} has no stream", hint, name.span)


def _reads(node: ast.Expression, names: JoinResolver, called: AbstractSet[str]) -> bool:
    """Whether a condition reads a column of these tables. Raises QueryError."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and names.constant(part) is None:
            one = names.owner(part)
            if one is not None and one.called in called:
                return True
    return False


def names_of(stream: Resolver, apart: Apart, shapes: ShapesOf) -> LookupResolver:
    """All names of one stream and its tables. Raises QueryError."""
    attribute = stream.table.stream
    for one in apart.tables:
        if attribute is not None and one.called == attribute.name.lower():
            hint = f"{stream.table.name} has a stream of that name: call the table otherwise, with AS"
            raise QueryError(f"a table is called '{one.called}'", hint, apart.spans[one.called])
    return LookupResolver(stream.table, stream.called, shapes, (stream, *apart.tables), stream.called)


def lookups_of(
    apart: Apart, resolver: JoinResolver, read: Sequence[Term], files: Schemas, before: Term | None
) -> tuple[Lookups, Term | None]:
    """How rows are joined with the tables, and what is asked in the end. ``resolver``: of all names; ``read``: what else reads columns;
    ``before``: what rows are asked first. Raises QueryError."""
    called = {one.called for one in apart.tables}
    on = {name: conjuncts(resolver.condition(node)) if node else [] for name, node in apart.on.items()}
    asked = [part for node in apart.asked for part in conjuncts(resolver.condition(node))]
    # What LEFT JOINs alone found is asked when all is joined: they may have found nothing.
    last = [part for part in asked if _of(part, called) <= on.keys()]
    open_ = [part for part in asked if part not in last]
    ordered, left, known = list[tuple[Resolver, list[Term]]](), [*apart.tables], set[str]()
    while left:
        one = _next(left, on, open_, known, called, apart)
        reach = known | {one.called}
        conditions = on.get(one.called) or [
            part for part in open_ if one.called in _of(part, called) <= reach
        ]
        open_ = [part for part in open_ if part not in conditions]
        ordered.append((one, conditions))
        left.remove(one)
        known = reach
    # A LEFT JOIN that is behind a table has its own condition alone.
    last += open_
    terms = [*read, *last, *(part for _, conditions in ordered for part in conditions)]
    columns = {name: kind for term in terms for name, kind in term.typed_columns()}
    found = [_lookup(one, conditions, columns, files, left=one.called in on) for one, conditions in ordered]
    return Lookups(tuple(found), before), all_of(last)


def _of(part: Term, called: AbstractSet[str]) -> set[str]:
    """The tables whose columns a term reads."""
    return {*aliases_of(part)} & called


def _next(
    left: Sequence[Resolver],
    on: Mapping[str, list[Term]],
    asked: Sequence[Term],
    known: set[str],
    called: AbstractSet[str],
    apart: Apart,
) -> Resolver:
    """The table that is joined next: by an equality, if any can be. Raises QueryError where nothing says which rows of one are met."""
    able = list[tuple[bool, int]]()
    for place, one in enumerate(left):
        reach = known | {one.called}
        conditions = on.get(one.called)
        if conditions is None:
            conditions = [part for part in asked if one.called in _of(part, called) <= reach]
        elif not all(_of(part, called) <= reach for part in conditions):
            continue
        if conditions:
            able.append((not any(part.op == "=" for part in conditions), place))
    if able:
        return left[min(able)[1]]
    one = left[0]
    waits = sorted({other for part in on.get(one.called, ()) for other in _of(part, called)} - {one.called})
    if waits:
        hint = f"say it behind ON of {waits[0]}, or in WHERE"
        span = apart.streams.tables[0].name.span
        raise QueryError(f"ON of {one.called} asks for {waits[0]}, which is joined behind it", hint, span)
    stream = apart.streams.tables[0]
    example = f"{as_name(one.called)}.{as_name(one.table.columns[0].name)} = {as_name(stream.called)}.…"
    hint = f"say which belong to a row of {stream.called}, as in WHERE {example}"
    raise QueryError(f"all rows of {one.called} would be joined with each row", hint, apart.spans[one.called])


def _lookup(
    one: Resolver, conditions: Sequence[Term], columns: Mapping[str, str], files: Schemas, *, left: bool
) -> TableLookup:
    prefix, key = f"{one.called}.", one.table.key
    own = {name.removeprefix(prefix): kind for name, kind in columns.items() if name.startswith(prefix)}
    reading = key if key in files else OF_SENSORS + key
    return TableLookup(
        one.called, reading, tuple(sorted(own.items())), left, all_of(conditions), files.get(key)
    )

"""A SELECT from a table function over a table of sensors, or over motes → the plan of what is mined in its streams (STEAM 2002, 7.2).

Of WHERE what the table's columns and fields decide says which rows are mined, and of that what static columns decide which sources are
opened, and what motes are asked; what the function's columns decide says what of it is shown. With HISTORY … ONLY it is mined in what has
come already.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from skerry.mining.errors import MiningError
from skerry.planner.model import source_plans as plans
from skerry.planner.model.plans import Past, QueryPlan
from skerry.planner.model.source_plans import JoinedTable, JoinPlan, SourceOutput, SourcePlan, Term
from skerry.planner.planner import plan_query
from skerry.sensors import mote_streams
from skerry.sensors.call_resolver import ShapesOf
from skerry.sensors.definitions import Column, SensorTable
from skerry.sensors.found import Found
from skerry.sensors.join_resolver import JoinResolver, aliases_of, of_batches
from skerry.sensors.resolver import Resolver
from skerry.sensors.table_functions import FUNCTIONS, ROWS, TableFunction
from skerry.sql import ast
from skerry.sql.errors import QueryError, did_you_mean
from skerry.sql.join_windows import is_of_rows, microseconds

#: What is found comes after so many rows, where nobody says otherwise.
EVERY_ROWS = 1000
#: Of the past, of which all is there, it comes once, where nobody says otherwise.
_AT_THE_END = {"rows": 1 << 62}
#: Symbols may be of these types, and of numbers, which are cut to whole ones.
_SYMBOLS = (plans.TEXT, plans.BOOLEAN, plans.INT, plans.DECIMAL, plans.DOUBLE)
#: Clauses that are not for these, and what is said of each.
_OTHERS = {
    "groups": "GROUP BY", "having": "HAVING", "wait": "WAIT", "order": "ORDER BY", "limit": "LIMIT", "lateness": "LATENESS",
    "using": "USING",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _MiningResolver(JoinResolver):
    """Of what is found, and of the rows that it is found in."""

    def _call(self, node: ast.Call) -> Found:
        # That of JoinResolver speaks of joins.
        hint = "functions stand in a query over the table itself"
        raise QueryError(f"'{node.function}' is not computed of what is found", hint, node.span)


def plan_of_mining(
    select: ast.Select, tables: Mapping[str, SensorTable], shapes: ShapesOf, past: Past | None
) -> QueryPlan:
    """The plan of a query from one table function; ``shapes``: by the name of the table that has them. Raises QueryError."""
    if len(select.tables) > 1:
        hint = "ask for it alone"
        raise QueryError("what is mined is joined with nothing", hint, select.tables[1].name.span)
    [of] = select.tables
    call = of.function
    assert call is not None
    _check_clauses(select)
    function, table = _function(call), tables[of.name.name.lower()]
    if table.stream is None:
        raise QueryError(f"{table.name} has no stream", "rows of streams are mined", of.name.span)
    rows = mote_streams.MoteResolver(table, table.key) if table.of_motes else Resolver(table, table.key)
    terms, arguments = _arguments(call, function, rows, shapes)
    found = Resolver(_found_table(call, function), (of.alias or call.function).lower())
    if found.called == rows.called:
        raise QueryError(
            f"both are called '{rows.called}'", "give the function another name, with AS", call.span
        )
    resolver = _MiningResolver(found.table, found.called, aliases=(found, rows))
    own, left = _conditions_of_motes(select, resolver) if table.of_motes else ([], select)
    mined, shown = _conditions(left, resolver, function)
    outputs = _outputs(select, resolver, function)
    read = dict.fromkeys(
        (name, kind)
        for term in (*(output.term for output in outputs), *shown)
        for name, kind in term.typed_columns()
        if name != plans.TIME
    )
    chosen = _joined([part for part in mined if rows.is_static(part)])
    every, anew = _every(select, _AT_THE_END if past is not None else {"rows": EVERY_ROWS})
    needs = {str(name) for term in (*terms, *mined) for name in term.columns()}
    needs |= {name.partition(".")[2] for name, _ in read if name.partition(".")[0] == rows.called}
    motes = _question(select, table, own, needs, past) if table.of_motes else None
    where = _joined(mined)
    spec = {
        "mines": call.function.lower(),
        "arguments": arguments,
        "columns": [term.to_list() for term in terms],
        "number": table.stream_number,
        "motes": motes,
        "where": where.to_list() if where is not None else None,
        "every": every,
        "anew": anew,
        "select": [[name, *name.split(".", 1), kind] for name, kind in read],
        "found": found.called,
    }
    joined = JoinedTable(found.called, table.key, table.stream_number, chosen, tuple(sorted(needs)), motes)
    keeps = _keeps(function, every, anew=anew, past=past is not None)
    plan = JoinPlan(
        (joined,),
        json.dumps(spec, separators=(",", ":")),
        call.function.upper(),
        f"{call.function.upper()}, which goes on with each row",
        keeps,
    )
    stream = table.stream_number if past is not None else plans.ANSWERS
    source = SourcePlan(table.key, stream, outputs, _joined(shown), None, join=plan)
    if motes is not None and past is not None:
        # What motes have reported, and what is made of it.
        asked = plan_query(motes, statics=mote_streams.statics_of([table]))
        assert isinstance(asked, QueryPlan)
        return replace(asked, text=select.text, sources=source)
    return QueryPlan(
        select.text, 0, None, False, False, (), None, None, frozenset(), history=past, sources=source
    )


def _keeps(function: type[TableFunction], every: Mapping[str, int], *, anew: bool, past: bool) -> str:
    of_what = "of each source" if function.by_source else "of all sources together"
    if every == _AT_THE_END:
        return f"what is found in the past {of_what} comes once"
    size = f"{every['rows']} rows" if "rows" in every else f"{every['us'] / 1e6:g} s"
    rows = "" if anew else "all rows of the past so far, " if past else "all rows so far, "
    return f"what is found in {rows}{of_what} comes every {size}"


def _conditions_of_motes(
    select: ast.Select, resolver: _MiningResolver
) -> tuple[list[ast.Expression], ast.Select]:
    """What of WHERE motes decide, and the query with what is left."""
    _, rows = resolver.aliases

    def owner(name: ast.Name) -> str:
        one = resolver.owner(name)
        return one.called if one is not None else ""

    own, where = mote_streams.own_conditions(select.where, [rows.called], owner)
    return own[rows.called], replace(select, where=where)


def _question(
    select: ast.Select, table: SensorTable, own: list[ast.Expression], needs: set[str], past: Past | None
) -> str:
    """What motes are asked, or what they have reported. Raises QueryError."""
    if past is not None and not isinstance(select.sampling, ast.Recorded):
        hint = "leave SAMPLE PERIOD out"
        raise QueryError("the past is mined in rows as they were recorded", hint, select.sampling.span)
    of = ast.Table(select.tables[0].name, None)
    asked = replace(select, tables=(of,), windows=(), every=None, history=None)
    names = [name.rpartition(".")[2] for name in needs]
    past_ms = past.span_ms if past is not None else None
    return mote_streams.questions(
        asked, {table.key: own}, {table.key: names}, mote_streams.statics_of([table]), past_ms
    )[table.key]


def _check_clauses(select: ast.Select) -> None:
    for name, said in _OTHERS.items():
        given: Any = getattr(select, name)
        if given:
            span = getattr(given[0] if isinstance(given, tuple) else given, "span", None)
            raise QueryError(f"{said} is not for what is mined", "leave it out", span)
    if select.tables[0].latest is not None:
        hint = "leave LATEST out: all rows that come are mined"
        raise QueryError("the newest rows are not mined", hint, select.tables[0].latest)


def _function(call: ast.Call) -> type[TableFunction]:
    found = FUNCTIONS.get(call.function.lower())
    if found is None:
        names = ", ".join(one.usage for one in FUNCTIONS.values())
        hint = f"{did_you_mean(call.function.lower(), list(FUNCTIONS))}there are {names}"
        raise QueryError(f"'{call.function}' is no table function", hint, call.span)
    needed = found.missing()
    if needed is not None:
        hint = "install the gateway with what mining needs: pip install 'skerry[mining]'"
        raise QueryError(f"{call.function.upper()} needs {needed}, which is not installed", hint, call.span)
    return found


def _arguments(
    call: ast.Call, function: type[TableFunction], rows: Resolver, shapes: ShapesOf
) -> tuple[list[Term], list[Any]]:
    """The columns that are mined, and what stands behind them: shapes, and numbers."""
    usage = f"write {function.usage}"
    columns = list(takewhile(lambda one: not isinstance(one, ast.Number | ast.Text), call.arguments))
    least, most = function.numbers
    behind = call.arguments[len(columns) :]
    texts = list(takewhile(lambda one: isinstance(one, ast.Text), behind))
    fits = len(texts) == function.tables and least <= len(behind) - len(texts) <= most
    if not columns or (function.of_one and len(columns) > 1) or not fits:
        raise QueryError(f"{call.function.upper()} does not take these arguments", usage, call.span)
    found: list[Any] = [shapes(one) for one in texts if isinstance(one, ast.Text)]
    for one in behind[len(texts) :]:
        if not isinstance(one, ast.Number) or one.unit is not None:
            raise QueryError("what stands behind columns are numbers without a unit", usage, one.span)
        found.append(float(one.value))
    terms = []
    for one in columns:
        term = rows.expression(one).term
        if function.of_symbols and term.type not in _SYMBOLS:
            raise QueryError("symbols are texts, numbers or conditions", usage, one.span)
        if not function.of_symbols and term.type not in plans.NUMBERS:
            raise QueryError(f"{call.function.upper()} is of numbers", usage, one.span)
        terms.append(term)
    try:
        function(found, len(terms))
    except MiningError as error:
        raise QueryError(str(error), usage, call.span) from None
    return terms, found


def _found_table(call: ast.Call, function: type[TableFunction]) -> SensorTable:
    columns = {**function.columns, ROWS: plans.INT}
    return SensorTable(
        call.function.lower(), "", 0, tuple(Column(name, kind) for name, kind in columns.items())
    )


def _conditions(
    select: ast.Select, resolver: _MiningResolver, function: type[TableFunction]
) -> tuple[list[Term], list[Term]]:
    """Of rows, over their columns, and of what is found."""
    if select.where is None:
        return [], []
    found, rows = resolver.aliases
    mined, shown = [], []
    for part in ast.operands(select.where, "AND"):
        term = resolver.condition(part)
        of = aliases_of(term)
        if of in ([], [rows.called]):
            mined.append(of_batches(term))
            continue
        _check_static(term, part, rows, function)
        shown.append(term)
    del found
    return mined, shown


def _check_static(term: Term, node: Any, rows: Resolver, function: type[TableFunction]) -> None:
    """That what is found has the columns of the table that stand beside its own. Raises QueryError."""
    own = [
        name.partition(".")[2] for name in map(str, term.columns()) if name.partition(".")[0] == rows.called
    ]
    if own and not function.by_source:
        hint = "only conditions on rows alone are of columns of the table"
        raise QueryError("what is found is of all sources together", hint, node.span)
    static = [mote_streams.NODEID] if rows.table.of_motes else []
    if any(rows.table.place(name) is None and name not in static for name in own):
        columns = "nodeid" if static else "static columns of the table"
        hint = f"{columns} may stand there, and what the function gives"
        raise QueryError("a field is of one row, and what is found of many", hint, node.span)


def _outputs(
    select: ast.Select, resolver: _MiningResolver, function: type[TableFunction]
) -> tuple[SourceOutput, ...]:
    found, rows = resolver.aliases
    outputs: list[SourceOutput] = []
    for item in select.items:
        if isinstance(item.expression, ast.Star):
            if (item.expression.table or found.called).lower() != found.called:
                hint = f"write {found.called}.*, and the columns of {rows.called} by their names"
                raise QueryError(
                    f"{item.expression.table}.* is of rows, and what is found of many", hint, item.span
                )
            for column in found.table.columns:
                known = resolver.expression(ast.Name(column.name, item.span, found.called))
                outputs.append(SourceOutput(column.name, known.term, ""))
            continue
        known = resolver.expression(item.expression)
        _check_static(known.term, item, rows, function)
        name = item.alias or select.text[item.expression.span.start : item.expression.span.end]
        outputs.append(SourceOutput(" ".join(name.split()), known.term, known.unit))
    names = [output.name for output in outputs]
    for name in names:
        if names.count(name) > 1:
            raise QueryError(
                f"two columns are named '{name}'", "name one of them with AS", select.items[0].span
            )
    return tuple(outputs)


def _every(select: ast.Select, unsaid: dict[str, int]) -> tuple[dict[str, int], bool]:
    """After how many rows, or how long, what is found comes, where nothing says so ``unsaid``; and whether rows before are forgotten then.
    Raises QueryError."""
    if select.every is not None and select.windows:
        hint = "EVERY is of all rows so far, WINDOW of those since the last time: say one"
        raise QueryError("EVERY and WINDOW are said both", hint, select.every.span)
    if not select.windows and select.every is None:
        return unsaid, False
    window = select.windows[0] if select.windows else None
    if window is not None and (len(select.windows) > 1 or window.pair is not None):
        raise QueryError("a window is of all rows", "write WINDOW 1000 ROWS, or WINDOW 1 h", window.span)
    size = window.size if window is not None else select.every
    assert size is not None
    said = "WINDOW" if window is not None else "EVERY"
    if is_of_rows(size):
        if size.value != size.value.to_integral_value() or not 1 <= size.value < 1 << 31:
            raise QueryError(f"{said} {size.value} ROWS", "it is 1 row or more, and whole ones", size.span)
        return {"rows": int(size.value)}, window is not None
    length = microseconds(size, said)
    if length < 1:
        raise QueryError(f"{said} {size.value} {size.unit or 's'}", "it is longer than nothing", size.span)
    return {"us": length}, window is not None


def _joined(parts: list[Term]) -> Term | None:
    made: Term | None = None
    for part in parts:
        made = part if made is None else Term("AND", plans.BOOLEAN, (made, part))
    return made

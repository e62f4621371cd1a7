"""How tables are joined, and what a join of streams, or a table function over one, says of windows: clauses of its own, or, as STEAM writes
them, a part of WHERE."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from lark import Token, Tree

from skerry.sql import ast
from skerry.sql.ast import Span
from skerry.sql.errors import QueryError, did_you_mean
from skerry.sql.nodes import span_of, token_of
from skerry.sql.quoting import unquoted
from skerry.sql.units import TIME_NAMES, TIMES, time_of

_WINDOW = "window"
_ROWS = ("row", "rows")
_SAID = {"windows": "WINDOW", "lateness": "LATENESS", "using": "USING"}
_OF_TABLES = "sensors, and tables that CREATE SENSORS made, are mined; SHOW SENSORS lists these"
#: A join without words before it.
_INNER = "INNER"


def joined_as(word: Token, on: ast.Expression, windows: Sequence[Any]) -> ast.Joined:
    """``word JOIN … ON condition [WINDOW …]``."""
    words, span = word.upper().split(), span_of(word)
    kind = " ".join(one for one in words if one in ("LEFT", "ASOF")) or _INNER
    found = tuple(_window(tree) for tree in windows if isinstance(tree, Tree))
    return ast.Joined(kind, on, found, span.to(on.span))


def no_join(word: Token) -> QueryError:
    """Of SQL's other joins: RIGHT, FULL, CROSS, NATURAL."""
    hint = "joins are JOIN, LEFT JOIN and ASOF JOIN, each with ON"
    return QueryError(f"{' '.join(word.upper().split())} is no join here", hint, span_of(word))


def with_plain_joins(select: ast.Select) -> ast.Select:
    """``FROM a JOIN b ON condition WINDOW …`` as ``FROM a, b WINDOW … WHERE condition``; other joins stay with their tables. A window
    behind the last join is between all pairs that have none, one behind another join between its table and those before it."""
    tables, on, windows = list[ast.Table](), list[ast.Expression](), list[ast.JoinWindow]()
    for place, table in enumerate(select.tables):
        joined = table.joined
        if joined is None:
            tables.append(table)
            continue
        for window in joined.windows:
            before = select.tables[:place] if place + 1 < len(select.tables) else ()
            pairs = [(_called(one), _called(table)) for one in before]
            general = window.pair is None and bool(pairs)
            windows += [replace(window, pair=pair) for pair in pairs] if general else [window]
        if joined.kind == _INNER:
            on += [joined.on] if joined.on is not None else []
            tables.append(replace(table, joined=None))
        else:
            tables.append(replace(table, joined=replace(joined, windows=())))
    where = [*on, *([select.where] if select.where is not None else [])]
    return replace(select, tables=tuple(tables), where=_joined(where), windows=tuple(windows))


def _called(table: ast.Table) -> ast.Name:
    return replace(table.name, name=table.called)


def refuse_windows(select: ast.Select, clauses: Mapping[str, Tree[Token]]) -> None:
    """Where no table of sensors is asked. Raises QueryError."""
    hint = "only tables that CREATE SENSORS made, which SHOW SENSORS lists, and sensors are joined within windows"
    for table in select.tables:
        if table.joined is not None:
            raise QueryError(f"{table.joined.kind} JOIN is for joins of streams", hint, table.joined.span)
    for window in select.windows:
        raise QueryError("WINDOW is for joins of streams", hint, window.span)
    for name, said in _SAID.items():
        if name in clauses:
            raise QueryError(f"{said} is for joins of streams", hint, span_of(clauses[name]))

    if "every" in clauses:
        raise QueryError("EVERY is for what is mined in streams", _OF_TABLES, span_of(clauses["every"]))


def refuse_functions(tables: Sequence[ast.Table], known: Collection[str]) -> None:
    """Likewise; ``known``: tables that there are. Raises QueryError."""
    for table in tables:
        if table.function is not None:
            hint = did_you_mean(table.name.name, sorted(known)) + _OF_TABLES
            raise QueryError(f"'{table.name.name}' is no table of sensors", hint, table.name.span)


def with_windows(select: ast.Select, clauses: Mapping[str, Tree[Token]]) -> ast.Select:
    """The query with what these clauses, and of several tables WHERE, say of a join. Raises QueryError."""
    found, where, tables = [*select.windows], select.where, [*select.tables]
    if "windows" in clauses:
        found += [_window(tree) for tree in clauses["windows"].children if isinstance(tree, Tree)]
    if len(tables) > 1 and where is not None:
        where = _without_windows(where, found)
    for place, table in enumerate(tables):
        if table.joined is not None and table.joined.on is not None:
            on = _without_windows(table.joined.on, found)
            if on is None:
                hint = "say which rows meet, as in ON a.gas = b.gas"
                raise QueryError(f"{table.joined.kind} JOIN has no condition", hint, table.joined.span)
            tables[place] = replace(table, joined=replace(table.joined, on=on))
    lateness = clauses.get("lateness")
    using = clauses.get("using")
    return replace(
        select,
        tables=tuple(tables),
        where=where,
        windows=tuple(found),
        lateness=_duration(lateness) if lateness is not None else None,
        using=_name(token_of(using.children[-1])) if using is not None else None,
        every=_every(clauses["every"]) if "every" in clauses else None,
    )


def _every(tree: Tree[Token]) -> ast.Number:
    _, number, unit = tree.children
    span = span_of(number) if unit is None else span_of(number).to(span_of(unit))
    return ast.Number(Decimal(str(number)), str(unit) if unit is not None else None, span)


def _without_windows(condition: ast.Expression, found: list[ast.JoinWindow]) -> ast.Expression | None:
    """What is left of a condition when its windows have been added to those found; None: nothing."""
    parts = ast.operands(condition, "AND")
    windows = [_within_where(part) for part in parts]
    found += [window for window in windows if window is not None]
    return _joined([part for part, window in zip(parts, windows, strict=True) if window is None])


def window_name(tree: Tree[Token]) -> ast.Call:
    """``WINDOW(a, b)`` where an expression may stand."""
    word, *names = [token_of(child) for child in tree.children]
    return ast.Call(str(word), tuple(map(_name, names)), False, span_of(tree))


def _joined(parts: list[ast.Expression]) -> ast.Expression | None:
    made: ast.Expression | None = None
    for part in parts:
        made = part if made is None else ast.Binary("AND", made, part, made.span.to(part.span))
    return made


def _within_where(part: ast.Expression) -> ast.JoinWindow | None:
    if not (isinstance(part, ast.Binary) and isinstance(part.right, ast.Number)):
        return None
    match part.left:
        case ast.Call(function, (ast.Name() as one, ast.Name() as other)) if function.lower() == _WINDOW:
            pair: tuple[ast.Name, ast.Name] | None = one, other
        case ast.Name(name, table=None) if name.lower() == _WINDOW:
            pair = None
        case _:
            return None
    _check_sign(part.operator, part.span)
    return ast.JoinWindow(pair, part.right, part.span)


def _window(tree: Tree[Token]) -> ast.JoinWindow:
    one, other, sign, number, unit = (child for child in tree.children)
    if sign is not None:
        _check_sign(str(sign), span_of(token_of(sign)))
    number = token_of(number)
    span = span_of(number) if unit is None else span_of(number).to(span_of(token_of(unit)))
    size = ast.Number(Decimal(str(number)), str(unit) if unit is not None else None, span)
    pair = None if one is None else (_name(token_of(one)), _name(token_of(other)))
    return ast.JoinWindow(pair, size, span_of(tree))


def _check_sign(sign: str, span: Span) -> None:
    if sign != "=":
        raise QueryError(
            f"a window is compared by {sign}", "write WINDOW = 10 min, which includes its ends", span
        )


def _duration(tree: Tree[Token]) -> ast.Duration:
    number, unit = next(child for child in tree.children if isinstance(child, Tree)).children
    number = token_of(number)
    size = ast.Number(Decimal(str(number)), str(unit) if unit is not None else None, span_of(number))
    return ast.Duration(Decimal(microseconds(size, "LATENESS")) / 1000, span_of(tree))


def is_of_rows(size: ast.Number) -> bool:
    """Whether a window counts rows."""
    return (size.unit or "").lower() in _ROWS


def microseconds(size: ast.Number, clause: str) -> int:
    """A length of time; without a unit in s. Raises QueryError."""
    factor = time_of(size.unit or "s")
    if factor is None:
        guess = did_you_mean("minutes" if size.unit == "m" else str(size.unit), list(TIMES))
        rows = "" if clause == "LATENESS" else " or ROWS"
        hint = f"{guess}{clause} is in {', '.join(TIME_NAMES)}{rows}"
        raise QueryError(f"unknown unit of time '{size.unit}'", hint, size.span)
    found = size.value * factor * 1000
    if found != found.to_integral_value() or found >= 1 << 61:
        raise QueryError(
            f"{clause} {size.value} {size.unit or 's'}", "it is a number of µs below 70,000 years", size.span
        )
    return int(found)


def _name(token: Token) -> ast.Name:
    return ast.Name(unquoted(token) if token.startswith('"') else str(token), span_of(token))

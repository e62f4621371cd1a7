"""What a join of streams says of its windows: clauses of its own, or, as STEAM writes them, a part of WHERE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from lark import Token, Tree

from skerry.sql import ast
from skerry.sql.ast import Span
from skerry.sql.errors import QueryError, did_you_mean
from skerry.sql.quoting import unquoted
from skerry.sql.units import TIME_NAMES, TIMES, time_of

_WINDOW = "window"
_ROWS = ("row", "rows")
_SAID = {"windows": "WINDOW", "lateness": "LATENESS", "using": "USING"}


def refuse_windows(clauses: Mapping[str, Tree[Token]]) -> None:
    """Where no table of sensors is asked. Raises QueryError."""
    for name, said in _SAID.items():
        if name in clauses:
            hint = "only tables that CREATE SENSORS made are joined within windows; SHOW SENSORS lists these"
            raise QueryError(f"{said} is for joins of streams", hint, _span(clauses[name]))


def with_windows(select: ast.Select, clauses: Mapping[str, Tree[Token]]) -> ast.Select:
    """The query with what these clauses, and of several tables WHERE, say of a join. Raises QueryError."""
    found, where = list[ast.JoinWindow](), select.where
    if "windows" in clauses:
        found += [_window(tree) for tree in clauses["windows"].children if isinstance(tree, Tree)]
    if len(select.tables) > 1 and where is not None:
        parts = ast.operands(where, "AND")
        windows = [_within_where(part) for part in parts]
        found += [window for window in windows if window is not None]
        left = [part for part, window in zip(parts, windows, strict=True) if window is None]
        where = _joined(left)
    lateness = clauses.get("lateness")
    using = clauses.get("using")
    return replace(
        select,
        where=where,
        windows=tuple(found),
        lateness=_duration(lateness) if lateness is not None else None,
        using=_name(_token(using.children[-1])) if using is not None else None,
    )


def window_name(tree: Tree[Token]) -> ast.Call:
    """``WINDOW(a, b)`` where an expression may stand."""
    word, *names = [_token(child) for child in tree.children]
    return ast.Call(str(word), tuple(map(_name, names)), False, _span(tree))


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
        _check_sign(str(sign), _span(_token(sign)))
    number = _token(number)
    span = _span(number) if unit is None else _span(number).to(_span(_token(unit)))
    size = ast.Number(Decimal(str(number)), str(unit) if unit is not None else None, span)
    pair = None if one is None else (_name(_token(one)), _name(_token(other)))
    return ast.JoinWindow(pair, size, _span(tree))


def _check_sign(sign: str, span: Span) -> None:
    if sign != "=":
        raise QueryError(
            f"a window is compared by {sign}", "write WINDOW = 10 min: it includes its ends", span
        )


def _duration(tree: Tree[Token]) -> ast.Duration:
    number, unit = next(child for child in tree.children if isinstance(child, Tree)).children
    number = _token(number)
    size = ast.Number(Decimal(str(number)), str(unit) if unit is not None else None, _span(number))
    return ast.Duration(Decimal(microseconds(size, "LATENESS")) / 1000, _span(tree))


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
    return ast.Name(unquoted(token) if token.startswith('"') else str(token), _span(token))


def _token(node: Any) -> Token:
    assert isinstance(node, Token)
    return node


def _span(node: Tree[Token] | Token) -> Span:
    place = node if isinstance(node, Token) else node.meta
    return Span(place.start_pos or 0, place.end_pos or 0)

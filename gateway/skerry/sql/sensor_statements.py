"""Statements about tables of sensors that are no motes: CREATE SENSORS, INSERT, UPDATE, DELETE, COPY, ALTER, DROP, SHOW and DESCRIBE.

What there is of them is one of these classes; how they are written is ``sensors.lark``. Names are not looked up yet.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any

from lark import Lark, Token, Tree, UnexpectedCharacters, UnexpectedToken

from skerry.sql import ast
from skerry.sql.ast import Span
from skerry.sql.errors import QueryError
from skerry.sql.expression_builder import expression_of, value_of
from skerry.sql.parser import grammar_of
from skerry.sql.quoting import unquoted

#: Words that are no names, but in ".
KEYWORDS = frozenset({
    "INSERT", "INTO", "VALUES", "UPDATE", "SET", "WHERE", "DELETE", "FROM", "COPY", "ALTER", "ADD", "DROP", "SHOW", "DESCRIBE", "AND", "OR",
    "NOT", "IS", "NULL", "IN", "LIKE", "BETWEEN", "DISTINCT", "GROUP", "EVENT",
})  # fmt: skip
#: How a text of these begins, behind comments.
_BEGINS = re.compile(
    r"(?:\s|--[^\n]*(?:\n|$))*(?:(?:create|alter|drop)\s+sensors|insert|update|delete|copy|show(?!\s+streams\b)|describe)\b",
    re.IGNORECASE,
)
#: First word → a whole statement, for what is said where one goes wrong.
_EXAMPLES = {
    "create": "CREATE SENSORS detectors (id INT, place TEXT, reading STREAM (gas TEXT, level DECIMAL 'ppm', at TIMESTAMP TIME))",
    "insert": "INSERT INTO detectors VALUES (1, 'gate A', 'tcp://127.0.0.1:5001?format=json')",
    "update": "UPDATE detectors SET place = 'gate B' WHERE id = 1",
    "delete": "DELETE FROM detectors WHERE id = 1",
    "copy": "COPY detectors FROM 'detectors.csv'",
    "alter": "ALTER SENSORS detectors ADD floor INT",
    "drop": "DROP SENSORS detectors",
    "show": "SHOW SENSORS",
    "describe": "DESCRIBE detectors",
}

#: What stands for a value in INSERT and UPDATE.
Value = Decimal | str | bool | None


@dataclass(frozen=True, slots=True)
class FieldText:
    """A field of a stream, as it is written."""

    name: ast.Name
    type: ast.Name
    array: bool
    unit: str | None
    format: str | None
    path: str | None
    time: bool


@dataclass(frozen=True, slots=True)
class ColumnText:
    """A column; ``fields``: of a stream, () of any other."""

    name: ast.Name
    type: ast.Name
    unit: str | None
    fields: tuple[FieldText, ...] = ()
    array: bool = False


@dataclass(frozen=True, slots=True)
class CreateSensors:
    """``CREATE SENSORS name (column, …)``."""

    name: ast.Name
    columns: tuple[ColumnText, ...]


@dataclass(frozen=True, slots=True)
class Literal:
    """A value and where it stands."""

    value: Value
    span: Span


@dataclass(frozen=True, slots=True)
class Insert:
    """``INSERT INTO name [(column, …)] VALUES (value, …), …``."""

    name: ast.Name
    columns: tuple[ast.Name, ...]
    rows: tuple[tuple[Literal, ...], ...]
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Update:
    """``UPDATE name SET column = value, … [WHERE …]``."""

    name: ast.Name
    assignments: tuple[tuple[ast.Name, Literal], ...]
    where: ast.Expression | None


@dataclass(frozen=True, slots=True)
class Delete:
    """``DELETE FROM name [WHERE …]``."""

    name: ast.Name
    where: ast.Expression | None


@dataclass(frozen=True, slots=True)
class Copy:
    """``COPY name FROM 'file.csv'``."""

    name: ast.Name
    file: str
    span: Span


@dataclass(frozen=True, slots=True)
class AddColumn:
    """``ALTER SENSORS name ADD column type ['unit']``."""

    name: ast.Name
    column: ColumnText


@dataclass(frozen=True, slots=True)
class DropColumn:
    """``ALTER SENSORS name DROP column``."""

    name: ast.Name
    column: ast.Name


@dataclass(frozen=True, slots=True)
class DropSensors:
    """``DROP SENSORS name``."""

    name: ast.Name


@dataclass(frozen=True, slots=True)
class ShowSensors:
    """``SHOW SENSORS``."""


@dataclass(frozen=True, slots=True)
class Describe:
    """``DESCRIBE name``."""

    name: ast.Name


SensorStatement = (
    CreateSensors | Insert | Update | Delete | Copy | AddColumn | DropColumn | DropSensors | ShowSensors | Describe
)  # fmt: skip


def is_one(text: str) -> bool:
    """Whether a text begins as one of these."""
    return _BEGINS.match(text) is not None


def parse(text: str) -> SensorStatement:
    """The statement in a text that begins as one. Raises QueryError."""
    try:
        tree = _lark().parse(text)
        statement = next(child for child in tree.children if isinstance(child, Tree))
        return _BUILD[statement.data](statement)
    except UnexpectedCharacters as error:
        at = error.pos_in_stream or 0
        raise _wrong(text, text[at], Span(at, at + 1)) from None
    except UnexpectedToken as error:
        token = error.token
        if token.type == "$END":
            end = len(text.rstrip())
            raise _wrong(text, None, Span(end, end + 1)) from None
        raise _wrong(text, str(token), Span(token.start_pos or 0, token.end_pos or 0)) from None
    except QueryError as error:
        raise error.within(text) from None


def _wrong(text: str, what: str | None, span: Span) -> QueryError:
    first = text.split(maxsplit=1)[0].lower() if text.split() else ""
    example = _EXAMPLES.get(first, _EXAMPLES["create"])
    message = "the statement ends too early" if what is None else f"unexpected '{what}'"
    return QueryError(message, f"write for example {example}", span, text)


def _keyword(token: Token) -> Token:
    if token.startswith('"'):
        return token.update(value=unquoted(token))
    if token.upper() in KEYWORDS:
        token.type = token.upper()
    return token


@cache
def _lark() -> Lark:
    return Lark(
        grammar_of("sensors.lark"), parser="lalr", lexer="basic", maybe_placeholders=True, propagate_positions=True,
        lexer_callbacks={"NAME": _keyword},
    )  # fmt: skip


def _name(node: Any) -> ast.Name:
    assert isinstance(node, Token)
    return ast.Name(str(node), _span(node))


def _span(node: Any) -> Span:
    place = node if isinstance(node, Token) else node.meta
    return Span(place.start_pos or 0, place.end_pos or 0)


def _text(node: Any) -> str | None:
    return None if node is None else unquoted(node)


def _create(tree: Tree[Token]) -> CreateSensors:
    _, name, *columns = tree.children
    return CreateSensors(
        _name(name), tuple(_column(column) for column in columns if isinstance(column, Tree))
    )


def _column(tree: Tree[Token]) -> ColumnText:
    name, kind, *rest = tree.children
    if tree.data == "stream_column":
        if str(kind).lower() != "stream":
            hint = f"only a STREAM has fields: write {name} STREAM (…)"
            raise QueryError(f"'{kind}' has no fields", hint, _span(kind))
        fields = tuple(_field(field) for field in rest if isinstance(field, Tree))
        return ColumnText(_name(name), _name(kind), None, fields)
    if str(kind).lower() == "stream":
        hint = f"say what comes, as in {name} STREAM (level DECIMAL 'ppm', at TIMESTAMP TIME)"
        raise QueryError("a stream has no fields", hint, _span(kind))
    array, unit = rest
    return ColumnText(_name(name), _name(kind), _text(unit), array=array is not None)


def _field(tree: Tree[Token]) -> FieldText:
    name, kind, array, unit, *options = tree.children
    form: str | None = None
    path: str | None = None
    time = False
    for option in options:
        assert isinstance(option, Tree)
        last = option.children[-1]
        if option.data == "path":
            path = _text(last)
        elif option.data == "mark" and str(last).lower() == "time":
            time = True
        elif option.data == "format" and str(option.children[0]).lower() == "format":
            form = _text(last)
        else:
            hint = "behind a type stand its unit in ', FORMAT 'how times are written', FROM 'path in JSON', or TIME"
            raise QueryError(f"unexpected '{option.children[0]}'", hint, _span(option))
    return FieldText(_name(name), _name(kind), array is not None, _text(unit), form, path, time)


def _literal(tree: Any) -> Literal:
    span, last = _span(tree), tree.children[-1]
    match tree.data:
        case "number_value":
            value = value_of(last)
            return Literal(-value if str(tree.children[0]) == "-" else value, span)
        case "text_value":
            return Literal(unquoted(last), span)
        case "null_value":
            return Literal(None, span)
    if str(last).lower() not in ("true", "false"):
        hint = "a value is a number, a text in ', TRUE, FALSE or NULL"
        raise QueryError(f"'{last}' is no value", hint, span)
    return Literal(str(last).lower() == "true", span)


def _insert(tree: Tree[Token]) -> Insert:
    _, _, name, names, _, *rows = tree.children
    columns = () if names is None else tuple(_name(one) for one in names.children)  # type: ignore[union-attr]
    trees = [row for row in rows if isinstance(row, Tree)]
    return Insert(
        _name(name), columns, tuple(tuple(map(_literal, row.children)) for row in trees), tuple(map(_span, trees))
    )  # fmt: skip


def _update(tree: Tree[Token]) -> Update:
    _, name, _, *rest = tree.children
    assignments = []
    for part in rest:
        if isinstance(part, Tree) and part.data == "assignment":
            column, equals, literal = part.children
            if str(equals) != "=":
                raise QueryError(f"unexpected '{equals}'", "write column = value", _span(equals))
            assignments.append((_name(column), _literal(literal)))
    return Update(_name(name), tuple(assignments), _condition(rest))


def _condition(rest: list[Any]) -> ast.Expression | None:
    return expression_of(rest[-1]) if isinstance(rest[-1], Tree) and rest[-1].data != "assignment" else None


def _copy(tree: Tree[Token]) -> Copy:
    file = tree.children[-1]
    assert isinstance(file, Token)
    return Copy(_name(tree.children[1]), unquoted(file), _span(file))


def _add(tree: Tree[Token]) -> AddColumn:
    _, name, _, column, kind, array, unit = tree.children
    if str(kind).lower() == "stream":
        raise QueryError(
            "a stream is not added to a table", "make another table with CREATE SENSORS", _span(kind)
        )
    return AddColumn(
        _name(name), ColumnText(_name(column), _name(kind), _text(unit), array=array is not None)
    )


def _show(tree: Tree[Token]) -> ShowSensors:
    what = tree.children[-1]
    if str(what).lower() != "sensors":
        raise QueryError(f"'{what}' is not shown", "write SHOW SENSORS or SHOW STREAMS", _span(what))
    return ShowSensors()


_BUILD: dict[str, Callable[[Tree[Token]], SensorStatement]] = {
    "create_sensors": _create,
    "insert": _insert,
    "update": _update,
    "delete": lambda tree: Delete(_name(tree.children[2]), _condition(tree.children)),
    "copy": _copy,
    "add_column": _add,
    "drop_column": lambda tree: DropColumn(_name(tree.children[1]), _name(tree.children[-1])),
    "drop_sensors": lambda tree: DropSensors(_name(tree.children[-1])),
    "show": _show,
    "describe": lambda tree: Describe(_name(tree.children[-1])),
}

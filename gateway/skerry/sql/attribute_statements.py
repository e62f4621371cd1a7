"""Statements about static attributes: CREATE ATTRIBUTE name [unit], DROP ATTRIBUTE name, SHOW ATTRIBUTES. Names are not looked up yet."""

from __future__ import annotations

import re
from dataclasses import dataclass

from skerry.sql import ast
from skerry.sql.ast import Span
from skerry.sql.errors import QueryError
from skerry.sql.quoting import unquoted

_BEFORE = r"(?:\s|--[^\n]*(?:\n|$))*"
_BEGINS = re.compile(_BEFORE + r"(?:(?:create|drop)\s+attribute\b|show\s+attributes\b)", re.IGNORECASE)
_WORDS = re.compile(r"""\s+|--[^\n]*|(?P<word>"(?:[^"]|"")+"|'(?:[^']|'')*'|[\w°%]+|\S)""")
#: A whole statement, for what is said where one goes wrong.
_EXAMPLES = {
    "create": "CREATE ATTRIBUTE rack, or with a unit CREATE ATTRIBUTE height m",
    "drop": "DROP ATTRIBUTE rack",
    "show": "SHOW ATTRIBUTES",
}


@dataclass(frozen=True, slots=True)
class CreateAttribute:
    """``CREATE ATTRIBUTE name [unit]``."""

    name: ast.Name
    unit: ast.Name | None


@dataclass(frozen=True, slots=True)
class DropAttribute:
    """``DROP ATTRIBUTE name``."""

    name: ast.Name


@dataclass(frozen=True, slots=True)
class ShowAttributes:
    """``SHOW ATTRIBUTES``."""


AttributeStatement = CreateAttribute | DropAttribute | ShowAttributes


def is_one(text: str) -> bool:
    """Whether a text is such a statement, or begins like one."""
    return _BEGINS.match(text) is not None


def parse(text: str) -> AttributeStatement:
    """The statement of a text that :func:`is_one`. Raises QueryError."""
    words = [match for match in _WORDS.finditer(text) if match["word"]]
    if words[-1]["word"] == ";":
        words.pop()
    what, rest = words[0]["word"].lower(), words[2:]
    most = {"create": 2, "drop": 1, "show": 0}[what]
    if len(rest) > most:
        raise _wrong(text, what, f"unexpected '{rest[most]['word']}'", rest[most].span())
    if what == "show":
        return ShowAttributes()
    if not rest:
        raise _wrong(text, what, "the statement ends too early", (len(text), len(text)))
    name = _name(rest[0])
    if re.fullmatch(r"[A-Za-z_]\w{0,31}", name.name, re.ASCII) is None:
        hint = "it is a word of at most 32 letters, digits and _ that begins with none of the digits"
        raise QueryError(f"'{name.name}' is no name of an attribute", hint, name.span, text)
    if what == "drop":
        return DropAttribute(name)
    return CreateAttribute(name, _name(rest[1]) if len(rest) > 1 else None)


def _name(match: re.Match[str]) -> ast.Name:
    word = match["word"]
    return ast.Name(unquoted(word) if word[0] in "\"'" else word, Span(*match.span()))


def _wrong(text: str, what: str, message: str, span: tuple[int, int]) -> QueryError:
    return QueryError(message, f"write for example {_EXAMPLES[what]}", Span(*span), text)

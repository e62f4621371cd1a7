"""Text → syntax tree."""

from __future__ import annotations

import os
from functools import cache
from importlib.resources import files
from pathlib import Path

from lark import Lark, Token, UnexpectedCharacters, UnexpectedToken

from skerry.lang.ast import Span, Statement
from skerry.lang.errors import QueryError
from skerry.lang.tree import TreeBuilder

#: Words of the grammar.
_KEYWORDS = frozenset({
    "SELECT", "FROM", "WHERE", "GROUP", "BY", "HAVING", "SAMPLE", "PERIOD", "FOR", "ONCE", "LIFETIME", "ON", "ALIGNED", "EVENT", "OUTPUT",
    "TRIGGER", "ACTION", "SIGNAL", "STOP", "QUERY", "CREATE", "CIRCULAR", "SIZE", "DROP", "ALL", "INTO", "COMBINE", "INTERPOLATE", "LINEAR",
    "AS", "DISTINCT", "AND", "OR", "NOT", "IS", "NULL", "IN", "BETWEEN",
    "HISTORY", "ONLY", "ORDER", "ASC", "DESC", "LIMIT", "QUEUE", "SEND", "SRT", "ROOT", "POLICY", "APPROXIMATE", "WITHIN",
})  # fmt: skip

#: Words of the full language (and of SQL) that begin what is not there yet → the clause's name.
_UNSUPPORTED: dict[str, str] = {
    "JOIN": "JOIN",
}

#: What names mean behind these words.
_AFTER = {"FROM": "sensors or a storage point", "QUEUE": "NAIVE, WINAVG or DELTA"}

#: Terminal → how an error calls it.
_CALLED: dict[str, str] = {
    "NUMBER": "a number", "NAME": "a name", "COMPARE": "a comparison", "PLUS": "+", "MINUS": "-", "STAR": "*",
    "SLASH": "/", "SHIFT": ">>", "PERCENT": "%", "LPAR": "(", "RPAR": ")", "COMMA": "a comma", "DOT": ".", "_SEMICOLON": ";",
    "$END": "the end", "HUMIDITY_UNIT": "a unit", "STORAGE_POINT": "STORAGE POINT",
}  # fmt: skip

#: What may go on an expression is left out of "expected …": it says little and hides the rest.
_CONTINUATIONS = frozenset({
    "COMPARE", "PLUS", "MINUS", "STAR", "SLASH", "SHIFT", "PERCENT", "AND", "OR", "IS", "IN", "BETWEEN", "NOT",
    "HUMIDITY_UNIT", "_SEMICOLON", "LPAR", "DOT", "AS",
})  # fmt: skip


def _name_or_keyword(token: Token) -> Token:
    word = token.upper()
    if word in _KEYWORDS or word in _UNSUPPORTED:
        token.type = word
    return token


def _tables() -> str | bool:
    """Where the parser's tables are kept, which take most of a second to make; False: this user can keep none."""
    try:
        directory = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "skerry"
        directory.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # RuntimeError: no home is known
        return False
    return str(directory / "query.tables")


@cache
def _lark() -> Lark:
    grammar = files("skerry.lang").joinpath("query.lark").read_text("utf-8")
    # The basic lexer keeps keywords keywords everywhere: "SELECT FROM sensors" has no attribute FROM.
    return Lark(
        grammar,
        parser="lalr",
        lexer="basic",
        maybe_placeholders=True,
        propagate_positions=True,
        lexer_callbacks={"NAME": _name_or_keyword},
        cache=_tables(),
    )


def parse(text: str) -> Statement:
    """The statement in ``text``. Raises QueryError with the place and what would be right."""
    try:
        if not text.strip():
            raise QueryError(
                "the query is empty", "write for example SELECT nodeid, temp FROM sensors SAMPLE PERIOD 10 s"
            )
        return TreeBuilder(text).build(_lark().parse(text))
    except UnexpectedCharacters as error:
        raise _unexpected_character(error, text) from None
    except UnexpectedToken as error:
        raise _unexpected_token(error, text) from None
    except RecursionError:
        raise QueryError("the query is nested too deeply", "use fewer parentheses").within(text) from None
    except QueryError as error:
        raise error.within(text) from None


def _unexpected_character(error: UnexpectedCharacters, text: str) -> QueryError:
    at = error.pos_in_stream or 0
    character = text[at]
    hint = "this character has no meaning in a query"
    if character.isdigit() or character == ".":
        hint = "this is no number: write 25.5 or 2.55e1"
    elif character in "'\"":
        hint = "there are no texts: attributes are numbers"
    return QueryError(f"unexpected {character!r}", hint, Span(at, at + 1), text)


def _unexpected_token(error: UnexpectedToken, text: str) -> QueryError:
    token = error.token
    expected = set(error.accepts or error.expected)
    if token.type == "$END":
        end = len(text.rstrip())
        hint = _expected(expected, text[:end])
        return QueryError("the query ends too early", hint, Span(end, end + 1), text)
    span = Span(token.start_pos or 0, token.end_pos or 0)
    word = token.upper()
    clause = _UNSUPPORTED.get(word)
    if clause is not None:
        return _not_yet(clause, span, text)
    if token.type == "COMPARE":
        doubled = text[: span.start].rstrip()[-1:] in ("=", "<", ">", "!")
        hint = (
            "comparisons are = <> != < <= > >=" if doubled else "comparisons do not chain: join two with AND"
        )
        return QueryError(f"unexpected '{token}'", hint, span, text)
    return QueryError(f"unexpected '{token}'", _expected(expected, text[: span.start]), span, text)


def _not_yet(clause: str, span: Span, text: str) -> QueryError:
    return QueryError(
        f"{clause} is not supported by this version",
        "queries are SELECT … FROM sensors [WHERE …] [GROUP BY …] [HAVING …] SAMPLE PERIOD n unit [FOR n unit] | "
        "LIFETIME n unit | ONCE",
        span,
        text,
    )


def _expected(terminals: set[str], before: str) -> str:
    if "NAME" in terminals:
        terminals = terminals - {"GROUP"}  # a name there
    if terminals == {"NAME"}:
        last = before.rsplit(maxsplit=1)[-1]
        if last[-1].isdigit():
            return "expected a unit of time: ms, s, min, h, day or week"
        return f"expected {_AFTER.get(last.upper(), 'a name')}"
    if terminals == {"SELECT"}:
        return "expected SELECT"
    if "SELECT" in terminals:
        return "expected SELECT, CREATE STORAGE POINT, CREATE SRT, STOP QUERY or DROP"
    if {"NULL", "NUMBER", "NAME"} <= terminals:
        return "expected an expression: an attribute, a number, or an aggregate such as AVG(temp)"
    shown = sorted(terminals - _CONTINUATIONS) or sorted(terminals)
    if "SAMPLE" in shown:
        shown = [word for word in shown if word in ("COMMA", "FROM", "SAMPLE", "ONCE", "WHERE", "FOR")]
    names = ["SAMPLE PERIOD" if word == "SAMPLE" else _CALLED.get(word, word) for word in shown]
    return "expected " + (names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}")

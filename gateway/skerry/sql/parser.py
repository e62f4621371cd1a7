"""Text → syntax tree."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from functools import cache
from importlib.resources import files
from pathlib import Path

from lark import Lark, Token, UnexpectedCharacters, UnexpectedToken

from skerry.sql.ast import Span, Statement
from skerry.sql.errors import QueryError
from skerry.sql.misspellings import KEYWORDS, misspelt
from skerry.sql.quoting import unquoted
from skerry.sql.tree_builder import TreeBuilder
from skerry.sql.units import TIME_NAMES

#: Words of SQL for what is said otherwise here → how.
_OTHERWISE = {
    "DISTINCT": "GROUP BY gives a row for each value, and COUNT(DISTINCT a) their number",
}
#: Words of joins that something stands behind, which makes them such.
_LENGTHS = {
    "WINDOW": "a window has a length, as in WINDOW 10 min, or WINDOW 5 ROWS",
    "LATENESS": "it is a length of time, as in LATENESS 30 s",
    "ESTIMATE": "shares of rows stand behind it, as in ESTIMATE s 10 %, t 100 %, pair 5 %",
    "COST": "what is counted stands behind it, as in COST BYTES or COST ENERGY",
    "LEARNING": "it is LEARNING OFF, or LEARNING ON behind where it is joined at first",
    "DELIVER": "a length of time stands behind it, as in DELIVER WITHIN 1 min",
}
#: How names that are no plain words are written.
_MARKS = 'names stand without marks, or in straight ones, as in p."room name"'
#: The same for characters that mean nothing here.
_CHARACTERS = {
    "&": "write AND", "|": "write OR", "!": "write NOT",
    "'": "a text ends with ', too, as in p.plot = 'north'",
    '"': "a name that begins with a quotation mark ends with one, as in p.\"room name\"",
    "`": _MARKS, "[": _MARKS,
    # As text processors and phones write them.
    "≥": "write >=", "≤": "write <=", "≠": "write <>", "−": "write -", "–": "write -", "×": "write *", "·": "write *", "÷": "write /",
    "∈": "write IN", "∧": "write AND", "∨": "write OR", "{": "a list stands in parentheses, as in nodeid IN (1, 2)",
    **dict.fromkeys("“”„«»", _MARKS),
    **dict.fromkeys("‘’‚", "texts stand in straight quotation marks, as in p.plot = 'north'"),
}  # fmt: skip

#: What names mean behind these words.
_AFTER = {"FROM": "sensors or a storage point", "QUEUE": "NAIVE, WINAVG or DELTA"}

#: Where a mote is to ask and answer, past the gateway.
_AT_MOTE = re.compile(r"\bat\s+mote\b(?:\s+\d+)?", re.IGNORECASE)
_AT_MOTE_HINT = (
    "an index is asked so, by a mote's number, as in"
    " SELECT COUNT(*) FROM climate WHERE temp > 40 AT MOTE 7 HAVING COUNT(*) > 3 OUTPUT ACTION siren"
)

_NESTED = "a query stands in no other one: CREATE STREAM name AS SELECT … gives what one finds a name, to be asked and joined"
_TABLES = "tables of sensors are made by CREATE SENSORS, changed by ALTER SENSORS, and go by DROP SENSORS"
#: How statements begin.
_BEGINNINGS = "SELECT, CREATE, DROP or STOP QUERY, or of tables of sensors INSERT, UPDATE, DELETE, COPY, ALTER SENSORS, SHOW or DESCRIBE"
#: Behind it stands what is asked.
_FROM = re.compile(r"\bFROM\s*$", re.IGNORECASE)

_BOUNDS = "expected AND between the bounds, as in BETWEEN 15 AND 20"

#: Terminal → how an error calls it.
_CALLED: dict[str, str] = {
    "NUMBER": "a number", "NAME": "a name", "TEXT": "a text", "COMPARE": "a comparison", "PLUS": "+", "MINUS": "-", "STAR": "*",
    "SLASH": "/", "SHIFT": ">>", "PERCENT": "%", "LPAR": "(", "RPAR": ")", "COMMA": "a comma", "DOT": ".", "_SEMICOLON": ";",
    "$END": "the end", "HUMIDITY_UNIT": "a unit", "STORAGE_POINT": "STORAGE POINT",
    "JOIN_STRATEGY": "JOIN AT BASE", "DELIVER": "DELIVER WITHIN",
    "START_NOW": "START NOW", "FROM_LATEST": "FROM LATEST", "LEFT_JOIN": "LEFT JOIN", "ASOF_JOIN": "ASOF JOIN",
}  # fmt: skip

#: What may go on an expression is left out of "expected …": it says little and hides the rest.
_CONTINUATIONS = frozenset({
    "COMPARE", "PLUS", "MINUS", "STAR", "SLASH", "SHIFT", "PERCENT", "AND", "OR", "IS", "IN", "LIKE", "BETWEEN", "NOT",
    "HUMIDITY_UNIT", "_SEMICOLON", "LPAR", "DOT", "AS", "JOIN", "LEFT_JOIN", "ASOF_JOIN", "OTHER_JOIN",
})  # fmt: skip


def _name_or_keyword(token: Token) -> Token:
    if token.startswith('"'):
        return token.update(value=unquoted(token))
    word = token.upper()
    if word in KEYWORDS or word in _OTHERWISE:
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
    grammar = grammar_of("query.lark", "join_windows.lark")
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


def grammar_of(name: str, *behind: str) -> str:
    """A grammar's text, with the expressions that all have in common, and what extends them."""
    folder = files("skerry.sql")
    return "\n".join(folder.joinpath(part).read_text("utf-8") for part in (name, "expressions.lark", *behind))


def parse(text: str, sensors: Collection[str] = ()) -> Statement:
    """The statement in ``text``; ``sensors``: names of the tables of sensors that are no motes, in lower case. Raises QueryError with the
    place and what would be right."""
    try:
        if not text.strip():
            raise QueryError(
                "the query is empty", "write for example SELECT nodeid, temp FROM sensors SAMPLE PERIOD 10 s"
            )
        return TreeBuilder(text, sensors).build(_lark().parse(text))
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
    elif character.isalpha():
        hint = "names are made of the letters A to Z, digits and _"
    else:
        hint = _CHARACTERS.get(character, hint)
    return QueryError(f"unexpected {character!r}", hint, Span(at, at + 1), text)


def _otherwise(token: Token, before: str, behind: str) -> str | None:
    """How that is said here which SQL says so; None: not otherwise."""
    if before.rstrip().endswith(";"):
        return "one statement at a time"
    if "/*" in before[-1:] + token + behind[:1]:
        return "a comment begins with --, and ends with its line"
    if before.rstrip().endswith("%") and "estimate" not in before.lower():
        return "% is for remainders: a relative humidity is written 50 %RH, or 50"
    if token.type == "COMMA" and before[-1:].isdigit() and behind[:1].isdigit():
        return "decimal places stand behind a point, as in 25.5"
    known = _LENGTHS.get(token.upper()) if token.type == "NAME" else None
    return _OTHERWISE.get(token.upper()) or known or _of_tables(token, before, behind)


def _of_tables(token: Token, before: str, behind: str) -> str | None:
    """What is asked in place of a table; None: it is something else."""
    word, in_from = token.upper(), _FROM.search(before)
    begins = not before.strip()
    if (word == "TABLE" and before.strip().upper() in ("CREATE", "DROP")) or (
        begins and word == "ALTER" and behind.lstrip().upper().startswith("TABLE")
    ):
        return _TABLES
    if word == "DESC" and begins:
        return "write DESCRIBE and the name of a table of sensors"
    nested = not begins and before.strip().upper() != "ON EVENT"
    if (token.type == "SELECT" and nested) or (token.type == "LPAR" and in_from):
        return _NESTED
    if token.type == "PERIOD" and in_from and behind.lstrip().startswith("("):
        return "did you mean PERIODS? it is PERIODS(table.symbol, longest [, confidence])"
    return None


def _is_within_bounds(error: UnexpectedToken) -> bool:
    """Whether the first bound of BETWEEN has been read and its AND has not."""
    stack = error.interactive_parser.parser_state.value_stack if error.interactive_parser is not None else []
    types = [part.type if isinstance(part, Token) else "" for part in stack]
    # The last word that is open, where parentheses are closed.
    words = [kind for kind in types if kind in ("BETWEEN", "LPAR", "AND", "OR", "WHERE", "COMMA")]
    return bool(words) and words[-1] == "BETWEEN" and types[-1] != "BETWEEN"


def _unexpected_token(error: UnexpectedToken, text: str) -> QueryError:
    token = error.token
    expected = set(error.accepts or error.expected)
    if token.type == "$END":
        end = len(text.rstrip())
        if _is_within_bounds(error):
            raise QueryError("the query ends too early", _BOUNDS, Span(end, end + 1), text)
        hint = misspelt(None, text[:end], expected) + _expected(expected, text[:end])
        return QueryError("the query ends too early", hint, Span(end, end + 1), text)
    span = Span(token.start_pos or 0, token.end_pos or 0)
    at_mote = next(
        (found for found in _AT_MOTE.finditer(text) if found.start() <= span.start < found.end()), None
    )
    if at_mote is not None:
        return QueryError("AT MOTE does not belong here", _AT_MOTE_HINT, Span(*at_mote.span()), text)
    otherwise = _otherwise(token, text[: span.start], text[span.end :])
    if _is_within_bounds(error):
        otherwise = _BOUNDS
    if otherwise is not None:
        return QueryError(f"unexpected '{token}'", otherwise, span, text)
    if token.type == "COMPARE":
        doubled = text[: span.start].rstrip()[-1:] in ("=", "<", ">", "!")
        hint = (
            "comparisons are = <> != < <= > >=" if doubled else "comparisons do not chain: join two with AND"
        )
        return QueryError(f"unexpected '{token}'", hint, span, text)
    hint = _expected(expected, text[: span.start])
    if token.type == "NAME" and {"AS", "FROM"} <= expected:
        hint = "expected a comma, FROM, or AS before a column's name"
    return QueryError(
        f"unexpected '{token}'", misspelt(token, text[: span.start], expected) + hint, span, text
    )


def _expected(terminals: set[str], before: str) -> str:
    if "NAME" in terminals:
        terminals = terminals - {"GROUP"}  # a name there
    if terminals == {"NAME"}:
        last = before.rsplit(maxsplit=1)[-1]
        if last[-1].isdigit():
            return f"expected a unit of time: {', '.join(TIME_NAMES[:-1])} or {TIME_NAMES[-1]}"
        return f"expected {_AFTER.get(last.upper(), 'a name')}"
    if terminals == {"SELECT"}:
        return "expected SELECT"
    if "SELECT" in terminals:
        return f"expected {_BEGINNINGS}"
    if {"NULL", "NUMBER", "NAME"} <= terminals:
        return "expected an expression: an attribute, a number, or an aggregate such as AVG(temp)"
    shown = sorted(terminals - _CONTINUATIONS) or sorted(terminals)
    if "SAMPLE" in shown:
        shown = [word for word in shown if word in ("COMMA", "FROM", "SAMPLE", "ONCE", "WHERE", "FOR")]
    names = ["SAMPLE PERIOD" if word == "SAMPLE" else _CALLED.get(word, word) for word in shown]
    return "expected " + (names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}")

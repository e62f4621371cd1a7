"""The text of a join of two motes, with and without the words that say where it is joined."""

from __future__ import annotations

import re

from skerry.planner.model.pairing import AT_BASE, HOST_NAME
from skerry.sql import ast
from skerry.sql.errors import QueryError
from skerry.sql.join_strategies import JoinHints
from skerry.sql.parser import parse

#: What a gateway without Spark says of what only the other can.
WITH_SPARK = "ask a gateway that joins rows by itself, as skerry up has"
#: Texts, names in quotation marks, and comments.
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|--[^\n]*")


def parsed(sql: str) -> ast.Select | None:
    """A SELECT over two motes; None: it is none."""
    try:
        select = parse(sql, {"sensors"})
    except QueryError:
        return None
    if not isinstance(select, ast.Select):
        return None
    named = [table.name.name.lower() for table in select.tables]
    return select if named == ["sensors", "sensors"] else None


def for_motes(sql: str) -> str | None:
    """Of a join of two motes that does not say where it is joined: the same joined at the base. None: it is none, or says so. Raises
    QueryError: the gateway is to join it."""
    select = parsed(sql)
    if select is None or select.strategy is not None:
        return None
    check_not_naive(select.hints or JoinHints())
    return f"{bare_of(sql, select)} JOIN {AT_BASE}"


def names_host(select: ast.Select) -> bool:
    """Whether its rows are to say which mote has joined them."""
    names = (node for node in ast.walk(select.items) if isinstance(node, ast.Name))
    return any(name.table is None and name.name.lower() == HOST_NAME for name in names)


def bare_of(sql: str, select: ast.Select) -> str:
    """A join without the words that say where it is joined, and that it learns there, so that others can be tried."""
    hints = select.hints or JoinHints()
    return _without(sql, select.strategy.span if select.strategy is not None else hints.naive)


def learning_text(hints: JoinHints) -> str:
    """What is written behind the strategy that is taken: what its user has not said."""
    return " LEARNING ON" if hints.learning is None else ""


def check_not_naive(hints: JoinHints) -> None:
    """Raises QueryError: the gateway is to join by itself."""
    if hints.naive is not None:
        hint = f"leave JOIN NAIVE out, or {WITH_SPARK}"
        raise QueryError("this run's gateway joins no rows by itself", hint, hints.naive)


def _without(sql: str, span: ast.Span | None) -> str:
    bare = sql if span is None else sql[: span.start] + sql[span.end :]
    blank = _QUOTED.sub(lambda found: " " * len(found[0]) if found[0].startswith("-") else found[0], bare)
    return bare[: len(blank.rstrip("; \t\r\n"))]

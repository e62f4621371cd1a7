"""FROM of Lark's parse tree → tables of :mod:`skerry.sql.ast`, and which names stand before points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from lark import Token, Tree

from skerry.sql import ast
from skerry.sql.ast import Span
from skerry.sql.clause_builder import duration_of
from skerry.sql.errors import QueryError, did_you_mean
from skerry.sql.expression_builder import expression_of
from skerry.sql.join_windows import joined_as, no_join
from skerry.sql.nodes import name_of, span_of, token_of, tree_of, type_of


def tables_of(node: Any, items: Span) -> tuple[ast.Table, ...]:
    if node is None:
        return (ast.Table(ast.Name("sensors", items), None),)
    said, *tables = tree_of(node).children
    latest = span_of(token_of(said)) if token_of(said).type == "FROM_LATEST" else None
    made = (
        _mined(tree_of(table)) if tree_of(table).data == "mined" else _table(tree_of(table))
        for table in tables
    )
    return tuple(replace(table, latest=latest) for table in made)


def check_called(tables: Sequence[ast.Table]) -> None:
    called = [table.called for table in tables]
    for table in tables:
        if called.count(table.called) > 1:
            hint = "give each a name of its own, as in FROM recent AS a, recent AS b"
            raise QueryError(f"two tables are called '{table.called}'", hint, table.name.span)


def with_past(
    tables: tuple[ast.Table, ...], clauses: dict[str, Tree[Token]], trees: Sequence[Tree[Token]]
) -> tuple[ast.Table, ...]:
    """``…, sensors HISTORY 1 day AS h``: the last table is what it was in that time."""
    past = clauses.get("past")
    if past is None:
        return tables
    alias, last = token_of(past.children[-1]), tables[-1]
    where = trees.index(past)
    if where == 0 or trees[where - 1].data != "source" or last.alias is not None:
        hint = "write it behind the last table of FROM, as in FROM sensors AS s, sensors HISTORY 1 day AS h"
        raise QueryError(f"nothing says of what '{alias}' is the past", hint, span_of(past))
    table = replace(last, alias=str(alias), past=duration_of(tree_of(past.children[1]), "HISTORY"))
    return (*tables[:-1], table)


def is_of_table(tree: Tree[Token]) -> bool:
    return tree.data == "history" and type_of(tree.children[-1]) == "NAME"


def _table(tree: Tree[Token]) -> ast.Table:
    if tree.data == "no_join":
        raise no_join(token_of(tree.children[0]))
    if tree.data == "joined":
        word, table, _, condition, *windows = tree.children
        return replace(
            _table(tree_of(table)), joined=joined_as(token_of(word), expression_of(condition), windows)
        )
    table, *words = tree.children
    names = [str(word) for word in words if word is not None and token_of(word).type == "NAME"]
    return ast.Table(name_of(token_of(table)), names[0] if names else None)


def _mined(tree: Tree[Token]) -> ast.Table:
    """``PERIODS(detectors.gas, 24) AS p``: of the table that stands before the point of an argument. Raises QueryError."""
    function, *rest = tree.children
    arguments = [expression_of(child) for child in rest if isinstance(child, Tree)]
    names = [str(word) for word in rest if isinstance(word, Token) and word.type == "NAME"]
    call = ast.Call(str(function), tuple(arguments), False, span_of(tree))
    of = next((name for name in _names(call.arguments) if name.table is not None), None)
    if of is None or of.table is None:
        hint = f"write the table before what is mined, as in {str(function).upper()}(detectors.gas, 24)"
        raise QueryError(f"nothing says of which table {function} is", hint, call.span)
    return ast.Table(ast.Name(of.table, of.span), names[0] if names else None, function=call)


def with_event_names(select: ast.Select) -> ast.Select:
    """The query with ``event.temp`` where it says ``hot.temp`` of the event hot that it waits for, or that stops it. Raises QueryError."""
    tables = {name.lower() for table in select.tables for name in (table.called, table.name.name)}

    def renamed(node: Any, events: Sequence[ast.Name]) -> Any:
        known = {event.name.lower() for event in events} - tables

        def change(name: ast.Name) -> ast.Name:
            if name.table is None or name.table.lower() not in known:
                return name
            if len(known) > 1:
                hint = f"write event.{name.name}: it is of the event that came last"
                raise QueryError(f"'{name.table}' is one of several events", hint, name.span)
            return replace(name, table="event")

        return ast.rewritten(node, ast.Name, change) if known else node

    stops = tuple(renamed(stop, [stop.event]) for stop in select.stops)
    if select.event is None:
        return replace(select, stops=stops)
    events = [event.name for event in select.event.events if event.every is None]
    rest: ast.Select = renamed(replace(select, stops=()), events)
    return replace(rest, stops=stops)


def check_tables(select: ast.Select) -> None:
    """What stands before a point is the table's name, or the one that the query gives it."""
    check_called(select.tables)
    known = [name for table in select.tables for name in (table.alias, table.name.name) if name is not None]
    of_stops = list(_names(select.stops))
    for name in _names(select):
        if name.stream is not None:
            hint = "only columns of tables that CREATE SENSORS made have fields; SHOW SENSORS lists these"
            raise QueryError(f"'{name.table}.{name.stream}.{name.name}' has three parts", hint, name.span)
        if name.table is not None and name.table.lower() == "event":
            if select.event is None and name not in of_stops:
                hint = "begin with ON EVENT name, or leave it out"
                raise QueryError("this query has no event", hint, name.span)
            continue
        if name.table is not None and name.table.lower() not in [table.lower() for table in known]:
            hint = f"{did_you_mean(name.table, known)}it is {' or '.join(known)}"
            raise QueryError(f"unknown table '{name.table}'", hint, name.span)


def _names(node: Any) -> Iterator[ast.Name]:
    """All names in a part of the tree."""
    return (found for found in ast.walk(node) if isinstance(found, ast.Name))

"""Where a query says that motes' rows are to be joined: ``JOIN NAIVE``, ``JOIN AT ANCESTOR`` and its like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lark import Token, Tree

from skerry.sql import ast
from skerry.sql.ast import Span
from skerry.sql.errors import QueryError

NAIVE = "NAIVE"


def with_strategy(select: ast.Select, clauses: Mapping[str, Tree[Token]]) -> ast.Select:
    """The query with its strategy, if motes are to follow one. Raises QueryError for one without a join."""
    if "strategy" not in clauses:
        return select
    word = clauses["strategy"].children[0]
    assert isinstance(word, Token)
    span = Span(word.start_pos or 0, word.end_pos or 0)
    strategy = ast.JoinStrategy(" ".join(word.upper().split()[1:]), span)
    if [table.name.name.lower() for table in select.tables] != ["sensors", "sensors"]:
        hint = "write FROM sensors AS s, sensors AS t WINDOW 3 ROWS, or leave it out"
        raise QueryError(f"JOIN {strategy.words} is for two motes whose rows meet", hint, span)
    # The gateway joins where nothing is said, too.
    return select if strategy.words == NAIVE else replace(select, strategy=strategy)

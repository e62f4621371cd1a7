"""``time`` beside an aggregate over storage points: its epoch's, as beside any other, and not that of a stored row."""

from __future__ import annotations

from dataclasses import replace

from skerry.expressions import extension_aggregates
from skerry.planner.model.row_time import TIME_NAME
from skerry.planner.semantics import aggregate_functions
from skerry.sql import ast

#: The row's own time under a name that no table has.
_OF_ROW = "now"


def with_times_of_epochs(select: ast.Select) -> ast.Select:
    """The query with ``NOW`` for ``time`` in the columns, HAVING and ORDER BY of an aggregate without ``sensors`` in FROM."""
    known = {*aggregate_functions.NAMES, *extension_aggregates.names()}
    said = (select.items, select.having, select.order)
    calls = (node for node in ast.walk(said) if isinstance(node, ast.Call))
    aggregates = bool(select.groups) or any(call.function.upper() in known for call in calls)
    if not aggregates or any(table.name.name.lower() == "sensors" for table in select.tables):
        return select

    def renamed(name: ast.Name) -> ast.Name:
        own = name.table is None and name.name.lower() == TIME_NAME
        return replace(name, name=_OF_ROW) if own else name

    items, having, order = ast.rewritten(said, ast.Name, renamed)
    return replace(select, items=items, having=having, order=order)

"""WHERE with windows: they are known when their rows are, so that what AND joins of them is asked as HAVING.

Source: Madden and Franklin 2002 (Fjords), query 2 of section 5.1: ``WHERE … AND AVG(s.speed, w) < speedThreshold``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from skerry.planner.semantics import temporal_aggregates, time_windows
from skerry.sql import ast


def with_windows_in_having(select: ast.Select) -> ast.Select:
    """The query with what its WHERE says of windows in HAVING, where its columns have windows, too."""
    parts = _joined(select.where)
    of_windows = [part for part in parts if _asks(part)]
    if not of_windows or not _asks(select.items):
        return select
    rows = [part for part in parts if part not in of_windows]
    having = [*of_windows, *_joined(select.having)]
    return replace(select, where=_all_of(rows), having=_all_of(having))


def _joined(node: ast.Expression | None) -> list[ast.Expression]:
    return [] if node is None else ast.operands(node, "AND")


def _all_of(parts: Sequence[ast.Expression]) -> ast.Expression | None:
    if not parts:
        return None
    whole, *rest = parts
    for part in rest:
        whole = ast.Binary("AND", whole, part, whole.span.to(part.span))
    return whole


def _asks(node: ast.Expression | tuple[ast.SelectItem, ...]) -> bool:
    calls = [found for found in ast.walk(node) if isinstance(found, ast.Call)]
    return any(
        call.function.upper() in temporal_aggregates.NAMES or time_windows.is_call(call) for call in calls
    )

"""What a query leaves open, and how it is read: said to who asked it."""

from __future__ import annotations

from skerry.sql import ast
from skerry.sql.units import duration_text


def assumptions(statement: ast.Statement) -> tuple[str, ...]:
    """A sentence for each, in the order in which they are written."""
    said: list[str] = []
    for node in ast.walk(statement):
        if isinstance(node, ast.SamplePeriod) and node.default:
            said.append(f"each {duration_text(node.period.milliseconds)}, as no SAMPLE PERIOD was given")
        if isinstance(node, ast.Duration) and node.assumed is not None:
            said.append(f"{node.assumed}, as no unit was given")
    return tuple(said)

"""Conditions over tables of sensors that no row can fulfil."""

from __future__ import annotations

from skerry.sql import ast


def never_true(where: ast.Expression | None, *, joined: bool = False) -> tuple[str, ...]:
    """A note that WHERE is never true, as a column is asked to be two values at once; none where it may be. ``joined``: several aliases may
    each have a column of that name."""
    if where is None:
        return ()
    asked: dict[tuple[str, str], tuple[str, str]] = {}
    for part in ast.operands(where, "AND"):
        if not (isinstance(part, ast.Binary) and part.operator == "=" and isinstance(part.left, ast.Name)):
            continue
        value = (
            part.right.value
            if isinstance(part.right, ast.Number)
            else part.right.text
            if isinstance(part.right, ast.Text)
            else None
        )
        name = ".".join(one for one in (part.left.table, part.left.stream, part.left.name) if one)
        key = (part.left.table or "").lower() if joined else "", part.left.name.lower()
        if value is None:
            continue
        if key in asked and asked[key][1] != str(value):
            other = f"{name} = {asked[key][1]} AND {name} = {value}"
            return (f"{other} is never true, so that no row can come: write OR for either",)
        asked[key] = name, str(value)
    return ()

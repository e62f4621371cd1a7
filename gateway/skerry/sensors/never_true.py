"""Conditions over tables of sensors that no row can fulfil."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from skerry.sql import ast

_COMPARISONS = ("=", "<>", "!=", "<", "<=", ">", ">=")
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class _Bound:
    """What a part of WHERE leaves of a column: ``low`` to ``high``, of which None bounds nothing, with or without them; ``said``: as it is
    written."""

    said: str
    unit: str | None
    low: Decimal | None = None
    high: Decimal | None = None
    open_low: bool = False
    open_high: bool = False

    def excludes(self, other: _Bound) -> bool:
        """Whether no number is within both. Of different units nothing is known here."""
        return self.unit == other.unit and (self._is_above(other) or other._is_above(self))

    def _is_above(self, other: _Bound) -> bool:
        if self.low is None or other.high is None:
            return False
        return self.low > other.high or (self.low == other.high and (self.open_low or other.open_high))


def never_true(where: ast.Expression | None, *, joined: bool = False) -> tuple[str, ...]:
    """A note that WHERE is never true, as a column is asked for what it cannot be at once, or compared with NULL; none where it may be.
    ``joined``: several aliases may each have a column of that name."""
    if where is None:
        return ()
    texts: dict[tuple[str, str], tuple[str, str | datetime]] = {}
    bounds: dict[tuple[str, str], list[_Bound]] = {}
    for part in ast.operands(where, "AND"):
        of_null = _compared_with_null(part)
        if of_null is not None:
            return (of_null,)
        for name, text, said in _texts(part):
            before = texts.setdefault(_key(name, joined=joined), (said, text))
            if before[1] != text:
                return (_note(f"{before[0]} AND {said}", "write OR for either"),)
        for name, bound in _bounds(part):
            known = bounds.setdefault(_key(name, joined=joined), [])
            if bound.excludes(bound):
                return (_note(bound.said, "the lower bound stands first"),)
            for one in known:
                if bound.excludes(one):
                    return (_note(f"{one.said} AND {bound.said}", "write OR for either"),)
            known.append(bound)
    return ()


def _note(said: str, hint: str) -> str:
    return f"{said} is never true, so that no row can come: {hint}"


def _key(name: ast.Name, *, joined: bool) -> tuple[str, str]:
    return (name.table or "").lower() if joined else "", name.name.lower()


def _said(name: ast.Name) -> str:
    return ".".join(one for one in (name.table, name.stream, name.name) if one)


def _compared_with_null(part: ast.Expression) -> str | None:
    """The note of a comparison with NULL."""
    if not isinstance(part, ast.Binary) or part.operator not in _COMPARISONS:
        return None
    sides = part.left, part.right
    if not any(isinstance(side, ast.Null) for side in sides):
        return None
    name = next((_said(side) for side in sides if isinstance(side, ast.Name)), "it")
    known = "IS NULL" if part.operator == "=" else "IS NOT NULL"
    return _note(f"a comparison of {name} with NULL", f"write {name} {known}")


def _compared(part: ast.Expression) -> Iterator[tuple[ast.Name, str, ast.Expression]]:
    """A comparison of a column with what stands beside it, the column first."""
    if isinstance(part, ast.Binary) and part.operator in _COMPARISONS:
        if isinstance(part.left, ast.Name):
            yield part.left, part.operator, part.right
        elif isinstance(part.right, ast.Name):
            yield part.right, _MIRRORED.get(part.operator, part.operator), part.left


def _texts(part: ast.Expression) -> Iterator[tuple[ast.Name, str | datetime, str]]:
    for name, operator, value in _compared(part):
        if operator == "=" and isinstance(value, ast.Text):
            yield name, _moment(value.text), f"{_said(name)} = {value.text}"


def _moment(text: str) -> str | datetime:
    """A time in whatever way it is written; another text as it is."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return text
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _bounds(part: ast.Expression) -> Iterator[tuple[ast.Name, _Bound]]:
    for name, operator, value in _compared(part):
        if isinstance(value, ast.Number) and operator not in ("<>", "!="):
            said = f"{_said(name)} {operator} {_written(value)}"
            low = value.value if operator in ("=", ">", ">=") else None
            high = value.value if operator in ("=", "<", "<=") else None
            yield name, _Bound(said, value.unit, low, high, operator == ">", operator == "<")
    if isinstance(part, ast.Between) and not part.negated and isinstance(part.operand, ast.Name):
        low_end, high_end = part.low, part.high
        if (
            isinstance(low_end, ast.Number)
            and isinstance(high_end, ast.Number)
            and low_end.unit == high_end.unit
        ):
            said = f"{_said(part.operand)} BETWEEN {_written(low_end)} AND {_written(high_end)}"
            yield part.operand, _Bound(said, low_end.unit, low_end.value, high_end.value)


def _written(value: ast.Number) -> str:
    return f"{value.value:f}" if value.unit is None else f"{value.value:f} {value.unit}"

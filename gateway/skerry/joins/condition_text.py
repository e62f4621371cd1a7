"""Conditions of joins as SQL, for people and for databases."""

from __future__ import annotations

import re

from skerry.joins.conditions import (
    AllOf,
    AnyOf,
    Calculated,
    Called,
    Column,
    Compared,
    Known,
    Node,
    Not,
    Value,
)

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def text_of(node: Node) -> str:  # noqa: PLR0911 (a case for each kind)
    """The condition, or operand, in SQL."""
    match node:
        case Column(alias, name):
            return f"{_name(alias)}.{_name(name)}"
        case Value(value):
            return _constant(value)
        case Calculated(sign, left, right) | Compared(sign, left, right):
            return f"{_within(left)} {sign} {_within(right)}"
        case Called(function, arguments):
            return f"{function.lower()}({', '.join(map(text_of, arguments))})"
        case Known(operand):
            return f"{_within(operand)} IS NOT NULL"
        case Not(Known(operand)):
            return f"{_within(operand)} IS NULL"
        case Not(condition):
            return f"NOT {_within(condition)}"
        case AllOf(conditions):
            return " AND ".join(map(_within, conditions))
        case AnyOf(conditions):
            return " OR ".join(map(_within, conditions))


def _within(node: Node) -> str:
    """The same where it stands in another."""
    text = text_of(node)
    alone = isinstance(node, Column | Value | Called)
    return text if alone else f"({text})"


def _constant(value: float | str | bool | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    return _marked(value, "'") if isinstance(value, str) else f"{value}"


def _name(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else _marked(name, '"')


def _marked(text: str, mark: str) -> str:
    return f"{mark}{text.replace(mark, mark * 2)}{mark}"

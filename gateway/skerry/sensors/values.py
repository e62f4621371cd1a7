"""Values of static columns: from statements and CSV files, and as columns of Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from skerry.planner.model import source_plans as plans
from skerry.sensors.definitions import Column
from skerry.sensors.evaluate import arrow_type
from skerry.sql.sensor_statements import Value

#: As it is kept, also in JSON: decimals and times are texts.
Kept = int | float | str | bool | None


class ValueRefusedError(ValueError):
    """A value that its column does not take; one line."""


def kept(column: Column, value: Value) -> Kept:
    """A value of a statement as its column has it. Raises ValueRefusedError."""
    if value is None:
        return None
    fits = {
        plans.TEXT: isinstance(value, str), plans.BOOLEAN: isinstance(value, bool), plans.TIMESTAMP: isinstance(value, str),
    }.get(column.type, isinstance(value, Decimal))  # fmt: skip
    if not fits:
        raise ValueRefusedError(
            f"column {column.name} is {column.type.upper()}, which {_shown(value)} is not"
        )
    return read(column, str(value)) if not isinstance(value, bool) else value


def read(column: Column, text: str) -> Kept:
    """A value that is written as a text, in a CSV file as in a statement. Raises ValueRefusedError."""
    try:
        match column.type:
            case plans.INT:
                whole = Decimal(text)
                if whole != whole.to_integral_value() or abs(whole) >= 2**63:
                    raise ValueError
                return int(whole)
            case plans.DECIMAL:
                number = Decimal(text)
                if not number.is_finite() or number.adjusted() > 28 or number != round(number, 9):
                    raise ValueError
                return format(number, "f")
            case plans.DOUBLE:
                return float(text)
            case plans.BOOLEAN:
                return {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}[
                    text.lower()
                ]
            case plans.TIMESTAMP:
                moment = datetime.fromisoformat(text)
                moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
                return moment.astimezone(UTC).isoformat()
    except (ValueError, KeyError, InvalidOperation, OverflowError):
        raise ValueRefusedError(
            f"column {column.name} is {column.type.upper()}, which '{text}' is not"
        ) from None
    return text


def _shown(value: Value) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


def arrow(column: Column, values: Iterable[Kept]) -> pa.Array:
    """A column of them."""
    found: list[Any] = list(values)
    if column.type == plans.DECIMAL:
        found = [None if value is None else Decimal(value) for value in found]
    elif column.type == plans.TIMESTAMP:
        found = [None if value is None else datetime.fromisoformat(value) for value in found]
    return pa.array(found, arrow_type(column.type))


def columns(described: Sequence[Column], rows: Sequence[Sequence[Kept]]) -> dict[str, pa.Array]:
    """The static columns of tuples by their names in lower case, addresses included."""
    return {
        column.name.lower(): arrow(column, (row[place] for row in rows))
        for place, column in enumerate(described)
    }

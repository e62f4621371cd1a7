"""Values of static columns: from statements and CSV files, and as columns of Arrow."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from skerry.planner.model import source_plans as plans
from skerry.sensors.definitions import Column
from skerry.sensors.evaluate import arrow_type
from skerry.sql.sensor_statements import Value

#: As it is kept, also in JSON: decimals, times and arrays are texts.
Kept = int | float | str | bool | None
#: Of a text that is wrong so many characters are shown.
_SHOWN = 120


class ValueRefusedError(ValueError):
    """A value that its column does not take; one line."""


def kept(column: Column, value: Value) -> Kept:
    """A value of a statement as its column has it. Raises ValueRefusedError."""
    if value is None:
        return None
    if column.type.endswith("[]"):
        return read(column, value if isinstance(value, str) else str(value))
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
        return _array(column.type, text) if column.type.endswith("[]") else _scalar(column.type, text)
    except (ValueError, KeyError, InvalidOperation, OverflowError, RecursionError):
        raise ValueRefusedError(
            f"column {column.name} is {column.type.upper()}, which {_shown(text)} is not"
        ) from None


def _scalar(kind: str, text: str) -> Kept:
    """Raises ValueError, KeyError, InvalidOperation, OverflowError."""
    match kind:
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
            return {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}[text.lower()]
        case plans.TIMESTAMP:
            moment = datetime.fromisoformat(text)
            moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
            return moment.astimezone(UTC).isoformat()
    return text


def _array(kind: str, text: str) -> str:
    """Numbers as in ``[1, 2.5]``, once they are read. Raises ValueError."""
    found = json.loads(text)
    whole = kind == f"{plans.INT}[]"
    if not isinstance(found, list) or not all(_is_number(one, whole) for one in found):
        raise ValueError
    return json.dumps(found)


def _is_number(value: object, whole: bool) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return -(2**63) <= value < 2**63 and value == int(value) if whole else math.isfinite(value)


def _shown(value: Value) -> str:
    if not isinstance(value, str):
        return str(value)
    return f"'{value}'" if len(value) <= _SHOWN else f"'{value[:_SHOWN]}…'"


def arrow(column: Column, values: Iterable[Kept]) -> pa.Array:
    """A column of them."""
    found: list[Any] = list(values)
    if column.type == plans.DECIMAL:
        found = [None if value is None else Decimal(value) for value in found]
    elif column.type.endswith("[]"):
        found = [None if value is None else json.loads(value) for value in found]
    elif column.type == plans.TIMESTAMP:
        found = [None if value is None else datetime.fromisoformat(value) for value in found]
    return pa.array(found, arrow_type(column.type))


def columns(described: Sequence[Column], rows: Sequence[Sequence[Kept]]) -> dict[str, pa.Array]:
    """The static columns of tuples by their names in lower case, addresses included."""
    return {
        column.name.lower(): arrow(column, (row[place] for row in rows))
        for place, column in enumerate(described)
    }

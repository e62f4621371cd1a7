"""What a source sends → the fields that its table declares."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from datetime import time as clock_time
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import msgspec

from skerry.planner.model import source_plans as plans
from skerry.sensors.definitions import Field
from skerry.sensors.field_texts import steps
from skerry.sources.lines import LINE_BYTES
from skerry.sources.shown import LOOKED, VALUE
from skerry.sources.stream_type import AddressError, Unfit

FORMATS = ("json", "csv")
# A cell may be as long as a line may be: an array is one.
csv.field_size_limit(LINE_BYTES)
_TRUE, _FALSE = frozenset({"true", "t", "1", "yes"}), frozenset({"false", "f", "0", "no"})
#: Microseconds from 1970 within which a time is one: the years 1 to 9999.
_EARLIEST, _LATEST = -62_135_596_800_000_000, 253_402_300_799_999_999

#: A decimal's last place behind the point, and room for all before it.
_CONTEXT = Context(prec=40)
_LAST_PLACE = Decimal("1e-9")

Row = list[Any]


class MisfitError(ValueError):
    """A row that does not fit its table; one line. ``value``: what does not, where it is one value of the row: it is shown behind
    ``text``, before ``rest``."""

    def __init__(self, text: str, value: str = "", rest: str = "") -> None:
        super().__init__(text + value[:VALUE] + rest)
        self._parts = text, value, rest

    def told(self, hide: Callable[[str], str]) -> str:
        """Without secrets: what is hidden in a part of a value would be found there no more."""
        text, value, rest = self._parts
        return hide(text) + hide(value[:LOOKED])[:VALUE] + rest


class Decoder:
    """``format``: json, or csv whose cells are the fields in their order."""

    def __init__(self, fields: Sequence[Field], format: str = "json") -> None:
        if format not in FORMATS:
            raise AddressError(f"format={format}: a format is {' or '.join(FORMATS)}")
        self._fields, self._format = tuple(fields), format
        self._paths = [_path(field) for field in fields]
        self._convert = [_converter(field) for field in fields]
        exact = any(field.type == plans.DECIMAL for field in fields)
        self._json = msgspec.json.Decoder(float_hook=Decimal) if exact else msgspec.json.Decoder()
        #: The place of the field that is a row's time.
        self.time = next((place for place, field in enumerate(fields) if field.time), None)

    def line(self, line: bytes) -> Row:
        """The fields of a line. Raises MisfitError."""
        if isinstance(line, Unfit):
            raise MisfitError(line.why)
        if self._format == "csv":
            return self._cells(line)
        try:
            found = self._json.decode(line)
        except (msgspec.DecodeError, ValueError, InvalidOperation, RecursionError) as error:
            why = str(error).removeprefix("JSON is malformed: ")
            why = "a number is out of range" if isinstance(error, InvalidOperation) else why
            raise MisfitError(f"it is no JSON, {why}") from None
        if not isinstance(found, dict):
            raise MisfitError(f"it is {_called(found)}, and no object")
        return self.mapping(found)

    def mapping(self, found: Mapping[str, Any]) -> Row:
        """The fields of an object. Raises MisfitError."""
        row = []
        for field, path, convert in zip(self._fields, self._paths, self._convert, strict=True):
            value: Any = found
            for step in path:
                value = _within(value, step)
            row.append(self._converted(field, convert, value))
        return row

    def _cells(self, line: bytes) -> Row:
        try:
            [cells] = csv.reader([line.decode().rstrip("\r\n")])
        except (ValueError, csv.Error) as error:
            raise MisfitError(f"it is no line of CSV, {error}") from None
        if len(cells) != len(self._fields):
            raise MisfitError(f"it has {len(cells)} values for {len(self._fields)} fields")
        return [
            self._converted(field, convert, cell if cell != "" else None)
            for field, convert, cell in zip(self._fields, self._convert, cells, strict=True)
        ]

    def _converted(self, field: Field, convert: Callable[[Any], Any], value: Any) -> Any:
        if value is None:
            return None
        try:
            if field.array:
                values = json.loads(value) if isinstance(value, str) else value
                if not isinstance(values, list | tuple):
                    raise ValueError
                return [None if one is None else convert(one) for one in values]
            return convert(value)
        except (ValueError, TypeError, InvalidOperation, OverflowError, RecursionError, re.error):
            shown = repr(value) if not isinstance(value, Decimal) else str(value)
            raise MisfitError(
                f"field {field.name} is {field.full_type.upper()}, which ", shown, " is not"
            ) from None


def _path(field: Field) -> tuple[str | int, ...]:
    try:
        return (field.name,) if field.path is None else steps(field.path)
    except ValueError as error:
        raise AddressError(f"field {field.name}: {error}: write it as in $.air.level[0]") from None


def _within(value: Any, step: str | int) -> Any:
    """A part of a value; None: it has none."""
    if isinstance(step, int):
        return value[step] if isinstance(value, list) and step < len(value) else None
    if type(value) is not dict and not isinstance(value, Mapping):
        return None
    found = value.get(step)
    if found is None and step not in value:
        # Names are alike in any case, as in SQL.
        return next((other for name, other in value.items() if str(name).lower() == step.lower()), None)
    return found


def _converter(field: Field) -> Callable[[Any], Any]:
    if field.type == plans.TIMESTAMP:
        form = field.format or "iso"
        return lambda value: moment(value, form)
    if field.array and field.type == plans.DECIMAL:
        return _double
    return _CONVERTERS[field.type]


def _integer(value: Any) -> int:
    if isinstance(value, bool):
        raise ValueError
    number = Decimal(value) if isinstance(value, str) else value
    if isinstance(number, Decimal) and number.adjusted() > 19:
        # A billion digits take a while.
        raise ValueError
    whole = int(number)
    if whole != number or not -(2**63) <= whole < 2**63:
        raise ValueError
    return whole


def _decimal(value: Any) -> Decimal:
    if isinstance(value, bool):
        raise ValueError
    number = Decimal(str(value)) if isinstance(value, float) else Decimal(value)
    if not number.is_finite() or number.adjusted() > 27:
        raise ValueError
    # As SQL casts to it: many a source sends 0.6000000000000001.
    return number.quantize(_LAST_PLACE, ROUND_HALF_UP, _CONTEXT)


def _double(value: Any) -> float:
    if isinstance(value, bool):
        raise ValueError
    return float(value)


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).lower()
    if word not in _TRUE | _FALSE:
        raise ValueError
    return word in _TRUE


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    plans.INT: _integer, plans.DECIMAL: _decimal, plans.DOUBLE: _double, plans.TEXT: _text, plans.BOOLEAN: _boolean,
}  # fmt: skip
_PER_UNIT = {"unix s": 1_000_000, "unix ms": 1000, "unix us": 1}


def moment(value: Any, form: str) -> int:
    """A time as microseconds of UTC. Raises ValueError."""
    if isinstance(value, datetime):
        us = microseconds(value)
    elif isinstance(value, date):
        us = microseconds(datetime.combine(value, clock_time()))
    elif form in _PER_UNIT:
        if isinstance(value, bool):
            raise ValueError
        since = Decimal(str(value))
        if not since.is_finite() or since.adjusted() > 19:
            raise ValueError
        us = round(since * _PER_UNIT[form])
    else:
        found = datetime.fromisoformat(value) if form == "iso" else datetime.strptime(value, form)
        us = microseconds(found)
    if not _EARLIEST <= us <= _LATEST:
        raise ValueError
    return us


def microseconds(at: datetime) -> int:
    """A time as microseconds of UTC, exactly; one without a zone is of UTC."""
    apart = (at if at.tzinfo is not None else at.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    return (apart.days * 86400 + apart.seconds) * 1_000_000 + apart.microseconds


def _called(value: Any) -> str:
    return {list: "a list", str: "a text", type(None): "null", bool: "true or false"}.get(
        type(value), "a number"
    )


def columns_of(rows: Iterable[Row], count: int) -> list[list[Any]]:
    """Rows as columns."""
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(count)]

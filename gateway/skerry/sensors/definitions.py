"""A table of sensors: its static columns, and the stream that each of its tuples is the address of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from skerry.planner.model import source_plans as plans
from skerry.sensors.field_texts import TIME_FORMATS, format_of, steps
from skerry.sql import ast
from skerry.sql.errors import QueryError, did_you_mean
from skerry.sql.sensor_statements import ColumnText, CreateSensors, FieldText

#: Arrays are of these.
_ARRAYS = (plans.INT, plans.DOUBLE, plans.DECIMAL)
#: As users write them → as they are.
TYPES = {
    "int": plans.INT, "integer": plans.INT, "bigint": plans.INT,
    "decimal": plans.DECIMAL, "numeric": plans.DECIMAL,
    "double": plans.DOUBLE, "float": plans.DOUBLE, "real": plans.DOUBLE,
    "text": plans.TEXT, "string": plans.TEXT, "varchar": plans.TEXT,
    "boolean": plans.BOOLEAN, "bool": plans.BOOLEAN,
    "timestamp": plans.TIMESTAMP,
}  # fmt: skip
_NAMES = "INT, DECIMAL, DOUBLE, TEXT, BOOLEAN or TIMESTAMP"
#: A name that every table with a stream has anyway.
TIME = "time"


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a stream. ``path``: where it is in JSON, ``$.a.b[0]``; None: under its name. ``format``: how its times are written.
    ``time``: it is the row's time."""

    name: str
    type: str
    unit: str = ""
    array: bool = False
    format: str | None = None
    path: str | None = None
    time: bool = False

    @property
    def full_type(self) -> str:
        """With ``[]`` where it is an array."""
        return f"{self.type}[]" if self.array else self.type


@dataclass(frozen=True, slots=True)
class Column:
    """A static column, or with ``fields`` the stream attribute, whose value is an address. ``behind_us``: so far rows may come behind
    their times, where a query fills the stream, beside gaps in which no row moves its progress."""

    name: str
    type: str
    unit: str = ""
    fields: tuple[Field, ...] = ()
    behind_us: int = 0


@dataclass(frozen=True, slots=True)
class SensorTable:
    """``number``: its own, never given twice; the motes' one (:mod:`skerry.sensors.mote_streams`) is negative, and that of an index of
    theirs (:mod:`skerry.sensors.index_tables`) 0."""

    name: str
    owner: str
    number: int
    columns: tuple[Column, ...]

    @property
    def key(self) -> str:
        """Its name in lower case."""
        return self.name.lower()

    @property
    def stream_number(self) -> int:
        """Its rows' stream in the log."""
        return plans.STREAMS + self.number

    @property
    def of_motes(self) -> bool:
        """Whether its sources are motes."""
        return self.number < 0

    @property
    def is_index(self) -> bool:
        """Whether motes store its rows for each other."""
        return self.number == 0

    @property
    def is_made(self) -> bool:
        """Whether CREATE STREAM has made it, of others."""
        return self.stream_number >= plans.MADE

    @property
    def behind_us(self) -> int:
        """So far rows may come behind their times as what they are made of is waited for."""
        return max((column.behind_us for column in self.columns), default=0)

    @property
    def made_by(self) -> str:
        """Then the query that fills it."""
        return plans.query_of(self.stream_number)

    @property
    def stream(self) -> Column | None:
        """Its stream attribute."""
        return next((column for column in self.columns if column.fields), None)

    def place(self, name: str) -> int | None:
        """Where a column stands; None: there is none."""
        names = [column.name.lower() for column in self.columns]
        return names.index(name.lower()) if name.lower() in names else None

    def with_column(self, column: Column) -> SensorTable:
        """The same with one more."""
        return replace(self, columns=(*self.columns, column))

    def without(self, place: int) -> SensorTable:
        """The same without one."""
        return replace(self, columns=self.columns[:place] + self.columns[place + 1 :])

    def to_list(self) -> list[Any]:
        """For JSON."""
        return [
            [c.name, c.type, c.unit, [[f.name, f.type, f.unit, f.array, f.format, f.path, f.time] for f in c.fields], c.behind_us]
            for c in self.columns
        ]  # fmt: skip

    @classmethod
    def of(cls, name: str, owner: str, number: int, columns: list[Any]) -> SensorTable:
        """What :meth:`to_list` wrote."""
        made = (
            Column(n, t, unit, tuple(Field(*field) for field in fields), *behind)
            for n, t, unit, fields, *behind in columns
        )
        return cls(name, owner, number, tuple(made))

    def described(self) -> list[dict[str, Any]]:
        """Its columns and fields, for people."""
        rows = []
        for column in self.columns:
            kind = "STREAM" if column.fields else column.type.upper()
            rows.append(
                {
                    "column": column.name,
                    "type": kind,
                    "unit": column.unit,
                    "what": "" if not column.fields else "address",
                }
            )
            for field in column.fields:
                what = ["the row's time"] if field.time else []
                what += [f"format {field.format}"] if field.format else []
                what += [f"from {field.path}"] if field.path else []
                rows.append({
                    "column": f"{column.name}.{field.name}", "type": field.full_type.upper(), "unit": field.unit, "what": ", ".join(what),
                })  # fmt: skip
        return rows


def define(statement: CreateSensors, owner: str, number: int) -> SensorTable:
    """The table that a statement makes. Raises QueryError."""
    columns = tuple(map(column_of, statement.columns))
    _check_names([text.name for text in statement.columns], "column")
    streams = [text for text in statement.columns if text.fields]
    if len(streams) > 1:
        hint = "make a table for each: a tuple has one address"
        raise QueryError("a table of sensors has one stream", hint, streams[1].name.span)
    for text in streams:
        _check_names([field.name for field in text.fields], "field")
        times = [field for field in text.fields if field.time]
        if len(times) > 1:
            raise QueryError("a row has one time", "leave one TIME out", times[1].name.span)
    return SensorTable(statement.name.name, owner, number, columns)


def _check_names(names: list[ast.Name], what: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name.name.lower() in seen:
            raise QueryError(
                f"two {what}s are called '{name.name}'", "give each a name of its own", name.span
            )
        seen.add(name.name.lower())


def column_of(text: ColumnText) -> Column:
    """A column as it is written. Raises QueryError."""
    if text.fields:
        return Column(text.name.name, plans.TEXT, "", tuple(map(_field_of, text.fields)))
    kind = _array_of(text.type) if text.array else _type_of(text.type)
    return Column(text.name.name, kind, text.unit or "")


def _array_of(name: ast.Name) -> str:
    kind = _type_of(name)
    if kind not in _ARRAYS:
        raise QueryError(f"an array of {name.name}", "arrays are of numbers, as in DOUBLE[]", name.span)
    return f"{kind}[]"


def _type_of(name: ast.Name) -> str:
    found = TYPES.get(name.name.lower())
    if found is None:
        guess = did_you_mean(name.name, list(TYPES))
        raise QueryError(
            f"unknown type '{name.name}'", f"{guess}types are {_NAMES}, and STREAM (…)", name.span
        )
    return found


def _field_of(text: FieldText) -> Field:
    kind, name = _type_of(text.type), text.name
    if text.array:
        _array_of(text.type)
    if kind != plans.TIMESTAMP and text.format is not None:
        raise QueryError(f"'{name.name}' is no time", "FORMAT says how a TIMESTAMP is written", name.span)
    if kind != plans.TIMESTAMP and text.time:
        hint = f"write {name.name} TIMESTAMP TIME, with FORMAT 'unix s' where it is a number"
        raise QueryError(f"'{name.name}' is no time", hint, name.span)
    try:
        form = format_of(text.format) if kind == plans.TIMESTAMP else None
    except ValueError as error:
        hint = f"a format is {', '.join(TIME_FORMATS)}, or a pattern as in '%d.%m.%Y %H:%M:%S'"
        raise QueryError(str(error), hint, name.span) from None
    try:
        if text.path is not None:
            steps(text.path)
    except ValueError as error:
        hint = "a path in JSON begins with $, as in '$.air.level[0]' or '$.air[''ppm now'']'"
        raise QueryError(str(error), hint, name.span) from None
    return Field(name.name, kind, text.unit or "", text.array, form, text.path, text.time)

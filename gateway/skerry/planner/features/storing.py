"""Queries whose rows stay on the motes: CREATE STORAGE POINT, INTO. Source: TinyDB 2005, 3.2 and appendix B.2."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

from skerry.expressions import build
from skerry.expressions.assembler import obstacle
from skerry.expressions.expression import PLAIN, Expr, Kind
from skerry.expressions.temporal import is_temporal
from skerry.planner.model.clause import Clause
from skerry.planner.model.columns import format_for
from skerry.planner.model.plans import Column, Output, QueryPlan
from skerry.planner.model.storage_points import (
    BLOCKS,
    FLASH_PERIOD_MS,
    RAM_BYTES,
    Point,
    PointField,
    blocks_for,
    free_block,
    kept,
    row_bytes,
)
from skerry.planner.semantics.scope import SYNONYMS
from skerry.planner.semantics.temporal_aggregates import with_digits
from skerry.sql import ast
from skerry.sql.ast import Span
from skerry.sql.errors import QueryError, did_you_mean
from skerry.sql.units import TIME_NAMES, TIMES, time_of
from skerry_protocol.attributes import BY_NAME, BY_NUMBER, Attribute, ValueFormat
from skerry_protocol.codes import Aggregate
from skerry_protocol.limits import FIELDS_MAXIMUM, PERIOD_MAXIMUM_MS, STORE_BLOCK, STORE_ROWS_MAXIMUM

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FORMATS = {
    "uint8": ValueFormat.U8, "int8": ValueFormat.I8, "uint16": ValueFormat.U16, "int16": ValueFormat.I16,
    "int32": ValueFormat.I32, "int": ValueFormat.I32, "integer": ValueFormat.I32, "smallint": ValueFormat.I16,
}  # fmt: skip


def define(
    statement: ast.CreatePoint, filling: QueryPlan | None, number: int, points: Sequence[Point]
) -> Point:
    """The storage point of a CREATE beside others. ``filling``: the plan of its AS SELECT. Raises QueryError."""
    name = statement.name
    if name.name.lower() in ("sensors", "event", *(point.name.lower() for point in points)):
        hint = (
            f"drop it first: DROP STORAGE POINT {name.name}"
            if name.name.lower() not in ("sensors", "event")
            else ""
        )
        raise QueryError(f"there is a table '{name.name}' already", hint or "choose another name", name.span)
    fields = _fields_of(statement, filling)
    period = filling.period_ms if filling is not None else None
    rows, seconds = _size(statement.size, period)
    # A view of a stream that does not end shows its newest rows, as the paper's recentlight does.
    endless = filling is not None and filling.duration_ms is None and not filling.once
    circular = statement.circular or endless
    block, keeps = None, kept(rows, circular)
    if keeps * row_bytes(fields, flash=False) > RAM_BYTES:
        blocks = blocks_for(keeps, fields)
        block = free_block(blocks, points)
        if block is None:
            raise _no_room(statement, rows, fields, points)
        if period is not None and period < FLASH_PERIOD_MS:
            fitting = RAM_BYTES // row_bytes(fields, flash=False)
            hint = f"write SAMPLE PERIOD {FLASH_PERIOD_MS} ms, or a SIZE of at most {fitting} rows, which RAM holds"
            raise QueryError("EEPROM is too slow for this sample period", hint, statement.size.span)
    return Point(name.name, number, fields, rows, circular, seconds, period, block)


def _no_room(
    statement: ast.CreatePoint, rows: int, fields: Sequence[PointField], points: Sequence[Point]
) -> QueryError:
    size = row_bytes(fields, flash=True)
    free = (BLOCKS - sum(point.blocks for point in points)) * STORE_BLOCK
    hint = f"at most {free // size} rows fit" + (", or drop another storage point" if points else "")
    return QueryError(f"{rows} rows of {size} bytes do not fit a mote's EEPROM", hint, statement.size.span)


def _fields_of(statement: ast.CreatePoint, filling: QueryPlan | None) -> tuple[PointField, ...]:
    if filling is not None and statement.fields and not statement.sampled:
        hint = "its fields are the columns of AS SELECT: name them there with AS"
        raise QueryError("the fields are said twice", hint, statement.fields[0][0].span)
    if filling is None and not statement.fields:
        hint = "write CREATE STORAGE POINT name SIZE 8 AS SELECT …, or name them: SIZE 8 (light uint16)"
        raise QueryError("this storage point has no fields", hint, statement.name.span)
    if filling is not None and not statement.fields:
        fields = tuple(_field_of(output, statement) for output in filling.outputs)
    else:
        fields = tuple(_declared(name, type) for name, type in statement.fields)
    names = [field.name.lower() for field in fields]
    for name in names:
        if names.count(name) > 1:
            raise QueryError(
                f"two fields are named '{name}'", "name one of them otherwise", statement.name.span
            )
    if len(fields) > FIELDS_MAXIMUM:
        hint = f"a storage point has at most {FIELDS_MAXIMUM}"
        raise QueryError(f"{len(fields)} fields are too many", hint, statement.name.span)
    return fields


def _field_of(output: Output, statement: ast.CreatePoint) -> PointField:
    if not _NAME.fullmatch(output.name):
        hint = f"name it with AS, as in {output.name} AS value"
        raise QueryError(f"'{output.name}' is no name of a field", hint, statement.name.span)
    expr = output.expr
    if expr.kind is Kind.LIST:
        raise QueryError(f"'{output.name}' is a list", "a field is a number", statement.name.span)
    if reason := None if is_temporal(expr) else obstacle(expr):
        raise QueryError(f"a mote cannot compute '{output.name}'", reason, statement.name.span)
    attribute = BY_NUMBER[expr.operand].format if expr.is_attribute and expr.operand is not None else None
    unit = output.unit
    return PointField(
        output.name, attribute or format_for(expr.low, expr.high), expr.digits, unit, expr.low, expr.high
    )


def _declared(name: ast.Name, type: ast.Name) -> PointField:
    format = _FORMATS.get(type.name.lower())
    if format is None:
        hint = f"{did_you_mean(type.name.lower(), list(_FORMATS))}types are {', '.join(_FORMATS)}"
        raise QueryError(f"unknown type '{type.name}'", hint, type.span)
    # A field named as an attribute is in its unit, and with its decimal places.
    attribute = _attribute(name)
    digits, unit = (attribute.digits, attribute.unit) if attribute is not None else (0, "")
    return PointField(name.name, format, digits, unit, format.minimum, format.maximum)


def _attribute(name: ast.Name) -> Attribute | None:
    return BY_NAME.get(SYNONYMS.get(name.name.lower(), name.name.lower()))


def check_sampled(statement: ast.CreatePoint) -> None:
    """With SAMPLE PERIOD the fields of a storage point are what motes sample. Raises QueryError for others."""
    for name, _ in statement.fields if statement.sampled else ():
        if _attribute(name) is None:
            hint = f"{did_you_mean(name.name.lower(), list(BY_NAME))}write AS SELECT …, or leave SAMPLE PERIOD out and fill it with INTO"
            raise QueryError(
                f"the field '{name.name}' is no attribute, which motes could sample", hint, name.span
            )


def _size(size: ast.Number, period_ms: int | None) -> tuple[int, int]:
    """Rows, and seconds where the size is a time."""
    unit = size.unit.lower() if size.unit is not None else "rows"
    if unit in ("rows", "row", "tuples", "tuple", "samples"):
        if size.value % 1 or not 1 <= size.value <= STORE_ROWS_MAXIMUM:
            hint = f"write a whole number from 1 to {STORE_ROWS_MAXIMUM}"
            raise QueryError(f"SIZE {size.value:f} is no number of rows", hint, size.span)
        return int(size.value), 0
    factor = time_of(unit)
    if factor is None:
        hint = f"{did_you_mean(unit, ['rows', *TIMES])}sizes are in rows or in {', '.join(TIME_NAMES)}"
        raise QueryError(f"unknown unit '{size.unit}'", hint, size.span)
    if period_ms is None:
        hint = "rows come whenever a query puts them there: write SIZE n rows"
        raise QueryError("a size in time needs AS SELECT … SAMPLE PERIOD", hint, size.span)
    milliseconds = size.value * factor
    rows = -(-milliseconds // period_ms)
    if milliseconds % 1000 or milliseconds < 1000 or rows > STORE_ROWS_MAXIMUM:
        most = Decimal(STORE_ROWS_MAXIMUM * period_ms // 1000)
        hint = f"write whole seconds, from 1 s to {most} s at this sample period"
        raise QueryError(f"SIZE {size.value:f} {size.unit} is no size", hint, size.span)
    return int(rows), int(milliseconds // 1000)


def declared_columns(point: Point) -> tuple[Column, ...]:
    """Of a point that only INTO fills."""
    return tuple(Column(f"s{i}", build.null(), field.format) for i, field in enumerate(point.fields))


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def stored_columns(outputs: Sequence[Output], point: Point, span: ast.Span) -> tuple[Column, ...]:
    """What motes put into a point's fields. Raises QueryError where that is something else."""
    if len(outputs) != len(point.fields):
        names = ", ".join(field.name for field in point.fields)
        raise QueryError(
            f"{point.name} has {_counted(len(point.fields), 'field')}, and the query {_counted(len(outputs), 'column')}",
            f"select one for each of {names}",
            span,
        )
    return tuple(
        _stored(i, output, field, span)
        for i, (output, field) in enumerate(zip(outputs, point.fields, strict=True))
    )


def _stored(index: int, output: Output, field: PointField, span: ast.Span) -> Column:
    expr = output.expr
    if expr.kind is Kind.LIST or not (expr.unit in (PLAIN, field.unit) or "" in (output.unit, field.unit)):
        unit = f"in {field.unit}" if field.unit else "a plain number"
        raise QueryError(f"'{output.name}' does not fit the field {field.name}", f"it is {unit}", span)
    if is_temporal(expr):
        return Column(f"s{index}", with_digits(expr, field.digits, span), field.format, expr.aggregate)
    scaled = _scaled(expr, field.digits)
    if reason := obstacle(scaled):
        raise QueryError(f"a mote cannot compute '{output.name}' for the field {field.name}", reason, span)
    return Column(f"s{index}", scaled, field.format)


def _scaled(expr: Expr, digits: int) -> Expr:
    if expr.digits == digits or expr.kind is not Kind.NUMBER:
        return expr
    if expr.digits < digits:
        return build.upscale(expr, digits - expr.digits)
    return build.downscale(expr, expr.digits - digits)


def store_clause(point: Point) -> Clause:
    """That the rows of a program stay on the mote."""
    return Clause(Aggregate.STORE, point.name, values=point.encode())


def into_clause(point: Point) -> Clause:
    """That the rows of a program go to a point."""
    return Clause(Aggregate.INTO, point.name, values=tuple(point.number.to_bytes(2, "little")))


def check_period(period_ms: int, point: Point, span: ast.Span) -> None:
    """Raises QueryError where rows come faster than the point takes them."""
    if point.block is not None and period_ms < FLASH_PERIOD_MS:
        hint = f"it lies in EEPROM: write SAMPLE PERIOD {FLASH_PERIOD_MS} ms"
        raise QueryError(f"this sample period is too short for {point.name}", hint, span)


#: Sample period in ms of a point that no query of its own fills.
UNFILLED_PERIOD_MS = PERIOD_MAXIMUM_MS


def check_storable(select: ast.Select, plan: QueryPlan, span: Span) -> None:
    """Rows of the query can go to a storage point."""
    if plan.aggregate or plan.window is not None:
        hint = (
            "it is known at the root only: store each mote's own rows, and aggregate them when they are read"
        )
        raise QueryError("an aggregate over all motes cannot be stored on a mote", hint, span)
    if select.queue is not None:
        hint = "they are stored, not sent: leave it out"
        raise QueryError("QUEUE does not go with rows that stay on the motes", hint, select.queue.span)
    if plan.reads:
        hint = "store rows of sensors, and join when they are read"
        raise QueryError("rows of a join cannot go to a storage point", hint, span)
    if select.having is not None:
        raise QueryError(
            "HAVING is asked at the gateway, and these rows stay on the motes",
            "use WHERE",
            select.having.span,
        )
    if plan.where is not None and select.where is not None and (reason := obstacle(plan.where)):
        raise QueryError("this condition cannot be evaluated by a mote", reason, select.where.span)

"""Columns of tables as streams have columns: in the types of :mod:`skerry.planner.model.source_plans`, as Arrow."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from skerry.planner.model import source_plans as plans
from skerry.planner.model.joined_tables import ColumnKind
from skerry.sensors.evaluate import DECIMAL, arrow_type
from skerry.tables.columns import Column

#: Decimals of streams have so many places.
_PLACES = DECIMAL.scale
#: Integers that are the same decimals in units of the last place, and what brings others there.
_WHOLE, _POWER = pa.decimal128(27, 0), pa.decimal128(10, 0)


def typed(column: Column, kind: str) -> pa.Array | None:
    """All values in this type; None: they are of another, or have more decimal places than it."""
    if column.exact is not None:
        return column.exact if column.exact.type == arrow_type(kind) else None
    own, nothing = column.described.kind, ~column.known
    if own is ColumnKind.BLANK:
        return pa.nulls(len(column.known), arrow_type(kind))
    if own is ColumnKind.NUMBER:
        return _number(pa.array(column.values, mask=nothing), column.described.digits, kind)
    if own is ColumnKind.TEXT:
        return column.text if kind == plans.TEXT else None
    times = pa.array(column.values * 10 ** (6 - column.described.digits), pa.timestamp("us"), mask=nothing)
    return times.cast(arrow_type(kind)) if kind == plans.TIMESTAMP else None


def _number(scaled: pa.Array, digits: int, kind: str) -> pa.Array | None:
    if kind == plans.DOUBLE:
        return pc.divide(scaled.cast(pa.float64()), 10.0**digits)
    if kind == plans.INT:
        return scaled if digits == 0 else None
    if kind != plans.DECIMAL or digits > _PLACES:
        return None
    whole = pc.multiply(scaled.cast(_WHOLE), pa.scalar(10 ** (_PLACES - digits), _POWER))
    return pa.Array.from_buffers(DECIMAL, len(whole), whole.buffers())

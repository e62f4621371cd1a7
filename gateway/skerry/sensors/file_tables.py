"""Tables of files and databases, as those of sensors without a stream: columns in the types of streams."""

from __future__ import annotations

from skerry.planner.model import source_plans as plans
from skerry.planner.model.joined_tables import ColumnKind, TableColumn, TableSchema
from skerry.sensors.definitions import Column, SensorTable

#: The number of all of them: it is no stream's.
_NUMBER = 1 << 30
#: Decimals of streams have so many places; what has more is a double.
_PLACES = 9
_KINDS = {
    ColumnKind.TEXT: plans.TEXT, ColumnKind.TIME: plans.TIMESTAMP, ColumnKind.BLANK: plans.NULL,
}  # fmt: skip


def table_of(schema: TableSchema) -> SensorTable:
    """What queries over streams are joined with. It is nobody's."""
    return SensorTable(schema.name, "", _NUMBER, tuple(map(_column, schema.columns)))


def _column(column: TableColumn) -> Column:
    kind = _KINDS.get(column.kind)
    if kind is None:
        kind = plans.INT if not column.digits else plans.DECIMAL if column.digits <= _PLACES else plans.DOUBLE
    return Column(column.name, kind)

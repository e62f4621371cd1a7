"""A reading of a table as a file, which other processes map into memory: Arrow IPC, each column as the language has it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa

from skerry.planner.model.joined_tables import ColumnKind, TableColumn
from skerry.tables.columns import Column
from skerry.tables.store import Table

#: In the schema's metadata: what is known of the table, and of each column, as JSON.
_KEY = b"skerry.table"


def write(table: Table, file: IO[bytes]) -> None:
    """All of a table, to be read by :func:`read`."""
    arrays, fields = [], []
    for name, column in table.columns.items():
        array = column.exact if column.exact is not None else column.text
        if array is None:
            array = pa.array(column.values, mask=~column.known)
        described = {
            "digits": column.described.digits,
            "kind": column.described.kind.value,
            "most": column.most,
            "exact": column.exact is not None,
        }
        arrays.append(array)
        fields.append(pa.field(name, array.type, metadata={_KEY: json.dumps(described)}))
    known = {"name": table.name, "rows": table.rows}
    schema = pa.schema(fields, {_KEY: json.dumps(known)})
    with pa.ipc.new_file(file, schema) as writer:
        writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def read(path: Path, version: int) -> Table:
    """The table of a file, as a ``version`` of it. Raises OSError."""
    with pa.memory_map(str(path)) as mapped:
        table = pa.ipc.open_file(mapped).read_all().combine_chunks()
    known = json.loads(table.schema.metadata[_KEY])
    columns = {
        field.name: _column(field, table.column(i).combine_chunks()) for i, field in enumerate(table.schema)
    }
    return Table(known["name"], known["rows"], columns, version, path)


def _column(field: pa.Field, array: pa.Array) -> Column:
    known = json.loads(field.metadata[_KEY])
    described = TableColumn(field.name, known["digits"], ColumnKind(known["kind"]))
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    if known["exact"]:
        return Column(described, np.zeros(len(array), np.int64), valid, exact=array)
    if described.kind is ColumnKind.TEXT:
        return Column(described, np.zeros(len(array), np.int64), valid, array)
    values = array.fill_null(0).to_numpy(zero_copy_only=False)
    return Column(described, values, valid, most=known["most"])


def same(one: Table, other: Table) -> bool:
    """Whether two readings of a table say the same."""
    return (
        one.rows == other.rows
        and list(one.columns) == list(other.columns)
        and all(_same(column, other.columns[name]) for name, column in one.columns.items())
    )


def _same(one: Column, other: Column) -> bool:
    if one.described != other.described or not np.array_equal(one.known, other.known):
        return False
    if one.exact is not None:
        return other.exact is not None and bool(one.exact.equals(other.exact))
    if one.text is not None:
        return other.text is not None and bool(one.text.equals(other.text))
    return other.text is None and np.array_equal(one.values[one.known], other.values[other.known])

"""What a day's file of the past is: which day a row belongs to, how much a row group holds, how columns are written, and which of them
files may lack."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

DAY_US = 86_400_000_000
#: A day's rows go on in a file of their own once it has so many: each pass rewrites the last file, so that a pass takes no longer on a
#: day that has many rows.
FILE_ROWS = 2_097_152
#: Rows of a row group: what a reader that looks for one moment must decode.
GROUP_ROWS = 65_536
#: Row groups of a block, within which rows may stand in another order than the log's.
BLOCK_GROUPS = 8
#: Columns that go up row by row: their differences take next to nothing, and a quarter of the time to read.
_RISING = ("row", "arrival")


def day_text(day: int) -> str:
    """Days since 1970 → ``2026-11-21``."""
    return datetime.fromtimestamp(day * 86400, UTC).date().isoformat()


def day_writer(file: Path | IO[bytes], schema: pa.Schema) -> pq.ParquetWriter:
    """Writes a day's file."""
    others = [
        f"{field.name}.list.element" if pa.types.is_list(field.type) else field.name
        for field in schema
        if field.name not in _RISING
    ]
    encodings = {name: "DELTA_BINARY_PACKED" for name in _RISING if name in schema.names}
    return pq.ParquetWriter(
        file, schema, compression="zstd", use_dictionary=others, column_encoding=encodings
    )


def fitted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with columns that it lacks NULL: an older or newer skerry knew other attributes."""
    if table.schema.equals(schema):
        return table
    columns = [
        table.column(field.name).cast(field.type)
        if field.name in table.column_names
        else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)

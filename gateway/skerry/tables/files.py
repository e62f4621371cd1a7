"""What CSV, Parquet and SQLite files have: the names of their tables, and each table when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from skerry.tables import sqlite
from skerry.tables.columns import TableError

SUFFIXES = (".csv", ".parquet", *sqlite.SUFFIXES)
#: A table is held in memory.
ROWS_MAXIMUM = 5_000_000
#: A table by its name; reading it raises what is wrong with it alone.
Found = tuple[str, Callable[[], pa.Table]]


def tables_of(path: Path) -> Iterator[Found]:
    """The tables of a file, each to be read before the next is asked for. Raises what is wrong with the whole file."""
    match path.suffix.lower():
        case ".csv":
            found: Iterator[Found] = iter([(path.stem, partial(_csv, path))])
        case ".parquet":
            found = iter([(path.stem, lambda: pq.read_table(path))])
        case _:
            found = sqlite.tables_of(path, ROWS_MAXIMUM + 1)
    for name, read in found:
        yield name, partial(_bounded, name, read)


def _bounded(name: str, read: Callable[[], pa.Table]) -> pa.Table:
    table = read()
    if table.num_rows > ROWS_MAXIMUM:
        raise TableError(f"{name} has {table.num_rows} rows, and a table has {ROWS_MAXIMUM} at most")
    return table


def _csv(path: Path) -> pa.Table:
    # An empty field is NULL, "" a text.
    options = pa_csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False)
    return pa_csv.read_csv(path, convert_options=options)

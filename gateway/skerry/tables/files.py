"""What CSV, Parquet and SQLite files have: the names of their tables, and each table when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq

from skerry.tables import csv_files, sqlite
from skerry.tables.columns import Reading, TableError

SUFFIXES = (".csv", ".parquet", *sqlite.SUFFIXES)
#: A table is held in memory.
ROWS_MAXIMUM = 5_000_000
#: A table by its name; reading it raises what is wrong with it alone.
Found = tuple[str, Callable[[], Reading]]


def tables_of(path: Path) -> Iterator[Found]:
    """The tables of a file, each to be read before the next is asked for. Raises what is wrong with the whole file."""
    match path.suffix.lower():
        case ".csv":
            found: Iterator[Found] = iter([(path.stem, partial(csv_files.read, path))])
        case ".parquet":
            found = iter([(path.stem, lambda: Reading(pq.read_table(path)))])
        case _:
            found = sqlite.tables_of(path, ROWS_MAXIMUM + 1)
    for name, read in found:
        yield name, partial(_bounded, name, read)


def _bounded(name: str, read: Callable[[], Reading]) -> Reading:
    reading = read()
    if reading.table.num_rows > ROWS_MAXIMUM:
        raise TableError(f"{name} has {reading.table.num_rows} rows, and a table has {ROWS_MAXIMUM} at most")
    return reading

"""Rows of whole files: CSV whose first line names the columns, Parquet, and lines of JSON. Which it is, the file's name says."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from skerry.sources.stream_type import AddressError, Value

#: How names end.
SUFFIXES = (".csv", ".parquet", ".json", ".jsonl", ".ndjson")
_ROWS, _BYTES = 2048, 1 << 20


def rows_of(path: Path, begin: int = 0) -> Iterator[Value]:
    """The rows of a file, from this one on. Raises AddressError for what is no such file, OSError."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise AddressError(f"{path.name}: a file's name ends with {', '.join(SUFFIXES)}")
    try:
        if suffix == ".parquet":
            yield from _parquet(path, begin)
        elif suffix == ".csv":
            yield from islice(_csv(path), begin, None)
        else:
            with path.open("rb") as lines:
                yield from islice((line for line in lines if line.strip()), begin, None)
    except pa.ArrowException as error:
        raise AddressError(f"{path.name}: {' '.join(str(error).split())}") from None


def _parquet(path: Path, begin: int) -> Iterator[Value]:
    with pa.parquet.ParquetFile(path) as file:
        groups = list(range(file.num_row_groups))
        while groups and begin >= file.metadata.row_group(groups[0]).num_rows:
            begin -= file.metadata.row_group(groups.pop(0)).num_rows
        for batch in file.iter_batches(_ROWS, row_groups=groups):
            yield from batch.slice(min(begin, batch.num_rows)).to_pylist()
            begin = max(0, begin - batch.num_rows)


def _csv(path: Path) -> Iterator[Value]:
    if not path.stat().st_size:
        return
    with path.open("rb") as names:
        header = pa.csv.open_csv(names, read_options=pa.csv.ReadOptions(block_size=_BYTES)).schema.names
    # Fields say what texts are.
    convert = pa.csv.ConvertOptions(
        column_types=dict.fromkeys(header, pa.string()), strings_can_be_null=True, null_values=[""]
    )
    with pa.csv.open_csv(path, convert_options=convert) as reader:
        for batch in reader:
            yield from batch.to_pylist()

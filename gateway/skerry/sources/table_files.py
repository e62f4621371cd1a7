"""Rows of whole files: CSV whose first line names the columns, Parquet, and lines of JSON. Which it is, the file's name says."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from skerry.sources.growing_file import check_file
from skerry.sources.lines import Lines
from skerry.sources.stream_type import AddressError, Unfit, Value

#: How names end.
SUFFIXES = (".csv", ".parquet", ".json", ".jsonl", ".ndjson")
_ROWS, _READ_BYTES = 2048, 1 << 18
#: Of a row that is none so many characters are shown.
_SHOWN = 1024


def rows_of(path: Path, begin: int = 0) -> Iterator[Value]:
    """The rows of a file, from this one on; those that are none are counted among them. Raises AddressError for what is no such file,
    OSError."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise AddressError(f"{path.name}: a file's name ends with {', '.join(SUFFIXES)}")
    check_file(path)
    if suffix == ".parquet":
        yield from _parquet(path, begin)
    else:
        yield from islice(_csv(path) if suffix == ".csv" else _lines(path), begin, None)


def _parquet(path: Path, begin: int) -> Iterator[Value]:
    path.stat()
    try:
        with pa.parquet.ParquetFile(path) as file:
            groups = list(range(file.num_row_groups))
            while groups and begin >= file.metadata.row_group(groups[0]).num_rows:
                begin -= file.metadata.row_group(groups.pop(0)).num_rows
            for batch in file.iter_batches(_ROWS, row_groups=groups):
                yield from _objects(batch.slice(min(begin, batch.num_rows)))
                begin = max(0, begin - batch.num_rows)
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        # Of one that is damaged inside no more is said than that.
        raise AddressError(f"{path.name}: {' '.join(str(error).split())}") from None


def _objects(batch: pa.RecordBatch) -> Iterator[Value]:
    """Its rows, with times to the microsecond."""
    columns = [
        column.cast(pa.timestamp("us", column.type.tz), safe=False) if _is_finer(column.type) else column
        for column in batch.columns
    ]
    batch = pa.RecordBatch.from_arrays(columns, batch.schema.names)
    try:
        yield from batch.to_pylist()
    except (ValueError, OverflowError):
        for row in range(batch.num_rows):
            try:
                yield from batch.slice(row, 1).to_pylist()
            except (ValueError, OverflowError) as error:
                yield Unfit(b"", f"it has a value that is none, {error}")


def _is_finer(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind)) and kind.unit == "ns"


def _lines(path: Path) -> Iterator[Value]:
    lines = Lines()
    with path.open("rb") as file:
        while data := file.read(_READ_BYTES):
            yield from lines.take(data)
        yield from lines.take(b"\n")


def _csv(path: Path) -> Iterator[Value]:
    with path.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
        text = _Text(file)
        rows = csv.reader(text)
        try:
            names = next(rows, [])
        except csv.Error as error:
            raise AddressError(f"{path.name}: its first line names no columns, {error}") from None
        while True:
            try:
                cells = next(rows)
                why = text.wrong()
                if not cells:
                    continue
                if why is None and len(cells) != len(names):
                    why = f"it has {len(cells)} values for {len(names)} columns"
            except StopIteration:
                return
            except csv.Error as error:
                cells, why = [], f"it is no line of CSV, {error}"
                text.wrong()
            if why is None:
                full = cells if "" not in cells else [cell or None for cell in cells]
                yield dict(zip(names, full, strict=True))
            else:
                yield Unfit(",".join(cells)[:_SHOWN].encode(errors="surrogateescape"), why)


class _Text:
    """Lines, of which a row may have several; what has been read since it was asked last may be no UTF-8."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self._wrong: str | None = None

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            if not line.isascii():
                try:
                    line.encode()
                except UnicodeEncodeError as error:
                    self._wrong = f"it is no UTF-8, from character {error.start} on"
            yield line

    def wrong(self) -> str | None:
        found, self._wrong = self._wrong, None
        return found

"""What files of the past hold of sources that are no motes: rows of the log as tables, by stream and schema.

A column is named as users name it, but for the history's own: ``row``, ``time``, ``arrival``, ``source``, and what begins with _, which
have one _ more.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from skerry.execution.source_rows import SourceRows, read
from skerry.planner.model import source_plans as plans
from skerry.storage.log.record import Records
from skerry.storage.log.source_batches import SourceFiles

ROW, TIME, ARRIVAL, SOURCE = "row", "time", "arrival", "source"
_OWN = {plans.TIME: TIME, plans.ARRIVAL: ARRIVAL, plans.SOURCE: SOURCE}
_PREFIX = "source-"


def kept(name: str) -> str:
    """A column of a stream's batches, as files call it."""
    if name in _OWN:
        return _OWN[name]
    return f"_{name}" if name.startswith("_") or name in (ROW, *_OWN.values()) else name


def begins(stream: int) -> str:
    """How the names of a stream's directories begin."""
    return f"{_PREFIX}{stream - plans.STREAMS}-"


def is_of_sources(directory: str) -> bool:
    """Whether a directory has such rows."""
    return directory.startswith(_PREFIX)


def tables(
    start: int, records: Records, log: Path, described: dict[str, str]
) -> Iterator[tuple[str, pa.Table]]:
    """The rows of sources among records from number ``start`` on, in the order of the log, by directory, without answers of joins that have
    no name.
    ``log``: its directory; ``described`` gets what directories hold."""
    numbers = np.arange(start, start + len(records), dtype=np.int64)
    for directory, parts in _by_schema(SourceFiles(log), numbers, records).items():
        table = pa.concat_tables(parts)
        names = [name for name in table.column_names if name not in (ROW, *_OWN.values())]
        described.setdefault(directory, f"rows of a table of sensors: {', '.join(names)}")
        yield directory, table


def _by_schema(files: SourceFiles, numbers: np.ndarray, records: Records) -> dict[str, list[pa.Table]]:
    found: dict[str, list[pa.Table]] = {}
    for number, stream, batch in files.tables(numbers, records):
        if batch.num_rows and not plans.ANSWERS <= stream < plans.MADE:
            table = batch.rename_columns([kept(name) for name in batch.column_names])
            table = table.add_column(0, ROW, pa.array(np.full(batch.num_rows, number, np.int64)))
            text = ",".join(sorted(f"{field.name} {field.type}" for field in table.schema))
            found.setdefault(f"{begins(stream)}{zlib.crc32(text.encode()):08x}", []).append(
                table.replace_schema_metadata(None)
            )
    return found


def rows_of_log(log: Path, numbers: np.ndarray, records: Records, stream: int) -> SourceRows | None:
    """The rows of one stream among some records; None: there are none."""
    mine = records["stream"] == stream
    found = read(SourceFiles(log), numbers[mine], records[mine]).get(stream)
    return found if found is not None and len(found.numbers) else None

"""The past as one relation for DuckDB: files and the newest part of the log.

:data:`~skerry.storage.history.engine.expressions.PAST` has ``row``, ``session``, ``network_ms``, ``time_us`` (UTC) and the columns that a
query reads, as files have them: what motes sent as integers as such, other numbers as floating-point.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skerry.storage.history import layout
from skerry.storage.history.compaction import tables
from skerry.storage.history.damaged_files import naming
from skerry.storage.history.engine.expressions import NETWORK_MS, PAST, ROW, SESSION, TIME_US
from skerry.storage.history.engine.messages import ClusterPart, Sources
from skerry.storage.log import stream_log
from skerry.storage.log.dating import shifted

_KEYS = (ROW, SESSION, NETWORK_MS)


def open_past(
    connection: duckdb.DuckDBPyConnection, sources: Sources, names: Sequence[str], called: str = PAST
) -> None:
    """Make the relation in a connection. Raises DamagedError, FileNotFoundError, RowsGoneError."""
    parts: list[str] = []
    wanted = [*_KEYS, *(name for name in names if name not in _KEYS)]
    parts += _files_selects(sources, wanted)
    connection.register(f"{called}_newest", newest(sources))
    parts.append(f"SELECT {_listed(wanted)} FROM {called}_newest" + _within(sources, sources.end))
    connection.execute(f'CREATE OR REPLACE TEMP VIEW "{called}" AS ' + " UNION ALL ".join(parts))


def cluster_parts(sources: Sources, names: Sequence[str], file: Path) -> tuple[ClusterPart, ...]:
    """The relation for Spark; what is in no file yet goes into ``file``. Raises as :func:`open_past`."""
    wanted = [*_KEYS, *(name for name in names if name not in _KEYS)]
    pq.write_table(newest(sources), file)
    footers = {one: _footer(one.path, *_version(one.path)) for one in sources.files}
    parts = []
    for whole in (True, False):
        files = [one for one in sources.files if whole == (one.whole and footers[one].rows == one.rows)]
        # Each kind of file by itself: what one lacks the others may have.
        for there in {footers[one].names for one in files}:
            paths = tuple(str(Path(one.path).resolve()) for one in files if footers[one].names == there)
            condition = "" if whole else _spark_within(sources, min(sources.end, sources.compacted))
            parts.append(ClusterPart(paths, condition, _spark_columns(wanted, there)))
    return (*parts, ClusterPart((str(file),), _spark_within(sources, sources.end), _spark_columns(wanted)))


def _spark_within(sources: Sources, end: int) -> str:
    return (
        f"`time` >= timestamp_micros({sources.since_us}) AND `{ROW}` >= {sources.first} AND `{ROW}` < {end}"
    )


def _spark_columns(names: Sequence[str], there: Collection[str] | None = None) -> tuple[str, ...]:
    columns = [
        f"`{name}`" if there is None or name in there else f"CAST(NULL AS BIGINT) AS `{name}`"
        for name in names
    ]
    return (*columns, f"unix_micros(`time`) AS `{TIME_US}`")


def newest(sources: Sources) -> pa.Table:
    """Rows that are in no file yet. Raises RowsGoneError."""
    begin = max(sources.first, sources.compacted)
    if begin >= sources.end:
        return layout.sensors_schema().empty_table()
    return _newest(sources.log, begin, sources.end, sources.streams, sources.shifts)


@lru_cache(maxsize=2)
def _newest(
    log: str, begin: int, end: int, streams: tuple[object, ...], shifts: tuple[tuple[int, int, int], ...]
) -> pa.Table:
    records = shifted(begin, stream_log.read(Path(log), begin, end), shifts)
    found = [table for name, table in tables(begin, records, streams, {}) if name == layout.SENSORS]  # type: ignore[arg-type]
    return found[0] if found else layout.sensors_schema().empty_table()


def _files_selects(sources: Sources, wanted: Sequence[str]) -> Iterator[str]:
    """Of files that are in question as a whole, and of the others. Raises DamagedError."""
    footers = {file: _footer(file.path, *_version(file.path)) for file in sources.files}
    for whole in (True, False):
        # One that has more rows by now is no longer in question as a whole.
        files = [file for file in sources.files if whole == (file.whole and footers[file].rows == file.rows)]
        if not files:
            continue
        there = set[str]().union(*(footers[file].names for file in files))
        uneven = ", union_by_name = true" if len({footers[file].names for file in files}) > 1 else ""
        paths = ", ".join("'" + file.path.replace("'", "''") + "'" for file in files)
        text = f"SELECT {_listed(wanted, there)} FROM read_parquet([{paths}]{uneven})"
        yield text if whole else text + _within(sources, min(sources.end, sources.compacted))


def _within(sources: Sources, end: int) -> str:
    return (
        f' WHERE "time" >= make_timestamptz({sources.since_us}) '
        f'AND "{ROW}" >= {sources.first} AND "{ROW}" < {end}'
    )


def _listed(names: Sequence[str], there: Collection[str] | None = None) -> str:
    # Files from before skerry kept a column lack it.
    columns = [
        f'"{name}"' if there is None or name in there else f'CAST(NULL AS BIGINT) AS "{name}"'
        for name in names
    ]
    return ", ".join([*columns, f'epoch_us("time") AS "{TIME_US}"'])


@dataclass(frozen=True)
class _Footer:
    """How many rows a file has, and which columns."""

    rows: int
    names: frozenset[str]


def versions(sources: Sources) -> list[tuple[int, int]]:
    """What is different once a file has been replaced. Raises FileNotFoundError."""
    return [_version(file.path) for file in sources.files]


def _version(file: str) -> tuple[int, int]:
    found = Path(file).stat()
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=4096)
def _footer(file: str, *version: int) -> _Footer:
    """Raises DamagedError."""
    del version
    with naming(Path(file)):
        found = pq.read_metadata(file)
        return _Footer(found.num_rows, frozenset(found.schema.to_arrow_schema().names))


def check_files(sources: Sources, names: Sequence[str]) -> None:
    """Read the files. Raises DamagedError for one that cannot be, FileNotFoundError."""
    for one in sources.files:
        with naming(Path(one.path)), pq.ParquetFile(one.path) as file:
            there = [column for column in (*_KEYS, "time", *names) if column in file.schema_arrow.names]
            for batch in file.iter_batches(columns=there):
                pc.count(batch.column(0))

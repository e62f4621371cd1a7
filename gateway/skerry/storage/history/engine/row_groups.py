"""Row groups of the past's files, and of the log's newest part as one more: which rows they may have, and some columns of those that they
do have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skerry.storage.history.damaged_files import naming
from skerry.storage.history.engine.expressions import ROW, SESSION
from skerry.storage.history.engine.messages import Sources
from skerry.storage.history.engine.sources import newest
from skerry.storage.history.layout import Int64
from skerry.storage.history.sorting import in_order

#: When rows were sampled, UTC; read in us.
SAMPLED = "time"
_LEAST, _MOST = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class RowGroup:
    """``path``: "" for the log's newest part; ``first``, ``last``: numbers of rows; ``session``: of all of them, None: that is to be seen;
    ``since_us``: none was sampled before, UTC."""

    path: str
    number: int
    first: int
    last: int
    session: int | None
    since_us: int


def row_groups(sources: Sources) -> list[RowGroup]:
    """Those that may have rows in question. Raises DamagedError, FileNotFoundError, RowsGoneError."""
    end = min(sources.end, sources.compacted)
    found = [
        group
        for file in sources.files
        for group in _of_file(file.path, Path(file.path).stat().st_mtime_ns)
        if group.last >= sources.first and group.first < end
    ]
    rows = newest(sources).column(ROW)
    if len(rows):
        found.append(RowGroup("", 0, rows[0].as_py(), rows[-1].as_py(), None, _LEAST))
    return found


def rows_of(sources: Sources, groups: Sequence[RowGroup], names: Sequence[str]) -> dict[str, Int64]:
    """Columns of those of their rows that are in question, by number; where all are of one session, that has one value only. Raises as
    :func:`row_groups`."""
    sessions = {group.session for group in groups}
    [session] = sessions if len(sessions) == 1 else [None]
    names = [name for name in names if name != SESSION or session is None]
    parts = [
        _columns(sources, path, list(some), names)
        for path, some in groupby(sorted(groups, key=lambda group: group.path), lambda group: group.path)
    ]
    columns = {name: _joined([part[name] for part in parts]) for name in names}
    rows = columns[ROW]
    if (rows[1:] < rows[:-1]).any():
        columns = _ordered(columns)
    return columns if session is None else {**columns, SESSION: np.array([session])}


def _columns(
    sources: Sources, path: str, groups: Sequence[RowGroup], names: Sequence[str]
) -> dict[str, Int64]:
    end = min(sources.end, sources.compacted) if path else sources.end
    whole = all(
        group.first >= sources.first and group.last < end and group.since_us >= sources.since_us
        for group in groups
    )
    read = [*names, *([SAMPLED] if not whole and SAMPLED not in names else [])]
    if path:
        with naming(Path(path)), pq.ParquetFile(path) as file:
            table = file.read_row_groups([group.number for group in groups], columns=read)
    else:
        table = newest(sources).select(read)
    columns = {name: _integers(table.column(name)) for name in read}
    if not whole:
        rows = columns[ROW]
        there = (rows >= sources.first) & (rows < end) & (columns[SAMPLED] >= sources.since_us)
        columns = {name: values[there] for name, values in columns.items()}
    return columns


def _ordered(columns: dict[str, Int64]) -> dict[str, Int64]:
    rows = columns[ROW]
    least = int(rows.min())
    if int(rows.max()) - least + 1 > len(rows):
        order = in_order([rows])
        return {name: values[order] for name, values in columns.items()}
    # None of their numbers is missing: each says where its row stands.
    places, found = rows - least, {ROW: np.arange(least, least + len(rows))}
    for name, values in columns.items():
        if name != ROW:
            found[name] = np.empty_like(values)
            found[name][places] = values
    return found


def _integers(column: pa.ChunkedArray) -> Int64:
    found: Int64 = column.cast(pa.int64()).to_numpy()
    return found


def _joined(parts: Sequence[Int64]) -> Int64:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


@lru_cache(maxsize=4096)
def _of_file(path: str, version: int) -> tuple[RowGroup, ...]:
    del version
    with naming(Path(path)):
        found = pq.read_metadata(path)
    places = {found.schema.column(i).path: i for i in range(found.num_columns)}
    groups = []
    for number in range(found.num_row_groups):
        group = found.row_group(number)
        bounds = {name: _bounds(group.column(places[name])) for name in (ROW, SESSION)}
        [first, last], [least, most] = bounds[ROW], bounds[SESSION]
        since = _bounds(group.column(places[SAMPLED]))[0]
        groups.append(RowGroup(path, number, first, last, least if least == most else None, since))
    return tuple(groups)


def _bounds(column: pq.ColumnChunkMetaData) -> tuple[int, int]:
    """The least and the greatest value, of a moment in us."""
    statistics: Any = column.statistics
    if statistics is None or not statistics.has_min_max:
        return _LEAST, _MOST
    return _integer(statistics.min_raw), _integer(statistics.max_raw)


def _integer(value: Any) -> int:
    return int(value)

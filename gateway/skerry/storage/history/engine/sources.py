"""The past as one relation for DuckDB: files and the newest part of the log.

:data:`~skerry.storage.history.engine.expressions.PAST` has ``row``, ``session``, ``network_ms``, ``time_us`` (UTC) and the columns that a
query reads, as files have them: what motes sent as integers as such, other numbers as floating-point.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
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
from skerry.storage.history.engine.expressions import ALONE, NETWORK_MS, OTHERS, PAST, ROW, SESSION, TIME_US
from skerry.storage.history.engine.messages import ClusterPart, SourceFile, Sources
from skerry.storage.history.samples_apart import SamplesApart, Sessions
from skerry.storage.log import stream_log
from skerry.storage.log.dating import shifted

_KEYS = (ROW, SESSION, NETWORK_MS)


@dataclass(frozen=True)
class _Part:
    """Files that are read alike. ``bounded``: some of their rows may not be in question; ``zones``: what must hold of session and network
    time, or, ``outside``, must not."""

    files: tuple[SourceFile, ...]
    bounded: bool
    zones: Sessions = ()
    outside: bool = False

    def condition(self, sources: Sources, moment: str, quote: str) -> str:
        """In SQL; "": none. ``moment`` makes a time of UTC in us."""
        terms = _within(sources, min(sources.end, sources.compacted), moment, quote) if self.bounded else []
        if self.zones:
            session, network = (f"{quote}{name}{quote}" for name in (SESSION, NETWORK_MS))
            inside = " OR ".join(
                f"({session} = {of} AND {network} >= {least} AND {network} <= {most})"
                for of, least, most in self.zones
            )
            terms.append(f"NOT ({inside})" if self.outside else f"({inside})")
        return " AND ".join(terms)


#: How DuckDB and Spark make a time of UTC in us, and quote names.
_DUCKDB, _SPARK = ("make_timestamptz", '"'), ("timestamp_micros", "`")


def open_past(
    connection: duckdb.DuckDBPyConnection, sources: Sources, names: Sequence[str], called: str = PAST
) -> None:
    """Make the relation in a connection. Raises DamagedError, FileNotFoundError, RowsGoneError."""
    _open(connection, sources, names, called, _parts(sources.files), with_newest=True)


def open_readings(
    connection: duckdb.DuckDBPyConnection, sources: Sources, names: Sequence[str], period_ms: int
) -> None:
    """Make the relations for epochs of so many ms. Raises as :func:`open_past`."""
    alone, others = _by_epochs(sources, period_ms)
    _open(connection, sources, names, ALONE, alone, with_newest=False)
    _open(connection, sources, names, OTHERS, others, with_newest=True)


def cluster_past(sources: Sources, names: Sequence[str], file: Path) -> tuple[ClusterPart, ...]:
    """:func:`open_past` for Spark; what is in no file yet goes into ``file``."""
    return _for_cluster(sources, names, _parts(sources.files), file, with_newest=True)


def cluster_readings(
    sources: Sources, names: Sequence[str], period_ms: int, file: Path
) -> dict[str, tuple[ClusterPart, ...]]:
    """:func:`open_readings` for Spark."""
    alone, others = _by_epochs(sources, period_ms)
    return {
        ALONE: _for_cluster(sources, names, alone, file, with_newest=False),
        OTHERS: _for_cluster(sources, names, others, file, with_newest=True),
    }


def _open(
    connection: duckdb.DuckDBPyConnection,
    sources: Sources,
    names: Sequence[str],
    called: str,
    parts: Sequence[_Part],
    *,
    with_newest: bool,
) -> None:
    wanted = [*_KEYS, *(name for name in names if name not in _KEYS)]
    selects = []
    for part in parts:
        there = [_footer_of(file).names for file in part.files]
        uneven = ", union_by_name = true" if len(set(there)) > 1 else ""
        paths = ", ".join("'" + file.path.replace("'", "''") + "'" for file in part.files)
        text = f"SELECT {_listed(wanted, frozenset().union(*there))} FROM read_parquet([{paths}]{uneven})"
        condition = part.condition(sources, *_DUCKDB)
        selects.append(f"{text} WHERE {condition}" if condition else text)
    recent = newest(sources)
    # Of a relation of files alone DuckDB needs no Python to read it.
    if not selects or (with_newest and recent.num_rows):
        connection.register(f"{called}_newest", recent)
        condition = " AND ".join(_within(sources, sources.end, *_DUCKDB)) if with_newest else "FALSE"
        selects.append(f"SELECT {_listed(wanted)} FROM {called}_newest WHERE {condition}")
    connection.execute(f'CREATE OR REPLACE TEMP VIEW "{called}" AS ' + " UNION ALL ".join(selects))


def _for_cluster(
    sources: Sources, names: Sequence[str], parts: Sequence[_Part], file: Path, *, with_newest: bool
) -> tuple[ClusterPart, ...]:
    wanted = [*_KEYS, *(name for name in names if name not in _KEYS)]
    pq.write_table(newest(sources), file)
    found = []
    for part in parts:
        # Each kind of file by itself: what one lacks the others may have.
        for there in {_footer_of(one).names for one in part.files}:
            paths = tuple(
                str(Path(one.path).resolve()) for one in part.files if _footer_of(one).names == there
            )
            found.append(ClusterPart(paths, part.condition(sources, *_SPARK), _spark_columns(wanted, there)))
    condition = " AND ".join(_within(sources, sources.end, *_SPARK)) if with_newest else "FALSE"
    return (*found, ClusterPart((str(file),), condition, _spark_columns(wanted)))


def _parts(files: Sequence[SourceFile]) -> list[_Part]:
    """Those that are in question as a whole, and the others."""
    found = []
    for bounded in (False, True):
        mine = tuple(file for file in files if bounded != _is_whole(file))
        if mine:
            found.append(_Part(mine, bounded))
    return found


def _by_epochs(sources: Sources, period_ms: int) -> tuple[list[_Part], list[_Part]]:
    """Rows of which each is the only one of its mote in its epoch, and others. Samples of one file lie so far apart that there is one in
    an epoch, or it is among the others; so are epochs that two files have."""
    if any(not file.sessions for file in sources.files):
        return [], _parts(sources.files)
    apart = [file for file in sources.files if file.apart >= period_ms and _has_its_rows(file)]
    zones = _shared_epochs(sources, period_ms)
    alone, others = (
        [],
        _parts([file for file in sources.files if file.path not in {one.path for one in apart}]),
    )
    alone += _parts([file for file in apart if not zones.get(file.path)])
    for file in apart:
        mine = tuple(sorted(zones.get(file.path, ())))
        if mine:
            alone.append(_Part((file,), not _is_whole(file), mine, outside=True))
            others.append(_Part((file,), not _is_whole(file), mine))
    return alone, others


def _shared_epochs(sources: Sources, period_ms: int) -> dict[str, set[tuple[int, int, int]]]:
    """By file: sessions and network times of the epochs of which another file, or the log's newest part, may have rows, too."""
    table = newest(sources)
    recent = SamplesApart()
    recent.add(table)
    spans = [(file.path, file.sessions) for file in sources.files] + [("", recent.found()[1])]
    by_session: dict[int, list[tuple[int, int, str]]] = {}
    for path, sessions in spans:
        for session, least, most in sessions:
            by_session.setdefault(session, []).append((least // period_ms, most // period_ms, path))
    found: dict[str, set[tuple[int, int, int]]] = {}
    for session, of_files in by_session.items():
        of_files.sort()
        for i, (_, end, path) in enumerate(of_files):
            for begin, other_end, other in of_files[i + 1 :]:
                if begin > end:
                    break
                last = min(end, other_end)
                zone = session, begin * period_ms, (last + 1) * period_ms - 1
                found.setdefault(path, set()).add(zone)
                found.setdefault(other, set()).add(zone)
    return found


def _has_its_rows(file: SourceFile) -> bool:
    # It may have been replaced by one that has more.
    return _footer_of(file).rows == file.rows


def _is_whole(file: SourceFile) -> bool:
    return file.whole and _has_its_rows(file)


def _footer_of(file: SourceFile) -> _Footer:
    return _footer(file.path, *_version(file.path))


def _within(sources: Sources, end: int, moment: str, quote: str) -> list[str]:
    row = f"{quote}{ROW}{quote}"
    return [
        f"{quote}time{quote} >= {moment}({sources.since_us})", f"{row} >= {sources.first}", f"{row} < {end}",
    ]  # fmt: skip


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

"""Data directories as a gateway leaves them, for those who read them beside it."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from gateway.tests.pasts import ended, plain_records, shuffled, stream_of
from pyspark_skerry.columns import spark_schema
from pyspark_skerry.options import reading_of
from pyspark_skerry.readers import PastReader
from skerry.service.queries import UserQuery
from skerry.storage.history import compaction
from skerry.storage.history.retention import Retention
from skerry.storage.history.store import History
from skerry.storage.log.record import Kind, Records
from skerry.storage.log.stream_log import StreamLog
from skerry.storage.state.published import Publisher
from skerry.streams.stream import Stream

#: Three streams of one session: motes' readings, those from 15 min on, and averages.
PLAIN = stream_of(1, "SELECT nodeid, temp, light FROM sensors SAMPLE PERIOD 5 s")
NEXT = stream_of(2, "SELECT nodeid, temp FROM sensors SAMPLE PERIOD 10 s", since_ms=900_000)
AVERAGE = stream_of(3, "SELECT AVG(temp), COUNT(*) FROM sensors SAMPLE PERIOD 30 s")
STREAMS = [ended(PLAIN, 900_000), NEXT, AVERAGE]
#: So many of their rows are in files.
COMPACTED = 800
#: A schema of numbers alone.
ROW = StructType().add("row", "long")


class Written:
    """What a gateway of some roots has written, and goes on writing."""

    def __init__(self, data: Path, streams: Sequence[Stream], segment_rows: int = 1000) -> None:
        self.data, self.streams = data, list(streams)
        data.mkdir(exist_ok=True)
        self._publisher = Publisher(data)
        self._everything = True
        self.remember()
        self.log = StreamLog(data, segment_rows)
        self.history = History(data)

    def remember(self, queries: Sequence[UserQuery] = ()) -> None:
        """Publish the streams, and users' queries."""
        streams = {stream.number: json.dumps(stream.to_dict()) for stream in self.streams}
        published = {query.id: query.published() for query in queries}
        self._publisher.publish(streams, published, everything=self._everything)
        self._everything = False

    def append(self, records: Records) -> int:
        """Rows come."""
        return self.log.append(records)

    def compact(self, end: int | None = None) -> None:
        """Bring rows into the files."""
        self.history.compact(self.log.path, self.log.rows if end is None else end, self.streams)

    def keep(self, now: float | None = None, **kept: Any) -> None:
        """Leave away what is too old then, UTC in s, or too much: see :class:`Retention`."""
        self.history.retention = dataclasses.replace(Retention(), **kept)
        self.history.retain(self.log, self.history.manifest.rows, now)

    def close(self) -> None:
        """Release it."""
        self.log.close()


def two_days(data: Path) -> Written:
    """Two days, of which all is compacted but the last rows; of some epochs two revisions."""
    made = Written(data, STREAMS)
    revised = plain_records(AVERAGE, range(3, 6), [0], seed=9)
    revised["revision"], revised["kind"] = 1, Kind.REVISED
    averages = plain_records(AVERAGE, range(50), [0])
    averages["kind"], averages["motes"] = Kind.TOLD, 3
    parts = plain_records(AVERAGE, range(50), [1])
    parts["kind"] = Kind.PART
    rows = [
        plain_records(PLAIN, range(185), [1, 2, 3]), plain_records(NEXT, range(85, 180), [1, 2, 3]), averages, revised, parts,
    ]  # fmt: skip
    made.append(shuffled(rows))
    # Days have several files.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compaction, "FILE_ROWS", 150)
        for end in range(COMPACTED // 8, COMPACTED + 1, COMPACTED // 8):
            made.compact(end)
    return made


def rows_of(written: Written | Path, names: Sequence[str], **options: str) -> list[tuple[Any, ...]]:
    """All rows that there are, read in this process."""
    data = written.data if isinstance(written, Written) else written
    given = {"data": str(data)} | {name.lower(): value for name, value in options.items()}
    fields = reading_of(given, None).schema()
    schema = spark_schema(pa.schema([fields.field(name) for name in names]))
    reader = PastReader(reading_of(given, schema))
    return [
        tuple(row[name] for name in names)
        for part in reader.partitions()
        for batch in reader.read(part)
        for row in batch.to_pylist()
    ]


def numbers(written: Written | Path, **options: str) -> list[int]:
    """Of all rows of sensors."""
    return [row for (row,) in rows_of(written, ["row"], stream="sensors", **options)]


def whole(written: Written, directory: Path, stream: str) -> duckdb.DuckDBPyRelation:
    """What the files are once all is compacted, for DuckDB."""
    copy = directory / "copy"
    if not copy.exists():
        shutil.copytree(written.data, copy)
        made = Written(copy, written.streams)
        made.compact()
        made.close()
    return duckdb.sql(f"SELECT * FROM '{copy}/history/{stream}/*.parquet' ORDER BY row")


def plain(rows: list[Any]) -> list[tuple[Any, ...]]:
    """Rows of Spark's or DuckDB's."""
    return sorted((tuple(map(in_utc, row)) for row in rows), key=lambda row: row[0])


def in_utc(value: object) -> object:
    """Times in one zone; what Spark writes into files bears none."""
    if not isinstance(value, datetime):
        return value
    return value.astimezone(UTC) if value.tzinfo is not None else value.replace(tzinfo=UTC)

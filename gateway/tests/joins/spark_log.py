"""A log of several streams as files, and Spark's view of it: what tests and benchmarks of the operator on Spark read.

A file has the rows of a range of numbers, and in its schema the greatest time before it, so that whoever reads it tells late rows without
those before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from skerry.joins.buckets import Buckets
from skerry.joins.executor import INPUT, input_rows
from skerry.joins.group import Group
from skerry.joins.intake import Intake
from skerry.joins.join import Join
from skerry.joins.progress import AHEAD_US, NEVER, Progress
from skerry.joins.row_windows import ENDED_US
from skerry.joins.rows import Algorithm

GREATEST = b"greatest"


def write_log(path: Path, tables: Mapping[str, pa.Table], rows: int) -> int:
    """All streams' rows, so many numbers a file; how many files."""
    path.mkdir(parents=True, exist_ok=True)
    end = 1 + max(int(table.column("number").to_numpy().max(initial=-1)) for table in tables.values())
    greatest = NEVER
    for file, first in enumerate(range(0, end, rows)):
        for stream, table in tables.items():
            number = table.column("number").to_numpy()
            low, high = np.searchsorted(number, [first, first + rows])
            part = table.slice(low, high - low).replace_schema_metadata({GREATEST: str(greatest).encode()})
            with pa.ipc.new_file(path / f"{file:06d}-{stream}.arrow", part.schema) as writer:
                writer.write_table(part)
        greatest = max([greatest, *(_greatest(table, first, first + rows) for table in tables.values())])
    return -(-end // rows)


def _greatest(table: pa.Table, first: int, end: int) -> int:
    number, time = table.column("number").to_numpy(), table.column("time").to_numpy()
    clock = table.column("clock").to_numpy()
    low, high = np.searchsorted(number, [first, end])
    own = time[low:high]
    return int(own[own <= clock[low:high] + AHEAD_US].max(initial=NEVER))


class FilePartition(InputPartition):
    """One file."""

    def __init__(self, file: int) -> None:
        super().__init__(file)
        self.file = file


class LogFilesReader(DataSourceStreamReader):
    """An offset is a number of files; ``step``: of a batch."""

    def __init__(self, group: Group, path: Path, files: int, step: int, buckets: int) -> None:
        self._group, self._path, self._files, self._step, self._count = group, path, files, step, buckets

    def initialOffset(self) -> dict[str, int]:
        """None of them."""
        return {"file": 0}

    def latestOffset(self, start: dict[str, int], limit: object) -> dict[str, int]:
        """A batch further."""
        del limit
        return {"file": min(int(start["file"]) + self._step, self._files)}

    def getDefaultReadLimit(self) -> Any:
        """Batches are as long as they are."""
        from pyspark.sql.streaming.datasource import ReadAllAvailable  # noqa: PLC0415 (workers import it)

        return ReadAllAvailable()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """A task for each file."""
        return [FilePartition(file) for file in range(int(start["file"]), int(end["file"]))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Blocks by bucket; behind the last file all streams have ended."""
        assert isinstance(partition, FilePartition)
        tables = {}
        for stream in self._group.schemas:
            with pa.ipc.open_file(self._path / f"{partition.file:06d}-{stream}.arrow") as reader:
                tables[stream] = reader.read_all()
        greatest = int(next(iter(tables.values())).schema.metadata[GREATEST])
        progress = Progress(self._group.lateness_us, greatest)
        rows = Intake(self._group, progress).take(tables)
        if partition.file == self._files - 1:
            progress.greatest_us = ENDED_US + progress.lateness_us
        made = list(
            input_rows(self._group, Buckets(self._group, self._count), partition.file, rows, progress)
        )
        kinds = {"INT": pa.int32(), "BIGINT": pa.int64(), "BINARY": pa.binary()}
        fields = [part.split() for part in INPUT.split(", ")]
        columns = [
            pa.array(column, kinds[kind])
            for column, (_, kind) in zip(zip(*made, strict=True), fields, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, [name for name, _ in fields])


def source_of(
    join: Join,
    schemas: Mapping[str, pa.Schema],
    algorithm: Algorithm,
    path: Path,
    files: int,
    step: int,
    buckets: int,
) -> tuple[Group, type[DataSource]]:
    """A group of one join named 'join', and its source ``join_log``."""
    group = Group(
        {name: schemas[name] for name in {**dict.fromkeys(join.streams.values())}},
        algorithm,
        join.lateness_us,
    )
    group.add("join", join)

    class LogFiles(DataSource):
        @classmethod
        def name(cls) -> str:
            return "join_log"

        def schema(self) -> str:
            return INPUT

        def streamReader(self, schema: object) -> DataSourceStreamReader:
            del schema
            return LogFilesReader(group, path, files, step, buckets)

    return group, LogFiles

"""Spark's view of the log: a Python Data Source whose offsets are row numbers. Records travel as :mod:`skerry.spark.blocks`."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from skerry.spark.blocks import packed
from skerry.storage.log import stream_log
from skerry.storage.log.partition import Partition

#: Records of one block, and of one trigger of the streaming query at most.
BLOCK = 8192
BATCH = 524_288
#: From so many records on, a batch of one root is read in two parts.
SHARED = 65536

#: A block: the bytes of records with their numbers, packed; how many records they are, and how many the whole batch has.
SCHEMA = StructType(
    [
        StructField(name, kind())
        for name, kind in (("records", BinaryType), ("count", LongType), ("whole", LongType))
    ]
)


class UnreadableError(Exception):
    """A worker does not see the rows that are there."""


class LogPartition(InputPartition):
    """The rows ``start`` .. ``end`` - 1 of a partition of the log, ``count`` of a batch of ``whole``."""

    def __init__(self, partition: Partition, start: int, end: int, whole: int = 0) -> None:
        super().__init__((start, end))
        self.partition, self.start, self.end = partition, start, end
        self.count = partition.count(start, end)
        self.whole = whole


class LogReader(DataSourceStreamReader):
    """Plans ranges of row numbers; reading one twice gives the same."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def initialOffset(self) -> dict[str, int]:
        """The first row that the log has: older ones may have been dropped."""
        return {"row": stream_log.first(self._path)}

    def getDefaultReadLimit(self) -> ReadLimit:
        """Batches stay small enough for one collect."""
        return ReadMaxRows(BATCH)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """As far as the log goes, within the limit."""
        end = stream_log.length(self._path)
        if isinstance(limit, ReadMaxRows):
            end = min(end, int(start["row"]) + limit.max_rows)
        return {"row": end}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """One for each root that has rows in the batch; of a root with many two, so that two workers share them."""
        # What has left the log has been through the proxy, though Spark may not have noted so before a crash.
        first, last = max(int(start["row"]), stream_log.first(self._path)), int(end["row"])
        parts = [LogPartition(partition, first, last) for partition in stream_log.partitions(self._path)]
        if len(parts) == 1 and parts[0].count > SHARED:
            middle = (first + last) // 2
            [only] = parts
            parts = [LogPartition(only.partition, first, middle), LogPartition(only.partition, middle, last)]
        if stream_log.length(self._path) < last:
            # Its directory is away: let who reads say so, in place of passing the rows over.
            parts = [LogPartition(Partition(self._path), first, last)]
            parts[0].count = last - first
        whole = sum(part.count for part in parts)
        for part in parts:
            part.whole = whole
        return [part for part in parts if part.count]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Arrow batches of the range, one block each. Raises UnreadableError, whereupon Spark asks another worker."""
        assert isinstance(partition, LogPartition)
        seen = 0
        for start in range(partition.start, partition.end, BLOCK):
            rows = partition.partition.read(start, min(start + BLOCK, partition.end))
            seen += len(rows)
            if len(rows):
                block = {"records": [packed(rows)], "count": [len(rows)], "whole": [partition.whole]}
                yield pa.RecordBatch.from_pydict(block)
        # A worker on another machine may see an older state of a shared directory, or another directory.
        if seen < partition.count:
            raise UnreadableError(
                f"of rows {partition.start} to {partition.end - 1} {partition.count} are in {partition.partition.path}, and {seen} of "
                f"them there on {socket.gethostname()}: every worker must see the gateway's data directory at the same path"
            )


class LogSource(DataSource):
    """``spark.readStream.format("skerry_log").option("path", …)``."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "skerry_log"

    def schema(self) -> StructType:
        """See :data:`SCHEMA`."""
        return SCHEMA

    def streamReader(self, schema: StructType) -> LogReader:
        """For readStream."""
        del schema
        return LogReader(self.options["path"])

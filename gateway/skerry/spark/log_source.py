"""Spark's view of the log: a Python Data Source that matches rows against the index of all users where it reads them, in executors.

An offset is a row number and a version of the index, so that a batch is matched against the same one however often it is read. What was
matched travels as :mod:`skerry.execution.blocks`.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from skerry.execution.blocks import COLUMNS, Extent, blocks_of
from skerry.execution.users_index import UsersIndex
from skerry.spark import index_file
from skerry.spark.index_file import IndexReader
from skerry.storage.log import record, stream_log
from skerry.storage.log.partition import Partition
from skerry.tables.pairs import Pairing
from skerry.tables.versions import DIRECTORY as TABLES
from skerry.tables.versions import TableVersions

#: Records of one trigger of the streaming query at most.
BATCH = 524_288
#: From so many records on, a batch of one root is read in two parts.
SHARED = 65536

_TYPES = {pa.int64(): LongType, pa.binary(): BinaryType}
#: See :data:`skerry.execution.blocks.COLUMNS`.
SCHEMA = StructType([StructField(name, _TYPES[kind]()) for name, kind in COLUMNS.items()])
#: By directory: what this process has loaded of the users' index.
_indexes: dict[Path, tuple[IndexReader, TableVersions]] = {}


class UnreadableError(Exception):
    """A worker does not see the rows that are there."""


class LogPartition(InputPartition):
    """The rows ``start`` .. ``end`` - 1 of a partition of the log, ``count`` of a batch of ``whole``, to be matched against the users'
    index as of ``version``; it is the batch's partition ``number``. ``batch``: the batch's own first row, and the one behind its last."""

    def __init__(self, partition: Partition, start: int, end: int, batch: tuple[int, int]) -> None:
        super().__init__((start, end))
        self.partition, self.start, self.end, self.batch = partition, start, end, batch
        self.count = partition.count(start, end)
        self.whole = self.version = self.number = 0


class LogReader(DataSourceStreamReader):
    """Plans ranges of row numbers; reading one twice gives the same. ``index``: the directory of the users' index."""

    def __init__(self, path: str, index: str) -> None:
        self._path, self._index = Path(path), Path(index)

    def initialOffset(self) -> dict[str, int]:
        """The first row that the log has: older ones may have been dropped."""
        return {"row": stream_log.first(self._path), "version": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        """Batches stay small enough for one collect."""
        return ReadMaxRows(BATCH)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """As far as the log goes, within the limit, and the users that there are now."""
        end = stream_log.length(self._path)
        if isinstance(limit, ReadMaxRows):
            end = min(end, int(start["row"]) + limit.max_rows)
        # Users who come and go are no batch.
        return {"row": end, "version": index_file.newest(self._index)} if end > int(start["row"]) else start

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """One for each root that has rows in the batch; of a root with many two, so that two workers share them."""
        # What has left the log has been through the proxy, though Spark may not have noted so before a crash.
        first, last = max(int(start["row"]), stream_log.first(self._path)), int(end["row"])
        batch = first, last
        parts = [
            LogPartition(partition, first, last, batch) for partition in stream_log.partitions(self._path)
        ]
        if len(parts) == 1 and parts[0].count > SHARED:
            middle = (first + last) // 2
            [only] = parts
            parts = [LogPartition(only.partition, *part, batch) for part in ((first, middle), (middle, last))]
        if stream_log.length(self._path) < last:
            # Its directory is away: let who reads say so, in place of passing the rows over.
            parts = [LogPartition(Partition(self._path), first, last, batch)]
            parts[0].count = last - first
        whole = sum(part.count for part in parts)
        # Of an index that was lost with the disk there may be no such version any more.
        version = min(int(end["version"]), index_file.newest(self._index))
        for number, part in enumerate(parts):
            part.whole, part.version, part.number = whole, version, number
        return [part for part in parts if part.count]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Blocks of what is matched. Raises UnreadableError, whereupon Spark asks another worker."""
        assert isinstance(partition, LogPartition)
        records = partition.partition.read(partition.start, partition.end)
        # A worker on another machine may see an older state of a shared directory, or another directory.
        if len(records) < partition.count:
            raise UnreadableError(
                f"of rows {partition.start} to {partition.end - 1} {partition.count} are in {partition.partition.path}, and "
                f"{len(records)} of them there on {socket.gethostname()}: every worker must see the gateway's data directory at the "
                "same path"
            )
        index = _index_at(self._index, partition.version)
        by_stream = record.by_stream(records["row"].astype(np.int64), records)
        streams = np.array([number for number, _, _ in by_stream], np.int64)
        first, end = partition.batch
        extent = Extent(first, end, partition.whole, partition.number, partition.count, index.version)
        yield from blocks_of(extent, streams, *index.match(by_stream))


def _index_at(path: Path, version: int) -> UsersIndex:
    """The users' index as of a version, and the readings of tables that rows may meet by now."""
    known = _indexes.get(path)
    if known is None:
        versions = TableVersions(path.parent / TABLES)
        known = IndexReader(path, lambda text: Pairing.from_text(text, versions).found), versions
        _indexes[path] = known
    reader, versions = known
    versions.refresh()
    return reader.at(version)


class LogSource(DataSource):
    """``spark.readStream.format("skerry_log").option("path", …).option("index", …)``."""

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
        return LogReader(self.options["path"], self.options["index"])

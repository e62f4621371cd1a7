"""Spark's view of the log: a Python Data Source whose offsets are row numbers.

Records travel as blocks, each the bytes of some thousand of them: Spark moves rows one by one, at a cost
for every column, and the proxy wants them as arrays anyway.
"""

from __future__ import annotations

import itertools
import socket
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from skerry.streams import log
from skerry.streams.record import RECORD, Block

#: Records of one block, and of one trigger of the streaming query at most.
BLOCK = 8192
BATCH = 524_288
#: From so many records on, a batch is read in two parts.
SHARED = 65536

#: A row of the stream: the number of a block's first record, and the records' bytes.
SCHEMA = StructType([StructField("row", LongType()), StructField("records", BinaryType())])


class UnreadableError(Exception):
    """A worker does not see the rows that are there."""


class LogPartition(InputPartition):
    """Rows ``start`` .. ``end`` - 1."""

    def __init__(self, start: int, end: int) -> None:
        super().__init__((start, end))
        self.start, self.end = start, end


class LogReader(DataSourceStreamReader):
    """Plans ranges of row numbers; reading one twice gives the same."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def initialOffset(self) -> dict[str, int]:
        """The first row that the log has: older ones may have been dropped."""
        return {"row": log.first(self._path)}

    def getDefaultReadLimit(self) -> ReadLimit:
        """Batches stay small enough for one collect."""
        return ReadMaxRows(BATCH)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """As far as the log goes, within the limit."""
        end = log.length(self._path)
        if isinstance(limit, ReadMaxRows):
            end = min(end, int(start["row"]) + limit.max_rows)
        return {"row": end}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """Two for a large batch, so that two workers share it."""
        # What has left the log has been through the proxy, though Spark may not have noted so before a crash.
        first, last = max(int(start["row"]), log.first(self._path)), int(end["row"])
        if last - first <= SHARED:
            return [LogPartition(first, last)]
        middle = (first + last) // 2
        return [LogPartition(first, middle), LogPartition(middle, last)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Arrow batches of the range, one block each. Raises UnreadableError, whereupon Spark asks another worker."""
        assert isinstance(partition, LogPartition)
        for start in range(partition.start, partition.end, BLOCK):
            end = min(start + BLOCK, partition.end)
            records = log.read(self._path, start, end)
            # A worker on another machine may see an older state of a shared directory, or another directory.
            if len(records) < end - start:
                raise UnreadableError(
                    f"rows {start + len(records)} to {end - 1} of {self._path} are not there on {socket.gethostname()}: "
                    "every worker must see the gateway's data directory at the same path"
                )
            yield pa.RecordBatch.from_pydict({"row": [start], "records": [records.tobytes()]})


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


def block_of(table: pa.Table) -> Block:
    """The records of a batch of the stream, in order. Raises ValueError if there is a gap between them, or some come twice."""
    rows, blocks = table.column("row").to_pylist(), list(table.column("records"))
    order = sorted(range(len(rows)), key=rows.__getitem__)
    parts = [np.frombuffer(blocks[i].as_buffer(), RECORD) for i in order]
    first = rows[order[0]] if order else 0
    begins = itertools.accumulate(map(len, parts), initial=first)
    if any(rows[i] != begin for i, begin in zip(order, begins, strict=False)):
        raise ValueError(
            f"the batch that begins at row {first} is not whole: its blocks begin at {sorted(rows)}"
        )
    records = parts[0] if len(parts) == 1 else np.concatenate([*parts, np.empty(0, RECORD)])
    return Block(first, records)

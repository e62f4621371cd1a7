"""Spark's view of the log: a Python Data Source whose offsets are row numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from skerry.streams import log
from skerry.streams.record import Records
from skerry_protocol.packets import FIELDS_MAXIMUM

#: Rows of one Arrow batch, and of one trigger of the streaming query at most.
BLOCK = 65536
BATCH = 262144

_LONG = ("row", "sample", "arrival")
_SHORT = ("stream", "node", "motes", "epoch", "nulls", "revision")
#: Columns as in :data:`skerry.streams.record.RECORD`, with value and count spread out.
COLUMNS = (*_LONG, *_SHORT, *(f"{kind}{i}" for kind in ("value", "count") for i in range(FIELDS_MAXIMUM)))
SCHEMA = StructType(
    [StructField(name, LongType() if name in (*_LONG, "epoch") else IntegerType()) for name in COLUMNS]
)


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
        first, last = int(start["row"]), int(end["row"])
        if last - first <= BLOCK:
            return [LogPartition(first, last)]
        middle = (first + last) // 2
        return [LogPartition(first, middle), LogPartition(middle, last)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Arrow batches of the range."""
        assert isinstance(partition, LogPartition)
        for start in range(partition.start, partition.end, BLOCK):
            yield batch_of(log.read(self._path, start, min(start + BLOCK, partition.end)), start)


class LogSource(DataSource):
    """``spark.readStream.format("skerry_log").option("path", …)``."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "skerry_log"

    def schema(self) -> StructType:
        """See :data:`COLUMNS`."""
        return SCHEMA

    def streamReader(self, schema: StructType) -> LogReader:
        """For readStream."""
        del schema
        return LogReader(self.options["path"])


def batch_of(records: Records, first: int) -> pa.RecordBatch:
    """Records as Arrow columns; ``first`` is the first one's row number."""
    arrays: list[Any] = [pa.array(np.arange(first, first + len(records), dtype=np.int64))]
    for name in COLUMNS[1:]:
        kind = name.rstrip("0123456789")
        column = records[kind] if kind == name else records[kind][:, int(name[len(kind) :])]
        wide = np.int64 if name in (*_LONG, "epoch") else np.int32
        arrays.append(pa.array(np.ascontiguousarray(column, dtype=wide)))
    return pa.RecordBatch.from_arrays(arrays, names=list(COLUMNS))

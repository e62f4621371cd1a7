"""Spark's view of the log: a Python Data Source that matches rows against the index of all users where it reads them, in executors.

An offset is a row number and a version of the index, so that a batch is matched against the same one however often it is read. What was
matched travels as :mod:`skerry.execution.blocks`; :mod:`skerry.spark.log_reading` reads and matches.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from skerry.execution.block_columns import COLUMNS
from skerry.spark import index_file
from skerry.spark.pacing import Pace
from skerry.storage.log import stream_log
from skerry.storage.log.segments import Segments
from skerry.storage.log.source_batches import SourceFiles, rows_of

#: Records of one trigger of the streaming query at most.
BATCH = 524_288
#: A task of a batch has at most so many records, unless all tasks have more.
SHARED = 65536

_TYPES = {pa.int64(): LongType, pa.binary(): BinaryType}
#: Records looked through at a time for the rows that they are.
_LOOK = 8192
#: See :data:`skerry.execution.block_columns.COLUMNS`.
SCHEMA = StructType([StructField(name, _TYPES[kind]()) for name, kind in COLUMNS.items()])


class LogPartition(InputPartition):
    """The rows ``start`` .. ``end`` - 1 of the log, ``count`` of a batch of ``whole``, to be matched against the users' index as of
    ``version``; it is the batch's partition ``number``. ``batch``: the batch's own first row, and the one behind its last."""

    def __init__(self, start: int, end: int, count: int, batch: tuple[int, int]) -> None:
        super().__init__((start, end))
        self.start, self.end, self.count, self.batch = start, end, count, batch
        self.whole = self.version = self.number = 0


class LogReader(DataSourceStreamReader):
    """Plans ranges of row numbers; reading one twice gives the same. ``index``: the directory of the users' index; ``parts``: tasks that
    may run at a time."""

    def __init__(self, path: str, index: str, parts: int = 2) -> None:
        self._path, self._index, self._parts = Path(path), Path(index), parts
        self._pace = Pace()

    def initialOffset(self) -> dict[str, int]:
        """The first row that the log has: older ones may have been dropped."""
        return {"row": stream_log.first(self._path), "version": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        """Batches stay small enough for one collect."""
        return ReadMaxRows(BATCH)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """As far as the log goes, within the limit, and the users that there are now; after a wait, where many rows come."""
        begin, end = int(start["row"]), stream_log.length(self._path)
        if end <= begin:
            # Users who come and go are no batch.
            return start
        most = begin + limit.max_rows if isinstance(limit, ReadMaxRows) else None
        if most is None or end < most:
            wait_s = self._pace.wait_s(end)
            if wait_s:
                time.sleep(wait_s)
                end = stream_log.length(self._path)
        self._pace.planned(end)
        if most is not None and isinstance(limit, ReadMaxRows):
            end = self._within(begin, min(end, most), limit.max_rows)
        return {"row": end, "version": index_file.newest(self._index)}

    def _within(self, start: int, end: int, most: int) -> int:
        """As far as there are so many rows at most, or those of one record: a record may have thousands of a source's."""
        if not SourceFiles(self._path).begins():
            return end
        count, at = 0, start
        while at < end:
            upto = min(at + _LOOK, end)
            for first, records in Segments(self._path).read(max(at, stream_log.first(self._path)), upto):
                sums = count + np.cumsum(rows_of(records))
                if len(sums) and sums[-1] > most:
                    return max(first + int(np.searchsorted(sums, most, side="right")), start + 1)
                count = int(sums[-1]) if len(sums) else count
            at = upto
        return end

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """One, or where there are many rows as many of equal length as there are tasks at a time."""
        # What has left the log has been through the proxy, though Spark may not have noted so before a crash.
        first, last = max(int(start["row"]), stream_log.first(self._path)), int(end["row"])
        batch = first, last
        tasks = min(self._parts, -(-(last - first) // SHARED)) if last > first else 0
        bounds = [first + (last - first) * number // tasks for number in range(tasks + 1)] if tasks else []
        # Where its directory is away who reads says so: the rows are not passed over.
        away = stream_log.length(self._path) < last
        count = Segments(self._path).count
        parts = [
            LogPartition(low, high, high - low if away else count(low, high), batch)
            for low, high in pairwise(bounds)
        ]
        whole = sum(part.count for part in parts)
        # Of an index that was lost with the disk there may be no such version any more.
        version = min(int(end["version"]), index_file.newest(self._index))
        for number, part in enumerate(parts):
            part.whole, part.version, part.number = whole, version, number
        return [part for part in parts if part.count]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Blocks of what is matched. Raises UnreadableError, whereupon Spark asks another worker."""
        from skerry.spark import log_reading  # noqa: PLC0415 (executors alone load what works on rows: Spark plans in processes of its own)

        assert isinstance(partition, LogPartition)
        yield from log_reading.matched(self._path, self._index, partition)


class LogSource(DataSource):
    """``spark.readStream.format("skerry_log").option("path", …).option("index", …).option("parts", …)``."""

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
        return LogReader(self.options["path"], self.options["index"], int(self.options["parts"]))

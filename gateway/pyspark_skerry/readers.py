"""What Spark asks: a reader of all that there is, and one that goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from pyspark_skerry.reading import Reading
from skerry.storage.state import DataError


class PastReader(DataSourceReader):
    """All rows that there are when it is planned."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    def partitions(self) -> list[InputPartition]:
        """Files and parts of the log that may have some of the rows. Raises DataError."""
        snapshot = self._reading.snapshot()
        start = self._reading.begin(snapshot)
        self._reading.check_start(snapshot)
        return self._reading.plan(snapshot, start, snapshot.end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """A part of the rows."""
        return self._reading.read(partition)


class LiveReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Rows as they come. An offset is the number of the next row, with ``gone``: rows before that were no longer there when it began."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        #: Where it ends; None: it does not.
        self._until: int | None = None

    def initialOffset(self) -> dict[str, int]:
        """Where the options have it begin. Raises DataError."""
        snapshot = self._reading.snapshot()
        self._reading.check_start(snapshot)
        start, dropped = self._reading.begin(snapshot), self._reading.dropped(snapshot)
        return {"row": start, "gone": dropped}

    def getDefaultReadLimit(self) -> ReadLimit:
        """Option maxRowsPerTrigger."""
        return ReadMaxRows(self._reading.rows_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:
        """What comes later is not looked at."""
        self._until = self._reading.end()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """As far as there are rows, within the limit. Raises DataError."""
        row, end = start["row"], self._reading.end()
        if end < row:
            raise DataError(
                f"data directory {self._reading.data}: it has been read up to row {row}, and its rows end before row {end}: give the "
                "directory that was read, or another checkpointLocation"
            )
        if self._until is not None:
            end = max(row, min(end, self._until))
        if isinstance(limit, ReadMaxRows):
            end = min(end, row + limit.max_rows)
        return {"row": end, "gone": start["gone"]}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """Those of the files and the log. Raises DataError."""
        snapshot = self._reading.snapshot()
        self._reading.check_lost(snapshot, start["row"], start["gone"])
        return self._reading.plan(snapshot, start["row"], end["row"])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """A part of the rows."""
        return self._reading.read(partition)

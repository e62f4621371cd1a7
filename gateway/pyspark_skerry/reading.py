"""What all reads have in common: which rows there are, in files or in the log, how they are shared out, and which of them are lost."""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from pyspark_skerry.bounds import EVERYTHING, Bounds
from skerry.storage.history.snapshot import Snapshot, check
from skerry.storage.log import stream_log
from skerry.storage.log.record import Records
from skerry.storage.state import DataError

#: Rows of the log that one task reads at most, and how many of them at a time.
LOG_ROWS, PIECE_ROWS = 131_072, 32_768
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class LogRows(InputPartition):
    """The rows ``start`` .. ``end`` - 1 of the log."""

    def __init__(self, start: int, end: int) -> None:
        super().__init__((start, end))
        self.start, self.end = start, end


class LostError(DataError):
    """Rows that are asked for are no longer there."""


@dataclass(frozen=True)
class Start:
    """Where somebody asked to begin: ``row``, None: with the first that there is; ``latest``: behind the last one."""

    row: int | None = None
    latest: bool = False


BEGINNING = Start()


@dataclass(frozen=True)
class Reading(ABC):
    """One read of a data directory, known to all processes that have a part in it. ``fields``: the columns that Spark expects, in its
    types; None: not yet known."""

    data: Path
    bounds: Bounds = EVERYTHING
    start: Start = BEGINNING
    fail_on_loss: bool = True
    columns: tuple[str, ...] | None = None
    rows_per_batch: int = 524_288
    fields: pa.Schema | None = None

    # ---- what there is ----

    def snapshot(self) -> Snapshot:
        """The data directory as it is now. Raises DataError."""
        return Snapshot.of(self.data)

    def end(self) -> int:
        """The number behind the last row of the log. Raises DataError."""
        check(self.data)
        return stream_log.length(self.data / stream_log.DIRECTORY)

    @abstractmethod
    def whole_schema(self, snapshot: Snapshot) -> pa.Schema:
        """All columns that there are."""

    @abstractmethod
    def first(self, snapshot: Snapshot) -> int:
        """A number before which none of the rows are."""

    @abstractmethod
    def dropped(self, snapshot: Snapshot) -> int:
        """The number before which some of the rows may have been, and are no longer there."""

    @abstractmethod
    def has_lost(self, snapshot: Snapshot, since_us: int) -> bool:
        """Whether rows that were sampled from a time on, UTC, are no longer there."""

    @abstractmethod
    def plan(self, snapshot: Snapshot, start: int, end: int) -> list[InputPartition]:
        """The rows ``start`` .. ``end`` - 1, for tasks to share."""

    @abstractmethod
    def tables(self, partition: InputPartition, names: Sequence[str]) -> Iterator[pa.Table]:
        """A part of the rows with these columns, in the order of their numbers."""

    # ---- what is common ----

    def schema(self) -> pa.Schema:
        """The columns that are asked for. Raises DataError."""
        return self.choose(self.whole_schema(self.snapshot()))

    def choose(self, whole: pa.Schema) -> pa.Schema:
        """Those of all columns that are asked for. Raises DataError."""
        if self.columns is None:
            return whole
        for name in self.columns:
            if name not in whole.names:
                raise DataError(f"option columns has '{name}': there are {', '.join(whole.names)}")
        return pa.schema([whole.field(name) for name in dict.fromkeys(self.columns)])

    def expecting(self, fields: pa.Schema) -> Self:
        """The same, of which Spark expects these columns. Raises DataError."""
        whole = self.whole_schema(self.snapshot())
        for name in fields.names:
            if name not in whole.names:
                raise DataError(f"the schema has '{name}': there are {', '.join(whole.names)}")
        return replace(self, fields=fields)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """A part of the rows, as Spark expects them. Raises DataError."""
        assert self.fields is not None
        for table in self.tables(partition, self.fields.names):
            for batch in table.cast(self.fields).to_batches():
                if batch.num_rows:
                    yield batch

    def begin(self, snapshot: Snapshot) -> int:
        """The first row of one that nobody has begun. Raises DataError."""
        if self.start.latest:
            return snapshot.end
        if self.start.row is None:
            return min(self.first(snapshot), snapshot.end)
        if self.start.row > snapshot.end:
            raise DataError(
                f"option startRow is {self.start.row}, and the rows that there are end before row {snapshot.end}: give a number up to that"
            )
        return self.start.row

    def check_start(self, snapshot: Snapshot) -> None:
        """Raises LostError where somebody asked for rows that are gone."""
        since = self.bounds.since_us
        if self.start.row is not None:
            self.check_lost(snapshot, self.start.row, 0)
        elif since is not None and self.fail_on_loss and self.has_lost(snapshot, since):
            time = _EPOCH + timedelta(microseconds=since)
            raise self.lost(snapshot, f"{time:%Y-%m-%dT%H:%M:%SZ}", self.dropped(snapshot))

    def check_lost(self, snapshot: Snapshot, start: int, known: int) -> None:
        """Raises LostError where rows from number ``start`` on are gone that were there once, but those before number ``known``."""
        dropped = self.dropped(snapshot)
        if self.fail_on_loss and dropped > max(start, known):
            raise self.lost(snapshot, f"row {start}", dropped)

    def lost(self, snapshot: Snapshot, start: str, dropped: int) -> LostError:
        """What is to be said of rows before number ``dropped`` that are gone."""
        there = self._there(snapshot, dropped)
        first = f"the first row that is still there is row {there}" if there is not None else "none is left"
        begin = dropped if there is None else there
        return LostError(
            f"data directory {self.data}: of the rows from {start} on some are gone, as they were not kept longer: {first}. Begin there "
            f"with option startRow {begin} (a query that goes on from a checkpoint needs another one), or take what is left with option "
            "failOnDataLoss false"
        )

    def _there(self, snapshot: Snapshot, row: int) -> int | None:
        """The first row from this number on, as far as tasks could read it now."""
        everything = replace(self, bounds=EVERYTHING, fail_on_loss=False)
        for partition in everything.plan(snapshot, row, snapshot.end):
            for table in everything.tables(partition, ["row"]):
                if table.num_rows:
                    return int(table.column("row")[0].as_py())
        return None

    def log_parts(self, start: int, end: int) -> list[InputPartition]:
        """Rows of the log, for tasks to share."""
        return [LogRows(at, min(at + LOG_ROWS, end)) for at in range(start, end, LOG_ROWS)]


def records_of(snapshot: Snapshot, start: int, end: int) -> Records:
    """Records of the log, all of them. Raises RowsGoneError; DataError where this machine does not see them."""
    records = stream_log.read(snapshot.log, start, end)
    if len(records) < end - start:
        raise DataError(
            f"of rows {start} to {end - 1} {len(records)} are in {snapshot.log} on {socket.gethostname()}: every worker must see the "
            "gateway's data directory at the same path"
        )
    return records

"""Window joins' view of the log: a Python Data Source that gives each group of joins its rows, dealt to buckets.

An offset is a row number of the log and a version of the set of joins, so that a batch is the same however often it is read; and the
version up to which it has been heeded which joins are over, as that is so once all rows before are there. How far a group's time has come
before a batch is noted in a file by who reads the batch before, and found out from the log where that is gone.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows
from pyspark.sql.streaming.state import GroupStateTimeout

from skerry.execution.join_buckets import GONE, INPUT, OUTPUT, GroupsJoin
from skerry.execution.join_intake import greatest, rows_of, tables_of, whole_rows
from skerry.execution.join_sets import BUCKETS, JoinGroup, JoinSets
from skerry.joins.buckets import Buckets
from skerry.joins.executor import STATE, input_rows
from skerry.joins.intake import Intake
from skerry.joins.progress import NEVER, Progress
from skerry.joins.row_windows import ENDED_US
from skerry.spark import join_file
from skerry.spark.log_source import UnreadableError
from skerry.storage.log import stream_log
from skerry.storage.log.segments import Segments
from skerry.storage.log.source_batches import SourceFiles
from skerry.storage.log.source_batches import rows_of as counts_of

#: Rows of one batch at most, and records looked through at a time.
BATCH, _LOOK = 262_144, 65_536
#: Where progress before a batch is noted, and for so many batches.
PROGRESS, _KEPT = "progress", 24
#: Of a bucket's state in memory.
LIMIT_BYTES = 1 << 29
_TYPES = {"STRING": pa.string(), "INT": pa.int32(), "BIGINT": pa.int64(), "BINARY": pa.binary()}
SCHEMA = pa.schema([(name, _TYPES[kind]) for name, kind in (part.split() for part in INPUT.split(", "))])


class JoinPartition(InputPartition):
    """A batch: rows ``start`` .. ``end`` - 1 of the log for the joins as of ``version``, of which those are over that are so by
    changes behind ``before``, up to ``over``."""

    def __init__(self, start: int, end: int, version: int, before: int, over: int, records: int) -> None:
        super().__init__((start, end))
        self.start, self.end, self.version, self.records = start, end, version, records
        self.before, self.over = before, over


class JoinReader(DataSourceStreamReader):
    """``log``: its directory; ``directory``: the joins'."""

    def __init__(self, log: str, directory: str) -> None:
        self._log, self._directory = Path(log), Path(directory)
        self._path = self._directory / join_file.NAME
        #: Up to which row nobody has anything, behind the last batch.
        self._nothing = 0

    def initialOffset(self) -> dict[str, int]:
        """The first row that any join has."""
        sets = self._sets(join_file.newest(self._path))
        since = [group.since for group in sets.groups.values()]
        return {"row": max(stream_log.first(self._log), min(since, default=0)), "version": 0, "over": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        """Batches stay small enough for one task."""
        return ReadMaxRows(BATCH)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """As far as the log goes, within the limit, if anybody has any of it, or a join's streams have ended."""
        begin = int(start["row"])
        end, version = stream_log.length(self._log), join_file.newest(self._path)
        sets = self._sets(version)
        over = any(one > int(start["over"]) for one, _ in [*sets.ended, *sets.gone])
        if end <= begin and not over:
            return start
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else BATCH
        upto = self._upto(begin, end, sets.streams(), most)
        if upto is None and not over:
            self._nothing = end
            return start
        whole = upto is None or upto == end
        return {
            "row": end if upto is None else upto,
            "version": version,
            "over": version if whole else int(start["over"]),
        }

    def _upto(self, begin: int, end: int, streams: set[int], most: int) -> int | None:
        """As far as there are so many rows at most; None: there are none of these streams."""
        count, some = 0, False
        at = max(begin, self._nothing, stream_log.first(self._log))
        while at < end:
            upto = min(at + _LOOK, end)
            for first, records in Segments(self._log).read(at, upto):
                mine = np.isin(records["stream"], list(streams))
                some |= bool(mine.any())
                sums = count + np.cumsum(np.where(mine, counts_of(records), 0))
                if len(sums) and sums[-1] > most:
                    return max(first + int(np.searchsorted(sums, most, side="right")), begin + 1)
                count = int(sums[-1]) if len(sums) else count
            at = upto
        return end if some else None

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """One: a batch's rows are told late by those before them."""
        first, last = max(int(start["row"]), stream_log.first(self._log)), int(end["row"])
        count = Segments(self._log).count(first, last) if last > first else 0
        before, over = int(start["over"]), int(end["over"])
        return [JoinPartition(first, max(first, last), int(end["version"]), before, over, count)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Rows by group and bucket. Raises UnreadableError."""
        assert isinstance(partition, JoinPartition)
        start, end, version = partition.start, partition.end, partition.version
        sets = self._sets(version)
        pieces = Segments(self._log).read(start, end) if end > start else []
        if sum(len(records) for _, records in pieces) < partition.records:
            raise UnreadableError(
                f"rows {start} to {end - 1} are not all in {self._log} on {socket.gethostname()}: every worker must see the gateway's "
                "data directory at the same path"
            )
        files, streams = SourceFiles(self._log), sets.streams()
        parts = [rows_of(files, numbers, records, streams) for numbers, records in whole_rows(pieces)]
        before = self._progress(sets, start)
        after = dict(before)
        over = {name for one, name in sets.ended if partition.before < one <= partition.over}
        said = json.dumps({"first": start, "end": end, "version": version, "over": partition.over}).encode()
        yield _batch([("", version, 0, 0, -1, 0, 0, 0, said)])
        for group in sets.groups.values():
            made = [tables for part in parts if (tables := tables_of(group, part))]
            ended = group.counts_rows and group.name in over
            if made or ended:
                progress = Progress(group.group.lateness_us, before.get(group.name, NEVER))
                yield from self._rows(group, version, _together(made), progress, ended=ended)
                after[group.name] = progress.greatest_us
        for one, name in sets.gone:
            if partition.before < one <= partition.over:
                yield _batch([(name, version, bucket, 0, GONE, 0, 0, 0, b"") for bucket in range(BUCKETS)])
        self._note(end, {name: us for name, us in after.items() if name in sets.groups})

    def _rows(
        self,
        group: JoinGroup,
        version: int,
        tables: Mapping[str, pa.Table],
        progress: Progress,
        *,
        ended: bool,
    ) -> Iterator[pa.RecordBatch]:
        rows = Intake(group.group, progress, count_unkeyed=group.counts_rows).take(tables)
        if ended:
            progress.greatest_us = ENDED_US + progress.lateness_us
        dealt = input_rows(group.group, Buckets(group.group, BUCKETS), 0, rows, progress)
        yield _batch([(group.name, version, *row) for row in dealt])

    # ---- how far a group's time has come ----

    def _progress(self, sets: JoinSets, row: int) -> dict[str, int]:
        """By group the greatest time before a row."""
        try:
            found: dict[str, int] = json.loads((self._directory / PROGRESS / str(row)).read_text())
        except (FileNotFoundError, ValueError):
            return self._found_out(sets, row)
        return found

    def _found_out(self, sets: JoinSets, row: int) -> dict[str, int]:
        found: dict[str, int] = {}
        files, streams = SourceFiles(self._log), sets.streams()
        since = min((group.since for group in sets.groups.values()), default=row)
        for at in range(max(since, stream_log.first(self._log)), row, _LOOK):
            for numbers, records in whole_rows(Segments(self._log).read(at, min(at + _LOOK, row))):
                rows = rows_of(files, numbers, records, streams)
                for group in sets.groups.values():
                    latest = greatest(tables_of(group, rows))
                    found[group.name] = max(latest, found.get(group.name, NEVER))
        return {name: us for name, us in found.items() if us != NEVER}

    def _note(self, row: int, after: Mapping[str, int]) -> None:
        directory = self._directory / PROGRESS
        directory.mkdir(exist_ok=True)
        part = directory / f".{row}.{os.getpid()}"
        part.write_text(json.dumps(after))
        part.replace(directory / str(row))
        kept = sorted((int(file.name) for file in directory.iterdir() if file.name.isdecimal()), reverse=True)
        for old in [one for one in kept if one < row][_KEPT:]:
            with suppress(FileNotFoundError):
                (directory / str(old)).unlink()

    def _sets(self, version: int) -> JoinSets:
        return join_file.sets_at(self._path, version)


def _together(made: list[dict[str, pa.Table]]) -> dict[str, pa.Table]:
    names = dict.fromkeys(name for tables in made for name in tables)
    return {name: pa.concat_tables([tables[name] for tables in made if name in tables]) for name in names}


def _batch(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


class JoinSource(DataSource):
    """``spark.readStream.format("skerry_joins").option("path", …).option("joins", …)``."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "skerry_joins"

    def schema(self) -> str:
        """See :data:`skerry.execution.join_buckets.INPUT`."""
        return INPUT

    def streamReader(self, schema: object) -> JoinReader:
        """For readStream."""
        del schema
        return JoinReader(self.options["path"], self.options["joins"])


def joined(spark: SparkSession, log: str, directory: str) -> DataFrame:
    """All groups' answers, as :data:`skerry.execution.join_buckets.OUTPUT`: one stateful operator over all streams."""
    spark.dataSource.register(JoinSource)
    path = Path(directory)
    operator = GroupsJoin(partial(join_file.sets_at, path / join_file.NAME), path / "runs", LIMIT_BYTES)
    rows = spark.readStream.format(JoinSource.name()).option("path", log).option("joins", directory).load()
    return rows.groupBy("joined", "bucket").applyInPandasWithState(
        operator, OUTPUT, STATE, "append", GroupStateTimeout.NoTimeout
    )

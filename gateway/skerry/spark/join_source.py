"""Window joins' view of the log: a Python Data Source that gives each group of joins, and each query that mines, its rows, dealt to
buckets.

An offset is a row number of the log and a version of the set of joins, so that a batch is the same however often it is read; and the
version up to which it has been heeded which joins are over, as that is so once all rows before are there. How far a group's time has come
before a batch is noted in a file by who reads the batch before, and found out from the log where that is gone.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
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

from skerry.execution.join_buckets import ENDED, GONE, INPUT, OUTPUT, GroupsJoin
from skerry.execution.join_intake import greatest, rows_of, tables_of, whole_rows
from skerry.execution.join_sets import JoinGroup, JoinSets
from skerry.execution.mined_rows import MinedGroup, dealt, rows_of_group
from skerry.execution.mining_buckets import packed
from skerry.joins.buckets import BUCKET_BYTES, BUCKETS, Buckets
from skerry.joins.executor import STATE, input_rows
from skerry.joins.intake import Intake
from skerry.joins.progress import NEVER, Progress
from skerry.joins.row_windows import ENDED_US
from skerry.spark import join_file
from skerry.spark.unreadable import UnreadableError
from skerry.storage.log import stream_log
from skerry.storage.log.segments import Segments
from skerry.storage.log.source_batches import SourceFiles
from skerry.storage.log.source_batches import rows_of as counts_of

#: Rows of one batch at most, and records looked through at a time.
BATCH, _LOOK = 262_144, 65_536
#: Where progress before a batch is noted, and for so many batches.
PROGRESS, _KEPT = "progress", 24
_TYPES = {"STRING": pa.string(), "INT": pa.int32(), "BIGINT": pa.int64(), "BINARY": pa.binary()}
#: By group and stream the greatest time of its rows, in µs.
Greatest = dict[str, dict[str, int]]
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
            raise UnreadableError.of(f"rows {start} to {end - 1} are", self._log)
        files, streams = SourceFiles(self._log), sets.streams()
        parts = [
            (rows_of(files, numbers, records, streams), numbers, records)
            for numbers, records in whole_rows(pieces)
        ]
        before = self._progress(sets, start)
        after = {name: dict(streams) for name, streams in before.items() if name in sets.groups}
        over = {name for one, name in sets.ended if partition.before < one <= partition.over}
        for group in sets.groups.values():
            motes = sets.mote_rows(group)
            if isinstance(group, MinedGroup):
                mined = [rows_of_group(group, part[0], motes, *part[1:]) for part in parts]
                some = [table for table in mined if table is not None]
                yield from self._mined(group, version, some, ended=group.name in over)
                continue
            made = [tables for part in parts if (tables := tables_of(group, part[0], motes, *part[1:]))]
            ended = group.waits and group.name in over
            if made or ended:
                known = after.setdefault(group.name, {})
                progress = Progress(
                    group.group.lateness_us, max(known.values(), default=NEVER), streams=known
                )
                yield from self._rows(group, version, _together(made), progress, ended=ended)
                if ended:
                    # Of no stream, and later than all of them.
                    known[""] = progress.greatest_us
        for one, name in sets.gone:
            if partition.before < one <= partition.over:
                yield _batch([(name, version, bucket, 0, GONE, 0, 0, 0, b"") for bucket in range(BUCKETS)])
        self._note(end, after)
        told = {"first": start, "end": end, "version": version, "over": partition.over, "greatest": after}
        yield _batch([("", version, 0, 0, -1, 0, 0, 0, json.dumps(told).encode())])

    def _rows(
        self,
        group: JoinGroup,
        version: int,
        tables: Mapping[str, pa.Table],
        progress: Progress,
        *,
        ended: bool,
    ) -> Iterator[pa.RecordBatch]:
        rows = Intake(group.group, progress).take(tables)
        if ended:
            progress.greatest_us = ENDED_US + progress.lateness_us
        dealt = input_rows(group.group, Buckets(group.group, group.buckets), 0, rows, progress)
        yield _batch([(group.name, version, *row) for row in dealt])

    def _mined(
        self, group: MinedGroup, version: int, tables: Sequence[pa.Table], *, ended: bool
    ) -> Iterator[pa.RecordBatch]:
        if not tables and not ended:
            return
        blocks = dict(dealt(group, pa.concat_tables(tables), BUCKETS)) if tables else {}
        # All buckets say what they keep.
        for bucket in range(BUCKETS if group.by_source else 1):
            block = packed([blocks[bucket]]) if bucket in blocks else b""
            yield _batch([(group.name, version, bucket, 0, ENDED if ended else 0, 0, 0, 0, block)])

    # ---- how far a group's time has come ----

    def _progress(self, sets: JoinSets, row: int) -> Greatest:
        """Of each group before a row."""
        try:
            checksum, _, text = (self._directory / PROGRESS / str(row)).read_bytes().partition(b" ")
            if int(checksum) == zlib.crc32(text):
                found: Greatest = json.loads(text)
                return found
        except (FileNotFoundError, ValueError):
            pass
        return self._found_out(sets, row)

    def _found_out(self, sets: JoinSets, row: int) -> Greatest:
        found: Greatest = {}
        files, streams = SourceFiles(self._log), sets.streams()
        since = min((group.since for group in sets.groups.values()), default=row)
        for at in range(max(since, stream_log.first(self._log)), row, _LOOK):
            for numbers, records in whole_rows(Segments(self._log).read(at, min(at + _LOOK, row))):
                rows = rows_of(files, numbers, records, streams)
                for group in sets.groups.values():
                    if isinstance(group, MinedGroup):
                        continue
                    known = found.setdefault(group.name, {})
                    tables = tables_of(group, rows, sets.mote_rows(group), numbers, records)
                    for name, us in greatest(tables).items():
                        known[name] = max(us, known.get(name, us))
        return found

    def _note(self, row: int, after: Greatest) -> None:
        directory = self._directory / PROGRESS
        directory.mkdir(exist_ok=True)
        part = directory / f".{row}.{os.getpid()}"
        text = json.dumps(after).encode()
        part.write_bytes(b"%d %b" % (zlib.crc32(text), text))
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


def joined(spark: SparkSession, log: str, directory: str, checkpoint: str) -> DataFrame:
    """All groups' answers, as :data:`skerry.execution.join_buckets.OUTPUT`: one stateful operator over all streams."""
    spark.dataSource.register(JoinSource)
    path = Path(directory)
    runs = join_file.runs(Path(checkpoint))
    operator = GroupsJoin(partial(join_file.sets_at, path / join_file.NAME), runs, BUCKET_BYTES)
    rows = spark.readStream.format(JoinSource.name()).option("path", log).option("joins", directory).load()
    return rows.groupBy("joined", "bucket").applyInPandasWithState(
        operator, OUTPUT, STATE, "append", GroupStateTimeout.NoTimeout
    )

"""How late answers of three streams' join come at a load, by skerry's operator or by a cascade of Spark's own stream-stream joins.

``python -m bench.measuring.paced_joins WAY WINDOW_S ROWS RATE DIRECTORY``, a process of its own for :mod:`bench.query.window_joins_spark`:
each stream's rows become readable at so many a second, :data:`FILE_S` of them at a time. It prints as JSON how many answers there were,
and of those of the later two thirds the latencies' quantiles: from when an answer's latest row could be read to when the answer was there.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSourceStreamReader

from bench.measuring.joined_items import ALIASES, BEGIN_US, OURS, SCHEMA, items_join
from bench.measuring.spark_joins import BUCKETS, cascaded, session, streams, write_stream
from gateway.tests.joins.spark_log import LogFilesReader, source_of, write_log
from skerry.joins.executor import merged
from skerry.joins.state import RunFiles
from skerry.spark.window_joins import joined

FILE_S = 0.2
#: How many files of the log may be read.
_RELEASED = "released"
_WAIT_S = 300.0


class PacedReader(LogFilesReader):
    """A file can be read once it has been released."""

    def latestOffset(self, start: dict[str, int], limit: object) -> dict[str, int]:
        """As far as that."""
        del limit
        try:
            released = int((self._path / _RELEASED).read_text())
        except (FileNotFoundError, ValueError):
            return start
        return {"file": max(int(start["file"]), min(released, self._files))}


def ours(
    spark: SparkSession, window_s: float, rows: int, each: int, directory: Path
) -> tuple[DataFrame, Any]:
    """Answers, and what releases a file."""
    join, log = items_join(window_s), directory / "log"
    files = write_log(log, streams(rows, window_s), each * len(ALIASES))
    group, source = source_of(
        join, dict.fromkeys(join.streams.values(), SCHEMA), "HW", log, files, 1, BUCKETS
    )

    class Paced(source):  # type: ignore[misc,valid-type]
        def streamReader(self, schema: object) -> DataSourceStreamReader:
            del schema
            return PacedReader(group, log, files, 1, BUCKETS)

    spark.dataSource.register(Paced)
    runs = directory / "runs"
    runs.mkdir()

    def release(number: int) -> None:
        part = log / ".released"
        part.write_text(str(number + 1))
        part.replace(log / _RELEASED)

    frame = spark.readStream.format("join_log").load()
    return joined(frame, group, BUCKETS, RunFiles(runs)), release


def cascade(
    spark: SparkSession, window_s: float, rows: int, each: int, directory: Path
) -> tuple[DataFrame, Any]:
    """The same of Spark's joins."""
    for alias in ALIASES:
        write_stream(streams(rows, window_s)[f"stream_{alias}"], alias, each, directory / "later" / alias)
        (directory / alias).mkdir()

    def release(number: int) -> None:
        for alias in ALIASES:
            name = f"{number:06d}.parquet"
            (directory / "later" / alias / name).rename(directory / alias / name)

    return cascaded(spark, window_s, directory, {}), release


def latest_us(part: DataFrame, way: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Of each answer of a batch the time of its latest row."""
    table = part.toArrow()
    if way == OURS:
        blocks = [row["block"] for row in table.to_pylist() if row["join"]]
        found = merged(blocks, tuple(ALIASES), by_time=False) if blocks else None
        return np.zeros(0, np.int64) if found is None else _us(found.column("time"))
    times = [_us(table.column(name)) for name in ("a_time", "b_us", "c_time")]
    found_us: np.ndarray[Any, np.dtype[np.int64]] = np.maximum.reduce(times)
    return found_us


def _us(column: pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.int64]]:
    if pa.types.is_timestamp(column.type):
        column = pc.cast(column.cast(pa.timestamp("us", "UTC")), pa.int64())
    found: np.ndarray[Any, np.dtype[np.int64]] = column.to_numpy().astype(np.int64)
    return found


def run(way: str, window_s: float, rows: int, rate: float, directory: Path) -> dict[str, Any]:
    """To the end of the rows."""
    spark, each = session(directory), max(1, round(rate * FILE_S))
    frame, release = (ours if way == OURS else cascade)(spark, window_s, rows, each, directory)
    files, released = -(-rows // each), np.zeros(-(-rows // each))
    took: list[np.ndarray[Any, Any]] = []
    # A row of each stream in each ms of their own time; the later two thirds count.
    first_us, latest = rows // 3 * 1_000, [0]

    def take(part: DataFrame, number: int) -> None:
        del number
        times = latest_us(part, way) - BEGIN_US
        now = time.monotonic()
        took.append(now - released[times[times >= first_us] // 1_000 // each])
        latest[0] += len(times)

    query = (
        frame.writeStream.foreachBatch(take)
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(processingTime="0 seconds")
        .start()
    )

    def play(numbers: range) -> None:
        began = time.monotonic()
        for place, number in enumerate(numbers):
            time.sleep(max(0.0, began + place * FILE_S - time.monotonic()))
            released[number] = time.monotonic()
            release(number)

    # The first batch takes what it takes to start.
    play(range(1))
    query.processAllAvailable()
    play(range(1, files))
    ends = time.monotonic() + _WAIT_S
    before = -1
    # Until a batch brings nothing more.
    while query.exception() is None and time.monotonic() < ends and before != latest[0]:
        before = latest[0]
        query.processAllAvailable()
    if query.exception() is not None:
        raise SystemExit(str(query.exception()))
    query.stop()
    spark.stop()
    found = np.concatenate(took) if took else np.zeros(0)
    if not len(found):
        raise SystemExit(f"{way}: no answers of {rows} rows a stream")
    return {
        "answers": latest[0],
        "median": float(np.quantile(found, 0.5)),
        "late": float(np.quantile(found, 0.95)),
    }


if __name__ == "__main__":
    chosen, window, count, pace, where = sys.argv[1:]
    print(json.dumps(run(chosen, float(window), int(count), float(pace), Path(where))))

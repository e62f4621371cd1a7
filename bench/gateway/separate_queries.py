"""What one would write without a proxy: a streaming query of Spark's own for each user, over the same log.

``python -m bench.gateway.separate_queries USERS WARM LENGTH``, a process of its own for :mod:`bench.gateway.fanout`, prints the median
time from appending a row to its user having it, in s, of rows of LENGTH s, once rows have come for WARM s while Java compiled what is
used.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from bench.measuring.crowd import SPAN, WIDTH, Crowd
from bench.measuring.spark_progress import row_of
from skerry.spark.log_source import LogPartition, LogReader
from skerry.storage.log import stream_log


class ColumnReader(LogReader):
    """The log's rows as columns, as a query needs them."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """One Arrow batch."""
        assert isinstance(partition, LogPartition)
        records = stream_log.read(self._path, partition.start, partition.end)
        rows = pa.array(np.arange(partition.start, partition.start + len(records)))
        nodes, lights = (
            pa.array(column.astype("i4")) for column in (records["node"], records["value"][:, 0])
        )
        yield pa.RecordBatch.from_arrays([rows, nodes, lights], ["row", "nodeid", "light"])


class ColumnSource(DataSource):
    """``spark.readStream.format("log_columns").option("path", …)``."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "log_columns"

    def schema(self) -> str:
        """As DDL."""
        return "row long, nodeid int, light int"

    def streamReader(self, schema: object) -> DataSourceStreamReader:
        """For readStream."""
        del schema
        # Of our own users there are none.
        return ColumnReader(self.options["path"], self.options["path"])


def plain_session(directory: Path) -> SparkSession:
    """As Spark comes, but for where it keeps its files and how much it says."""
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.warehouse.dir", str(directory / "warehouse"))
        .config("spark.local.dir", str(directory / "spark"))
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )


class Separate:
    """So many users' queries; ``seen`` are (row number, when its user had it), ``batches`` those of each query."""

    def __init__(self, spark: SparkSession, path: Path, directory: Path, lows: list[int], width: int) -> None:
        self.seen: list[tuple[int, float]] = []
        self.batches = [0] * len(lows)
        spark.dataSource.register(ColumnSource)
        frame = spark.readStream.format("log_columns").option("path", str(path)).load()
        self._queries = []
        for i, low in enumerate(lows):
            query = (
                frame.filter(frame.light.between(low, low + width - 1))
                .writeStream.foreachBatch(self._sink(i))
                .option("checkpointLocation", str(directory / f"separate{i}"))
                .trigger(processingTime="0 seconds")
                .start()
            )
            # One after the other: all at once they wait for their Python workers until Spark gives up.
            while not self.batches[i]:
                time.sleep(0.05)
            self._queries.append(query)

    def _sink(self, query: int):  # type: ignore[no-untyped-def]
        def take(frame: DataFrame, number: int) -> None:
            del number
            rows = frame.select("row", "nodeid", "light").toArrow().column("row").to_pylist()
            now = time.monotonic()
            self.seen += [(row, now) for row in rows]
            self.batches[query] += 1

        return take

    def reached(self) -> int:
        """Rows of the log that every query has been through."""
        told: list[dict[str, Any]] = [query.lastProgress or {} for query in self._queries]
        ends = [
            progress["sources"][0].get("endOffset") if progress.get("sources") else None for progress in told
        ]
        return min(map(row_of, ends))

    def stop(self) -> None:
        """All of them."""
        for query in self._queries:
            query.stop()


def main() -> None:
    """Print it."""
    users, warm, length = map(int, sys.argv[1:])
    # Workers run what this runs: Spark would take the first python3 on the path.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    crowd = Crowd()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory)
        spark = plain_session(path)
        crowd.append(1000)
        lows = [i * (SPAN - WIDTH) // users for i in range(users)]
        apart = Separate(spark, crowd.log.path, path, lows, WIDTH)
        while min(apart.batches) < 2:
            crowd.trickle(1)
        crowd.trickle(warm)
        first = crowd.log.rows
        crowd.trickle(length)
        while apart.reached() < crowd.log.rows:
            time.sleep(0.1)
        apart.stop()
        spark.stop()
    crowd.close()
    print(median([at - crowd.when(row) for row, at in apart.seen if row >= first]))


if __name__ == "__main__":
    main()

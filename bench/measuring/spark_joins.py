"""Three streams joined on Spark, by skerry's operator or by a cascade of Spark's own stream-stream joins.

``python -m bench.measuring.spark_joins WAY WINDOW_S ROWS BATCH DIRECTORY``, a process of its own for :mod:`bench.query.window_joins_spark`,
prints as JSON the milliseconds of each batch, how many answers there were, and how much was kept at most. Rows are 1 ms apart on a stream.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.measuring.joined_items import ALIASES, OURS, SCHEMA, batch_of, items_join, items_of
from gateway.tests.joins.spark_log import source_of, write_log
from skerry.joins.state import RunFiles
from skerry.spark.window_joins import joined

#: More than there are cores; files that a batch has, each a task.
BUCKETS, TASKS = 8, 2
LATENESS = "10 seconds"


def session(directory: Path) -> SparkSession:
    """As Spark comes, with two cores."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    found = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "6g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(directory / "warehouse"))
        .config("spark.local.dir", str(directory / "spark"))
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    return found


def streams(rows: int, window_s: float) -> dict[str, pa.Table]:
    """All rows, the same for both ways."""
    return batch_of(0, rows, items_of(window_s), np.random.default_rng(1))


def blocks(spark: SparkSession, window_s: float, rows: int, batch: int, directory: Path) -> DataFrame:
    """Answers by our operator."""
    join = items_join(window_s)
    log = directory / "log"
    files = write_log(log, streams(rows, window_s), batch * len(ALIASES) // TASKS)
    schemas = dict.fromkeys(join.streams.values(), SCHEMA)
    group, source = source_of(join, schemas, "HW", log, files, TASKS, BUCKETS)
    spark.dataSource.register(source)
    runs = directory / "runs"
    runs.mkdir()
    return joined(spark.readStream.format("join_log").load(), group, BUCKETS, RunFiles(runs))


def cascade(spark: SparkSession, window_s: float, rows: int, batch: int, directory: Path) -> DataFrame:
    """Answers by Spark's joins."""
    for alias in ALIASES:
        write_stream(streams(rows, window_s)[f"stream_{alias}"], alias, batch, directory / alias)
    return cascaded(spark, window_s, directory, {"maxFilesPerTrigger": 1})


def write_stream(table: pa.Table, alias: str, each: int, folder: Path) -> None:
    """A stream's rows as files of so many, which Spark takes in their order."""
    folder.mkdir(parents=True)
    for number, first in enumerate(range(0, table.num_rows, each)):
        part = table.slice(first, each)
        time_column = part.column("time").cast(pa.timestamp("us", "UTC"))
        made = pa.table(
            {
                f"{alias}_time": time_column,
                f"{alias}_item": part.column("item"),
                f"{alias}_value": part.column("value"),
            }
        )
        path = folder / f"{number:06d}.parquet"
        pq.write_table(made, path)
        os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))


def cascaded(spark: SparkSession, window_s: float, directory: Path, options: Mapping[str, int]) -> DataFrame:
    """Of files in a folder for each alias. A second column of event time would be refused, so that it goes on as a number."""
    frames = []
    for alias in ALIASES:
        reader = spark.readStream.schema(f"{alias}_time TIMESTAMP, {alias}_item BIGINT, {alias}_value DOUBLE")
        for name, value in options.items():
            reader = reader.option(name, value)
        frames.append(reader.parquet(str(directory / alias)).withWatermark(f"{alias}_time", LATENESS))
    a, b, c = frames
    span = f"INTERVAL {int(window_s)} SECONDS"
    two = (
        a.join(b, F.expr(f"a_item = b_item AND a_time >= b_time - {span} AND a_time <= b_time + {span}"))
        .withColumn("b_us", F.expr("unix_micros(b_time)"))
        .drop("b_time")
    )
    us = int(window_s * 1e6)
    return two.join(
        c,
        F.expr(
            f"a_item = c_item AND a_time >= c_time - {span} AND a_time <= c_time + {span} "
            f"AND abs(b_us - unix_micros(c_time)) <= {us}"
        ),
    )


def run(way: str, window_s: float, rows: int, batch: int, directory: Path) -> dict[str, Any]:
    """To the end of the rows."""
    spark = session(directory)
    frame = (blocks if way == OURS else cascade)(spark, window_s, rows, batch, directory)
    answers: dict[int, int] = {}
    kept = [0, 0]

    def take(part: DataFrame, number: int) -> None:
        if way == OURS:
            found = part.toArrow().to_pylist()
            answers[number] = sum(row["rows"] for row in found if row["join"])
            status = [row for row in found if not row["join"]]
            now = [sum(row[name] for row in status) for name in ("rows", "bytes")]
            # With the last batch streams have ended, and nothing is kept.
            kept[:] = map(max, kept, now)
        else:
            # As Arrow, too: answers are to be handed on.
            answers[number] = part.toArrow().num_rows

    query = (
        frame.writeStream.foreachBatch(take)
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(processingTime="0 seconds")
        .start()
    )
    batches = -(-rows // batch)
    while len(answers) < batches and query.exception() is None:
        time.sleep(0.2)
    time.sleep(1)
    if query.exception() is not None:
        raise SystemExit(str(query.exception()))
    took = [one["durationMs"]["triggerExecution"] for one in query.recentProgress][:batches]
    query.stop()
    spark.stop()
    return {"took": took, "answers": sum(answers.values()), "rows": kept[0], "bytes": kept[1]}


if __name__ == "__main__":
    chosen, window, count, size, where = sys.argv[1:]
    print(json.dumps(run(chosen, float(window), int(count), int(size), Path(where))))

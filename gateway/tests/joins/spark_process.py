"""A drawn join on a real Spark in a process of its own, to be killed: ``python -m gateway.tests.joins.spark_process DIRECTORY SEED``.

Answers of a batch are a file that a batch that comes again replaces. It ends when the whole log has been through.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame

from gateway.tests.joins.drawn import SCHEMA, Case, draw, table
from gateway.tests.joins.spark_log import source_of, write_log
from gateway.tests.spark.sessions import users_session
from skerry.joins.rows import Algorithm
from skerry.joins.state import RunFiles
from skerry.spark.window_joins import joined

#: Numbers a file, files a batch.
ROWS, STEP, BUCKETS = 6, 2, 3
END = "ended"


def algorithm_of(case: Case) -> Algorithm:
    """By key where there is one."""
    return "HW" if case.join.key else "MW"


def run(directory: Path, seed: int) -> None:
    """From where an earlier process was."""
    case = draw(seed)
    tables = {name: table(case.streams[name]) for name in {*case.join.streams.values()}}
    files = write_log(directory / "log", tables, ROWS)
    (directory / "runs").mkdir(exist_ok=True)
    schemas = dict.fromkeys(case.streams, SCHEMA)
    group, source = source_of(case.join, schemas, algorithm_of(case), directory / "log", files, STEP, BUCKETS)
    spark = users_session(directory / "spark")
    spark.dataSource.register(source)
    answers = directory / "answers"
    answers.mkdir(exist_ok=True)

    def keep(frame: DataFrame, batch: int) -> None:
        rows = frame.toArrow()
        part = answers / f".{batch:06d}"
        with part.open("wb") as file:
            import pyarrow as pa  # noqa: PLC0415 (this function goes to no worker)

            with pa.ipc.new_stream(file, rows.schema) as writer:
                writer.write_table(rows)
        part.rename(answers / f"{batch:06d}.arrow")
        time.sleep(0.3)

    # Each run of rows has a file of its own: what is large in earnest is small here.
    runs = RunFiles(directory / "runs", inline_bytes=0)
    frame = spark.readStream.format("join_log").load()
    query = (
        joined(frame, group, BUCKETS, runs)
        .writeStream.foreachBatch(keep)
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(processingTime="0 seconds")
        .start()
    )
    batches = -(-files // STEP)
    while len(list(answers.glob("*.arrow"))) < batches:
        query.awaitTermination(0.1)
        if query.exception() is not None:
            raise SystemExit(str(query.exception()))
    (directory / END).touch()
    # What is still being written is nobody's.
    os._exit(0)


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]))

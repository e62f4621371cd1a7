"""Joins as users ask them, on Spark over a log that lies there already: the gateway's streaming query without the gateway.

``python -m bench.measuring.joins_of_log ROWS DIRECTORY < joins``, a process of its own for :mod:`bench.query.many_joins`, reads a query a
line, and prints as JSON for each batch its rows and milliseconds, and how many answers, groups of joins, kept rows and kept bytes
there were. Each of :data:`STREAMS` streams has a row each ms.
"""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from skerry.execution.join_buckets import joined_of
from skerry.planner.model import source_plans as plans
from skerry.sensors.definitions import SensorTable, define
from skerry.sensors.evaluate import MOMENT
from skerry.sensors.planning import planned
from skerry.spark import join_file
from skerry.spark.join_file import JoinFile
from skerry.spark.join_source import joined
from skerry.spark.session import session
from skerry.sql import sensor_statements
from skerry.sql.sensor_statements import CreateSensors
from skerry.storage.log.source_batches import SourceBatch, Through
from skerry.storage.log.stream_log import StreamLog

STREAMS = 10
CREATE = "CREATE SENSORS streams (id INT, reading STREAM (item INT, value DOUBLE, at TIMESTAMP FORMAT 'unix us' TIME))"
#: Rows of one record of the log, of all streams; different items.
RECORD, ITEMS = 20_000, 200_000
_BEGINS_US = 10**15


def table() -> SensorTable:
    """Of which each tuple is a stream."""
    statement = sensor_statements.parse(CREATE)
    assert isinstance(statement, CreateSensors)
    return define(statement, "bench", 1)


def write(log: StreamLog, rows: int, stream: int) -> None:
    """So many rows, of all streams together."""
    rng = np.random.default_rng(1)
    for first in range(0, rows, RECORD):
        at = np.arange(first, min(first + RECORD, rows))
        times = pa.array(_BEGINS_US + at // STREAMS * 1_000, pa.int64()).cast(MOMENT)
        made = pa.table(
            {
                plans.SOURCE: pa.array(at % STREAMS + 1, pa.int64()), plans.TIME: times, plans.ARRIVAL: times,
                "id": pa.array(at % STREAMS, pa.int64()), "reading.item": rng.integers(0, ITEMS, len(at)),
                "reading.value": rng.random(len(at)), "reading.at": times,
            }
        )  # fmt: skip
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, made.schema) as writer:
            writer.write_table(made)
        last = int(_BEGINS_US + at[-1] // STREAMS * 1_000)
        log.append_sources([SourceBatch(stream, len(at), last, last, bytes(sink.getvalue()))])


def run(queries: list[str], rows: int, directory: Path) -> dict[str, Any]:
    """All of them, to the end of the log."""
    known, log, file = table(), StreamLog(directory), JoinFile(directory)
    write(log, rows, known.stream_number)
    changes = []
    for name, sql in enumerate(queries, 1):
        plan = planned(sql, {"streams": known})
        if plan is None or plan.sources is None or plan.sources.join is None:
            raise SystemExit(f"is no join: {sql}")
        changes.append(["join", str(name), 0, plan.sources.join.executed()])
    file.append(changes)
    spark = session("local[2]", str(directory), str(directory / "local"))
    sets = partial(join_file.sets_at, file.path)
    found: dict[str, Any] = {
        "batches": [],
        "answers": 0,
        "groups": len(file.sets.groups),
        "rows": 0,
        "bytes": 0,
    }
    through: dict[int, Through] = {}
    there = [0]

    def take(part: DataFrame, number: int) -> None:
        del number
        batch = joined_of(part.toArrow(), sets, through)
        if batch is None:
            return
        found["answers"] += sum(one.rows for one in batch.answers)
        through.update({one.stream: one.through for one in batch.answers})
        for name in ("rows", "bytes"):
            found[name] = max(found[name], sum(getattr(one, name) for one in batch.groups.values()))
        there[0] = batch.end

    query = (
        joined(spark, str(log.path), str(file.directory), str(directory / "checkpoint"))
        .writeStream.foreachBatch(take)
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(processingTime="0 seconds")
        .start()
    )
    while there[0] < log.rows and query.exception() is None:
        time.sleep(0.2)
    time.sleep(1)
    if query.exception() is not None:
        raise SystemExit(str(query.exception()))
    for one in query.recentProgress:
        start, end = (
            json.loads(one["sources"][0][which] or "null") for which in ("startOffset", "endOffset")
        )
        records = int(end["row"]) - int((start or {}).get("row", 0))
        if records:
            found["batches"].append([min(records * RECORD, rows), one["durationMs"]["triggerExecution"]])
    query.stop()
    spark.stop()
    return found


if __name__ == "__main__":
    count, where = sys.argv[1:]
    print(json.dumps(run([line for line in sys.stdin.read().splitlines() if line], int(count), Path(where))))

"""The Spark driver: a process of its own beside the gateway, with one session and one streaming query over the log, whatever the number
of users.

``python -m skerry.spark.driver DESCRIPTOR``, as :mod:`skerry.spark.supervisor` starts it; DESCRIPTOR is that of its end of a socket to the
gateway, which is told what :mod:`skerry.spark.messages` has. It ends when the gateway does, in whatever way that happens.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from skerry.execution.blocks import rows_of, to_bytes
from skerry.joins.state import LostRunError, lost_run
from skerry.spark import databases, join_file, past
from skerry.spark.checkpoint import lost_state
from skerry.spark.join_stream import JoinStream
from skerry.spark.late_workers import LateWorkers
from skerry.spark.log_source import LogSource
from skerry.spark.messages import (
    Batch,
    Begin,
    BeginJoins,
    DatabaseAnswer,
    DatabaseRequest,
    Failed,
    Job,
    JoinsTaken,
    PastAnswer,
    PastCancel,
    PastRequest,
    Started,
    Stop,
    Taken,
)
from skerry.spark.session import session
from skerry.spark.unreadable import UnreadableError
from skerry.storage.block_files import BlockFiles

#: How the line of a worker's traceback begins that says what it cannot read.
WORKERS_SAY = tuple(f"{error.__module__}.{error.__qualname__}: " for error in (UnreadableError, LostRunError))
#: After a batch that the gateway could not take, so long until it comes again, in s.
_AGAIN_S = 1.0


class _RefusedError(Exception):
    """The gateway could not take a batch."""


class Driver:
    """Serves a gateway over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._sending = threading.Lock()
        self._job: Job = connection.recv()
        self._files = BlockFiles(Path(self._job.data))
        self._spark: SparkSession | None = None
        self._query: Any = None
        self._stopping, self._begun = threading.Event(), threading.Event()
        self._answered = threading.Event()
        self._taken = self._refused = False
        self._joins, self._late = JoinStream(self._job, self._say, self._fail_joins), LateWorkers()

    def serve(self) -> None:
        """Until the gateway says that it is over, or is gone."""
        threading.Thread(target=self._stream, name="stream", daemon=True).start()
        while True:
            try:
                word = self._connection.recv()
            except (EOFError, OSError):
                # Nobody is left for whom anything could be put in order. Java ends with this process.
                os._exit(1)
            match word:
                case Begin():
                    self._begun.set()
                case Taken(done):
                    self._taken = done
                    self._answered.set()
                case BeginJoins(through):
                    self._joins.begin(through)
                case JoinsTaken(done):
                    self._joins.taken(done)
                case DatabaseRequest():
                    threading.Thread(target=self._read, args=(word,), daemon=True).start()
                case PastRequest():
                    threading.Thread(target=self._write_past, args=(word,), daemon=True).start()
                case PastCancel(number):
                    if self._spark is not None:
                        past.cancel(self._spark, number)
                case Stop():
                    return self._stop()

    def _stream(self) -> None:
        try:
            self._spark = session(self._job.master, self._job.directory, self._job.local)
            self._spark.dataSource.register(LogSource)
            if not self._begun.is_set() and self._job.master.startswith("local"):
                # While the gateway reads what it remembers. A cluster may have no workers now.
                warm_up(self._spark)
            self._begun.wait()
            self._joins.run(self._spark)
            while not self._stopping.is_set():
                self._run_query(self._spark)
        except Exception as error:
            self._fail(error)

    def _fail_joins(self, error: Exception) -> None:
        runs = join_file.runs(Path(self._job.join_checkpoint))
        text = words(error)
        self._fail(error, joins=lost_state(text) or lost_run(runs, text))

    def _fail(self, error: Exception, *, joins: bool = False) -> None:
        """A streaming query has failed."""
        if self._stopping.is_set():
            return
        self._say(Failed(cause(error), joins))
        # What is left of Spark, such as a JVM that has ended, is no better than a process of its own that begins anew.
        os._exit(1)

    def _run_query(self, spark: SparkSession) -> None:
        """Until a batch is refused, or a worker late: then the next query begins with that one."""
        self._refused = False
        self._query = (
            spark.readStream.format(LogSource.name())
            .option("path", self._job.log)
            .option("index", self._job.index)
            .option("parts", spark.sparkContext.defaultParallelism)
            .load()
            .writeStream.foreachBatch(self._batch)
            .option("checkpointLocation", self._job.checkpoint)
            .trigger(processingTime="0 seconds")
            .start()
        )
        self._say(Started())
        try:
            self._query.awaitTermination()
        except PySparkException as error:
            if not self._refused and not self._late.forgives(error):
                raise
            self._stopping.wait(_AGAIN_S)

    def _batch(self, frame: DataFrame, number: int) -> None:
        del number
        table = frame.toArrow()
        self._late.came()
        if not table.num_rows:
            return
        first, end = rows_of(table)
        blocks = to_bytes(table)
        word = Batch(first, end, blocks)
        # A disk without room for it does not keep anybody from his rows.
        with suppress(OSError):
            self._files.publish(first, end, blocks)
            word = Batch(first, end)
        self._answered.clear()
        self._say(word)
        self._answered.wait()
        if not self._taken:
            self._refused = True
            raise _RefusedError("the gateway has not taken the batch")

    def _read(self, asked: DatabaseRequest) -> None:
        try:
            if self._spark is None:
                raise ConnectionError("Spark has not started yet")
            answer = DatabaseAnswer(asked.number, to_bytes(databases.read(self._spark, asked)))
        except Exception as error:  # whatever it is, who asked tries again
            answer = DatabaseAnswer(asked.number, None, databases.reason(error))
        self._say(answer)

    def _write_past(self, asked: PastRequest) -> None:
        trouble: str | None = None
        try:
            if self._spark is None:
                raise ConnectionError("Spark has not started yet")
            past.write(self._spark, asked)
        except Exception as error:  # whatever it is, the gateway answers it by itself
            trouble = cause(error)
        self._say(PastAnswer(asked.number, trouble))

    def _say(self, word: object) -> None:
        try:
            with self._sending:
                self._connection.send(word)
        except OSError:
            os._exit(1)

    def _stop(self) -> None:
        self._stopping.set()
        self._begun.set()
        # A batch that the gateway is not done with is given up, and comes again.
        self._taken = False
        self._answered.set()
        logging.getLogger("py4j").setLevel(logging.CRITICAL)
        self._joins.stop()
        if self._query is not None:
            self._query.stop()
        if self._spark is not None:
            self._spark.stop()


def warm_up(spark: SparkSession) -> None:
    """Start as many Python workers as run at a time, and have Java load what a query takes: the first batch finds both there."""
    tasks = spark.sparkContext.defaultParallelism
    spark.range(0, tasks, 1, tasks).mapInArrow(_load, "id long").collect()


def _load(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    # A worker that has what reads the log is the sooner done with its first rows.
    from skerry.spark import log_reading  # noqa: PLC0415 (for the worker, which gets this function by its text)

    assert log_reading.__name__
    yield from batches


def words(error: Exception) -> str:
    """All that Spark says of an error, with where in Java it came from."""
    java = (getattr(one, "_stackTrace", None) for one in (error, getattr(error, "_cause", None)))
    return "\n".join([str(error), *(part for part in java if part)])


def cause(error: Exception) -> str:
    """Why a session or its query ended, in a line: what a worker says about the log, else what Spark does."""
    lines = str(error).splitlines()
    told = [line for line in lines if line.startswith(WORKERS_SAY)]
    if told:
        return told[-1].partition(": ")[2]
    return f"{type(error).__name__}: {lines[0][:200]}" if lines and lines[0] else type(error).__name__


if __name__ == "__main__":
    Driver(Connection(int(sys.argv[1]))).serve()

"""The driver's streaming query of window joins, once there are any: one for all groups, beside the one that matches rows."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from skerry.execution.join_buckets import joined_of
from skerry.spark import join_file
from skerry.spark.join_source import joined
from skerry.spark.late_workers import LateWorkers
from skerry.spark.messages import Job, JoinBatch
from skerry.storage.log.source_batches import Through

#: After a batch that the gateway could not take, so long until it comes again, in s.
_AGAIN_S = 1.0


class _RefusedError(Exception):
    """The gateway could not take a batch."""


class JoinStream:
    """``say``: a word for the gateway; ``fail``: what becomes of an error."""

    def __init__(self, job: Job, say: Callable[[object], None], fail: Callable[[Exception], None]) -> None:
        self._job, self._say, self._fail = job, say, fail
        self._sets = partial(join_file.sets_at, Path(job.joins) / join_file.NAME)
        self._begun, self._stopping, self._answered = threading.Event(), threading.Event(), threading.Event()
        self._done = self._refused = False
        self._through: dict[int, Through] = {}
        self._query: Any = None
        self._late = LateWorkers()

    def begin(self, through: dict[int, Through]) -> None:
        """There are joins. ``through``: how far the answers of each are known."""
        if not self._begun.is_set():
            self._through = dict(through)
            self._begun.set()

    def run(self, spark: SparkSession) -> None:
        """In a thread of its own, until :meth:`stop`."""
        threading.Thread(target=self._run, args=(spark,), name="joins", daemon=True).start()

    def taken(self, done: bool) -> None:
        """The gateway's answer to a batch."""
        self._done = done
        self._answered.set()

    def stop(self) -> None:
        """End the query; a batch that the gateway is not done with is given up, and comes again."""
        self._stopping.set()
        self._begun.set()
        self.taken(done=False)
        if self._query is not None:
            self._query.stop()

    def _run(self, spark: SparkSession) -> None:
        self._begun.wait()
        try:
            while not self._stopping.is_set():
                self._run_query(spark)
        except Exception as error:
            if not self._stopping.is_set():
                self._fail(error)

    def _run_query(self, spark: SparkSession) -> None:
        """Until a batch is refused, or a worker late: then the next query begins with that one."""
        self._refused = False
        self._query = (
            joined(spark, self._job.log, self._job.joins, self._job.join_checkpoint)
            .writeStream.foreachBatch(self._batch)
            .option("checkpointLocation", self._job.join_checkpoint)
            .trigger(processingTime="0 seconds")
            .start()
        )
        try:
            self._query.awaitTermination()
        except PySparkException as error:
            if not self._refused and not self._late.forgives(error):
                raise
            self._stopping.wait(_AGAIN_S)

    def _batch(self, frame: DataFrame, number: int) -> None:
        del number
        found = joined_of(frame.toArrow(), self._sets, self._through)
        self._late.came()
        if found is None:
            return
        self._answered.clear()
        self._say(JoinBatch(found))
        self._answered.wait()
        if not self._done:
            self._refused = True
            raise _RefusedError("the gateway has not taken the batch")
        self._through.update({batch.stream: batch.through for batch in found.answers})

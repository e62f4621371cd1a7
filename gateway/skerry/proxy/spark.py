"""Spark: one session, one streaming query over the log, whatever the number of users."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from skerry.streams.record import Block
from skerry.streams.source import LogSource, block_of

log = logging.getLogger(__name__)


def session(master: str, directory: Path) -> SparkSession:
    """A quiet session on the loopback interface. Workers run this interpreter."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = (
        SparkSession.builder.master(master)
        .appName("skerry")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(directory / "warehouse"))
        .config("spark.local.dir", str(directory / "spark"))
        .config("spark.sql.streaming.minBatchesToRetain", "10")
        .config("spark.log.level", "ERROR")
        .config("spark.driver.extraJavaOptions", "-Dlog4j2.level=ERROR")
    )
    return builder.getOrCreate()


class StreamingQuery:
    """Reads the log from where it left off and gives each batch to ``process``."""

    def __init__(self, master: str, directory: Path, log_path: Path, process: Callable[[Block], int]) -> None:
        self._master, self._directory, self._log_path, self._process = master, directory, log_path, process
        self._spark: SparkSession | None = None
        self._query: Any = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="spark", daemon=True)
        self.state = "starting"
        self.batches = 0
        self.batch_seconds: deque[float] = deque(maxlen=100)

    def start(self) -> None:
        """Begin in the background: Spark takes some seconds."""
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._start_query()
                self.state = "running"
                self._query.awaitTermination()
            except Exception as error:
                if self._stopping.is_set():
                    return
                self.state = f"restarting after {type(error).__name__}"
                log.exception("the streaming query ended; it starts again in a second")
                self._stopping.wait(1.0)

    def _start_query(self) -> None:
        if self._spark is None:
            self._spark = session(self._master, self._directory)
            self._spark.dataSource.register(LogSource)
        self._query = (
            self._spark.readStream.format("skerry_log")
            .option("path", str(self._log_path))
            .load()
            .writeStream.foreachBatch(self._batch)
            .option("checkpointLocation", str(self._directory / "checkpoint"))
            .trigger(processingTime="0 seconds")
            .start()
        )

    def _batch(self, frame: DataFrame, number: int) -> None:
        del number
        began = time.monotonic()
        self._process(block_of(frame.toArrow()))
        self.batches += 1
        self.batch_seconds.append(time.monotonic() - began)

    def stop(self) -> None:
        """Stop query and session."""
        self._stopping.set()
        if self._query is not None:
            self._query.stop()
        if self._spark is not None:
            self._spark.stop()

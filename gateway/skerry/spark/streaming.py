"""Spark: one session, one streaming query over the log, whatever the number of users."""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

import skerry
import skerry_protocol
from skerry.spark import checkpoint, java_options
from skerry.spark.ended_sessions import forget_ended
from skerry.spark.log_source import LogSource, UnreadableError, block_of
from skerry.storage.log.record import Block

log = logging.getLogger(__name__)


#: Spark's default starts processes for each file that it notes its progress in, which takes a third of a small batch's time; and
#: checksums of files of some hundred bytes, in files of their own, take as long again as the files.
CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
FILES = "org.apache.hadoop.fs.RawLocalFileSystem"
#: How often an idle query looks for rows. Spark's 10 ms takes an eighth of a processor while nothing comes, and cuts an epoch, whose rows
#: come within some ms of each other, into two batches.
LOOK = "50ms"
#: What the Python processes of Spark begin with.
WORKERS = Path(__file__).parent / "workers"
#: Masters of clusters on machines: spark://host:port, with further masters behind commas; Kubernetes, by its API server.
_ON_MACHINES = re.compile(r"(?:spark://|k8s://(?:https?://)?)(\[[^]]*]|[^:,/]+)(?::(\d+))?")
_HTTPS = "443"
#: What of Spark's log is shown. One of Spark's own, set later, would let through what it says until then.
LOGGING = (Path(__file__).parent / "log4j2.properties").as_uri()
#: By these words Spark knows a batch that its own stop has interrupted, and says nothing of it. What really is raised then has a
#: thousand lines, over which its search for them overflows the stack.
INTERRUPTED = (
    "py4j.protocol.Py4JJavaError: An error occurred while calling stop: java.lang.InterruptedException"
)
#: How the line of a worker's traceback begins that says why it cannot read the log.
WORKERS_SAY = f"{UnreadableError.__module__}.{UnreadableError.__qualname__}: "


def session(master: str, directory: Path) -> SparkSession:
    """A quiet session. Its workers run the interpreter at this one's path, and import skerry from where it is here."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    address = os.environ.get("SPARK_LOCAL_IP") or own_address(master)
    path = [
        str(WORKERS),
        *(str(Path(str(package.__file__)).parents[1]) for package in (skerry, skerry_protocol)),
    ]
    # For the processes that the driver starts itself; those of executors get it from the configuration.
    already = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([*path, *filter(None, already)]))
    builder = (
        SparkSession.builder.master(master)
        .appName("skerry")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.executorEnv.PYTHONPATH", os.pathsep.join(dict.fromkeys(path)))
        .config("spark.python.daemon.module", "prompt_daemon")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(directory / "warehouse"))
        .config("spark.local.dir", str(directory / "spark"))
        .config("spark.sql.streaming.minBatchesToRetain", "10")
        .config("spark.sql.streaming.checkpointFileManagerClass", CHECKPOINTS)
        .config("spark.sql.streaming.checkpoint.fileChecksum.enabled", "false")
        .config("spark.hadoop.fs.file.impl", FILES)
        .config("spark.sql.streaming.pollingDelay", LOOK)
        .config(
            "spark.driver.extraJavaOptions",
            f"-Dlog4j2.configurationFile={LOGGING} {java_options.options()}".strip(),
        )
    )
    if address is not None:
        os.environ["SPARK_LOCAL_IP"] = address
        builder = builder.config("spark.driver.bindAddress", address).config("spark.driver.host", address)
    return builder.getOrCreate()


def own_address(master: str) -> str | None:
    """Where the workers of a master reach this process: loopback, unless its cluster is on other machines. None: of YARN, whose
    configuration Spark reads, it finds out itself. Raises OSError."""
    if master == "yarn":
        return None
    found = _ON_MACHINES.match(master)
    if found is None:
        return "127.0.0.1"
    host, port = found[1].strip("[]"), found[2] or _HTTPS
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind, protocol) as towards:
        # Sends nothing: the system chooses the interface.
        towards.connect(address)
        return str(towards.getsockname()[0])


def cause(error: Exception) -> str:
    """What ended a query, in a line: what a worker says about the log, else the error's kind."""
    told = [line for line in str(error).splitlines() if line.startswith(WORKERS_SAY)]
    return told[-1].removeprefix(WORKERS_SAY) if told else type(error).__name__


class _StoppedError(Exception):
    """The gateway ends in the middle of a batch."""


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

    @property
    def session(self) -> SparkSession | None:
        """The session; None while there is none."""
        return self._spark

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
                self.state = f"restarting after {cause(error)}"
                log.exception("the streaming query ended; it starts again in a second")
                self._stopping.wait(1.0)
                self._leave_ended()

    def _leave_ended(self) -> None:
        """Another session takes the place of one that has ended by itself."""
        try:
            if forget_ended():
                self._spark = None
        except (Py4JError, OSError) as error:
            # Its JVM is about to end: it is looked at again.
            log.warning("Spark does not answer: %s", error)

    def _start_query(self) -> None:
        if self._spark is None:
            self._spark = session(self._master, self._directory)
            self._spark.dataSource.register(LogSource)
        progress = checkpoint.usable(self._directory, self._log_path)
        self._query = (
            self._spark.readStream.format("skerry_log")
            .option("path", str(self._log_path.resolve()))
            .load()
            .writeStream.foreachBatch(self._batch)
            .option("checkpointLocation", str(progress))
            .trigger(processingTime="0 seconds")
            .start()
        )

    def _batch(self, frame: DataFrame, number: int) -> None:
        del number
        began = time.monotonic()
        try:
            self._process(block_of(frame.toArrow()))
        except Exception:
            if not self._stopping.is_set():
                raise
            # Not as done: it comes again.
            raise _StoppedError(INTERRUPTED) from None
        self.batches += 1
        self.batch_seconds.append(time.monotonic() - began)

    def stop(self) -> None:
        """Stop query and session."""
        self._stopping.set()
        logging.getLogger("py4j").setLevel(logging.CRITICAL)
        if self._query is not None:
            self._query.stop()
        if self._spark is not None:
            self._spark.stop()

"""The driver's Spark session, and where its workers reach it."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path

from pyspark.sql import SparkSession

from skerry.spark.environment import PACKAGES

#: Spark's default starts processes for each file that it notes its progress in, which takes a third of a small batch's time; and
#: checksums of files of some hundred bytes, in files of their own, take as long again as the files.
CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
FILES = "org.apache.hadoop.fs.RawLocalFileSystem"
#: How often an idle query looks for rows. Spark's 10 ms takes an eighth of a processor while nothing comes, and cuts an epoch, whose rows
#: come within some ms of each other, into two batches.
LOOK = "50ms"
#: Masters of clusters on machines: spark://host:port, with further masters behind commas; Kubernetes, by its API server.
_ON_MACHINES = re.compile(r"(?:spark://|k8s://(?:https?://)?)(\[[^]]*]|[^:,/]+)(?::(\d+))?")
_HTTPS = "443"
#: What of Spark's log is shown. One of Spark's own, set later, would let through what it says until then.
LOGGING = (Path(__file__).parent / "log4j2.properties").as_uri()
#: Java's heap begins small, where it would with a sixty-fourth of the machine's memory, and keeps at most 40 % more than is in it. Of the
#: collectors it is the one that gives back the rest: Java's choice for servers takes three times what is in use, as long as rows come.
HEAP = "-XX:+UseSerialGC -Xms64m -XX:MinHeapFreeRatio=20 -XX:MaxHeapFreeRatio=40"

#: What Spark remembers of batches that are done, for pages that nobody shows, and with which its heap grows through the first thousand.
REMEMBERED = {
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    "spark.sql.ui.retainedExecutions": "10",
}


def session(master: str, directory: str, local: str) -> SparkSession:
    """A quiet session. Its workers run the interpreter at this one's path, and import skerry from where it is here. ``local``: for
    Spark's own files; a comma would make it two. Raises OSError, PySparkException, Py4JError."""
    address = os.environ.get("SPARK_LOCAL_IP") or own_address(master)
    builder = (
        SparkSession.builder.master(master)
        .appName("skerry")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.executorEnv.PYTHONPATH", PACKAGES)
        .config("spark.sql.shuffle.partitions", "2")
        # Questions about the past run beside the stream.
        .config("spark.scheduler.mode", "FAIR")
        .config("spark.sql.warehouse.dir", f"{directory}/warehouse")
        .config("spark.local.dir", local)
        .config("spark.sql.streaming.minBatchesToRetain", "10")
        .config("spark.sql.streaming.checkpointFileManagerClass", CHECKPOINTS)
        .config("spark.sql.streaming.checkpoint.fileChecksum.enabled", "false")
        .config("spark.hadoop.fs.file.impl", FILES)
        .config("spark.sql.streaming.pollingDelay", LOOK)
        .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={LOGGING} {heap()}".strip())
    )
    for name, value in REMEMBERED.items():
        builder = builder.config(name, value)
    if address is not None:
        os.environ["SPARK_LOCAL_IP"] = address
        builder = builder.config("spark.driver.bindAddress", address).config("spark.driver.host", address)
    return builder.getOrCreate()


def heap() -> str:
    """:data:`HEAP`, unless who starts the gateway has chosen a collector: of two Java takes none."""
    return "" if re.search(r"-XX:\+Use\w+GC\b", os.environ.get("SPARK_SUBMIT_OPTS", "")) else HEAP


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

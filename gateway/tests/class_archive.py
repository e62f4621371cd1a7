"""Lays out the Java classes of a Spark driver in an archive, with which each start takes half the time: ``python -m
gateway.tests.class_archive`` does so where there is none. Source: JDK 17, the java command, application class-data sharing."""

from __future__ import annotations

import os
import sys
import threading
import time

import numpy as np

from gateway.tests.java import ARCHIVE, BRIEF, CACHE
from skerry.execution.matched import MatchedBatch
from skerry.spark import supervisor
from skerry.spark.supervisor import SparkDriver
from skerry.storage.log.record import RECORD
from skerry.storage.log.stream_log import StreamLog

#: Java writes the archive when it ends, in s: ten on a machine that has nothing else to do. Killed meanwhile, it leaves none.
PATIENCE_S = 600.0


def make() -> None:
    """Of the classes that a driver takes which has had a batch."""
    supervisor._ENDING_S = PATIENCE_S
    os.environ["SPARK_SUBMIT_OPTS"] = f"{BRIEF} -XX:ArchiveClassesAtExit={ARCHIVE}"
    came = threading.Event()

    def process(batch: MatchedBatch) -> int:
        came.set()
        return batch.end

    # Java looks whether the jars are still there by the names that they had then.
    directory = CACHE / "spark"
    log = StreamLog(directory)
    log.append(np.zeros(10, RECORD))
    driver = SparkDriver("local[2]", directory, log.path, process)
    driver.start()
    assert came.wait(PATIENCE_S), driver.trouble
    driver.stop()
    log.close()
    # Java writes it when all else has ended.
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if ARCHIVE.exists() and time.time() - ARCHIVE.stat().st_mtime > 5:
            return
        time.sleep(0.1)
    print(f"{ARCHIVE}: Java has not written it: each start of a Spark takes twice as long", file=sys.stderr)


if __name__ == "__main__" and not ARCHIVE.exists():
    make()

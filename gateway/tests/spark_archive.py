"""Spark's Java classes, parsed and laid out once for all tests that start a gateway: each start takes half the time.

``python -m gateway.tests.spark_archive FILE`` makes the archive; Java passes over one that was made from other files.
Source: JEP 350, dynamic class-data sharing.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from pyspark import SparkContext

from gateway.tests.java import BRIEF
from skerry.proxy.spark import StreamingQuery
from skerry.streams.log import StreamLog
from skerry.streams.record import RECORD, Block


def make(file: Path) -> None:
    """Run what tests run, a streaming query over a log, and archive the classes that it took."""
    os.environ["SPARK_SUBMIT_OPTS"] = f"{BRIEF} -XX:ArchiveClassesAtExit={file}"
    seen = 0

    def process(block: Block) -> int:
        nonlocal seen
        seen = block.end
        return 0

    with tempfile.TemporaryDirectory() as directory:
        log = StreamLog(Path(directory))
        log.append(np.zeros(10, RECORD))
        query = StreamingQuery("local[2]", Path(directory), log.path, process)
        query.start()
        deadline = time.monotonic() + 300
        while seen < log.rows:
            if time.monotonic() > deadline:
                sys.exit(f"Spark has not begun: {query.state}")
            time.sleep(0.05)
        query.stop()
        log.close()
        java = SparkContext._gateway  # writes the archive when it ends
        java.shutdown()
        java.proc.stdin.close()
        java.proc.wait(300)


if __name__ == "__main__":
    make(Path(sys.argv[1]))

"""Makes the archive of Spark's Java classes, with which later starts take half the time (:mod:`skerry.spark.java_options`).

``python -m skerry.spark.class_archive`` makes it where there is none. A gateway does so by itself, once, when it has run for a while.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
from pyspark import SparkContext

from skerry.spark.java_options import QUIET, archive
from skerry.spark.streaming import StreamingQuery
from skerry.storage.log.record import RECORD, Block
from skerry.storage.log.stream_log import StreamLog

log = logging.getLogger(__name__)

#: How long a gateway runs before it makes one, in s: what is over soon is not disturbed.
AFTER_S = 60.0
#: How long it may take, in s.
LIMIT_S = 600.0
#: What making it has beside it until it is done.
UNDER_WAY = "making-"


def make(file: Path) -> None:
    """Run a streaming query over a log, and archive the classes that it took. Raises OSError, TimeoutError."""
    file.parent.mkdir(parents=True, exist_ok=True)
    _forget_unfinished(file.parent)
    directory = under_way(file.parent, os.getpid())
    directory.mkdir()
    try:
        made = directory / file.name
        own = f"-XX:ArchiveClassesAtExit={made} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xlog:disable"
        os.environ["SPARK_SUBMIT_OPTS"] = f"{own} {QUIET}"
        _run_query(directory)
        made.replace(file)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def under_way(cache: Path, process: int) -> Path:
    """Where a process keeps what it has not done with."""
    return cache / f"{UNDER_WAY}{process}"


def _forget_unfinished(directory: Path) -> None:
    """What somebody was killed at."""
    for left in directory.glob(f"{UNDER_WAY}*"):
        if left.stat().st_mtime < time.time() - 2 * LIMIT_S:
            shutil.rmtree(left, ignore_errors=True)


def _run_query(directory: Path) -> None:
    """A session of a process of its own, from its begin to the end of its Java."""
    seen = threading.Event()

    def process(block: Block) -> int:
        seen.set()
        return len(block.records)

    rows = StreamLog(directory)
    rows.append(np.zeros(10, RECORD))
    query = StreamingQuery("local[2]", directory, rows.path, process)
    query.start()
    try:
        if not seen.wait(LIMIT_S):
            raise TimeoutError(f"Spark has not begun within {LIMIT_S:.0f} s: {query.state}")
        query.stop()
    finally:
        rows.close()
        _end_java(orderly=seen.is_set())


def _end_java(*, orderly: bool) -> None:
    """Java writes the archive when it ends in order."""
    java = SparkContext._gateway
    if java is None:
        return
    if orderly:
        java.shutdown()
        java.proc.stdin.close()
        java.proc.wait(LIMIT_S)
    else:
        java.proc.kill()


class Archiving:
    """Makes the archive in a process of its own, after all others in turn for the processor, when there is none."""

    def __init__(self, after_s: float = AFTER_S) -> None:
        self._after_s = after_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="archive", daemon=True)

    def start(self) -> None:
        """In the background, when some time has passed."""
        self._thread.start()

    def stop(self) -> None:
        """End it if it is under way."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        if self._stopping.wait(self._after_s):
            return
        file = archive()
        if file is None or file.exists():
            return
        # A niceness of 19 is the least that a process may ask of the processor (nice(1)).
        maker = subprocess.Popen(
            ["nice", "-n", "19", sys.executable, "-m", __name__],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        while maker.poll() is None:
            if self._stopping.wait(0.2):
                # With its Java, which is in its group and would go on to write.
                os.killpg(maker.pid, signal.SIGKILL)
                maker.wait()
                shutil.rmtree(under_way(file.parent, maker.pid), ignore_errors=True)
                return
        if maker.returncode == 0:
            log.info("%s: Spark's classes, with which the next start takes half the time", file)
        else:
            log.info("%s could not be made: Spark goes on without; the next start tries again", file)


def main() -> None:
    """Make it where there is none, and say where it is."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    file = archive()
    if file is None:
        sys.exit(
            "no archive of Spark's classes: there is no java, or no home directory to keep it in: set SKERRY_CACHE"
        )
    if not file.exists():
        try:
            make(file)
        except (OSError, TimeoutError) as error:
            sys.exit(f"no archive of Spark's classes: {error}")
    print(file)


if __name__ == "__main__":
    main()

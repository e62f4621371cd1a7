"""A gateway that was killed with -9, with ten million rows in its log: how long until a new row is at its user."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from bench.machine import median, table
from gateway.tests.peer import RootPeer
from gateway.tests.process import Daemon, queue_rows, wait_for
from skerry.storage.log.record import RECORD
from skerry.storage.log.stream_log import StreamLog

ROWS = 10_000_000
STEP = 500_000
ROUNDS = 3
NODES = 54


def main() -> None:
    """Print the table."""
    # As a gateway has it that has run for a minute before.
    subprocess.run([sys.executable, "-m", "skerry.spark.class_archive"], check=True)
    root = RootPeer()
    with tempfile.TemporaryDirectory() as directory:
        data = Path(directory) / "data"
        daemon = Daemon(root.url, data)
        daemon.start()
        query = daemon.client("u").query("SELECT temp FROM sensors WHERE temp > 20 SAMPLE PERIOD 1 s").id
        wait_for(root.programs)
        daemon.kill()
        _fill(data)
        behind = _start(root, daemon, query, 60)
        daemon.kill()
        again = []
        for i in range(ROUNDS):
            again.append(_start(root, daemon, query, 61 + i))
            daemon.kill(signal.SIGKILL if i + 1 < ROUNDS else signal.SIGTERM)
    root.close()
    table(
        f"Restart after kill -9, {ROWS:,} rows in the log: start of the process → new row at its user",
        [
            (f"rows had been processed, median of {ROUNDS}", f"{median(again):.1f} s", "20 s"),
            ("no row had been processed", f"{behind:.1f} s", ""),
        ],
    )


def _fill(data: Path) -> None:
    log = StreamLog(data)
    now = int(time.time() * 1e6)
    for first in range(0, ROWS, STEP):
        made = np.zeros(STEP, RECORD)
        numbers = np.arange(first, first + STEP)
        made["stream"], made["node"], made["epoch"] = 1, 1 + numbers % NODES, 10 + numbers % 40
        made["sample"] = made["arrival"] = now - (ROWS - numbers) * 1000
        made["value"][:, 0] = 2000
        log.append(made)
    log.close()


def _start(root: RootPeer, daemon: Daemon, query: str, epoch: int) -> float:
    """Seconds from starting the process until its user has a row of this epoch, which no log has yet."""
    [(number, program)] = root.programs().items()
    began = time.monotonic()
    starting = threading.Thread(target=daemon.start)
    starting.start()
    queue_rows(root, number, range(epoch, epoch + 1), program)
    starting.join()
    position = daemon.client("u").status()["rows"] - 4
    for row in daemon.client("u").resume(query, max(position, ROWS - 1)):
        if row["temp"] > 20:
            return time.monotonic() - began
    raise AssertionError("the feed has ended")


if __name__ == "__main__":
    main()

"""A gateway that was killed with -9, with ten million rows in its log and windows for many: how long until a new row is at its user."""

from __future__ import annotations

import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.measuring.gateways import gateway_and_root
from bench.runner.benchmark import Benchmark, Options, option
from bench.runner.recorder import Recorder
from bench.runner.result import Spread
from gateway.tests.peer import RootPeer
from gateway.tests.process import Daemon, queue_rows, wait_for
from skerry.storage.log.record import RECORD
from skerry.storage.log.stream_log import StreamLog

STEP = 500_000
NODES = 54
#: An epoch behind all that go through windows.
_LATER = 2000


@dataclass(frozen=True)
class Log(Options):
    rows: int = option(10_000_000, "rows that the log has")
    rounds: int = option(3, "how often it is killed")
    windows: int = option(
        0, "further users who come before it is killed, each with a window of his own over the same motes"
    )
    through: int = option(0, "rows that go through these windows before it is killed")


def measure(options: Log, recorder: Recorder) -> None:
    """Once with rows that nobody has processed, then with rows that have been."""
    with gateway_and_root() as (daemon, root):
        daemon.start("--user-queries", str(options.windows + 10), "--user-rate", "100000")
        # Everybody's rows are among those of this one.
        daemon.client("all").query("SELECT nodeid, temp FROM sensors SAMPLE PERIOD 1 s")
        query = daemon.client("u").query("SELECT temp FROM sensors WHERE temp > 20 SAMPLE PERIOD 1 s").id
        wait_for(root.programs)
        daemon.kill()
        recorder.progress(f"writing {options.rows:,} rows")
        _fill(daemon.data, options.rows)
        behind = _start(root, daemon, query, 60, options.rows)
        crowd = daemon.client("crowd")
        for other in range(options.windows):
            crowd.query(windowed(other))
        if options.through:
            _through(root, daemon, options)
        again = []
        for turn in recorder.steps(range(1, options.rounds + 1), "starts"):
            daemon.kill()
            again.append(_start(root, daemon, query, _LATER + turn, options.rows))
        daemon.kill(signal.SIGTERM)
    beside = f" and {options.windows:,} windows" if options.windows else ""
    recorder.figure(
        f"kill -9 with {options.rows:,} rows in the log{beside} → a new row at its user", Spread.of(again), "s", ".1f",
        better="less", goal=20, main=True,
    )  # fmt: skip
    recorder.figure("the same, none of the rows having been processed", behind, "s", ".1f", better="less")


def _through(root: RootPeer, daemon: Daemon, options: Log) -> None:
    """Rows of all motes, epoch by epoch, as they come; until all have been through."""
    [(number, program)] = root.programs().items()
    before = daemon.client("u").status()["rows"]
    motes = range(1, NODES + 1)
    epochs = range(100, 100 + options.through // NODES)
    queue_rows(root, number, epochs, program, motes)
    due = before + len(epochs) * NODES
    wait_for(lambda: daemon.client("u").status()["processed"] >= due, 900)


def windowed(number: int) -> str:
    """A user's query: averages of the motes' warm readings, each user's condition another."""
    window, where = f"AVG(temp, {1 + number % 10} min)", f"temp > {20 + number / 1000}"
    return f"SELECT nodeid, {window} FROM sensors WHERE {where} GROUP BY nodeid SAMPLE PERIOD 1 s"


def _fill(data: Path, count: int) -> None:
    log = StreamLog(data)
    now = int(time.time() * 1e6)
    for first in range(0, count, STEP):
        numbers = np.arange(first, min(first + STEP, count))
        made = np.zeros(len(numbers), RECORD)
        made["stream"], made["node"], made["epoch"] = 1, 1 + numbers % NODES, 10 + numbers % 40
        made["sample"] = made["arrival"] = now - (count - numbers) * 1000
        made["value"][:, 0] = 2000
        log.append(made)
    log.close()


def _start(root: RootPeer, daemon: Daemon, query: str, epoch: int, rows: int) -> float:
    """Seconds from starting the process until its user has a row of this epoch, which no log has yet."""
    [(number, program)] = root.programs().items()
    began = time.monotonic()
    starting = threading.Thread(target=daemon.start)
    starting.start()
    queue_rows(root, number, range(epoch, epoch + 1), program)
    starting.join()
    position = daemon.client("u").status()["rows"] - 4
    for row in daemon.client("u").resume(query, max(position, rows - 1)):
        if row["temp"] > 20:
            return time.monotonic() - began
    raise AssertionError("the feed has ended")


BENCHMARK = Benchmark(measure, quick=Log(rows=20_000, rounds=1), minutes=4)

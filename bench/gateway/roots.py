"""Many roots on one gateway, each with a stream of its own on its serial line: whether a backlog grows, and what the gateway holds."""

from __future__ import annotations

import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench.measuring.processes import (
    COMPACTION,
    JAVA,
    PYTHON,
    WORKERS,
    memory_shares,
    processor_seconds,
    processor_shares,
)
from bench.measuring.serial_streams import SerialStreams
from bench.runner.benchmark import Benchmark, Options, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column
from gateway.tests.process import Daemon, wait_for


@dataclass(frozen=True)
class Lines(Options):
    roots: int = option(100, "roots, each with twenty motes")
    rate: int = option(200, "rows/s that each brings")
    minutes: float = option(10.0, "for how long")
    look_s: float = option(30.0, "s between two looks")


def measure(options: Lines, recorder: Recorder) -> None:
    """One gateway, one query for all."""
    streams = SerialStreams(options.roots, options.rate)
    try:
        with tempfile.TemporaryDirectory(prefix="skerry-bench-") as directory:
            daemon = Daemon(streams.urls[0], Path(directory) / "data", *streams.urls[1:])
            try:
                _measure(options, recorder, streams, daemon)
            finally:
                if daemon.process is not None and daemon.process.poll() is None:
                    daemon.kill()
    finally:
        streams.close()


#: Who has the machine's processors: the gateway's process, what it starts, and the roots, which are no part of it.
_SHARES = "gateway", "driver", "Java", "Spark's Python and compaction", "roots"

#: Who has the memory.
_HOLDERS = PYTHON, JAVA, WORKERS, COMPACTION


def _processor_times(gateway: int, streams: SerialStreams) -> tuple[float, ...]:
    """Of :data:`_SHARES`, in s."""
    own = processor_seconds(gateway)
    shares = processor_shares(gateway)
    rest = shares[WORKERS] + shares[COMPACTION]
    return own, shares[PYTHON] - own, shares[JAVA], rest, processor_seconds(streams.number)


def _measure(options: Lines, recorder: Recorder, streams: SerialStreams, daemon: Daemon) -> None:
    table = recorder.table(
        "looks",
        [
            Column("after", "min", ".1f"), Column("rows due", form=","), Column("stored", form=","),
            Column("the last root's rows wait", "s", ".1f", better="less"), Column("not through Spark yet", form=","),
            Column("memory", "GiB", ".2f", better="less"),
            *(Column(f"memory: {name}", "GiB", ".2f") for name in _HOLDERS),
            *(Column(f"processor time: {name}", "s/s", ".2f", better="less") for name in _SHARES),
        ],
    )  # fmt: skip
    recorder.progress(f"{options.roots} roots: starting")
    daemon.start()
    client = daemon.client("u")
    client.query("SELECT nodeid, temp FROM sensors WHERE temp > 29.9 SAMPLE PERIOD 1 s")
    wait_for(lambda: streams.asked() == options.roots, 120)
    assert daemon.process is not None
    streams.play()
    began = looked = time.monotonic()
    spent = _processor_times(daemon.process.pid, streams)
    waits, held = [], []
    while looked - began < 60 * options.minutes:
        time.sleep(max(0.0, looked + options.look_s - time.monotonic()))
        now, taken = time.monotonic(), _processor_times(daemon.process.pid, streams)
        done, status = streams.progress(), client.status()
        shares = memory_shares(daemon.process.pid)
        memory = sum(shares.values()) / 2**30
        table.row(
            (now - began) / 60, done.due, done.stored, done.late_s, status["rows"] - status["processed"], memory,
            *(shares[name] / 2**30 for name in _HOLDERS),
            *((after - before) / (now - looked) for after, before in zip(taken, spent, strict=True)),
        )  # fmt: skip
        recorder.progress(
            f"{(now - began) / 60:.1f} min: {done.stored:,} of {done.due:,}, {done.late_s:.1f} s behind, {memory:.2f} GiB"
        )
        waits.append(done.late_s)
        if shares[WORKERS] > 0 and status["processed"]:
            # Before that Spark starts.
            held.append(memory)
        looked, spent = now, taken
    streams.end()
    ended = time.monotonic()
    wait_for(lambda: streams.progress().stored == streams.progress().due, 600)
    wait_for(lambda: client.status()["processed"] == client.status()["rows"], 600)
    done = streams.progress()
    rows = client.status()["rows"]
    if rows != done.due:
        recorder.problem(f"the log has {rows:,} rows, and {done.due:,} were sent")
    third = max(1, len(waits) // 3)
    recorder.figure(
        f"{options.roots} roots at {options.rate} rows/s: the last root's rows wait, in the last third, median",
        statistics.median(waits[-third:]), "s", ".1f", better="less", goal=1.0, main=True,
    )  # fmt: skip
    recorder.figure(
        "until all has been through, after the last row", time.monotonic() - ended, "s", ".1f", better="less"
    )
    if not held:
        recorder.problem("Spark had no batch until the end")
        return
    third = max(1, len(held) // 3)
    recorder.figure("memory of all processes at the end", held[-1], "GiB", ".2f", better="less")
    recorder.figure(
        "times the first third's since Spark has batches",
        statistics.median(held[-third:]) / statistics.median(held[:third]),
        "",
        ".2f",
        better="less",
    )


BENCHMARK = Benchmark(measure, quick=Lines(roots=10, minutes=0.5, look_s=5.0), minutes=12)

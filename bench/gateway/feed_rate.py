"""One reader who comes back for rows that the log has: how fast each kind of feed reaches the Python client over HTTP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import skerry
from bench.measuring.gateways import gateway_and_root
from bench.runner.benchmark import Benchmark, Options, option
from bench.runner.recorder import Recorder
from gateway.tests.process import wait_for
from skerry.storage.log.record import RECORD
from skerry.storage.log.stream_log import StreamLog

MOTES = 50
#: Later than the query's first epoch.
BEGIN = 60


@dataclass(frozen=True)
class Log(Options):
    rows: int = option(300_000, "rows that the log has")


def measure(options: Log, recorder: Recorder) -> None:
    """All kinds, one after the other."""
    with gateway_and_root() as (daemon, root):
        recorder.progress("starting")
        daemon.start()
        query = daemon.client().query("SELECT nodeid, temp FROM sensors SAMPLE PERIOD 1 s").id
        wait_for(root.programs)
        daemon.kill()
        fill(daemon.data, options.rows)
        daemon.start()
        client = daemon.client()
        for name, read in recorder.steps(list(ways(options.rows).items())):
            recorder.progress(name)
            began = time.monotonic()
            assert read(client.resume(query)) == options.rows
            rate = options.rows / (time.monotonic() - began)
            recorder.figure(
                f"rows of the log over HTTP, {name}", rate, "/s", ",.0f", better="more", main=True
            )


def fill(data: Path, count: int) -> None:
    """Rows of the one stream there is."""
    log = StreamLog(data)
    place = np.arange(count)
    for chosen in np.array_split(place, 10):
        records = np.zeros(len(chosen), RECORD)
        records["stream"] = 1
        records["node"], records["epoch"] = chosen % MOTES + 1, chosen // MOTES + BEGIN
        records["sample"], records["arrival"] = (
            records["epoch"].astype(np.int64) * 1000,
            time.time_ns() // 1000,
        )
        records["value"][:, 0] = 2000 + chosen % 1000
        log.append(records)
    log.close()


def ways(count: int) -> dict[str, Callable[[skerry.Rows], int]]:
    """How rows can be read, each giving how many it has read."""

    async def asynchronous(rows: skerry.Rows) -> int:
        read = 0
        async for _ in rows:
            read += 1
            if read == count:
                break
        return read

    return {
        "server-sent events, row by row": lambda rows: sum(1 for _ in zip(range(count), rows, strict=False)),
        "server-sent events, asynchronously": lambda rows: asyncio.run(asynchronous(rows)),
        "Arrow, as a table": lambda rows: rows.to_arrow(rows=count).num_rows,
        "Arrow, as a data frame": lambda rows: len(rows.to_pandas(rows=count)),
    }


BENCHMARK = Benchmark(measure, quick=Log(rows=5_000), minutes=1)

"""One reader who comes back for rows that the log has: how fast each kind of feed reaches the Python client over HTTP."""

from __future__ import annotations

import asyncio
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import skerry
from bench.machine import table
from gateway.tests.peer import RootPeer
from gateway.tests.process import Daemon, wait_for
from skerry.storage.log.record import RECORD
from skerry.storage.log.stream_log import StreamLog

ROWS = 300_000
MOTES = 50
#: Later than the query's first epoch.
BEGIN = 60


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory(prefix="skerry-feeds-") as directory:
        peer = RootPeer()
        daemon = Daemon(peer.url, Path(directory) / "data")
        try:
            daemon.start()
            query = daemon.client().query("SELECT nodeid, temp FROM sensors SAMPLE PERIOD 1 s").id
            wait_for(peer.programs)
            daemon.kill()
            _fill(daemon.data)
            daemon.start()
            figures = _measure(daemon.client(), query)
        finally:
            daemon.kill(signal.SIGTERM)
            peer.close()
    table(
        "Feeds",
        [(f"rows of the log over HTTP, {name}", f"{rate:,.0f}/s", "none") for name, rate in figures],
    )


def _fill(data: Path) -> None:
    """Rows of the one stream there is."""
    log = StreamLog(data)
    place = np.arange(ROWS)
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


def _measure(client: skerry.Client, query: str) -> list[tuple[str, float]]:
    async def asynchronous(rows: skerry.Rows) -> int:
        count = 0
        async for _ in rows:
            count += 1
            if count == ROWS:
                break
        return count

    ways: dict[str, Callable[[skerry.Rows], int]] = {
        "server-sent events, row by row": lambda rows: sum(1 for _ in zip(range(ROWS), rows, strict=False)),
        "the same, asynchronously": lambda rows: asyncio.run(asynchronous(rows)),
        "Arrow, as a table": lambda rows: rows.to_arrow(rows=ROWS).num_rows,
        "Arrow, as a data frame": lambda rows: len(rows.to_pandas(rows=ROWS)),
    }
    figures = []
    for name, read in ways.items():
        began = time.monotonic()
        assert read(client.resume(query)) == ROWS
        figures.append((name, ROWS / (time.monotonic() - began)))
    return figures


if __name__ == "__main__":
    main()

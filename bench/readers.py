"""Readers through HTTP, each with a connection and a range filter of his own: from the serial line until a row has reached its reader."""

from __future__ import annotations

import asyncio
import json
import random
import resource
import signal
import struct
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.crowd import MOTES, SPAN, WIDTH, filtered
from bench.machine import median, proportional_memory, table
from gateway.tests.peer import RootPeer
from gateway.tests.process import Daemon, wait_for
from skerry_protocol import codec
from skerry_protocol.packets import PacketType

#: Readers there are when rows are timed; each gets a thousandth of the rows.
CROWDS = [100, 1_000, 10_000]
#: Rows a second on the line, in so many steps, and for how long in s.
RATE, STEPS, LENGTH = 200, 10, 10
#: Later than the query's first epoch.
BEGIN = 60


class Readers:
    """Connections, and how long rows took to them."""

    def __init__(self, port: int) -> None:
        self.sent: dict[tuple[int, int], float] = {}
        self.waits: list[float] = []
        self._port = port
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self, queries: list[str]) -> None:
        """One more reader for each; returns when all have been answered."""
        for query in queries:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
            writer.write(f"GET /queries/{query}/rows HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            if not (await reader.readline()).startswith(b"HTTP/1.1 200"):
                raise RuntimeError(f"query {query} is not to be read")
            self._tasks.append(asyncio.create_task(self._read(reader, writer)))

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async for line in reader:
                if line.startswith(b"data: "):
                    row = json.loads(line[6:])
                    self.waits.append(time.monotonic() - self.sent[row["nodeid"], row["light"]])
        finally:
            writer.close()

    async def close(self) -> None:
        """All of them."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def main() -> None:
    """Print the table."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    root = RootPeer()
    with tempfile.TemporaryDirectory() as directory:
        daemon = Daemon(root.url, Path(directory) / "data")
        try:
            daemon.start()
            rows = asyncio.run(_measure(root, daemon))
        finally:
            daemon.kill(signal.SIGTERM)
            root.close()
    table(f"Readers through HTTP, {RATE} rows a second on the serial line", rows)


async def _measure(root: RootPeer, daemon: Daemon) -> list[tuple[str, str, str]]:
    chance = random.Random(1)
    client = daemon.client("crowd")
    # The others' conditions lie within these, so that motes are asked once.
    queries = [client.query(filtered(low)).id for low in (0, SPAN - WIDTH)]
    await asyncio.to_thread(wait_for, root.programs)
    readers, found, values = Readers(daemon.port), [], chance.sample(range(SPAN), SPAN)
    await readers.open(queries)
    assert daemon.process is not None
    for crowd in CROWDS:
        more = [
            client.query(filtered(chance.randrange(SPAN - WIDTH))).id for _ in range(crowd - len(queries))
        ]
        await readers.open(more)
        queries += more
        # What a new reader costs once is not timed.
        await _push(root, readers, values, 2)
        await asyncio.to_thread(wait_for, lambda: _through(client.status()))
        readers.waits.clear()
        await _push(root, readers, values, LENGTH)
        waits = sorted(readers.waits)
        memory = proportional_memory(daemon.process.pid) / 2**30
        found += [
            (f"{crowd:,} readers: rows they got", f"{len(waits):,}", f"{RATE * LENGTH * crowd // 1000:,}"),
            ("from the line to a reader, median", f"{1000 * median(waits):.0f} ms", "500 ms"),
            ("the same, 95 %", f"{1000 * waits[int(0.95 * len(waits))]:.0f} ms", ""),
            ("memory of gateway and Spark", f"{memory:.2f} GiB", "3 GB"),
        ]
    await readers.close()
    return found


def _through(status: dict[str, Any]) -> bool:
    """Whether all rows have been through Spark."""
    return bool(status["processed"] == status["rows"] > 0)


async def _push(root: RootPeer, readers: Readers, values: list[int], seconds: int) -> None:
    """Rows of all motes, an epoch after the other; returns when they have had time to arrive."""
    [query] = list(root.programs())[-1:]
    began = time.monotonic()
    for step in range(seconds * STEPS):
        for _ in range(RATE // STEPS):
            number = len(readers.sent)
            node, epoch, value = number % MOTES + 1, BEGIN + number // MOTES, values[number % SPAN]
            body = struct.pack("<H", value)
            readers.sent[node, value] = time.monotonic()
            packet = codec.encode(
                PacketType.RESULT, query=query, node=node, epoch=epoch, nulls=0, values=body
            )
            root.waiting.append(packet)
        await asyncio.sleep(max(0.0, began + (step + 1) / STEPS - time.monotonic()))
    await asyncio.sleep(3)


if __name__ == "__main__":
    main()

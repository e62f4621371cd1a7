"""From the serial line until a row has reached its reader through HTTP; each has a connection and a range filter of his own."""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import struct
import time
from dataclasses import dataclass
from typing import Any

from bench.measuring.crowd import MOTES, SPAN, WIDTH, filtered
from bench.measuring.gateways import gateway_and_root
from bench.measuring.open_files import allow_open_files
from bench.measuring.processes import proportional_memory
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder, Rows
from bench.runner.result import Column
from gateway.tests.peer import RootPeer
from gateway.tests.process import Daemon, wait_for
from skerry_protocol import codec
from skerry_protocol.codes import PacketType

#: Rows a second on the line, in so many steps.
RATE, STEPS = 200, 10
#: Later than the first epoch of any user's query, however long a slow machine takes until all have asked.
BEGIN = 10_000


@dataclass(frozen=True)
class Options(SeedOptions):
    crowds: tuple[int, ...] = option(
        (100, 1_000, 10_000), "readers there are; each gets a thousandth of the rows"
    )
    length: int = option(10, "s of rows that are timed")
    workers: tuple[int, ...] = option(
        (0, 1, 2), "API processes beside the gateway's own; 0: that serves readers"
    )


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


def measure(options: Options, recorder: Recorder) -> None:
    """One gateway for each number of API processes, read by more and more."""
    allow_open_files(max(options.crowds) + 1_000)
    table = recorder.table(
        "readers",
        [
            Column("API processes"), Column("readers"), Column("rows they got in time", form=",", better="more"),
            Column("rows expected", form=","), Column("from the line to a reader, median", "ms", ".0f", better="less"),
            Column("the same, 95 %", "ms", ".0f", better="less"), Column("gateway, API processes and Spark", "GiB", ".2f", better="less"),
        ],
        labels=2,
    )  # fmt: skip
    for workers in options.workers:
        with gateway_and_root() as (daemon, root):
            recorder.progress(f"{workers} API processes: starting")
            daemon.start("--api-workers", str(workers))
            asyncio.run(_measure(root, daemon, workers, options, recorder, table))


async def _measure(
    root: RootPeer, daemon: Daemon, workers: int, options: Options, recorder: Recorder, table: Rows
) -> None:
    chance = random.Random(options.seed)
    client = daemon.client("crowd")
    # The others' conditions lie within these, so that motes are asked once.
    queries = [client.query(filtered(low)).id for low in (0, SPAN - WIDTH)]
    await asyncio.to_thread(wait_for, root.programs)
    readers, values = Readers(daemon.port), chance.sample(range(SPAN), SPAN)
    await readers.open(queries)
    assert daemon.process is not None
    for crowd in options.crowds:
        recorder.progress(f"{workers} API processes, {crowd:,} readers")
        more = [
            client.query(filtered(chance.randrange(SPAN - WIDTH))).id for _ in range(crowd - len(queries))
        ]
        await readers.open(more)
        queries += more
        # What a new reader costs once is not timed.
        await _push(root, readers, values, 2)
        await asyncio.to_thread(wait_for, lambda: _through(client.status()))
        readers.waits.clear()
        await _push(root, readers, values, options.length)
        waits = sorted(readers.waits)
        middle, late = (1e3 * wait for wait in (statistics.median(waits), waits[int(0.95 * len(waits))]))
        memory = proportional_memory(daemon.process.pid) / 2**30
        table.row(workers, crowd, len(waits), RATE * options.length * crowd // 1000, middle, late, memory)
    _tell(recorder, workers, crowd, middle, memory)
    await readers.close()


def _tell(recorder: Recorder, workers: int, crowd: int, middle: float, memory: float) -> None:
    """What is known of as many readers as there are."""
    by = f", {workers} API processes" if workers else ""
    recorder.figure(
        f"from the line to one of {crowd:,} readers, median{by}",
        middle,
        "ms",
        ".0f",
        better="less",
        goal=500,
        main=not workers,
    )
    recorder.figure(
        f"memory of gateway and Spark, {crowd:,} readers{by}", memory, "GiB", ".2f", better="less",
        goal=None if workers else 2.79, reference="" if workers else "3 GB", main=not workers,
    )  # fmt: skip


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


BENCHMARK = Benchmark(measure, quick=Options(crowds=(100,), length=5, workers=(0, 1, 2)), minutes=9)

"""Readers of feeds through HTTP, as Arrow: a connection each, all in one thread, which looks no further than whose rows have come."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterable

import pyarrow as pa

#: Connections that are opened at a time.
_AT_ONCE = 50
_LIMIT = 1 << 24


class ArrowReaders:
    """``rows``: how many have come; ``seen``: while ``timed``, (row's number, when it came in s of the monotonic clock) of each."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._tasks: list[asyncio.Task[None]] = []
        self.rows = 0
        self.timed = False
        self.seen: list[tuple[int, float]] = []

    async def open(self, queries: Iterable[str], after: int) -> None:
        """One more reader for each query, of its rows behind a position; returns when all have been answered."""
        waiting = list(queries)
        for at in range(0, len(waiting), _AT_ONCE):
            await asyncio.gather(*(self._open(query, after) for query in waiting[at : at + _AT_ONCE]))

    async def _open(self, query: str, after: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=_LIMIT)
        writer.write(
            f"GET /queries/{query}/rows?user=crowd&after={after} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            "Accept: application/vnd.apache.arrow.stream\r\n\r\n".encode()
        )
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"query {query}: {head.decode()}")
        self._tasks.append(asyncio.create_task(self._read(reader, writer)))

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        schema, rest = None, b""
        try:
            while size := int(await reader.readline(), 16):
                rest += (await reader.readexactly(size + 2))[:-2]
                now = time.monotonic()
                source = pa.BufferReader(rest)
                done = 0
                while (message := _message(source)) is not None:
                    done = source.tell()
                    if schema is None:
                        schema = pa.ipc.read_schema(message)
                        continue
                    self._came(pa.ipc.read_record_batch(message, schema), now)
                rest = rest[done:]
        finally:
            writer.close()

    def _came(self, batch: pa.RecordBatch, now: float) -> None:
        self.rows += batch.num_rows
        if self.timed:
            self.seen += [(number, now) for number in batch.column(0).to_pylist()]

    async def until(self, rows: int, limit_s: float = 120) -> float:
        """When so many have come, in s of the monotonic clock."""
        deadline = time.monotonic() + limit_s
        while self.rows < rows:
            for task in self._tasks:
                if task.done():
                    task.result()
                    raise RuntimeError("a feed has ended")
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.rows:,} rows have come, of {rows:,}")
            await asyncio.sleep(0.005)
        return time.monotonic()

    async def close(self) -> None:
        """All of them."""
        for task in self._tasks:
            task.cancel()
        with contextlib.suppress(Exception):
            await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()


def _message(source: pa.BufferReader) -> pa.Message | None:
    """The next one, if it is there as a whole."""
    try:
        return pa.ipc.read_message(source)
    except (EOFError, pa.ArrowInvalid, OSError):
        return None

"""Lines over TCP: ``tcp://host:port?format=json``. What was sent while nobody listened is gone: each line that came is delivered once."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from skerry.sources.lines import Lines
from skerry.sources.stream_type import AddressError, Read, Sensor, Signal, StreamType

_CONNECT_S = 10.0
_READ_BYTES = 1 << 18


class TcpLines(StreamType):
    """A server that sends lines. When it hangs up it is called again."""

    options: ClassVar[frozenset[str] | None] = frozenset({"format"})
    reads_tuple: ClassVar[bool] = False

    async def init(self, sensor: Sensor) -> None:
        """Connect."""
        url = sensor.url
        try:
            host, port = url.hostname, url.port
        except ValueError:
            host = port = None
        if not host or not port:
            raise AddressError(f"'{sensor.address}' names no host and port: write tcp://127.0.0.1:5001")
        self._lines = Lines()
        async with asyncio.timeout(_CONNECT_S):
            self._reader, self._writer = await asyncio.open_connection(host, port)

    async def read(self) -> Read:
        """The lines that have come."""
        data = await self._reader.read(_READ_BYTES)
        if not data:
            raise ConnectionResetError("it has hung up")
        return self._lines.take(data) or Signal.NO_VALUE

    async def close(self) -> None:
        """Hang up."""
        writer = getattr(self, "_writer", None)
        if writer is not None:
            writer.close()

"""The HTTP server, which ends without complaint while feeds are open: those are cut off, and their readers know that there is more."""

from __future__ import annotations

import asyncio
import logging
import socket

import uvicorn


class Server(uvicorn.Server):
    """Uvicorn's, of which each feed that it cuts off at its end is an error with a traceback."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close all connections."""
        log = logging.getLogger("uvicorn.error")
        log.addFilter(_is_unexpected)
        try:
            await super().shutdown(sockets)
            # Those that were cancelled have not noticed yet.
            await asyncio.gather(*self.server_state.tasks, return_exceptions=True)
        finally:
            log.removeFilter(_is_unexpected)


def _is_unexpected(record: logging.LogRecord) -> bool:
    cut_off = record.exc_info is not None and isinstance(record.exc_info[1], asyncio.CancelledError)
    return not cut_off and not str(record.msg).startswith("Cancel %s running task(s)")

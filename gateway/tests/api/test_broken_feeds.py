"""A feed that a fault of the gateway's ends, or the gateway's end: its reader knows that it is no end, and the log tells faults."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import AsyncGenerator

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from gateway.tests.process import wait_for
from skerry.api.feeds import SSE, FeedResponse
from skerry.api.server import Server


def test_a_feed_that_fails_is_broken_off_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    app = FastAPI()

    async def failing() -> AsyncGenerator[bytes, None]:
        yield b"event: row\n\n"
        raise LookupError("no such row")

    app.get("/", response_model=None)(lambda: FeedResponse(failing(), SSE))
    server = Server(uvicorn.Config(app, log_config=None))
    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        with httpx.stream("GET", url) as response:
            pieces = response.iter_raw()
            assert next(pieces) == b"event: row\n\n"
            with pytest.raises(httpx.RemoteProtocolError, match="incomplete chunked read"):
                next(pieces)
        wait_for(lambda: "LookupError: no such row" in caplog.text)
    finally:
        server.should_exit = True
        thread.join(30)


def test_feeds_that_are_open_when_the_gateway_ends_are_no_errors(caplog: pytest.LogCaptureFixture) -> None:
    app = FastAPI()

    async def endless() -> AsyncGenerator[bytes, None]:
        while True:
            yield b"event: row\n\n"
            await asyncio.sleep(0.01)

    app.get("/", response_model=None)(lambda: FeedResponse(endless(), SSE))
    server = Server(uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1))
    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    with httpx.stream("GET", url) as response:
        pieces = response.iter_raw()
        assert next(pieces) == b"event: row\n\n"
        server.should_exit = True
        with pytest.raises(httpx.RemoteProtocolError, match="incomplete chunked read"):
            list(pieces)
    thread.join(30)
    assert not thread.is_alive()
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []

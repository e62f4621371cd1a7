"""A feed that a fault of the gateway's ends: the log says which, and its reader knows that it is no end."""

from __future__ import annotations

import socket
import threading
from collections.abc import AsyncGenerator

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from gateway.tests.process import wait_for
from skerry.api.feeds import SSE, FeedResponse


def test_a_feed_that_fails_is_broken_off_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    app = FastAPI()

    async def failing() -> AsyncGenerator[bytes, None]:
        yield b"event: row\n\n"
        raise LookupError("no such row")

    app.get("/", response_model=None)(lambda: FeedResponse(failing(), SSE))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None))
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

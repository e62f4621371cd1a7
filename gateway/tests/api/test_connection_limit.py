"""More connections than there may be."""

from __future__ import annotations

import socket
import threading
from contextlib import ExitStack

import httpx
import uvicorn
from fastapi import FastAPI

from gateway.tests.process import wait_for
from skerry.api.connection_limit import Crowded


def test_one_connection_too_many_is_told_so_in_json() -> None:
    app = FastAPI()
    app.get("/")(lambda: {})
    crowded = Crowded(app, 2)
    server = uvicorn.Server(uvicorn.Config(crowded, log_level="error"))
    crowded.connections = server.server_state.connections
    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        with ExitStack() as stack:
            first, second, third = (stack.enter_context(httpx.Client(base_url=url)) for _ in range(3))
            assert [client.get("/").status_code for client in (first, second)] == [200, 200]
            refused = third.get("/")
            assert refused.status_code == 503
            assert refused.headers["Connection"] == "close"
            assert refused.json()["message"].startswith("the gateway has 2 connections, and that is the most")
            assert first.get("/").status_code == 200
            second.close()
            wait_for(lambda: third.get("/").status_code == 200)
    finally:
        server.should_exit = True
        thread.join(30)

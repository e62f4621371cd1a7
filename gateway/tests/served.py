"""A gateway of this process behind a real HTTP server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from gateway.tests.ports import free_port
from gateway.tests.process import wait_for
from skerry.api.access import Access
from skerry.api.app import create_app
from skerry.api.operator import OperatorDoor
from skerry.service.gateway import Gateway


@contextmanager
def served(gateway: Gateway, key: str = "", *, tokens: bool = False) -> Iterator[str]:
    """Its URL. ``key``: the operator's; ``tokens``: users are asked for theirs."""
    port, access = free_port(), Access(gateway.users, open=not tokens)
    operator = OperatorDoor(key, gateway.users) if key else None
    app = create_app(gateway.queries, gateway.delivery, gateway.site, access, operator=operator)
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_config=None, timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_for(lambda: server.started)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(10)

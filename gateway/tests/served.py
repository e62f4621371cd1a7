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
from skerry.service.gateway import Gateway


@contextmanager
def served(gateway: Gateway) -> Iterator[str]:
    """Its URL."""
    port = free_port()
    app = create_app(gateway.queries, gateway.delivery, gateway.site, Access())
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_config=None, timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_for(lambda: server.started)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(10)

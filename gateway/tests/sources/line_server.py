"""A detector, a real TCP server that sends lines to whoever listens; and a reader of what comes of them."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any

import skerry
from gateway.tests.process import wait_for
from skerry.client.errors import GatewayError


class LineServer:
    """Knows who is connected, and how often somebody has been."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._clients: list[socket.socket] = []
        #: Connections that there have been.
        self.calls = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        """For a tuple."""
        return f"tcp://127.0.0.1:{self.port}?format=json"

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            self.calls += 1
            self._clients = [*self._clients, client]
            threading.Thread(target=self._watch, args=(client,), daemon=True).start()

    def _watch(self, client: socket.socket) -> None:
        """Until the other side hangs up."""
        try:
            while client.recv(4096):
                pass
        except OSError:
            pass
        self._clients = [other for other in self._clients if other is not client]
        client.close()

    @property
    def listeners(self) -> int:
        """Who is connected now."""
        return len(self._clients)

    def send(self, *rows: dict[str, Any] | bytes) -> None:
        """To all who listen; waits for one."""
        wait_for(lambda: self._clients)
        data = b"".join(row if isinstance(row, bytes) else json.dumps(row).encode() + b"\n" for row in rows)
        for client in self._clients:
            client.sendall(data)

    def hang_up(self) -> None:
        """On all."""
        for client in self._clients:
            # One may have hung up by itself.
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Nobody can call any more."""
        # A thread that waits in accept keeps it open otherwise.
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self.hang_up()


class Reader:
    """Rows as they come, in a thread, which ends with the query, or when the gateway has ended with the test."""

    def __init__(self, rows: skerry.Rows) -> None:
        self.rows, self.got = rows, list[dict[str, Any]]()
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        try:
            for row in self.rows:
                self.got.append(row)
        except GatewayError as error:
            # No test has its gateway away for as long as a client tries.
            if not str(error).endswith("the gateway does not come back"):
                raise


def eventually(found: Callable[[], Sequence[Any]], expected: Sequence[Any]) -> None:
    """Waits for as many, and compares all."""
    wait_for(lambda: len(found()) >= len(expected))
    assert list(found()) == list(expected)

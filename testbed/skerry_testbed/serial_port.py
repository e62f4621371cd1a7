"""The root's serial line as a TCP port, which pyserial opens as ``socket://127.0.0.1:PORT``.

One client at a time. As on a real line, what the root says while nobody listens is gone."""

from __future__ import annotations

import socket

from skerry_testbed.core import TestbedError
from skerry_testbed.runner import Testbed


class SerialPort:
    """Moves bytes between the testbed's root and a TCP client, without ever waiting."""

    def __init__(self, testbed: Testbed, port: int) -> None:
        self._testbed = testbed
        self._client: socket.socket | None = None
        self._server = socket.socket()
        self._server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._server.bind(("127.0.0.1", port))
        except OSError as error:
            raise TestbedError(f"port {port}: {error.strerror}; choose another with --port") from None
        self._server.listen(1)
        self._server.setblocking(False)
        testbed.line_listeners.append(self._send)

    @property
    def port(self) -> int:
        """The port that was bound."""
        number: int = self._server.getsockname()[1]
        return number

    def poll(self) -> None:
        """Take what the client has sent; accept a client if there is none."""
        if self._client is None:
            try:
                self._client, _ = self._server.accept()
            except BlockingIOError:
                return
            self._client.setblocking(False)
            self._client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            data = self._client.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._testbed.send(data)
        else:
            self._drop()

    def _send(self, data: bytes) -> None:
        if self._client is None:
            return
        try:
            self._client.sendall(data)
        except OSError:
            self._drop()

    def _drop(self) -> None:
        if self._client is not None:
            self._client.close()
        self._client = None

    def close(self) -> None:
        """Close client and port."""
        self._drop()
        self._server.close()

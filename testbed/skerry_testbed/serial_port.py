"""The root's serial line as a TCP port, which a gateway opens as ``socket://127.0.0.1:PORT``.

One client at a time. As on a real line, what the root says while nobody listens is gone."""

from __future__ import annotations

import socket

from skerry_testbed.core import TestbedError
from skerry_testbed.runner import Testbed

#: Bytes kept for a client that reads too slowly; what comes on top is lost, as in any UART driver.
BACKLOG = 1 << 20


class SerialPort:
    """Moves bytes between the testbed's root and a TCP client, without ever waiting."""

    def __init__(self, testbed: Testbed, port: int) -> None:
        self._testbed = testbed
        self._client: socket.socket | None = None
        self._to_client = bytearray()
        self._server = socket.socket()
        self._server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._server.bind(("127.0.0.1", port))
            self._server.listen(1)
        except OSError as error:
            self._server.close()
            raise TestbedError(f"port {port}: {error.strerror}; choose another with --port") from None
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
        self._flush()
        self._receive()

    def _receive(self) -> None:
        if self._client is None:
            return
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
        if self._client is not None and len(self._to_client) + len(data) <= BACKLOG:
            self._to_client += data
            self._flush()

    def _flush(self) -> None:
        if self._client is None or not self._to_client:
            return
        try:
            del self._to_client[: self._client.send(self._to_client)]
        except BlockingIOError:
            return
        except OSError:
            self._drop()

    def _drop(self) -> None:
        if self._client is not None:
            self._client.close()
        self._client = None
        self._to_client.clear()

    def close(self) -> None:
        """Close client and port."""
        self._drop()
        self._server.close()

"""The root's serial line as a TCP port, which a gateway opens as ``socket://127.0.0.1:PORT``.

One client at a time. As on a real line, what the root says while nobody listens is gone."""

from __future__ import annotations

import select
import socket

from skerry_protocol.framing import Deframer, FrameKind
from skerry_testbed.errors import TestbedError
from skerry_testbed.runner import Testbed

#: Bytes kept for a client that reads too slowly; what comes on top is lost, as in any UART driver.
KEPT_BYTES = 1 << 20
#: Where virtual time runs so many times as fast as the clock, or faster, a client is given time to answer what the root has sent: the
#: root sends no more than a few frames unanswered, and sends them again after half a second of its own.
FAST = 4.0
#: So much at most, in s.
PATIENCE_S = 0.1


class SerialPort:
    """Moves bytes between the testbed's root and a TCP client. ``speed``: virtual seconds per second that the testbed is to run at."""

    def __init__(self, testbed: Testbed, port: int, speed: float = 1.0) -> None:
        self._testbed = testbed
        self._patience_s = PATIENCE_S if speed >= FAST else 0.0
        #: Whether the root has sent what the client has not answered yet.
        self._unanswered = False
        self._from_root, self._from_client = Deframer(), Deframer()
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

    @property
    def connected(self) -> bool:
        """Whether there is a client."""
        return self._client is not None

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
        if self._unanswered and self._patience_s and self._client is not None:
            select.select([self._client], [], [], self._patience_s)
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
            self._unanswered &= not any(frame.kind is FrameKind.ACK for frame in self._from_client.feed(data))
            self._testbed.send(data)
        else:
            self._drop()

    def _send(self, data: bytes) -> None:
        self._unanswered |= any(frame.kind is FrameKind.DATA for frame in self._from_root.feed(data))
        if self._client is not None and len(self._to_client) + len(data) <= KEPT_BYTES:
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
        self._client, self._unanswered = None, False
        self._to_client.clear()

    def close(self) -> None:
        """Close client and port."""
        self._drop()
        self._server.close()

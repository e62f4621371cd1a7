"""One root's line: the port, what came through it and what is to go, and how it is opened again when it is lost.

All but :meth:`Link.send` and what opens a lost port again belongs to one thread, that of :class:`skerry.network.link.links.Links`.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol
from urllib.parse import urlsplit

import serial
from construct import Container

from skerry.network.link.device import opened
from skerry.network.link.endpoint import Endpoint
from skerry.network.link.stamp import Stamp
from skerry_protocol.codec import Packet
from skerry_protocol.codes import PacketType

log = logging.getLogger(__name__)

#: Bytes read at a time at most.
READ = 4096
#: How long the port may take nothing of what is written, in s.
WRITE_S = 5.0
#: What stands for a serial line on a TCP port, as pyserial writes it.
TCP = "socket://"
#: How long such a port may take to connect, in s.
CONNECT_S = 5.0
#: Waits between attempts to open the port, in s; the last one repeats.
BACKOFF_S = (0.2, 0.5, 1.0, 2.0, 5.0)


class PortError(RuntimeError):
    """The port cannot be opened; one line."""


class Port(Protocol):
    """What is used of sockets and of pyserial's ports once they are open."""

    def fileno(self) -> int: ...
    def close(self) -> None: ...


class Link:
    """The serial line, or a TCP port that stands for one (``socket://host:port``). ``on_hello`` is called with the root's HELLO, and does
    not raise."""

    def __init__(self, url: str, on_hello: Callable[[Container[Any]], None]) -> None:
        self.url = url
        self.endpoint = Endpoint(self._write, self._hello_came)
        self.state = "connecting"
        #: Packets that came and are not stored yet. The root, without acknowledgement, sends no more than its window.
        self.held: list[Packet] = []
        self._on_hello = on_hello
        self._port: Port | None = None
        self._outgoing: deque[bytes] = deque()
        #: What the port has not taken yet, and since when it takes nothing (monotonic).
        self._unwritten, self._stuck = bytearray(), 0.0
        self._opening: threading.Thread | None = None
        self._opened: Port | None = None
        self._stop = threading.Event()

    def open(self) -> None:
        """Open the port. Raises PortError when there is no such device or nobody listens."""
        self._port = self._open()
        self.endpoint.reset()

    def attach(self, write: Callable[[bytes], None]) -> None:
        """In place of a port: bytes for the root go to ``write``."""
        self.endpoint.write = write
        self.endpoint.reset()

    def send(self, packet: bytes) -> None:
        """Queue a packet for the root; from any thread."""
        self._outgoing.append(packet)

    def close(self) -> None:
        """Close the port."""
        self._stop.set()
        if self._opening is not None:
            self._opening.join(CONNECT_S)
        for port in (self._port, self._opened):
            if port is not None:
                port.close()

    # ---- the links' thread ----

    @property
    def file(self) -> int | None:
        """The open port's file."""
        return None if self._port is None else self._port.fileno()

    def read(self) -> bytes:
        """What has come, b"" for nothing. Raises OSError where the port is lost."""
        assert self._port is not None
        try:
            data = os.read(self._port.fileno(), READ)
        except BlockingIOError:
            return b""
        if not data:
            raise serial.SerialException("the other end has closed it")
        return data

    def feed(self, data: bytes) -> None:
        """Bytes that have come."""
        arrival = time.time()
        for packet in self.endpoint.feed(data):
            stamped = packet.type is PacketType.TIME
            self.held.append(Stamp(packet.type, packet.body, arrival) if stamped else packet)

    def go_on(self) -> None:
        """Acknowledge what is stored, and send what may go out. Raises OSError where the port is lost."""
        if not self.held:
            self.endpoint.acknowledge()
        while self._outgoing:
            self.endpoint.send(self._outgoing.popleft())
        self.endpoint.tick(time.monotonic())
        if self._unwritten:
            self._write(b"")
        self.state = "connected" if self.endpoint.connected else "waiting for the root"
        if self.endpoint.version_error is not None:
            self.state = str(self.endpoint.version_error)

    def lose(self, error: Exception) -> None:
        """The port is lost, or never was: it is opened again in the background."""
        if self._port is not None:
            log.warning("link %s lost: %s; trying to reconnect", self.url, _reason(error))
            self._port.close()
            self._port = None
        self._unwritten.clear()
        self._stuck = 0.0
        self.state = "reconnecting"
        self._opening = threading.Thread(target=self._reopen, name="reconnect", daemon=True)
        self._opening.start()

    def found_again(self) -> bool:
        """Whether it has been opened again since it was lost."""
        port, self._opened = self._opened, None
        if port is None:
            return False
        self._port = port
        self.endpoint.reset()
        log.warning("link %s is back", self.url)
        return True

    def _hello_came(self, hello: Container[Any]) -> None:
        """Numbering begins anew: what is held was never acknowledged, and the root sends it again if it still has it."""
        self.held.clear()
        self._on_hello(hello)

    def _write(self, data: bytes) -> None:
        """Write it, or as much as the port takes now: no root waits for another one's port."""
        if self._port is None:
            return
        self._unwritten += data
        try:
            while self._unwritten:
                del self._unwritten[: os.write(self._port.fileno(), self._unwritten)]
                self._stuck = 0.0
        except BlockingIOError:
            now = time.monotonic()
            self._stuck = self._stuck or now
            if now - self._stuck > WRITE_S:
                raise serial.SerialTimeoutException(f"nothing can be written for {WRITE_S:g} s") from None

    # ---- opening ----

    def _open(self) -> Port:
        try:
            port = _connected(self.url) if self.url.startswith(TCP) else opened(self.url)
            os.set_blocking(port.fileno(), False)
        except (serial.SerialException, OSError, ValueError) as error:
            raise PortError(f"link {self.url}: {_reason(error)}") from error
        return port

    def _reopen(self) -> None:
        said = ""
        for attempt in range(1 << 30):
            if self._stop.wait(BACKOFF_S[min(attempt, len(BACKOFF_S) - 1)]):
                return
            try:
                self._opened = self._open()
            except PortError as error:
                if str(error) != said:
                    said = str(error)
                    log.warning("%s; trying again", said)
                continue
            return


def _connected(url: str) -> socket.socket:
    """A TCP connection to HOST:PORT of ``socket://HOST:PORT``. Raises OSError, ValueError."""
    try:
        host, port = urlsplit(url).hostname, urlsplit(url).port
    except ValueError:
        host = port = None
    if not host or port is None:
        raise ValueError("expected socket://HOST:PORT")
    connection = socket.create_connection((host, port), CONNECT_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
    return connection


def _reason(error: BaseException) -> str:
    """What the system says, without pyserial's words around it."""
    found = re.findall(r"\[Errno \d+\] ([^:\[]+)", str(error))
    return found[-1].strip() if found else str(error) or type(error).__name__

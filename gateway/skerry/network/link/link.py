"""The thread that owns the port: reads, hands packets on, acknowledges, reconnects."""

from __future__ import annotations

import logging
import os
import re
import select
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol
from urllib.parse import urlsplit

import serial
from construct import Container

from skerry.network.link.device import opened
from skerry.network.link.endpoint import Endpoint
from skerry.network.link.stamp import Stamp
from skerry.storage.state import StorageError
from skerry_protocol.codec import Packet
from skerry_protocol.packets import PacketType

log = logging.getLogger(__name__)

#: Longest wait for bytes before timers are looked at, in s.
POLL_S = 0.01
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
#: Wait before packets that could not be stored are tried again, in s.
STORE_AGAIN_S = 1.0


class PortError(RuntimeError):
    """The port cannot be opened; one line."""


class _Port(Protocol):
    """What is used of sockets and of pyserial's ports once they are open. Their own reading and writing goes through ``select``, which
    refuses files beyond the first 1,024, and among thousands of readers a port may be one of those."""

    def fileno(self) -> int: ...
    def close(self) -> None: ...


class Link:
    """The serial line, or a TCP port that stands for one (``socket://host:port``).

    ``on_packets`` is called in the link's thread with each batch of new packets, and returns once they are durable:
    only then are they acknowledged. When it raises StorageError they are held and tried again: the root, without
    acknowledgement, sends no more than its window, and keeps the rest. ``on_hello`` is called with the root's HELLO,
    ``on_idle`` a few times a second; neither raises.
    """

    def __init__(
        self,
        url: str,
        on_packets: Callable[[list[Packet]], None],
        on_hello: Callable[[Container[Any]], None],
        on_idle: Callable[[], None],
    ) -> None:
        self.url = url
        self.endpoint = Endpoint(self._write, self._hello_came)
        self.state = "connecting"
        self._on_packets, self._on_hello, self._on_idle = on_packets, on_hello, on_idle
        self._held: list[Packet] = []
        self._store_at = 0.0
        self._port: _Port | None = None
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._outgoing: list[bytes] = []
        self._thread = threading.Thread(target=self._run, name="link", daemon=True)
        self._idle_at = 0.0

    def open(self) -> None:
        """Open the port. Raises PortError when there is no such device or nobody listens."""
        self._port = self._open()
        self.endpoint.reset()

    def start(self) -> None:
        """Begin; a port that is not open is tried again and again."""
        self._thread.start()

    def attach(self, write: Callable[[bytes], None]) -> None:
        """In place of port and thread: bytes for the root go to ``write``, and :meth:`take` is called with those that come from it."""
        self.endpoint.write = write
        self.endpoint.reset()

    def take(self, data: bytes) -> None:
        """What has come, nothing included: to be called many times a second, as timers are looked at, too."""
        self._take(data)
        self._look()

    def send(self, packet: bytes) -> None:
        """Queue a packet for the root; from any thread."""
        with self._lock:
            self._outgoing.append(packet)

    def close(self) -> None:
        """Stop the thread and close the port."""
        self._stop.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout=5)
        if self._port is not None:
            self._port.close()

    def _open(self) -> _Port:
        try:
            port = _connected(self.url) if self.url.startswith(TCP) else opened(self.url)
            os.set_blocking(port.fileno(), False)
        except (serial.SerialException, OSError, ValueError) as error:
            raise PortError(f"link {self.url}: {_reason(error)}") from error
        return port

    def _write(self, data: bytes) -> None:
        while data and self._port is not None:
            if not _ready(self._port, select.POLLOUT, WRITE_S):
                raise serial.SerialTimeoutException(f"nothing can be written for {WRITE_S:g} s")
            try:
                data = data[os.write(self._port.fileno(), data) :]
            except BlockingIOError:
                continue

    def _read(self) -> bytes:
        """What has come, at once, or b"" after a while without anything."""
        assert self._port is not None
        if not _ready(self._port, select.POLLIN, POLL_S):
            return b""
        try:
            data = os.read(self._port.fileno(), READ)
        except BlockingIOError:
            return b""
        if not data:
            raise serial.SerialException("the other end has closed it")
        return data

    def _run(self) -> None:
        if self._port is None:
            self._reconnect()
        while not self._stop.is_set():
            try:
                self._take(self._read())
            except (serial.SerialException, OSError) as error:
                log.warning("link %s lost: %s; trying to reconnect", self.url, _reason(error))
                self._reconnect()
            self._look()

    def _look(self) -> None:
        if time.monotonic() >= self._idle_at:
            self._idle_at = time.monotonic() + 0.2
            self._on_idle()

    def _take(self, data: bytes) -> None:
        arrival = time.time()
        self._held += [
            Stamp(packet.type, packet.body, arrival) if packet.type is PacketType.TIME else packet
            for packet in self.endpoint.feed(data)
        ]
        self._store()
        with self._lock:
            outgoing, self._outgoing = self._outgoing, []
        for packet in outgoing:
            self.endpoint.send(packet)
        self.endpoint.tick(time.monotonic())
        self.state = "connected" if self.endpoint.connected else "waiting for the root"
        if self.endpoint.version_error is not None:
            self.state = str(self.endpoint.version_error)

    def _store(self) -> None:
        """Hand on what is held; acknowledge once that is done. What a lost line leaves comes again when it is back."""
        if self._held and self.endpoint.connected and time.monotonic() >= self._store_at:
            try:
                self._on_packets(self._held)
                self._held = []
            except StorageError:
                self._store_at = time.monotonic() + STORE_AGAIN_S
        if not self._held:
            self.endpoint.acknowledge()

    def _hello_came(self, hello: Container[Any]) -> None:
        """Numbering begins anew: what is held was never acknowledged, and the root sends it again if it still has it."""
        self._held = []
        self._on_hello(hello)

    def _reconnect(self) -> None:
        if self._port is not None:
            self._port.close()
            self._port = None
        said = ""
        for attempt in range(1 << 30):
            self.state = "reconnecting"
            if self._stop.wait(BACKOFF_S[min(attempt, len(BACKOFF_S) - 1)]):
                return
            try:
                self._port = self._open()
            except PortError as error:
                if str(error) != said:
                    said = str(error)
                    log.warning("%s; trying again", said)
                self._on_idle()
                continue
            self.endpoint.reset()
            log.warning("link %s is back", self.url)
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


def _ready(port: _Port, event: int, seconds: float) -> bool:
    """Whether the port can be read or written, or has ended, within a time."""
    polled = select.poll()
    polled.register(port.fileno(), event)
    return bool(polled.poll(1000 * seconds))


def _reason(error: BaseException) -> str:
    """What the system says, without pyserial's words around it."""
    found = re.findall(r"\[Errno \d+\] ([^:\[]+)", str(error))
    return found[-1].strip() if found else str(error) or type(error).__name__

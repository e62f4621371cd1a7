"""The root's end of the serial line, byte for byte, on a TCP port: for tests of the gateway without motes."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections import deque

from gateway.tests.ports import free_port
from skerry_protocol import codec
from skerry_protocol.codes import PacketType
from skerry_protocol.framing import REPEAT_MS, WINDOW, Deframer, FrameKind, LinkFrame


class RootPeer:
    """Sends queued packets with go-back-N, a window unacknowledged; collects what the gateway sends. As a mote it numbers on, whoever
    opens the port, until it hears RESET. ``deaf``: acknowledgements do not reach it; ``mute``: it does not tell its time;
    ``query_version``: that of what other gateways told it; ``speed``: seconds of its time in one of ours."""

    def __init__(
        self, session: int = 1, version: int | None = None, node: int = 0, speed: float = 1.0
    ) -> None:
        self.session, self._version, self.node, self.speed = session, version, node, speed
        self.port = free_port()
        self.began = time.monotonic()
        self.waiting: deque[bytes] = deque()
        self.acknowledged = 0
        self.received: list[codec.Packet] = []
        self.noise = b""
        self.deaf = self.mute = False
        self.query_version = 0
        self._connected, self._expected, self._base, self._flying = False, 0, 0, 0
        self.open()

    @property
    def url(self) -> str:
        """For --link."""
        return f"socket://127.0.0.1:{self.port}"

    def programs(self) -> dict[int, bytes]:
        """Query programs received whole, by query id."""
        parts: dict[int, dict[int, bytes]] = {}
        whole = {}
        for packet in list(self.received):
            if packet.type is PacketType.QUERY_INSTALL:
                parts.setdefault(packet.body.query, {})[packet.body.offset] = packet.body.data
                program = b"".join(data for _, data in sorted(parts[packet.body.query].items()))
                if len(program) == packet.body.total:
                    whole[packet.body.query] = program
        return whole

    def open(self) -> None:
        """Listen, on the port it had."""
        self._server = socket.socket()
        self._server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._server.bind(("127.0.0.1", self.port))
        self._server.listen(1)
        self._server.settimeout(0.05)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def now(self) -> float:
        """Its time, in s since it began."""
        return (time.monotonic() - self.began) * self.speed

    def close(self) -> None:
        """Stop and close; what was queued and not acknowledged waits until it is opened again."""
        self._stop.set()
        self._thread.join()
        self._server.close()

    def _hello(self) -> bytes:
        seconds = int(self.now())
        queries = bytes(sorted(self.programs()))
        packet = codec.encode(
            PacketType.HELLO,
            node=self.node,
            session=self.session,
            seconds=seconds,
            ticks=0,
            query_version=self.query_version,
            queries=queries,
        )
        return packet if self._version is None else bytes([self._version]) + packet[1:]

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                client, _ = self._server.accept()
            except TimeoutError:
                continue
            client.settimeout(0.01)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
            with contextlib.suppress(OSError):
                self._serve(client)
            client.close()

    def _time(self) -> bytes:
        """Network time now, as a root tells it once a second."""
        now = self.now()
        return codec.encode(
            PacketType.TIME, seconds=int(now), ticks=int(now % 1 * 32768), more=bool(self.waiting)
        )

    def _serve(self, client: socket.socket) -> None:
        deframer, sent_at, told = Deframer(), 0.0, 0.0
        while not self._stop.is_set():
            try:
                data = client.recv(4096)
                if not data:
                    return
            except TimeoutError:
                data = b""
            for frame in deframer.feed(data):
                self._heard(client, frame)
            if self._flying and time.monotonic() - sent_at > REPEAT_MS / 1000:
                self._flying = 0
            while self._connected and self._flying < min(WINDOW, len(self.waiting)):
                client.sendall(self.noise + self._data(self._flying))
                self._flying, sent_at = self._flying + 1, time.monotonic()
            if self._connected and time.monotonic() - told >= 1 / self.speed and not self.mute:
                told = time.monotonic()
                client.sendall(LinkFrame(FrameKind.TIME, 0, self._time()).to_bytes())

    def _heard(self, client: socket.socket, frame: LinkFrame) -> None:
        if frame.kind is FrameKind.RESET_ACK:
            self._connected = True
        elif frame.kind is FrameKind.RESET:
            self._connected, self._expected, self._base, self._flying = True, 0, 0, 0
            client.sendall(LinkFrame(FrameKind.RESET_ACK, 0, self._hello()).to_bytes())
        elif frame.kind is FrameKind.DATA:
            if self._connected and frame.sequence == self._expected:
                self._expected = (self._expected + 1) & 0xFF
                self._take(client, codec.decode(frame.payload))
            client.sendall(LinkFrame(FrameKind.ACK, self._expected).to_bytes())
        elif frame.kind is FrameKind.ACK and not self.deaf:
            self._hear(frame.sequence)
        elif frame.kind is FrameKind.POLL:
            client.sendall(b"".join(map(self._data, range(self._flying))) + frame.to_bytes())

    def _data(self, ahead: int) -> bytes:
        """The frame so far behind the oldest unacknowledged one."""
        return LinkFrame(FrameKind.DATA, (self._base + ahead) & 0xFF, self.waiting[ahead]).to_bytes()

    def _take(self, client: socket.socket, packet: codec.Packet) -> None:
        """What the gateway sends. A root that is told of a later session begins one behind that."""
        self.received.append(packet)
        if packet.type is PacketType.SESSION and 0 <= (packet.body.session - self.session) & 0xFFFF < 0x8000:
            self.begin(packet.body.session + 1)
            self._connected = False
            client.sendall(LinkFrame(FrameKind.RESET, 0, self._hello()).to_bytes())

    def begin(self, session: int) -> None:
        """Another session, as after a start: nothing is left of the one before."""
        self.session, self.began = session, time.monotonic()
        self.waiting.clear()
        self.received = [packet for packet in self.received if packet.type is PacketType.SESSION]
        self._expected = self._base = self._flying = 0

    def _hear(self, upto: int) -> None:
        """An acknowledgement."""
        count = (upto - self._base) & 0xFF
        if count <= self._flying:
            for _ in range(count):
                self.waiting.popleft()
            self._base, self._flying = upto, self._flying - count
            self.acknowledged += count

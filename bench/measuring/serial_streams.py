"""Many roots' serial lines, played in a process of their own: each sends rows at a rate, by the protocol of the line, as its window lets.

``SerialStreams`` starts the process; what follows below it is that process.
"""

from __future__ import annotations

import binascii
import multiprocessing
import select
import socket
import struct
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from cobs import cobs

from skerry_protocol import codec
from skerry_protocol.codes import PacketType
from skerry_protocol.framing import ACKS, REPEAT_MS, WINDOW, Deframer, FrameKind, LinkFrame
from skerry_protocol.limits import PROTOCOL_VERSION

#: Numbers of a root and of its motes behind it.
SPAN, MOTES = 100, 20
#: Later than the query's first epoch.
BEGIN = 60
#: How often roots look whether rows are due, in s, and in how many groups, one behind the other.
_STEP_S, _GROUPS = 0.02, 4
#: DATA with a RESULT of one column of 16 bits: kind, sequence, version, type, query, mote, epoch, NULLs, value.
_ROW = struct.Struct("<BBBBBHIHh")


@dataclass(frozen=True)
class Progress:
    """Rows due so far, those acknowledged, and how many the root that is furthest behind lacks; how old the oldest of its rows is, in s."""

    due: int
    stored: int
    behind: int
    late_s: float


class SerialStreams:
    """So many roots, each with motes of its own, at ``rate`` rows/s each once :meth:`play` is called."""

    def __init__(self, roots: int, rate: int) -> None:
        self._ours, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        self._process = context.Process(target=_run, args=(theirs, roots, rate), daemon=True)
        self._process.start()
        theirs.close()
        self.urls = [f"socket://127.0.0.1:{port}" for port in self._ours.recv()]

    @property
    def number(self) -> int:
        """The process that plays them."""
        assert self._process.pid is not None
        return self._process.pid

    def asked(self) -> int:
        """Roots that have been told a query."""
        return int(self._say("asked"))

    def play(self) -> None:
        """Rows are due from now on."""
        self._say("play")

    def end(self) -> None:
        """No more rows are due."""
        self._say("end")

    def progress(self) -> Progress:
        """How far they are."""
        found = self._say("progress")
        assert isinstance(found, Progress)
        return found

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()

    def _say(self, word: str) -> Any:
        self._ours.send(word)
        return self._ours.recv()


# ---- the process ----

#: What the gateway says most: the bytes of each ACK, without the zero that ends it.
_ACKED = {ack[:-1]: expected for expected, ack in enumerate(ACKS)}


@dataclass
class Root:
    """One root. Row number n is of its mote n modulo 20. ``out``: what is to be written to its line."""

    place: int
    began: float = field(default_factory=time.monotonic)
    session: int = 1
    query: int | None = None
    programs: dict[int, dict[int, bytes]] = field(default_factory=dict)
    out: bytearray = field(default_factory=bytearray)
    due: int = 0
    stored: int = 0
    connected: bool = False
    expected: int = 0
    base: int = 0
    flying: int = 0
    sent_at: float = 0.0
    told_at: float = 0.0
    _rest: bytes = b""
    _deframer: Deframer = field(default_factory=Deframer)

    @property
    def node(self) -> int:
        return self.place * SPAN

    def hello(self) -> bytes:
        return codec.encode(
            PacketType.HELLO, node=self.node, session=self.session, seconds=int(time.monotonic() - self.began), ticks=0,
            query_version=0, queries=bytes([] if self.query is None else [self.query]),
        )  # fmt: skip

    def opened(self) -> None:
        """The gateway has opened the line."""
        self.connected, self._rest, self._deframer = False, b"", Deframer()
        self.out.clear()

    def feed(self, data: bytes) -> None:
        """What the gateway says."""
        *chunks, self._rest = (self._rest + data).split(b"\0")
        for chunk in chunks:
            acked = _ACKED.get(chunk)
            if acked is not None:
                self._acknowledged(acked)
                continue
            for frame in self._deframer.feed(chunk + b"\0"):
                self._heard(frame)

    def _acknowledged(self, expected: int) -> None:
        count = (expected - self.base) & 0xFF
        if count <= self.flying:
            self.base, self.flying, self.stored = expected, self.flying - count, self.stored + count

    def _heard(self, frame: LinkFrame) -> None:
        if frame.kind is FrameKind.RESET_ACK:
            self.connected = True
        elif frame.kind is FrameKind.RESET:
            self.connected, self.expected, self.base, self.flying = True, 0, 0, 0
            self.out += LinkFrame(FrameKind.RESET_ACK, 0, self.hello()).to_bytes()
        elif frame.kind is FrameKind.DATA:
            if self.connected and frame.sequence == self.expected:
                self.expected = (self.expected + 1) & 0xFF
                self._told(codec.decode(frame.payload))
            self.out += ACKS[self.expected]
        elif frame.kind is FrameKind.POLL:
            self.out += b"".join(map(self._data, range(self.flying))) + frame.to_bytes()

    def _told(self, packet: codec.Packet) -> None:
        if packet.type is PacketType.SESSION and 0 <= (packet.body.session - self.session) & 0xFFFF < 0x8000:
            self.session, self.began, self.connected = packet.body.session + 1, time.monotonic(), False
            self.programs, self.query = {}, None
            self.out += LinkFrame(FrameKind.RESET, 0, self.hello()).to_bytes()
        elif packet.type is PacketType.QUERY_INSTALL:
            parts = self.programs.setdefault(packet.body.query, {})
            parts[packet.body.offset] = packet.body.data
            if sum(map(len, parts.values())) == packet.body.total:
                self.query = packet.body.query

    def _data(self, ahead: int) -> bytes:
        """The frame so far behind the oldest that is not acknowledged."""
        number = self.stored + ahead
        epoch, mote = divmod(number, MOTES)
        frame = _ROW.pack(
            FrameKind.DATA, (self.base + ahead) & 0xFF, PROTOCOL_VERSION, PacketType.RESULT, self.query,
            self.node + 1 + mote, BEGIN + epoch, 0, 2000 + number % 1000,
        )  # fmt: skip
        return bytes(cobs.encode(frame + binascii.crc_hqx(frame, 0).to_bytes(2, "big"))) + b"\0"

    def send(self, now: float) -> None:
        """What may go out, and what was not acknowledged in time."""
        if not self.connected:
            return
        if self.flying and now - self.sent_at > REPEAT_MS / 1000:
            self.flying = 0
        most = min(WINDOW, self.due - self.stored)
        if self.flying < most:
            for ahead in range(self.flying, most):
                self.out += self._data(ahead)
            self.flying, self.sent_at = most, now
        if now - self.told_at >= 1:
            self.told_at, at = now, now - self.began
            body = codec.encode(
                PacketType.TIME, seconds=int(at), ticks=int(at % 1 * 32768), more=self.due > self.stored
            )
            self.out += LinkFrame(FrameKind.TIME, 0, body).to_bytes()


class _Line:
    """A root's port: who opens it last has it."""

    def __init__(self, root: Root) -> None:
        self.root = root
        self.server = socket.create_server(("127.0.0.1", 0))
        self.client: socket.socket | None = None

    def accept(self) -> socket.socket:
        """The gateway's new connection; the one before is no more."""
        if self.client is not None:
            self.client.close()
        self.client, _ = self.server.accept()
        self.client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
        self.client.setblocking(False)
        self.root.opened()
        return self.client

    def read(self) -> None:
        """Take what has come."""
        assert self.client is not None
        try:
            data = self.client.recv(4096)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        if not data:
            self.client.close()
            self.client, self.root.connected = None, False
            return
        self.root.feed(data)

    def go_on(self, due: int, now: float) -> None:
        """Send what is due and what could not be sent before."""
        root = self.root
        root.due = due
        root.send(now)
        if self.client is not None and root.out:
            try:
                del root.out[: self.client.send(root.out)]
            except BlockingIOError:
                pass
            except ConnectionError:
                root.out.clear()


class _Players:
    def __init__(self, connection: Connection, roots: int, rate: int) -> None:
        self._connection, self._rate = connection, rate
        self._lines = [_Line(Root(place)) for place in range(roots)]
        self._since: float | None = None
        self._played = 0

    def run(self) -> None:
        """Play until the benchmark is gone."""
        poll = select.epoll()
        clients: dict[int, _Line] = {}
        servers = {line.server.fileno(): line for line in self._lines}
        for file in (*servers, self._connection.fileno()):
            poll.register(file, select.EPOLLIN)
        self._connection.send([line.server.getsockname()[1] for line in self._lines])
        step, group = _STEP_S / _GROUPS, 0
        following = time.monotonic()
        while True:
            for file, _ in poll.poll(max(0.0, following - time.monotonic())):
                if file in clients:
                    line = clients[file]
                    line.read()
                    line.go_on(self._due(), time.monotonic())
                elif file in servers:
                    client = servers[file].accept()
                    clients[client.fileno()] = servers[file]
                    poll.register(client.fileno(), select.EPOLLIN)
                else:
                    self._connection.send(self._answer(self._connection.recv()))
            now = time.monotonic()
            if now >= following:
                following, group = max(now, following + step), (group + 1) % _GROUPS
                for line in self._lines[group::_GROUPS]:
                    line.go_on(self._due(), now)

    def _due(self) -> int:
        """Rows of each root."""
        if self._since is None:
            return self._played
        return int(self._rate * (time.monotonic() - self._since))

    def _answer(self, word: str) -> Any:
        """A word of the benchmark's."""
        roots = [line.root for line in self._lines]
        match word:
            case "asked":
                return sum(root.query is not None for root in roots)
            case "play":
                self._since = time.monotonic()
            case "end":
                self._played, self._since = self._due(), None
            case "progress":
                due = self._due()
                behind = max(due - root.stored for root in roots)
                total = sum(root.stored for root in roots)
                return Progress(due * len(roots), total, behind, behind / self._rate)
        return None


def _run(connection: Connection, roots: int, rate: int) -> None:
    row = codec.encode(
        PacketType.RESULT, query=7, node=1, epoch=BEGIN, nulls=0, values=struct.pack("<h", 2000)
    )
    frame = LinkFrame(FrameKind.DATA, 0, row).to_bytes()
    assert Root(0, query=7)._data(0) == frame, "a row is put together as it is no longer defined"
    try:
        _Players(connection, roots, rate).run()
    except EOFError:
        return

"""Many roots' serial lines, played in a process of their own: each sends rows at a rate, by the protocol of the line, as its window lets.

``SerialStreams`` starts the process; what follows below it is that process.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import struct
import time
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from skerry_protocol import codec
from skerry_protocol.framing import REPEAT_MS, WINDOW, Deframer, FrameKind, LinkFrame
from skerry_protocol.packets import PacketType

#: Numbers of a root and of its motes behind it.
SPAN, MOTES = 100, 20
#: Later than the query's first epoch.
BEGIN = 60
#: How often roots look whether rows are due, in s.
_STEP_S = 0.02
#: RESULT with one column of 16 bits: version, type, query, mote, epoch, NULLs, value.
_ROW = struct.Struct("<BBBHIHh")


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


@dataclass
class _Root:
    """One root. Row number n is of its mote n modulo 20."""

    place: int
    began: float = field(default_factory=time.monotonic)
    session: int = 1
    query: int | None = None
    programs: dict[int, dict[int, bytes]] = field(default_factory=dict)
    due: int = 0
    stored: int = 0
    connected: bool = False
    expected: int = 0
    base: int = 0
    flying: int = 0
    sent_at: float = 0.0
    told_at: float = 0.0
    due_at: float = 0.0

    @property
    def node(self) -> int:
        return self.place * SPAN

    def hello(self) -> bytes:
        return codec.encode(
            PacketType.HELLO, node=self.node, session=self.session, seconds=int(time.monotonic() - self.began), ticks=0,
            query_version=0, queries=bytes([] if self.query is None else [self.query]),
        )  # fmt: skip

    def row(self, number: int) -> bytes:
        """The packet of a row."""
        epoch, mote = divmod(number, MOTES)
        assert self.query is not None
        return _ROW.pack(
            _VERSION,
            PacketType.RESULT,
            self.query,
            self.node + 1 + mote,
            BEGIN + epoch,
            0,
            2000 + number % 1000,
        )

    def heard(self, frame: LinkFrame, write: Any) -> None:
        if frame.kind is FrameKind.RESET_ACK:
            self.connected = True
        elif frame.kind is FrameKind.RESET:
            self.connected, self.expected, self.base, self.flying = True, 0, 0, 0
            write(LinkFrame(FrameKind.RESET_ACK, 0, self.hello()).to_bytes())
        elif frame.kind is FrameKind.DATA:
            if self.connected and frame.sequence == self.expected:
                self.expected = (self.expected + 1) & 0xFF
                self._told(codec.decode(frame.payload), write)
            write(LinkFrame(FrameKind.ACK, self.expected).to_bytes())
        elif frame.kind is FrameKind.ACK:
            count = (frame.sequence - self.base) & 0xFF
            if count <= self.flying:
                self.base, self.flying, self.stored = frame.sequence, self.flying - count, self.stored + count
        elif frame.kind is FrameKind.POLL:
            write(b"".join(map(self._data, range(self.flying))) + frame.to_bytes())

    def _told(self, packet: codec.Packet, write: Any) -> None:
        if packet.type is PacketType.SESSION and 0 <= (packet.body.session - self.session) & 0xFFFF < 0x8000:
            self.session, self.began, self.connected = packet.body.session + 1, time.monotonic(), False
            self.programs, self.query = {}, None
            write(LinkFrame(FrameKind.RESET, 0, self.hello()).to_bytes())
        elif packet.type is PacketType.QUERY_INSTALL:
            parts = self.programs.setdefault(packet.body.query, {})
            parts[packet.body.offset] = packet.body.data
            if sum(map(len, parts.values())) == packet.body.total:
                self.query = packet.body.query

    def _data(self, ahead: int) -> bytes:
        return LinkFrame(FrameKind.DATA, (self.base + ahead) & 0xFF, self.row(self.stored + ahead)).to_bytes()

    def send(self, write: Any, now: float) -> None:
        """What may go out, and what was not acknowledged in time."""
        if not self.connected:
            return
        if self.flying and now - self.sent_at > REPEAT_MS / 1000:
            self.flying = 0
        while self.flying < min(WINDOW, self.due - self.stored):
            write(self._data(self.flying))
            self.flying, self.sent_at = self.flying + 1, now
        if now - self.told_at >= 1:
            self.told_at, at = now, now - self.began
            body = codec.encode(
                PacketType.TIME, seconds=int(at), ticks=int(at % 1 * 32768), more=self.due > self.stored
            )
            write(LinkFrame(FrameKind.TIME, 0, body).to_bytes())


_VERSION = codec.encode(PacketType.TIME, seconds=0, ticks=0, more=False)[0]


@dataclass
class _Players:
    roots: list[_Root]
    rate: int
    playing_since: float | None = None
    played: int = 0

    async def serve(self, root: _Root, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of the gateway's to a root."""
        deframer = Deframer()
        root.connected = False
        try:
            while True:
                try:
                    data = await asyncio.wait_for(reader.read(4096), _STEP_S)
                    if not data:
                        return
                except TimeoutError:
                    data = b""
                for frame in deframer.feed(data):
                    root.heard(frame, writer.write)
                root.due = self.due()
                root.send(writer.write, time.monotonic())
        except ConnectionError:
            pass
        finally:
            writer.close()

    def due(self) -> int:
        """Rows of each root."""
        if self.playing_since is None:
            return self.played
        return int(self.rate * (time.monotonic() - self.playing_since))

    def answer(self, word: str) -> Any:
        """A word of the benchmark's."""
        match word:
            case "asked":
                return sum(root.query is not None for root in self.roots)
            case "play":
                self.playing_since = time.monotonic()
            case "end":
                self.played, self.playing_since = self.due(), None
            case "progress":
                behind = max(self.due() - root.stored for root in self.roots)
                total = sum(root.stored for root in self.roots)
                return Progress(self.due() * len(self.roots), total, behind, behind / self.rate)
        return None


async def _play(connection: Connection, roots: int, rate: int) -> None:
    players = _Players([_Root(place) for place in range(roots)], rate)
    servers = [
        await asyncio.start_server(partial(players.serve, root), "127.0.0.1", 0) for root in players.roots
    ]
    connection.send([server.sockets[0].getsockname()[1] for server in servers])
    while True:
        word = await asyncio.to_thread(connection.recv)
        connection.send(players.answer(word))


def _run(connection: Connection, roots: int, rate: int) -> None:
    assert _ROW.pack(_VERSION, PacketType.RESULT, 7, 0x1234, 99, 0, 5) == codec.encode(
        PacketType.RESULT, query=7, node=0x1234, epoch=99, nulls=0, values=struct.pack("<h", 5)
    )
    asyncio.run(_play(connection, roots, rate))

"""A gateway's end of the serial line in virtual time: for tests that need no gateway."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from construct import Container

from skerry_protocol import codec
from skerry_protocol.codec import Packet
from skerry_protocol.codes import PacketType
from skerry_protocol.errors import VersionMismatchError
from skerry_protocol.framing import Deframer, FrameKind, LinkFrame
from skerry_protocol.limits import FRAGMENT_MAXIMUM, NO_NODE, TICKS_PER_SECOND


@dataclass
class Record:
    """A packet from the root, and the virtual time of its arrival in s."""

    at: float
    packet: Packet

    @property
    def type(self) -> PacketType:
        """The packet's type."""
        return self.packet.type

    @property
    def body(self) -> Container[Any]:
        """The packet's fields."""
        return self.packet.body


@dataclass
class Line:
    """Acknowledges what the root sends, keeps it in ``records``, and sends packets of its own."""

    send_bytes: Callable[[bytes], None]
    now: Callable[[], float]
    records: list[Record] = field(default_factory=list)
    hello: Container[Any] | None = None
    hello_at: float = 0.0
    version_error: VersionMismatchError | None = None
    query_version: int = 0
    repeated: int = 0
    _deframer: Deframer = field(default_factory=Deframer)
    _expected: int = 0
    _sequence: int = 0
    #: DATA frames that the root has not acknowledged, by their numbers.
    _sent: dict[int, bytes] = field(default_factory=dict)

    def connect(self) -> None:
        """Start numbering anew, as a gateway does when it opens the port."""
        self._expected = self._sequence = 0
        self._sent.clear()
        self._frame(LinkFrame(FrameKind.RESET, 0, _HELLO))

    def received(self, data: bytes) -> None:
        """Bytes from the root."""
        for frame in self._deframer.feed(data):
            try:
                self._handle(frame)
            except VersionMismatchError as error:
                self.version_error = error

    def _handle(self, frame: LinkFrame) -> None:
        if frame.kind is FrameKind.DATA:
            if frame.sequence == self._expected:
                self._expected = (self._expected + 1) & 0xFF
                self.records.append(Record(self.now(), codec.decode(frame.payload)))
            else:
                self.repeated += 1
            self._frame(LinkFrame(FrameKind.ACK, self._expected))
        elif frame.kind is FrameKind.ACK:
            for number in list(self._sent):
                if 0 < (frame.sequence - number) & 0xFF < 0x80:
                    del self._sent[number]
        elif frame.kind in (FrameKind.RESET, FrameKind.RESET_ACK):
            self.hello, self.hello_at = codec.decode(frame.payload).body, self.now()
            self._expected = self._sequence = 0
            self._sent.clear()
            if frame.kind is FrameKind.RESET:
                self._frame(LinkFrame(FrameKind.RESET_ACK, 0, _HELLO))

    def send(self, packet: bytes) -> None:
        """A packet to the root. The line is taken to be good: what the root had no room for is repeated by :meth:`repeat` alone."""
        self._sent[self._sequence] = packet
        self._frame(LinkFrame(FrameKind.DATA, self._sequence, packet))
        self._sequence = (self._sequence + 1) & 0xFF

    def repeat(self) -> None:
        """Send anew, in their order, what the root has not acknowledged: it takes no query while it has others to pass on."""
        for number, packet in list(self._sent.items()):
            self._frame(LinkFrame(FrameKind.DATA, number, packet))

    @property
    def sequence(self) -> int:
        """Number of the next DATA frame to the root."""
        return self._sequence

    def install(self, query: int, program: bytes) -> None:
        """Install a query program under the next version of the query set."""
        self.query_version += 1
        for offset in range(0, len(program), FRAGMENT_MAXIMUM):
            data = program[offset : offset + FRAGMENT_MAXIMUM]
            self.send(
                codec.encode(
                    PacketType.QUERY_INSTALL,
                    query_version=self.query_version,
                    query=query,
                    total=len(program),
                    offset=offset,
                    data=data,
                )
            )

    def stop(self, query: int) -> None:
        """Stop a query."""
        self.query_version += 1
        self.send(codec.encode(PacketType.QUERY_STOP, query_version=self.query_version, query=query))

    def command(self, target: int, op: int, arguments: bytes = b"", token: int = 1) -> None:
        """Send a command to one mote, or 65535 for all."""
        self.send(codec.encode(PacketType.COMMAND, target=target, token=token, op=op, arguments=arguments))

    def network_time(self) -> float:
        """Network time now in s, as the last HELLO tells it; some ms late by the line."""
        assert self.hello is not None, "the root has not answered yet"
        return float(self.hello.seconds + self.hello.ticks / TICKS_PER_SECOND + self.now() - self.hello_at)

    def of(self, type: PacketType, query: int | None = None) -> list[Record]:
        """Records of a type, of one query if given."""
        return [r for r in self.records if r.type is type and (query is None or r.body.query == query)]

    def _frame(self, frame: LinkFrame) -> None:
        self.send_bytes(frame.to_bytes())


_HELLO = codec.encode(
    PacketType.HELLO, node=NO_NODE, session=0, seconds=0, ticks=0, query_version=0, queries=b""
)

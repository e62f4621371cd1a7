"""The link protocol's state (``skerry_protocol.framing``), without port, thread or clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from construct import Container

from skerry_protocol import codec
from skerry_protocol.codec import Packet
from skerry_protocol.framing import REPEAT_MS, WINDOW, Deframer, FrameKind, LinkFrame
from skerry_protocol.packets import NO_NODE, PacketError, PacketType, VersionMismatchError


@dataclass
class LinkCounters:
    """What came and went; frames and packets."""

    received: int = 0
    repeated: int = 0
    refused: int = 0
    resets: int = 0
    sent: int = 0
    resent: int = 0


@dataclass
class Endpoint:
    """One end of the line. ``write`` takes bytes for the port; ``on_hello`` the root's HELLO.

    Packets returned by :meth:`feed` are acknowledged by :meth:`acknowledge`, which the caller calls once
    they are safely stored.
    """

    write: Callable[[bytes], None]
    on_hello: Callable[[Container[Any]], None]
    counters: LinkCounters = field(default_factory=LinkCounters)
    version_error: VersionMismatchError | None = None
    connected: bool = False
    _deframer: Deframer = field(default_factory=Deframer)
    _expected: int = 0
    _owes_ack: bool = False
    _base: int = 0
    _waiting: deque[bytes] = field(default_factory=deque)
    _in_flight: int = 0
    _sent_at: float = 0.0
    _reset_at: float = -1e9

    @property
    def line_errors(self) -> dict[str, int]:
        """Frames refused by reason, and bytes skipped."""
        errors = self._deframer.errors
        names = ("oversized", "malformed", "checksum", "unknown", "skipped")
        return {name: getattr(errors, name) for name in names}

    @property
    def queued(self) -> int:
        """Packets not yet acknowledged by the root."""
        return len(self._waiting)

    def reset(self) -> None:
        """The port has been opened anew: start numbering again and say so."""
        self._deframer = Deframer()
        self.connected = False
        self._in_flight = 0
        self._owes_ack = False
        self._reset_at = -1e9

    def send(self, packet: bytes) -> None:
        """Queue a packet; it is repeated until the root acknowledges it."""
        self._waiting.append(packet)

    def feed(self, data: bytes) -> list[Packet]:
        """New packets, in order, once each. Those before a RESET are left out: unacknowledged, they come again."""
        packets: list[Packet] = []
        for frame in self._deframer.feed(data):
            try:
                self._frame(frame, packets)
            except VersionMismatchError as error:
                self.version_error = error
                self.counters.refused += 1
            except PacketError:
                self.counters.refused += 1
        return packets

    def _frame(self, frame: LinkFrame, packets: list[Packet]) -> None:
        if frame.kind is FrameKind.DATA and self.connected:
            self._owes_ack = True
            if frame.sequence != self._expected:
                self.counters.repeated += 1
                return
            # A packet that cannot be read would be repeated for ever: it is counted and acknowledged.
            self._expected = (self._expected + 1) & 0xFF
            self.counters.received += 1
            packets.append(codec.decode(frame.payload))
        elif frame.kind is FrameKind.ACK and self.connected:
            self._acknowledged(frame.sequence)
        elif frame.kind in (FrameKind.RESET, FrameKind.RESET_ACK):
            hello = codec.decode(frame.payload)
            if hello.type is not PacketType.HELLO or hello.body.node == NO_NODE:
                raise PacketError("RESET without the root's HELLO")
            self._restart()
            packets.clear()
            if frame.kind is FrameKind.RESET:
                self._write_frame(LinkFrame(FrameKind.RESET_ACK, 0, _hello()))
            self.on_hello(hello.body)

    def _restart(self) -> None:
        self.version_error = None
        self.connected = True
        self.counters.resets += 1
        self._expected = self._base = self._in_flight = 0
        self._owes_ack = False

    def _acknowledged(self, upto: int) -> None:
        count = (upto - self._base) & 0xFF
        if count > self._in_flight:
            return
        for _ in range(count):
            self._waiting.popleft()
        self._base, self._in_flight = upto, self._in_flight - count

    def acknowledge(self) -> None:
        """Everything returned by :meth:`feed` so far is stored."""
        if self._owes_ack and self.connected:
            self._write_frame(LinkFrame(FrameKind.ACK, self._expected))
        self._owes_ack = False

    def tick(self, now: float) -> None:
        """Send what may go out; repeat what was not acknowledged. ``now`` in s, monotonic."""
        if not self.connected:
            if now - self._reset_at >= REPEAT_MS / 1000:
                self._reset_at = now
                self._write_frame(LinkFrame(FrameKind.RESET, 0, _hello()))
            return
        if self._in_flight and now - self._sent_at > REPEAT_MS / 1000:
            self.counters.resent += self._in_flight
            self._in_flight = 0
        while self._in_flight < min(WINDOW, len(self._waiting)):
            sequence = (self._base + self._in_flight) & 0xFF
            self._write_frame(LinkFrame(FrameKind.DATA, sequence, self._waiting[self._in_flight]))
            self._in_flight += 1
            self._sent_at = now
            self.counters.sent += 1

    def _write_frame(self, frame: LinkFrame) -> None:
        self.write(frame.to_bytes())


def _hello() -> bytes:
    return codec.encode(
        PacketType.HELLO, node=NO_NODE, session=0, seconds=0, ticks=0, query_version=0, queries=b""
    )

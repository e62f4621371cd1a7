"""The link protocol's state (``skerry_protocol.framing``), without port, thread or clock.

RESET makes the root send all that is unacknowledged anew, under other numbers, and a partial state that it merges with a late one by
then cannot be recognised. So what the root may not know to be stored is settled by the old numbers first: the gateway polls the root for
all that is unacknowledged, and acknowledges what it has stored of that, until none of it comes any more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from construct import Container

from skerry.ingest.frames import Frame, Framed
from skerry_protocol import codec
from skerry_protocol.codec import Packet
from skerry_protocol.codes import PacketType
from skerry_protocol.errors import PacketError, VersionMismatchError
from skerry_protocol.framing import ACKS, REPEAT_MS, WINDOW, Deframer, FrameKind, LinkFrame
from skerry_protocol.limits import NO_NODE

#: POLLs in a row that bring nothing that is stored before the gateway believes that the root holds none of it. The first of them may be
#: answered behind what the root sent while nobody listened, where a gateway that was killed had asked by the same number.
SETTLED_POLLS = 2


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
    #: RESETs sent that the root may not have heard yet, and whether it may still begin anew because of one.
    _resets_sent: int = 0
    _unsettled: bool = False
    #: Frames with partial states: those handed on, and those of them, the last, that are stored.
    _taken: list[Frame] = field(default_factory=list)
    _stored: deque[Frame] = field(default_factory=lambda: deque(maxlen=WINDOW))
    #: Before RESET: the POLL that is unanswered, those in a row that brought nothing stored, and whether this one has.
    _poll: int = 0
    _settled: int = 0
    _repeats: bool = False

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
        self._resets_sent = 0
        self._taken.clear()
        self._settled, self._repeats = 0, False

    def remember(self, frames: Iterable[Frame]) -> None:
        """Before the line is first up: frames of partial states that are stored, and that the root may send again."""
        self._stored.extend(frames)

    def send(self, packet: bytes) -> None:
        """Queue a packet; it is repeated until the root acknowledges it."""
        self._waiting.append(packet)

    def feed(self, data: bytes) -> list[Packet]:
        """New packets, in order, once each. Those before a RESET are left out: unacknowledged, they come again."""
        packets: list[Packet] = []
        data_frame = FrameKind.DATA
        for frame in self._deframer.feed(data):
            try:
                if frame.kind is data_frame and self.connected and not self._unsettled:
                    self._data(frame, packets)
                else:
                    self._frame(frame, packets)
            except VersionMismatchError as error:
                self.version_error = error
                self.counters.refused += 1
            except PacketError:
                self.counters.refused += 1
        return packets

    def _data(self, frame: LinkFrame, packets: list[Packet]) -> None:
        """What most frames are."""
        self._owes_ack = True
        if frame.sequence != self._expected:
            self.counters.repeated += 1
            return
        # A packet that cannot be read would be repeated for ever: it is counted and acknowledged.
        self._expected = (self._expected + 1) & 0xFF
        self.counters.received += 1
        packet = codec.decode(frame.payload)
        if packet.type is PacketType.PARTIAL:
            framed = Framed(packet.type, packet.body, Frame.of(frame.sequence, frame.payload))
            self._taken.append(framed.frame)
            packet = framed
        packets.append(packet)

    def _frame(self, frame: LinkFrame, packets: list[Packet]) -> None:
        """All others."""
        if not self.connected and frame.kind in (
            FrameKind.DATA,
            FrameKind.ACK,
            FrameKind.TIME,
            FrameKind.POLL,
        ):
            self._overhear(frame)
        elif frame.kind is FrameKind.TIME:
            # Behind what came before it: whoever hears of a time has all that the root sent until then.
            packets.append(codec.decode(frame.payload))
        elif frame.kind is FrameKind.ACK:
            self._acknowledged(frame.sequence)
        elif frame.kind in (FrameKind.RESET, FrameKind.RESET_ACK):
            hello = codec.decode(frame.payload)
            if hello.type is not PacketType.HELLO or hello.body.node == NO_NODE:
                raise PacketError("RESET without the root's HELLO")
            # Another RESET may be on its way, and make the root begin once more: what it sends until it has heard that one comes again.
            others = self._resets_sent - 1 if frame.kind is FrameKind.RESET_ACK else self._resets_sent
            self._restart(settled=others <= 0)
            packets.clear()
            if frame.kind is FrameKind.RESET:
                self._write_frame(LinkFrame(FrameKind.RESET_ACK, 0, _hello()))
            self.on_hello(hello.body)

    def _overhear(self, frame: LinkFrame) -> None:
        """Before RESET: what the root says in the old numbers."""
        if frame.kind in (FrameKind.DATA, FrameKind.TIME):
            # A root of another protocol version is told of.
            codec.decode(frame.payload)
        if frame.kind is FrameKind.DATA:
            if Frame.of(frame.sequence, frame.payload) in self._stored:
                self.counters.repeated += 1
                self._repeats = True
                self._write_frame(LinkFrame(FrameKind.ACK, (frame.sequence + 1) & 0xFF))
        elif frame.kind is FrameKind.POLL and frame.sequence == self._poll:
            self._settled = 0 if self._repeats else self._settled + 1
            self._poll, self._repeats = (self._poll + 1) & 0xFF, False
            # At once, without the time after which a frame is repeated.
            self._reset_at = -1e9

    def _polls(self, now: float) -> bool:
        """Whether the root may still hold something that is stored, and is asked for it."""
        if not self._stored or self._settled >= SETTLED_POLLS:
            return False
        if now - self._reset_at >= REPEAT_MS / 1000:
            self._reset_at = now
            self._write_frame(LinkFrame(FrameKind.POLL, self._poll))
        return True

    def _restart(self, settled: bool) -> None:
        self.version_error = None
        self.connected = True
        self.counters.resets += 1
        self._expected = self._base = self._in_flight = 0
        self._owes_ack = False
        self._taken.clear()
        self._stored.clear()
        if not settled and not self._unsettled:
            # The root has heard all RESETs when it acknowledges this, which tells it nothing.
            self._waiting.appendleft(_hello())
        if settled:
            self._resets_sent = 0
        self._unsettled |= not settled

    def _acknowledged(self, upto: int) -> None:
        count = (upto - self._base) & 0xFF
        if count > self._in_flight:
            return
        for _ in range(count):
            self._waiting.popleft()
            self._unsettled, self._resets_sent = False, 0
        self._base, self._in_flight = upto, self._in_flight - count

    def acknowledge(self) -> None:
        """Everything returned by :meth:`feed` so far is stored."""
        self._stored.extend(self._taken)
        self._taken.clear()
        if self._owes_ack and self.connected:
            self.write(ACKS[self._expected])
        self._owes_ack = False

    def tick(self, now: float) -> None:
        """Send what may go out; repeat what was not acknowledged. ``now`` in s, monotonic."""
        if not self.connected:
            if not self._polls(now) and now - self._reset_at >= REPEAT_MS / 1000:
                self._reset_at = now
                self._resets_sent += 1
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

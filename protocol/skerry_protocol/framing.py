"""The serial line: link frames in COBS with CRC-16/XMODEM, ended by a zero byte.

``COBS(kind, sequence, payload, crc) 0x00``; the CRC covers kind to payload and travels high byte
first, so that the CRC of the whole frame is 0.

Both directions are reliable, by go-back-N over 8-bit sequence numbers: DATA carries one packet and
is repeated until an ACK says that a later one is expected; frames out of order are dropped. RESET
carries a HELLO packet, starts both directions at 0 again and is answered with a RESET_ACK (also a
HELLO). The gateway acknowledges a DATA frame only after what it brought is safely stored. TIME tells the
gateway the root's time once a second; the next one makes up for one that is lost. POLL makes the root send at
once what is unacknowledged, and then a POLL of the same number, so that a gateway knows when it has heard all
of that, however slow either end is.
"""

from __future__ import annotations

import binascii
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from cobs import cobs
from construct import GreedyBytes, Int8ul, Struct

#: Bits per second on the line, 8N1.
BAUD = 38400
#: Longest frame before COBS: kind, sequence, packet of 116, CRC.
FRAME_MAXIMUM = 2 + 116 + 2
#: Frames that a sender may have unacknowledged.
WINDOW = 4
#: A sender repeats after this time without a new acknowledgement, in ms.
REPEAT_MS = 500


class FrameKind(IntEnum):
    """First byte of a link frame."""

    DATA = 1  # payload: one packet
    ACK = 2  # sequence: the next DATA expected; no payload
    RESET = 3  # payload: HELLO; the sender forgets the numbering, and so does the receiver
    RESET_ACK = 4  # payload: HELLO
    TIME = 5  # payload: TIME
    POLL = 6  # sequence: the gateway's, returned by the root behind all that is unacknowledged; no payload


LinkHeader = Struct(
    "kind" / Int8ul * "1 DATA, 2 ACK, 3 RESET, 4 RESET_ACK, 5 TIME, 6 POLL",
    "sequence"
    / Int8ul
    * "DATA: this frame's number; ACK: the number expected next; POLL: the gateway's; else 0",
    "payload"
    / GreedyBytes
    * "DATA: a packet; RESET, RESET_ACK: a HELLO packet; TIME: a TIME packet; ACK, POLL: nothing",
)


class LinkFrame(NamedTuple):
    """One frame of the serial line, without COBS and CRC."""

    kind: FrameKind
    sequence: int
    payload: bytes = b""

    def to_bytes(self) -> bytes:
        """The bytes on the line, the closing zero included."""
        frame = bytes([self.kind, self.sequence]) + self.payload
        frame += binascii.crc_hqx(frame, 0).to_bytes(2, "big")
        return bytes(cobs.encode(frame)) + b"\0"


#: The bytes of each ACK, by the number that is expected next: one goes out for every few frames of every root.
ACKS = tuple(LinkFrame(FrameKind.ACK, expected).to_bytes() for expected in range(256))
_KINDS = {int(kind): kind for kind in FrameKind}


@dataclass(slots=True)
class LineErrors:
    """What a deframer refused, by reason; counts of frames, ``skipped`` of bytes."""

    oversized: int = 0
    malformed: int = 0
    checksum: int = 0
    unknown: int = 0
    skipped: int = 0

    @property
    def frames(self) -> int:
        """All frames refused."""
        return self.oversized + self.malformed + self.checksum + self.unknown


class Deframer:
    """Bytes of a serial line → link frames. Garbage is counted and skipped up to the next zero."""

    # COBS adds one byte in 254; a longer run without a zero is no frame.
    _LONGEST = FRAME_MAXIMUM + 2

    def __init__(self) -> None:
        self.errors = LineErrors()
        self._pending = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> list[LinkFrame]:
        """Frames completed by ``data``, in order."""
        frames = []
        *chunks, rest = data.split(b"\0")
        for chunk in chunks:
            # Mostly a frame comes whole, and nothing has to be put together.
            whole = (
                self._whole(chunk) if self._pending or self._skipping or len(chunk) > self._LONGEST else chunk
            )
            # Zeros between frames are idle line.
            frame = self._decoded(whole) if whole else None
            if frame is not None:
                frames.append(frame)
        if rest:
            self._append(rest)
        return frames

    def _append(self, chunk: bytes) -> None:
        if self._skipping or len(self._pending) + len(chunk) > self._LONGEST:
            self.errors.skipped += len(self._pending) + len(chunk)
            self._pending.clear()
            if not self._skipping:
                self.errors.oversized += 1
            self._skipping = True
        else:
            self._pending += chunk

    def _whole(self, end: bytes) -> bytes:
        """What was pending, with its end; b"" where it is too long for a frame."""
        self._append(end)
        whole = bytes(self._pending)
        self._pending.clear()
        self._skipping = False
        return whole

    def _decoded(self, raw: bytes) -> LinkFrame | None:
        try:
            frame = cobs.decode(raw)
        except cobs.DecodeError:
            self.errors.malformed += 1
            self.errors.skipped += len(raw)
            return None
        if len(frame) < 4 or binascii.crc_hqx(frame, 0) != 0:
            self.errors.checksum += 1
            self.errors.skipped += len(raw)
            return None
        kind = _KINDS.get(frame[0])
        if kind is None:
            self.errors.unknown += 1
            self.errors.skipped += len(raw)
            return None
        return LinkFrame(kind, frame[1], frame[2:-2])

"""What a frame of the serial line is told by when it comes again."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import NamedTuple

from skerry_protocol.codec import Packet


class Frame(NamedTuple):
    """A DATA frame: its sequence number, and the CRC-32 of its packet."""

    sequence: int
    checksum: int

    @classmethod
    def of(cls, sequence: int, payload: bytes) -> Frame:
        """The frame that has this payload."""
        return cls(sequence, zlib.crc32(payload))


@dataclass(slots=True)
class Framed(Packet):
    """A packet, and the frame that brought it."""

    frame: Frame

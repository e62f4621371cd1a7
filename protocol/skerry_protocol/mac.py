"""IEEE 802.15.4-2006 frames as skerry sends them: data and acknowledgement, short addresses.

A PSDU is ``header, payload, FCS``; the radio chip computes the FCS (CRC-16/KERMIT over header and payload,
low byte first).
"""

from __future__ import annotations

import binascii
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from construct import Int8ul, Int16ul, Struct

from skerry_protocol.errors import PacketError

#: Frame control (7.2.1.1): data frame, intra-PAN, short addresses, 2003-compatible.
FRAME_CONTROL_DATA = 0x8841
#: … with acknowledgement requested (bit 5).
FRAME_CONTROL_DATA_ACK = 0x8861
#: Acknowledgement frame: three bytes and FCS.
FRAME_CONTROL_ACK = 0x0002
#: Default PAN id and channel of a skerry network.
PAN_DEFAULT = 0x5359
CHANNEL_DEFAULT = 26
#: Channels between and beyond those of WLAN (1, 6, 11), which data slots hop over.
CHANNELS_DEFAULT = (15, 20, 25, 26)


def channel_mask(channels: Iterable[int]) -> int:
    """Channels 11..26 as in the settings: bit n for channel 11 + n."""
    return sum(1 << channel - 11 for channel in set(channels))


MacHeader = Struct(
    "frame_control" / Int16ul * "0x8841 data, 0x8861 data that asks for an acknowledgement",
    "sequence" / Int8ul * "data sequence number; a repetition keeps it",
    "pan" / Int16ul * "PAN id of both ends",
    "destination" / Int16ul * "short address; 65535 all in range",
    "source" / Int16ul * "short address",
)

#: The same, cut out at once: a testbed takes apart thousands of frames a second.
_HEADER = struct.Struct("<" + "".join(field.subcon.fmtstr.removeprefix("<") for field in MacHeader.subcons))


@dataclass(frozen=True, slots=True)
class MacFrame:
    """A data frame, FCS left out."""

    sequence: int
    destination: int
    source: int
    payload: bytes
    pan: int = PAN_DEFAULT
    acknowledged: bool = False


def encode(frame: MacFrame) -> bytes:
    """PSDU with its FCS."""
    header: bytes = MacHeader.build(
        {
            "frame_control": FRAME_CONTROL_DATA_ACK if frame.acknowledged else FRAME_CONTROL_DATA,
            "sequence": frame.sequence,
            "pan": frame.pan,
            "destination": frame.destination,
            "source": frame.source,
        }
    )
    psdu = header + frame.payload
    return psdu + fcs(psdu).to_bytes(2, "little")


def decode(psdu: bytes) -> MacFrame | None:
    """The data frame in a PSDU, FCS included; None for an acknowledgement.

    Raises PacketError for a bad FCS or another kind of frame.
    """
    if len(psdu) < 5 or fcs(psdu[:-2]) != int.from_bytes(psdu[-2:], "little"):
        raise PacketError(f"frame of {len(psdu)} bytes: wrong FCS")
    if int.from_bytes(psdu[:2], "little") == FRAME_CONTROL_ACK:
        return None
    if len(psdu) < _HEADER.size + 2:
        raise PacketError(f"frame of {len(psdu)} bytes is cut off: its header has {_HEADER.size}")
    frame_control, sequence, pan, destination, source = _HEADER.unpack_from(psdu)
    if frame_control not in (FRAME_CONTROL_DATA, FRAME_CONTROL_DATA_ACK):
        raise PacketError(f"frame control 0x{frame_control:04x}: no data frame of ours")
    acknowledged = frame_control == FRAME_CONTROL_DATA_ACK
    return MacFrame(sequence, destination, source, psdu[_HEADER.size : -2], pan, acknowledged)


def fcs(data: bytes) -> int:
    """CRC-16/KERMIT: ITU-T polynomial 0x1021 bit-reversed, start 0 (802.15.4-2006, 7.2.1.9)."""
    crc = binascii.crc_hqx(data.translate(_MIRRORED), 0)  # of the same polynomial, bits the other way round
    return _MIRRORED[crc & 0xFF] << 8 | _MIRRORED[crc >> 8]


#: Each byte with its bits in the other order.
_MIRRORED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))

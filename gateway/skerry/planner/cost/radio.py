"""What sending a packet over one hop takes: IEEE 802.15.4 at 250 kbit/s with the motes' radio."""

from __future__ import annotations

from skerry_protocol.dissemination import Command
from skerry_protocol.records import Event

#: Bytes around one record alone in a frame: preamble and SFD 5, length 1, MAC header 9, FCS 2, packet
#: header 2, bundle flags 1, record header 2.
FRAME_BYTES = 22
#: Likewise around a packet that is alone in its frame: no bundle, no record.
PACKET_BYTES = 19
#: Bytes of an acknowledgement on the air: preamble and SFD 5, length 1, frame 5.
ACK_BYTES = 11
#: 250 kbit/s.
_BYTE_SECONDS = 32e-6
#: AT86RF230 at 3 V (data sheet 5131, typical): 16.5 mA sending at 3 dBm, 15.5 mA listening.
_SEND_WATTS, _LISTEN_WATTS = 0.0495, 0.0465


def on_air(frame: int) -> float:
    """Time on the air of a frame of so many bytes, preamble to FCS, and its acknowledgement."""
    return (frame + ACK_BYTES) * _BYTE_SECONDS


def record_seconds(size: int) -> float:
    """The same of a record of so many bytes that is alone in its frame."""
    return on_air(size + FRAME_BYTES)


def bytes_in(seconds: float) -> float:
    """Bytes that are sent in such a time."""
    return seconds / _BYTE_SECONDS


def seconds_of(size: float) -> float:
    """Time on the air of so many bytes, whatever they are."""
    return size * _BYTE_SECONDS


def both_ends(seconds: float) -> float:
    """J that sender and receiver take for such a time on the air."""
    return seconds * (_SEND_WATTS + _LISTEN_WATTS)


def listening(seconds: float) -> float:
    """J that a radio takes that is on for so long and hears nothing."""
    return seconds * _LISTEN_WATTS


def record_energy(size: int) -> float:
    """J that both ends of a hop take for a record that is alone in its frame."""
    return both_ends(record_seconds(size))


def flood_energy() -> float:
    """J that an event takes from each mote at least: its frame comes once and goes once."""
    fixed = sum(field.sizeof() for field in Command.subcons[:-1])
    return float((fixed + Event.sizeof() + PACKET_BYTES) * _BYTE_SECONDS * (_SEND_WATTS + _LISTEN_WATTS))

"""What sending a packet over one hop takes: IEEE 802.15.4 at 250 kbit/s with the motes' radio."""

from __future__ import annotations

from skerry_protocol.packets import Command, Event

#: Bytes around one record alone in a frame: preamble and SFD 5, length 1, MAC header 9, FCS 2, packet
#: header 2, bundle flags 1, record header 2.
_FRAME_BYTES = 22
#: Likewise around a packet that is flooded: no bundle, no record.
_FLOOD_BYTES = 19
#: Bytes of an acknowledgement on the air: preamble and SFD 5, length 1, frame 5.
_ACK_BYTES = 11
#: 250 kbit/s.
_BYTE_SECONDS = 32e-6
#: AT86RF230 at 3 V (data sheet 5131, typical): 16.5 mA sending at 3 dBm, 15.5 mA listening.
_SEND_WATTS, _LISTEN_WATTS = 0.0495, 0.0465


def record_seconds(size: int) -> float:
    """Time on the air of a record of so many bytes and its acknowledgement."""
    return (size + _FRAME_BYTES + _ACK_BYTES) * _BYTE_SECONDS


def record_energy(size: int) -> float:
    """J that both ends of a hop take for it."""
    return record_seconds(size) * (_SEND_WATTS + _LISTEN_WATTS)


def flood_energy() -> float:
    """J that an event takes from each mote at least: its frame comes once and goes once."""
    fixed = sum(field.sizeof() for field in Command.subcons[:-1])
    return float((fixed + Event.sizeof() + _FLOOD_BYTES) * _BYTE_SECONDS * (_SEND_WATTS + _LISTEN_WATTS))

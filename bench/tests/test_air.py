"""Bytes on the air are told apart by what frames carry, and acknowledgements belong to what they acknowledge."""

from __future__ import annotations

from bench.measuring.air import OPENING, PHY_BYTES, counted
from skerry_protocol import codec, mac
from skerry_protocol.codes import PacketType
from skerry_protocol.limits import PROTOCOL_VERSION
from skerry_testbed.core import AirFrame

MS = 1_000_000


def frame(at_ms: int, sender: int, to: int, type: PacketType, sequence: int, size: int = 10) -> AirFrame:
    payload = bytes([PROTOCOL_VERSION, type]) + bytes(size)
    if type is PacketType.BUNDLE:
        records = [{"type": one, "body": bytes(size)} for one in (PacketType.RESULT, PacketType.STATUS)]
        payload = codec.encode(type, flags=0, records=records)
    psdu = mac.encode(mac.MacFrame(sequence, to, sender, payload, acknowledged=to != 0xFFFF))
    return AirFrame(at_ms * MS, (at_ms + 1) * MS, sender, 1, psdu)


def acknowledged(at_ms: int, sender: int, sequence: int) -> AirFrame:
    head = mac.FRAME_CONTROL_ACK.to_bytes(2, "little") + bytes([sequence])
    return AirFrame(at_ms * MS, (at_ms + 1) * MS, sender, 1, head + mac.fcs(head).to_bytes(2, "little"))


def test_frames_and_their_acknowledgements() -> None:
    row = frame(0, 2, 1, PacketType.BUNDLE, 7)
    # What a mote says of itself is not counted.
    other, ack = 2 + 10, PHY_BYTES + 5
    size = PHY_BYTES + len(row.psdu) - other
    opens = frame(20, 1, 0, PacketType.WAY_OPEN, 8)
    frames = [
        row,
        # Its acknowledgement is lost, and it comes again.
        frame(5, 2, 1, PacketType.BUNDLE, 7),
        acknowledged(6, 1, 7),
        opens,
        acknowledged(21, 0, 8),
        # One of a frame that ended long before is of nothing that is known.
        acknowledged(90, 1, 7),
        frame(100, 0, 0xFFFF, PacketType.BEACON, 9),
        place := frame(110, 2, 0xFFFF, PacketType.POSITION, 10, 4),
        AirFrame(200 * MS, 201 * MS, 0, 0, b"\x00\x01\x02\x03\x04\x05"),
    ]
    found = counted(frames, 3)
    assert found.sent.tolist() == [0, ack, 2 * size]
    assert found.received.tolist() == [0, 2 * size, ack]
    assert (found.frames, found.total, found.root, found.most) == (2, 2 * size + ack, 0, 2 * size + ack)
    everything = sum(PHY_BYTES + len(one.psdu) for one in frames)
    assert found.rest == everything - found.total
    ways = counted(frames, 3, OPENING)
    assert ways.sent.tolist() == [ack, PHY_BYTES + len(opens.psdu), PHY_BYTES + len(place.psdu)]
    less = found - found.times(0.5)
    assert (less.total, less.frames, less.rest) == (found.total / 2, 1, found.rest / 2)

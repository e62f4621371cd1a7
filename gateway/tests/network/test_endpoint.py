"""The link's state machine, without a port."""

from __future__ import annotations

import random

from skerry.network.link.endpoint import Endpoint
from skerry_protocol import codec
from skerry_protocol.codes import PacketType
from skerry_protocol.framing import Deframer, FrameKind, LinkFrame
from skerry_protocol.limits import PROTOCOL_VERSION

HELLO = codec.encode(PacketType.HELLO, node=0, session=3, seconds=9, ticks=0, query_version=0, queries=b"")


class Wire:
    """What an endpoint writes, as frames."""

    def __init__(self) -> None:
        self.deframer = Deframer()
        self.frames: list[LinkFrame] = []
        self.hellos: list[int] = []
        self.endpoint = Endpoint(self.write, lambda hello: self.hellos.append(hello.session))

    def write(self, data: bytes) -> None:
        self.frames += self.deframer.feed(data)

    def connect(self) -> None:
        self.endpoint.tick(0.0)
        self.endpoint.feed(LinkFrame(FrameKind.RESET_ACK, 0, HELLO).to_bytes())
        self.frames.clear()


def row(epoch: int) -> bytes:
    return codec.encode(PacketType.RESULT, query=1, node=7, epoch=epoch, nulls=0, values=b"\x01\x02")


def test_a_gateway_begins_with_reset() -> None:
    wire = Wire()
    wire.endpoint.tick(0.0)
    assert [frame.kind for frame in wire.frames] == [FrameKind.RESET]
    wire.endpoint.feed(LinkFrame(FrameKind.RESET_ACK, 0, HELLO).to_bytes())
    assert wire.hellos == [3]
    assert wire.endpoint.connected


def test_rows_are_acknowledged_only_when_told() -> None:
    wire = Wire()
    wire.connect()
    packets = wire.endpoint.feed(LinkFrame(FrameKind.DATA, 0, row(5)).to_bytes())
    assert [packet.body.epoch for packet in packets] == [5]
    assert wire.frames == []
    wire.endpoint.acknowledge()
    assert wire.frames == [LinkFrame(FrameKind.ACK, 1)]


def test_a_repeated_frame_is_acknowledged_and_not_returned() -> None:
    wire = Wire()
    wire.connect()
    frame = LinkFrame(FrameKind.DATA, 0, row(5)).to_bytes()
    assert len(wire.endpoint.feed(frame)) == 1
    assert wire.endpoint.feed(frame) == []
    wire.endpoint.acknowledge()
    assert wire.frames == [LinkFrame(FrameKind.ACK, 1)]
    assert wire.endpoint.counters.repeated == 1


def test_what_is_not_acknowledged_is_sent_again() -> None:
    wire = Wire()
    wire.connect()
    for query in range(1, 7):
        wire.endpoint.send(codec.encode(PacketType.QUERY_STOP, query_version=query, query=query))
    wire.endpoint.tick(1.0)
    assert [frame.sequence for frame in wire.frames] == [0, 1, 2, 3]
    wire.endpoint.feed(LinkFrame(FrameKind.ACK, 2).to_bytes())
    wire.endpoint.tick(1.1)
    assert [frame.sequence for frame in wire.frames] == [0, 1, 2, 3, 4, 5]
    wire.frames.clear()
    wire.endpoint.tick(2.0)
    assert [frame.sequence for frame in wire.frames] == [2, 3, 4, 5]


def test_another_version_is_refused_by_name() -> None:
    wire = Wire()
    wire.endpoint.tick(0.0)
    wire.endpoint.feed(LinkFrame(FrameKind.RESET_ACK, 0, bytes([9]) + HELLO[1:]).to_bytes())
    assert not wire.endpoint.connected
    assert "version 9" in str(wire.endpoint.version_error)
    assert f"version {PROTOCOL_VERSION}" in str(wire.endpoint.version_error)


def test_ten_megabytes_of_garbage_lose_no_good_packet() -> None:
    wire = Wire()
    wire.connect()
    rng = random.Random(42)
    found: list[int] = []
    for epoch in range(200):
        garbage = rng.randbytes(10 * 2**20 // 200)
        for at in range(0, len(garbage), 4096):
            found += [packet.body.epoch for packet in wire.endpoint.feed(garbage[at : at + 4096])]
        # A frame's neighbours on the line end in zero, as the root's own frames do.
        good = b"\0" + LinkFrame(FrameKind.DATA, epoch & 0xFF, row(epoch)).to_bytes()
        found += [packet.body.epoch for packet in wire.endpoint.feed(good)]
    assert found == list(range(200))
    assert wire.endpoint.line_errors["skipped"] > 9 * 2**20

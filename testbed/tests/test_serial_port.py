"""The root's line over TCP, with pyserial at the other end."""

from collections.abc import Iterator

import pytest
import serial

from skerry_protocol import codec
from skerry_protocol.codes import PacketType
from skerry_protocol.framing import Deframer, FrameKind, LinkFrame
from skerry_testbed.errors import TestbedError
from skerry_testbed.pytest import MakeNetwork, line_of
from skerry_testbed.runner import Testbed
from skerry_testbed.serial_port import SerialPort

HELLO = codec.encode(
    PacketType.HELLO, node=0xFFFF, session=0, seconds=0, ticks=0, query_version=0, queries=b""
)


@pytest.fixture
def bed(network: MakeNetwork) -> Testbed:
    return network(line_of(1, spacing=10)).bed


@pytest.fixture
def port(bed: Testbed) -> Iterator[SerialPort]:
    line = SerialPort(bed, 0)
    yield line
    line.close()


def answers_hello(bed: Testbed, port: SerialPort) -> bool:
    """Open the port, say hello, and see whether the root answers within a virtual second."""
    deframer = Deframer()
    with serial.serial_for_url(f"socket://127.0.0.1:{port.port}", timeout=0.01) as gateway:
        port.poll()
        gateway.write(LinkFrame(FrameKind.RESET, 0, HELLO).to_bytes())
        frames = []
        for _ in range(20):
            port.poll()
            bed.advance(0.05)
            frames += deframer.feed(gateway.read(4096))
        return any(frame.kind is FrameKind.RESET_ACK for frame in frames)


def test_the_root_answers(bed: Testbed, port: SerialPort) -> None:
    assert answers_hello(bed, port)


def test_clients_come_and_go(bed: Testbed, port: SerialPort) -> None:
    for _ in range(3):
        assert answers_hello(bed, port)
        port.poll()
        bed.advance(1)


def test_what_is_said_to_nobody_is_gone(bed: Testbed, port: SerialPort) -> None:
    for listener in bed.line_listeners:
        listener(b"to nobody")
    with serial.serial_for_url(f"socket://127.0.0.1:{port.port}", timeout=0.05) as gateway:
        port.poll()
        assert gateway.read(9) == b""


def test_a_port_in_use_is_named(bed: Testbed, port: SerialPort) -> None:
    with pytest.raises(
        TestbedError, match=rf"port {port.port}: Address already in use; choose another with --port"
    ):
        SerialPort(bed, port.port)

"""The thread that owns the port, with a port that is real."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from gateway.tests.peer import RootPeer
from gateway.tests.process import wait_for
from skerry.network.link.link import Link, PortError
from skerry.network.link.links import Links
from skerry_protocol import codec
from skerry_protocol.codec import Packet
from skerry_protocol.codes import PacketType
from skerry_protocol.framing import Deframer, FrameKind, LinkFrame

#: What ``select`` knows of.
FILES = 1024


@pytest.fixture
def many_files() -> Iterator[None]:
    """The process has so many files open that a further one is beyond those that ``select`` knows."""
    soft, hard = before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * FILES), hard))
    files = [os.open(os.devnull, os.O_RDONLY)]
    while files[-1] < FILES:
        files.append(os.open(os.devnull, os.O_RDONLY))
    yield
    for file in files:
        os.close(file)
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def came(packets: list[Packet]) -> list[Packet]:
    """Without what the root says of its time."""
    return [packet for packet in packets if packet.type is not PacketType.TIME]


@pytest.mark.usefixtures("many_files")
def test_a_port_among_the_connections_of_thousands_is_read_and_written() -> None:
    peer, packets, greeted = RootPeer(), list[Packet](), threading.Event()
    link = Link(peer.url, lambda _: greeted.set())
    links = Links([link], lambda brought: packets.extend(brought[0][1]), lambda: None, lambda: None)
    try:
        links.open()
        links.start()
        assert greeted.wait(60)
        rows = [
            codec.encode(PacketType.RESULT, query=1, node=node, epoch=1, nulls=0, values=b"\0\0")
            for node in range(1, 21)
        ]
        peer.waiting.extend(rows)
        wait_for(lambda: len(came(packets)) == len(rows))
        assert [packet.body.node for packet in came(packets)] == list(range(1, 21))
        link.send(codec.encode(PacketType.QUERY_STOP, query=7, query_version=1))
        wait_for(lambda: peer.received)
        assert peer.received[0].body.query == 7
        # The other end goes, and comes back.
        peer.close()
        wait_for(lambda: link.state == "reconnecting")
        peer.open()
        wait_for(lambda: link.state == "connected")
    finally:
        links.close()
        peer.close()


def test_a_device_is_read_and_written() -> None:
    root, device = os.openpty()
    greeted = threading.Event()
    link = Link(os.ttyname(device), lambda _: greeted.set())
    links = Links([link], lambda _: None, lambda: None, lambda: None)
    try:
        links.open()
        links.start()
        [reset] = Deframer().feed(os.read(root, 100))
        assert reset.kind is FrameKind.RESET
        hello = codec.encode(
            PacketType.HELLO, node=0, session=1, seconds=9, ticks=0, query_version=0, queries=b""
        )
        os.write(root, LinkFrame(FrameKind.RESET_ACK, 0, hello).to_bytes())
        assert greeted.wait(60)
        # It is pulled out.
        os.close(device)
        os.close(root)
        wait_for(lambda: link.state == "reconnecting")
    finally:
        links.close()


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("/dev/nothing", "No such file or directory"),
        ("socket://127.0.0.1:1", "Connection refused"),
        ("socket://127.0.0.1", "expected socket://HOST:PORT"),
        ("socket://:8000", "expected socket://HOST:PORT"),
        ("socket://127.0.0.1:serial", "expected socket://HOST:PORT"),
    ],
)
def test_a_port_that_cannot_be_opened_is_named(url: str, reason: str) -> None:
    link = Link(url, lambda _: None)
    with pytest.raises(PortError) as error:
        link.open()
    assert str(error.value) == f"link {url}: {reason}"


_HOLDER = """
import sys
from skerry.network.link.device import opened
port = opened(sys.argv[1])
print("has it", flush=True)
sys.stdin.read()
"""


def test_a_device_is_one_programs_and_the_other_is_told_whose(device: str) -> None:
    command = [sys.executable, "-c", _HOLDER, device]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    link = Link(device, lambda _: None)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "has it\n"
        with pytest.raises(PortError, match=rf"link {device}: process {holder.pid} \(.*python.*\) has it"):
            link.open()
    finally:
        holder.communicate()
    link.open()
    other = Link(device, lambda _: None)
    with pytest.raises(PortError, match=f"process {os.getpid()} "):
        other.open()
    link.close()
    other.open()
    other.close()


@pytest.fixture
def device() -> Iterator[str]:
    root, end = os.openpty()
    yield os.ttyname(end)
    os.close(root)
    os.close(end)

"""The root's serial line when it is bad, and when what comes over it is nonsense."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from skerry_protocol import codec
from skerry_protocol.codes import CommandOp, PacketType
from skerry_protocol.framing import FrameKind, LinkFrame
from skerry_protocol.limits import PROTOCOL_VERSION
from skerry_testbed.pytest import MakeNetwork, NetworkHandle, disc, line_of
from skerry_testbed.queries import ask, rows

#: Packets in good frames, with a good version, that mean nothing.
NONSENSE = {
    "unknown type": bytes([PROTOCOL_VERSION, 0x77, 1, 2, 3]),
    "no body": bytes([PROTOCOL_VERSION, PacketType.QUERY_INSTALL]),
    "result to a root": bytes([PROTOCOL_VERSION, PacketType.RESULT]) + bytes(9),
    "stop cut off": bytes([PROTOCOL_VERSION, PacketType.QUERY_STOP, 9]),
    "command cut off": bytes([PROTOCOL_VERSION, PacketType.COMMAND, 0, 0]),
    "bundle from a gateway": codec.encode(PacketType.BUNDLE, flags=0, records=[]),
}


def malformed(net: NetworkHandle) -> int:
    """What the root has refused so far, as it says itself."""
    before = len(net.line.of(PacketType.STATUS))
    net.line.command(0, CommandOp.PING, token=1000 + len(net.line.records))
    net.advance(3)
    return max(r.body.malformed for r in net.line.of(PacketType.STATUS)[before:] if r.body.node == 0)


def running(network: MakeNetwork) -> tuple[NetworkHandle, object]:
    net = network(line_of(3, spacing=10), radio=disc(12))
    net.advance("20s")
    query = ask(net, 1, "SELECT temp FROM sensors SAMPLE PERIOD 2 s")
    net.advance("20s")
    return net, query


def test_noise_on_the_line_loses_and_repeats_no_row(network: MakeNetwork) -> None:
    net, query = running(network)
    for _ in range(20):
        net.inject(kind="serial_noise", bytes=80)
        net.advance(1.7)
    net.advance("10s")
    counts = Counter((row["nodeid"], row["epoch"]) for row in rows(net.line, 1, query))  # type: ignore[arg-type]
    assert set(counts.values()) == {1}
    for node in range(3):
        epochs = sorted(epoch for of, epoch in counts if of == node)
        assert epochs == list(range(epochs[0], epochs[-1] + 1)), f"mote {node}"
        assert len(epochs) > 20


def test_random_bytes_change_nothing_but_a_counter(network: MakeNetwork) -> None:
    net, query = running(network)
    before = malformed(net)
    # With zeros enough to make many short frames of it.
    net.bed.send(bytes(random.Random(8).choices(range(24), k=6000)))
    net.advance("10s")
    assert malformed(net) > before + 50
    late = {row["nodeid"] for row in rows(net.line, 1, query) if row["at"] > net.now - 8}  # type: ignore[arg-type]
    assert late == {0, 1, 2}
    assert all(mote.counters["resets"] == 0 for mote in net.motes.values())


@pytest.mark.parametrize("packet", NONSENSE.values(), ids=NONSENSE.keys())
def test_nonsense_in_good_frames_changes_nothing(network: MakeNetwork, packet: bytes) -> None:
    net, query = running(network)
    parents = {r.body.node: r.body.parent for r in net.line.of(PacketType.STATUS)}
    net.line.send(packet)
    net.advance("20s")
    assert {r.body.node: r.body.parent for r in net.line.of(PacketType.STATUS)} == parents
    late = {row["nodeid"] for row in rows(net.line, 1, query) if row["at"] > net.now - 8}  # type: ignore[arg-type]
    assert late == {0, 1, 2}


def test_a_program_of_nonsense_is_refused_by_all_and_others_go_on(network: MakeNetwork) -> None:
    net, query = running(network)
    net.line.install(2, bytes(random.Random(3).randbytes(90)))
    net.advance("30s")
    assert net.line.of(PacketType.RESULT, 2) == net.line.of(PacketType.PARTIAL, 2) == []
    late = {row["nodeid"] for row in rows(net.line, 1, query) if row["at"] > net.now - 8}  # type: ignore[arg-type]
    assert late == {0, 1, 2}


def test_a_frame_of_another_version_is_refused_and_not_acknowledged(network: MakeNetwork) -> None:
    net, _ = running(network)
    before = malformed(net)
    stop = codec.encode(PacketType.QUERY_STOP, query_version=99, query=0)
    other = bytes([PROTOCOL_VERSION + 1]) + stop[1:]
    net.bed.send(LinkFrame(FrameKind.DATA, net.line.sequence, other).to_bytes())
    net.advance(3)
    assert malformed(net) == before + 1  # the number is still free: what came next was taken
    assert net.line.version_error is None


def test_a_root_of_another_version_is_named_with_both_versions(network: MakeNetwork) -> None:
    net = network(line_of(1, spacing=10))
    hello = codec.encode(
        PacketType.HELLO, node=0, session=1, seconds=0, ticks=0, query_version=0, queries=b""
    )
    net.line.received(LinkFrame(FrameKind.RESET, 0, bytes([PROTOCOL_VERSION + 1]) + hello[1:]).to_bytes())
    message = str(net.line.version_error)
    assert f"version {PROTOCOL_VERSION + 1}" in message
    assert f"version {PROTOCOL_VERSION}" in message


def test_a_gateway_that_comes_again_gets_what_was_not_acknowledged(network: MakeNetwork) -> None:
    """The line is cut for 12 s while rows flow: none is lost, none comes twice."""
    net, query = running(network)
    listener = net.bed.line_listeners.pop(0)
    net.advance("12s")
    net.bed.line_listeners.insert(0, listener)
    net.line.connect()
    net.advance("20s")
    counts = Counter((row["nodeid"], row["epoch"]) for row in rows(net.line, 1, query))  # type: ignore[arg-type]
    assert set(counts.values()) == {1}
    for node in range(3):
        epochs = sorted(epoch for of, epoch in counts if of == node)
        assert epochs == list(range(epochs[0], epochs[-1] + 1)), f"mote {node}"

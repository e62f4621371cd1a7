"""Packets of GDB's remote serial protocol, against its manual (E.1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry_testbed.gdb.packets import INTERRUPT, NoPacketError, Reader, packet


def test_a_packet_as_the_manual_has_it() -> None:
    assert packet(b"OK") == b"$OK#9a"
    assert packet(b"") == b"$#00"


def test_what_means_something_in_a_packet_is_escaped() -> None:
    assert packet(b"#$}*") == b"$}\x03}\x04}]}\x0a#" + b"%02x" % (sum(b"}\x03}\x04}]}\x0a") & 0xFF)


@given(st.lists(st.binary(max_size=40), max_size=5), st.integers(1, 20))
def test_packets_arrive_however_they_are_cut(contents: list[bytes], size: int) -> None:
    sent = b"+".join(map(packet, contents))
    reader, found, answered = Reader(), [], b""
    for begin in range(0, len(sent), size):
        packets, answer = reader.feed(sent[begin : begin + size])
        found += packets
        answered += answer
    assert found == contents
    assert answered == b"+" * len(contents)


def test_a_packet_with_a_wrong_checksum_is_asked_for_again() -> None:
    reader = Reader()
    assert reader.feed(b"$OK#9b") == ([], b"-")
    assert reader.feed(b"$OK#9A") == ([b"OK"], b"+")


def test_nothing_is_acknowledged_when_both_sides_do_without() -> None:
    reader = Reader()
    reader.acknowledged = False
    assert reader.feed(packet(b"g")) == ([b"g"], b"")


def test_an_interrupt_comes_between_packets_and_is_a_byte_within_one() -> None:
    assert Reader().feed(b"+" + INTERRUPT + packet(b"a" + INTERRUPT)) == ([INTERRUPT, b"a" + INTERRUPT], b"+")


@pytest.mark.parametrize("said", [b"GET / HTTP/1.1\r\n", b"$" + b"a" * 20000])
def test_who_speaks_otherwise_is_no_gdb(said: bytes) -> None:
    with pytest.raises(NoPacketError):
        Reader().feed(said)

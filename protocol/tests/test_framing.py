"""The serial line: good frames survive whatever stands between them."""

from __future__ import annotations

import binascii
import random

from cobs import cobs
from hypothesis import given
from hypothesis import strategies as st

from skerry_protocol.framing import FRAME_MAXIMUM, Deframer, FrameKind, LinkFrame

frames = st.builds(
    LinkFrame, st.sampled_from(FrameKind), st.integers(0, 255), st.binary(max_size=FRAME_MAXIMUM - 4)
)


def line(frame: bytes) -> bytes:
    """Bytes of a frame with its checksum, stuffed."""
    return bytes(cobs.encode(frame + binascii.crc_hqx(frame, 0).to_bytes(2, "big"))) + b"\0"


def test_crc_check_value() -> None:
    """CRC-16/XMODEM in the catalogue of parametrised CRC algorithms; the CRC of data and CRC is 0."""
    assert binascii.crc_hqx(b"123456789", 0) == 0x31C3
    assert binascii.crc_hqx(b"123456789\x31\xc3", 0) == 0


@given(st.lists(frames, max_size=8), st.data())
def test_frames_survive_any_cutting(sent: list[LinkFrame], data: st.DataObject) -> None:
    stream = b"".join(frame.to_bytes() for frame in sent)
    deframer, received, at = Deframer(), [], 0
    while at < len(stream):
        size = data.draw(st.integers(1, 64))
        received += deframer.feed(stream[at : at + size])
        at += size
    assert received == sent
    assert deframer.errors.frames == 0


def test_ten_megabytes_of_random_bytes_between_frames_lose_none() -> None:
    """A zero byte ends each run of noise, as it ends each frame."""
    generator = random.Random(5)
    deframer = Deframer()
    sent: list[LinkFrame] = []
    received: list[LinkFrame] = []
    noise = 0
    while noise < 10_000_000:
        garbage = generator.randbytes(generator.randrange(1, 4000))
        noise += len(garbage)
        number = len(sent)
        sent.append(
            LinkFrame(FrameKind.DATA, number & 0xFF, number.to_bytes(4, "big") + generator.randbytes(40))
        )
        received += deframer.feed(garbage + b"\0" + sent[-1].to_bytes())
    assert received == sent
    assert deframer.errors.frames > 0
    assert noise * 0.9 < deframer.errors.skipped <= noise


def test_oversized_frame_is_counted_and_skipped() -> None:
    deframer = Deframer()
    good = LinkFrame(FrameKind.ACK, 3)
    oversized = b"\x55" * 10_000
    assert deframer.feed(oversized[:5000]) == []
    assert deframer.feed(oversized[5000:] + b"\0" + good.to_bytes()) == [good]
    assert (deframer.errors.oversized, deframer.errors.skipped) == (1, 10_000)


def test_longest_frame_passes_and_one_byte_more_does_not() -> None:
    longest = LinkFrame(FrameKind.DATA, 0, b"\x11" * (FRAME_MAXIMUM - 4))
    assert Deframer().feed(longest.to_bytes()) == [longest]
    deframer = Deframer()
    assert deframer.feed(line(bytes([FrameKind.DATA, 0]) + b"\x11" * (FRAME_MAXIMUM - 1))) == []
    assert deframer.errors.oversized == 1


def test_reasons_are_told_apart() -> None:
    deframer = Deframer()
    good = LinkFrame(FrameKind.DATA, 9, b"payload").to_bytes()
    for bad in (
        good[2:],
        good[:-4] + b"\0",
        b"\x09ab\0",
        line(b"\x07\x00payload"),
        line(b"\x01")[:-1] + b"\0",
    ):
        assert deframer.feed(bad) == []
    errors = deframer.errors
    assert (errors.oversized, errors.malformed, errors.checksum, errors.unknown) == (0, 3, 1, 1)
    assert deframer.feed(good) == [LinkFrame(FrameKind.DATA, 9, b"payload")]


@given(frames, st.integers(0, 10_000), st.integers(1, 255))
def test_one_changed_byte_is_noticed(frame: LinkFrame, place: int, change: int) -> None:
    """CRC-16 finds every error burst of up to 16 bits; a changed zero only merges or splits frames."""
    raw = bytearray(frame.to_bytes())
    raw[place % len(raw)] ^= change
    assert frame not in Deframer().feed(bytes(raw))

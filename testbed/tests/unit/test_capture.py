"""Captures are what Wireshark takes them for."""

import random
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from skerry_protocol import mac
from skerry_testbed.capture import Capture
from skerry_testbed.core import AirFrame

FRAMES = [
    AirFrame(1_500_000_007, 1_502_000_000, 0, 2, mac.encode(mac.MacFrame(17, 0xFFFF, 3, b"\x01\x01beacon"))),
    AirFrame(
        2_000_000_000,
        2_001_000_000,
        1,
        1,
        mac.encode(mac.MacFrame(18, 3, 4, b"\x01\x06rows", acknowledged=True)),
    ),
]


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    path = tmp_path / "air.pcap"
    with Capture(path) as file:
        for frame in FRAMES:
            file.add(frame)
    return path


def test_frames_are_written_with_their_time_in_ns(capture: Path) -> None:
    data = capture.read_bytes()
    assert struct.unpack_from("<IHH", data) == (0xA1B23C4D, 2, 4)
    assert struct.unpack_from("<I", data, 20) == (195,)
    length = len(FRAMES[0].psdu)
    assert struct.unpack_from("<IIII", data, 24) == (1, 500_000_007, length, length)
    assert data[40 : 40 + length] == FRAMES[0].psdu


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_dissects_the_mac_header(capture: Path) -> None:
    fields = ["frame.time_epoch", "wpan.frame_type", "wpan.seq_no", "wpan.dst_pan", "wpan.dst16", "wpan.src16",
              "wpan.ack_request", "wpan.fcs_ok", "_ws.malformed"]  # fmt: skip
    # Lightweight Mesh takes any payload for its own.
    command = ["tshark", "-r", str(capture), "--disable-protocol", "lwm", "-T", "fields", "-E", "separator=,"]
    for field in fields:
        command += ["-e", field]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line.split(",") for line in output] == [
        ["1.500000007", "0x0001", "17", "0x5359", "0xffff", "0x0003", "0", "1", ""],
        ["2.000000000", "0x0001", "18", "0x5359", "0x0003", "0x0004", "1", "1", ""],
    ]


def times_ns(path: Path) -> list[int]:
    """When the frames of a capture began."""
    data, place, found = path.read_bytes(), 24, []
    while place < len(data):
        seconds, nanoseconds, length, _ = struct.unpack_from("<IIII", data, place)
        found.append(seconds * 1_000_000_000 + nanoseconds)
        place += 16 + length
    return found


@pytest.mark.parametrize("seed", range(5))
def test_frames_stand_in_the_order_in_which_they_began(tmp_path: Path, seed: int) -> None:
    """The core tells them as they end: a short one before the long one that it fell into."""
    print(f"seed {seed}")
    draw = random.Random(seed)
    frames = []
    for _ in range(2_000):
        start, size = draw.randrange(1_000_000_000), draw.randrange(5, 128)
        frames.append(AirFrame(start, start + (size + 6) * 32_000, 1, 1, bytes(size)))
    path = tmp_path / "air.pcap"
    with Capture(path) as capture:
        for frame in sorted(frames, key=lambda frame: frame.end_ns):
            capture.add(frame)
    assert times_ns(path) == sorted(frame.start_ns for frame in frames)

"""802.15.4 frames: ours, and Wireshark's opinion of them."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry_protocol import mac
from skerry_protocol.errors import PacketError

VECTORS = Path(__file__).resolve().parents[1] / "vectors" / "mac.json"
#: Link type of 802.15.4 frames with their FCS (www.tcpdump.org/linktypes.html).
LINKTYPE_IEEE802_15_4 = 195

frames = st.builds(
    mac.MacFrame,
    st.integers(0, 255),
    st.integers(0, 65535),
    st.integers(0, 65535),
    st.binary(max_size=116),
    st.integers(0, 65535),
    st.booleans(),
)


def test_fcs_check_value() -> None:
    """CRC-16/KERMIT in the catalogue of parametrised CRC algorithms."""
    assert mac.fcs(b"123456789") == 0x2189


@given(frames)
def test_round_trip(frame: mac.MacFrame) -> None:
    psdu = mac.encode(frame)
    assert len(psdu) <= 127
    assert mac.decode(psdu) == frame


@given(frames, st.integers(0, 10_000), st.integers(1, 255))
def test_damage_is_noticed(frame: mac.MacFrame, place: int, change: int) -> None:
    psdu = bytearray(mac.encode(frame))
    psdu[place % len(psdu)] ^= change
    with pytest.raises(PacketError, match="wrong FCS"):
        mac.decode(bytes(psdu))


def with_fcs(data: bytes) -> bytes:
    """A PSDU of these bytes."""
    return data + mac.fcs(data).to_bytes(2, "little")


def test_acknowledgement_is_no_data_frame() -> None:
    assert mac.decode(with_fcs(bytes([0x02, 0x00, 0x11]))) is None


@pytest.mark.parametrize(
    ("psdu", "says"),
    [
        (b"", "wrong FCS"),
        (with_fcs(bytes.fromhex("0388010203040506")), "frame of 10 bytes is cut off"),
        (with_fcs(bytes.fromhex("03880102030405060708")), "frame control 0x8803: no data frame"),
    ],
)
def test_error_names_what_is_wrong(psdu: bytes, says: str) -> None:
    with pytest.raises(PacketError, match=says):
        mac.decode(psdu)


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed (apt install tshark)")
def test_wireshark_dissects_the_header(tmp_path: Path) -> None:
    vectors = json.loads(VECTORS.read_text())
    psdus = [bytes.fromhex(vector["hex"]) for vector in vectors]
    capture = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 127, LINKTYPE_IEEE802_15_4)
    for psdu in psdus:
        capture += struct.pack("<IIII", 0, 0, len(psdu), len(psdu)) + psdu
    path = tmp_path / "frames.pcap"
    path.write_bytes(capture)
    names = ["frame_type", "ack_request", "seq_no", "dst_pan", "dst16", "src16", "fcs_ok"]
    columns = [argument for name in names for argument in ("-e", f"wpan.{name}")]
    # The payload is ours: no guess at ZigBee or 6LoWPAN.
    output = subprocess.run(
        ["tshark", "-r", path, "-T", "fields", *columns, "-e", "_ws.malformed",
         "--disable-heuristic", "zbee_nwk_wpan"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    rows = [line.split("\t") for line in output.splitlines()]
    assert len(rows) == len(vectors)
    for row, vector in zip(rows, vectors, strict=True):
        meaning = vector["meaning"]
        acknowledged = meaning["frame_control"] == mac.FRAME_CONTROL_DATA_ACK
        assert int(row[0], 0) == 1, "data frame"
        assert row[1] in (("1", "True") if acknowledged else ("0", "False"))
        assert [int(value, 0) for value in row[2:6]] == [
            meaning["sequence"], meaning["pan"], meaning["destination"], meaning["source"],
        ]  # fmt: skip
        assert row[6] in {"1", "True"}

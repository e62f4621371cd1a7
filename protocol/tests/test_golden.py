"""Golden vectors: bytes that must never change while the protocol version stays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from construct import Construct, Container, ListContainer

from skerry_protocol import codec, framing, limits, mac, settings
from skerry_protocol.codes import PacketType

VECTORS = Path(__file__).resolve().parents[1] / "vectors"


def load(file: str) -> pytest.MarkDecorator:
    """Parametrization over the vectors of a file: (meaning, bytes) named by what they are."""
    vectors = json.loads((VECTORS / f"{file}.json").read_text())
    return pytest.mark.parametrize(
        ("meaning", "data"),
        [
            pytest.param(vector["meaning"], bytes.fromhex(vector["hex"]), id=vector["name"])
            for vector in vectors
        ],
    )


def to_fields(meaning: Any) -> Any:
    """Vectors write bytes in hex."""
    if isinstance(meaning, dict):
        return {name: to_fields(value) for name, value in meaning.items()}
    if isinstance(meaning, list):
        return [to_fields(value) for value in meaning]
    return bytes.fromhex(meaning) if isinstance(meaning, str) else meaning


def to_meaning(value: Any) -> Any:
    """A decoded structure as vectors write it."""
    if isinstance(value, codec.Result | codec.Series | codec.Joined):
        value = Container(value._asdict())
    if isinstance(value, Container):
        return {name: to_meaning(member) for name, member in value.items() if not name.startswith("_")}
    if isinstance(value, list | ListContainer):
        return [to_meaning(member) for member in value]
    return value.hex() if isinstance(value, bytes) else value


@load("packets")
def test_packet(meaning: dict[str, Any], data: bytes) -> None:
    fields = dict(meaning)
    version, type = fields.pop("version"), PacketType(fields.pop("type"))
    packet = codec.decode(data)
    assert version == limits.PROTOCOL_VERSION == data[0]
    assert packet.type is type
    assert to_meaning(packet.body) == fields
    assert codec.encode(type, **to_fields(fields)) == data


@load("lines")
def test_line(meaning: dict[str, Any], data: bytes) -> None:
    frame = framing.LinkFrame(
        framing.FrameKind(meaning["kind"]), meaning["sequence"], to_fields(meaning["payload"])
    )
    assert framing.Deframer().feed(data) == [frame]
    assert frame.to_bytes() == data


@load("mac")
def test_mac_frame(meaning: dict[str, Any], data: bytes) -> None:
    frame = mac.decode(data)
    assert frame == mac.MacFrame(
        meaning["sequence"],
        meaning["destination"],
        meaning["source"],
        to_fields(meaning["payload"]),
        meaning["pan"],
        meaning["frame_control"] == mac.FRAME_CONTROL_DATA_ACK,
    )
    assert mac.encode(frame) == data


@load("programs")
def test_program(meaning: dict[str, Any], data: bytes) -> None:
    assert to_meaning(codec.decode_program(data)) == meaning
    assert codec.encode_program(**to_fields(meaning)) == data


@load("settings")
def test_settings(meaning: dict[str, Any], data: bytes) -> None:
    stored: Construct[Any, Any] = settings.Settings
    assert to_meaning(stored.parse(data)) == meaning
    assert stored.build(meaning) == data


def test_every_packet_type_has_a_vector() -> None:
    vectors = json.loads((VECTORS / "packets.json").read_text())
    assert {vector["meaning"]["type"] for vector in vectors} == {int(type) for type in PacketType}

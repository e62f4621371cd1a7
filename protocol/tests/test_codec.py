"""Packets ↔ bytes: everything encodes back to itself, nothing but packets is taken."""

from __future__ import annotations

from typing import Any

import pytest
from construct import (
    Construct,
    ConstructError,
    Container,
    Default,
    FormatField,
    GreedyBytes,
    GreedyRange,
    ListContainer,
    Prefixed,
    Renamed,
    Struct,
)
from hypothesis import given
from hypothesis import strategies as st

from skerry_protocol import codec, limits, programs
from skerry_protocol.codes import PacketType
from skerry_protocol.errors import PacketError, VersionMismatchError
from skerry_protocol.limits import PACKET_MAXIMUM
from skerry_protocol.packets import BODIES

#: Room for the variable part of a packet.
_TAIL_MAXIMUM = PACKET_MAXIMUM - 2 - 60


def values(definition: Construct[Any, Any], room: int = _TAIL_MAXIMUM) -> st.SearchStrategy[Any]:
    """Whatever ``definition`` encodes, variable parts of at most ``room`` bytes."""
    while isinstance(definition, (Renamed, Default)):
        definition = definition.subcon
    if isinstance(definition, FormatField):
        bits, signed = 8 * definition.length, definition.fmtstr[-1].islower()
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        return st.integers(low, high)
    if definition is GreedyBytes:
        return st.binary(max_size=room)
    if isinstance(definition, Prefixed):
        return values(definition.subcon, 16)
    if isinstance(definition, GreedyRange):
        return st.lists(values(definition.subcon), max_size=2)
    if isinstance(definition, Struct):
        return st.fixed_dictionaries({field.name: values(field, room) for field in definition.subcons})
    raise TypeError(f"no strategy for {definition!r}")


def packet_fields() -> st.SearchStrategy[tuple[PacketType, dict[str, Any]]]:
    """Any packet: its type and fields."""
    return st.sampled_from(PacketType).flatmap(
        lambda type: st.tuples(
            st.just(type), values(BODIES[type], 56 if type is not PacketType.STATUS else 0)
        )
    )


def plain(value: Any) -> Any:
    """Containers of construct as dicts and lists."""
    if isinstance(value, codec.Result | codec.Series | codec.Joined):
        value = Container(value._asdict())
    if isinstance(value, Container):
        return {name: plain(member) for name, member in value.items() if not name.startswith("_")}
    if isinstance(value, list | ListContainer):
        return [plain(member) for member in value]
    return value


@given(packet_fields())
def test_round_trip(packet: tuple[PacketType, dict[str, Any]]) -> None:
    type, fields = packet
    data = codec.encode(type, **fields)
    assert len(data) <= PACKET_MAXIMUM
    decoded = codec.decode(data)
    assert decoded.type is type
    assert plain(decoded.body) == fields
    assert plain(codec.decode_record(type, data[2:]).body) == fields


@given(st.sampled_from([PacketType.RESULT, PacketType.SERIES]), st.binary(max_size=PACKET_MAXIMUM))
def test_rows_are_decoded_as_they_are_defined(type: PacketType, body: bytes) -> None:
    """The definition in construct is what decides, also over what is too short."""
    data = bytes([limits.PROTOCOL_VERSION, type]) + body
    try:
        defined = BODIES[type].parse(body)
    except ConstructError:
        for decode in (lambda: codec.decode(data), lambda: codec.decode_record(type, body)):
            with pytest.raises(PacketError, match=f"{type.name} of {len(body)} bytes is cut off"):
                decode()
        return
    assert codec.decode(data) == codec.decode_record(type, body)
    assert list(codec.decode(data).body._asdict().items()) == list(plain(defined).items())


@given(values(programs.QueryProgram))
def test_program_round_trip(fields: dict[str, Any]) -> None:
    assert plain(codec.decode_program(codec.encode_program(**fields))) == fields


@given(
    st.binary(max_size=PACKET_MAXIMUM - 1)
    | st.builds(
        lambda type, rest: bytes([type]) + rest,
        st.sampled_from(PacketType),
        st.binary(max_size=PACKET_MAXIMUM - 2),
    )
)
def test_arbitrary_bytes_are_a_packet_or_a_packet_error(data: bytes) -> None:
    """A packet that is accepted has no bytes left over: it encodes to what it was."""
    try:
        packet = codec.decode(bytes([limits.PROTOCOL_VERSION]) + data)
    except PacketError:
        return
    assert codec.encode(packet.type, **plain(packet.body))[1:] == data or len(data) > PACKET_MAXIMUM - 1


@given(st.integers(0, 255).filter(lambda version: version != limits.PROTOCOL_VERSION))
def test_other_version_is_refused_with_both_named(version: int) -> None:
    data = bytes([version]) + codec.encode(PacketType.QUERY_STOP, query_version=1, query=2)[1:]
    with pytest.raises(VersionMismatchError) as refused:
        codec.decode(data)
    assert f"version {version}," in str(refused.value)
    assert f"version {limits.PROTOCOL_VERSION}:" in str(refused.value)
    assert refused.value.theirs == version


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "at least 2"),
        (b"\x03", "at least 2"),
        (b"\x03\x7f", "type 0x7f is unknown"),
        (b"\x03\x03\x05", "QUERY_STOP of 1 bytes is cut off"),
        (b"\x03\x03\x05\x00\x01\x00", "QUERY_STOP has 1 bytes left over"),
        (b"\x03\x06\x00\x10\x05ab", "BUNDLE has 4 bytes left over"),
    ],
)
def test_error_names_what_is_wrong(data: bytes, says: str) -> None:
    with pytest.raises(PacketError, match=says):
        codec.decode(data)


def test_field_out_of_range_and_missing_field_are_named() -> None:
    with pytest.raises(PacketError, match=r"QUERY_STOP.*query"):
        codec.encode(PacketType.QUERY_STOP, query_version=1, query=256)
    with pytest.raises(PacketError, match=r"QUERY_STOP.*query"):
        codec.encode(PacketType.QUERY_STOP, query_version=1)
    with pytest.raises(PacketError, match="LOG is 117 bytes long, the limit is 116"):
        codec.encode(PacketType.LOG, node=1, severity=1, text=b"x" * 112)

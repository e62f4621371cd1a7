"""Packets ↔ bytes."""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass
from typing import Any, NamedTuple

from construct import Construct, ConstructError, Container

from skerry_protocol.codes import PacketType
from skerry_protocol.errors import PacketError, VersionMismatchError
from skerry_protocol.limits import PACKET_MAXIMUM, PROTOCOL_VERSION
from skerry_protocol.packets import BODIES
from skerry_protocol.programs import QueryProgram
from skerry_protocol.records import Tally

#: Bytes of a whole Tally.
_TALLY = Tally.sizeof()
# Compiled parsers are about five times as fast as interpreted ones. They pass over counted bytes that are cut off: beacons, which no
# gateway reads, are parsed without.
_PARSERS: dict[int, tuple[PacketType, Construct[Any, Any]]] = {
    int(kind): (kind, body if kind is PacketType.BEACON else body.compile()) for kind, body in BODIES.items()
}


@dataclass(slots=True)
class Packet:
    """A decoded packet: its type and the fields of the body by name."""

    type: PacketType
    body: Any


class Result(NamedTuple):
    """The body of a RESULT."""

    query: int
    node: int
    epoch: int
    nulls: int
    values: bytes


class Series(NamedTuple):
    """The body of a SERIES."""

    query: int
    node: int
    epoch: int
    values: bytes


class Joined(NamedTuple):
    """The body of a JOINED."""

    query: int
    s: int
    s_epoch: int
    s_nulls: int
    t: int
    t_epoch: int
    t_nulls: int
    values: bytes


def _head(body: Construct[Any, Any]) -> struct.Struct:
    """The layout of the fields in front of a body's last, which is all that follows, as the body's definition has them."""
    *fields, _ = body.subcons
    return struct.Struct("<" + "".join(field.subcon.fmtstr.removeprefix("<") for field in fields))


#: Rows are most of what comes, and a root brings hundreds a second: their fields are cut out at once.
_ROWS: dict[int, tuple[PacketType, struct.Struct, Any]] = {
    int(kind): (kind, _head(BODIES[kind]), body)
    for kind, body in (
        (PacketType.RESULT, Result),
        (PacketType.SERIES, Series),
        (PacketType.JOINED, Joined),
    )
}


def encode(type: PacketType, **fields: Any) -> bytes:
    """Packet bytes. Raises PacketError where a field is missing or out of range."""
    try:
        data = bytes([PROTOCOL_VERSION, type]) + bytes(BODIES[type].build(fields))
    except (ConstructError, KeyError) as error:
        raise PacketError(f"{type.name}: {error}") from error
    if len(data) > PACKET_MAXIMUM:
        raise PacketError(f"{type.name} is {len(data)} bytes long, the limit is {PACKET_MAXIMUM}")
    return data


def decode(data: bytes) -> Packet:
    """Decode one packet.

    Raises VersionMismatchError for another protocol version, PacketError for anything else that is
    no packet: too short, unknown type, bytes missing or left over.
    """
    if len(data) < 2:
        raise PacketError(f"packet of {len(data)} bytes: at least 2 expected")
    if data[0] != PROTOCOL_VERSION:
        raise VersionMismatchError(data[0])
    rows = _ROWS.get(data[1])
    if rows is not None:
        return _rows(rows, data, 2)
    return Packet(*_decode_body(data[1], data[2:]))


def decode_record(type: int, body: bytes) -> Packet:
    """Decode a record of a bundle; errors as for :func:`decode`."""
    rows = _ROWS.get(type)
    return Packet(*_decode_body(type, body)) if rows is None else _rows(rows, body, 0)


def _rows(rows: tuple[PacketType, struct.Struct, Any], data: bytes, at: int) -> Packet:
    """The packet of rows whose body begins so far into ``data``."""
    kind, head, body = rows
    values = at + head.size
    if len(data) < values:
        raise PacketError(f"{kind.name} of {len(data) - at} bytes is cut off: its head has {head.size}")
    return Packet(kind, body(*head.unpack_from(data, at), data[values:]))


def _decode_body(type: int, data: bytes) -> tuple[PacketType, Container[Any]]:
    try:
        kind, parser = _PARSERS[type]
    except KeyError:
        raise PacketError(f"packet type 0x{type:02x} is unknown") from None
    stream = io.BytesIO(data)
    try:
        body = parser.parse_stream(stream)
    except (ConstructError, struct.error) as error:  # compiled parsers let the latter through
        raise PacketError(f"{kind.name} of {len(data)} bytes is cut off: {error}") from error
    if stream.tell() != len(data):
        raise PacketError(f"{kind.name} has {len(data) - stream.tell()} bytes left over")
    return kind, body


def encode_program(**fields: Any) -> bytes:
    """Bytes of a query program. Raises PacketError where a field is missing or out of range."""
    try:
        return bytes(QueryProgram.build(fields))
    except (ConstructError, KeyError) as error:
        raise PacketError(f"query program: {error}") from error


def decode_program(data: bytes) -> Container[Any]:
    """Decode a whole query program; PacketError when bytes are missing or left over."""
    stream = io.BytesIO(data)
    try:
        program = QueryProgram.parse_stream(stream)
    except ConstructError as error:
        raise PacketError(f"query program of {len(data)} bytes is cut off: {error}") from error
    if stream.tell() != len(data):
        raise PacketError(f"query program has {len(data) - stream.tell()} bytes left over")
    return program


def decode_values(values: bytes, layout: struct.Struct) -> tuple[tuple[int, ...], int, int]:
    """The values of a RESULT: its columns, the samples combined in it, and the rows left out before it.

    Raises PacketError where the bytes are too few or too many for the columns' ``layout``."""
    if len(values) == layout.size:
        return layout.unpack(values), 1, 0
    tally = values[layout.size :]
    if len(tally) not in (2, _TALLY):
        raise PacketError(f"a row of {len(values)} bytes: {layout.size} expected, and {_TALLY} more at most")
    counts = Tally.parse(tally.ljust(_TALLY, b"\0"))
    return layout.unpack(values[: layout.size]), 1 + counts.more, counts.left_out

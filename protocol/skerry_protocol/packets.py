"""Every packet on the air and on the serial line, once.

A packet is ``version, type, body``; all integers are little-endian. On the air it is the payload of
an IEEE 802.15.4 data frame (:mod:`skerry_protocol.mac`), on the serial line that of a link frame
(:mod:`skerry_protocol.framing`). What travels towards the root is a *record*; a BUNDLE carries
several records of one hop in one frame.
"""

from __future__ import annotations

from typing import Any

from construct import Construct, Int8ul, Struct

from skerry_protocol.beacons import Beacon, Join
from skerry_protocol.codes import PacketType
from skerry_protocol.dissemination import Command, QueryInstall, QueryRequest, QueryStop
from skerry_protocol.records import (
    Arrival,
    Bundle,
    CommandAck,
    Event,
    Flash,
    Joined,
    Log,
    Namesake,
    Partial,
    Passed,
    Refusal,
    Result,
    Series,
    States,
    Status,
    Stored,
)
from skerry_protocol.searches import Content, Found, Search
from skerry_protocol.serial_line import Hello, Session, Time
from skerry_protocol.ways import Carried, Position, Trail, WayOpen, WayState

BODIES: dict[PacketType, Construct[Any, Any]] = {
    PacketType.BEACON: Beacon,
    PacketType.QUERY_INSTALL: QueryInstall,
    PacketType.QUERY_STOP: QueryStop,
    PacketType.QUERY_REQUEST: QueryRequest,
    PacketType.COMMAND: Command,
    PacketType.BUNDLE: Bundle,
    PacketType.JOIN: Join,
    PacketType.RESULT: Result,
    PacketType.PARTIAL: Partial,
    PacketType.STATUS: Status,
    PacketType.COMMAND_ACK: CommandAck,
    PacketType.LOG: Log,
    PacketType.REFUSAL: Refusal,
    PacketType.NAMESAKE: Namesake,
    PacketType.FLASH: Flash,
    PacketType.WAY_OPEN: WayOpen,
    PacketType.WAY_STATE: WayState,
    PacketType.TRAIL: Trail,
    PacketType.CARRIED: Carried,
    PacketType.POSITION: Position,
    PacketType.ARRIVAL: Arrival,
    PacketType.JOINED: Joined,
    PacketType.STORED: Stored,
    PacketType.CONTENT: Content,
    PacketType.SEARCH: Search,
    PacketType.FOUND: Found,
    PacketType.PASSED: Passed,
    PacketType.STATES: States,
    PacketType.EVENT: Event,
    PacketType.SERIES: Series,
    PacketType.HELLO: Hello,
    PacketType.TIME: Time,
    PacketType.SESSION: Session,
}

Header = Struct(
    "version" / Int8ul * "PROTOCOL_VERSION",
    "type" / Int8ul * "see PacketType",
)

"""Generates ``firmware/include/wire.h`` from the construct definitions.

``python -m skerry_protocol.wire_header [--check] firmware/include/wire.h``
"""

from __future__ import annotations

import argparse
import enum
import hashlib
import re
import sys
import textwrap
from functools import cache
from pathlib import Path
from typing import Any

from construct import (
    Array,
    Byte,
    Construct,
    Default,
    GreedyBytes,
    GreedyRange,
    Int8ul,
    Int16sl,
    Int16ul,
    Int32sl,
    Int32ul,
    Prefixed,
    Renamed,
    Struct,
)

from skerry_protocol import (
    attributes,
    beacons,
    bytecode,
    codes,
    commands,
    dissemination,
    framing,
    limits,
    mac,
    packets,
    programs,
    records,
    searches,
    serial_line,
    settings,
    ways,
)

_C_TYPES = {
    id(Int8ul): ("uint8_t", 1),
    id(Byte): ("uint8_t", 1),
    id(Int16ul): ("uint16_t", 2),
    id(Int16sl): ("int16_t", 2),
    id(Int32ul): ("uint32_t", 4),
    id(Int32sl): ("int32_t", 4),
}

_STRUCTS: tuple[tuple[str, Struct[Any, Any], str], ...] = (
    ("mac_header", mac.MacHeader, "IEEE 802.15.4 data frame, short addresses, one PAN."),
    ("header", packets.Header, "First two bytes of every packet."),
    ("neighbour_entry", beacons.NeighbourEntry, "One neighbour in a beacon."),
    ("srt_entry", beacons.SrtEntry, "What a beacon or a JOIN says of a semantic routing tree."),
    ("slots_entry", beacons.SlotsEntry, "What a beacon says of slots, before its trees."),
    ("beacon", beacons.Beacon, "BEACON: tree, time and query version; broadcast."),
    ("query_install", dissemination.QueryInstall, "QUERY_INSTALL: a fragment of a query program."),
    ("stopped", dissemination.Stopped, "A stop before another one."),
    ("query_stop", dissemination.QueryStop, "QUERY_STOP."),
    ("query_request", dissemination.QueryRequest, "QUERY_REQUEST: tell me what I lack."),
    (
        "routed_query",
        dissemination.RoutedQuery,
        "A query that goes only where a tree says, in a QUERY_REQUEST.",
    ),
    (
        "query_program",
        programs.QueryProgram,
        "Serialized query; `where` and the fields follow, see program_field.",
    ),
    ("program_field", programs.ProgramField, "One column of a query program; its code follows."),
    ("temporal", programs.Temporal, "What the code of a temporal aggregate begins with."),
    ("budget", programs.Budget, "The code of a BUDGET."),
    ("event", records.Event, "EVENT, and the arguments of an EVENT command."),
    ("on_event", programs.OnEvent, "The code of an ON_EVENT."),
    ("store", programs.Store, "The code of a STORE."),
    ("from", programs.From, "What the code of a FROM begins with."),
    ("pairs", programs.Pairs, "What the code of a PAIRS begins with."),
    ("pairs_host", programs.PairsHost, "Of the pairs that one mote joins, in a PAIRS."),
    ("queue", programs.Queue, "The code of a QUEUE."),
    ("index_part", programs.IndexPart, "A part of an index."),
    ("index_range", programs.IndexRange, "A column of an index."),
    ("index_owner", programs.IndexOwner, "A mote that stores tuples of an index."),
    ("index", programs.Index, "The code of an INDEX."),
    ("gathered_kind", programs.GatheredKind, "An aggregate of a GATHER."),
    ("gather", programs.Gather, "The code of a GATHER."),
    ("srt_axis", programs.SrtAxis, "An attribute of a semantic routing tree."),
    ("srt", programs.Srt, "The code of an SRT."),
    ("route", programs.Route, "The code of a ROUTE."),
    ("command", dissemination.Command, "COMMAND."),
    ("bundle", records.Bundle, "BUNDLE: records of one hop."),
    ("join", beacons.Join, "JOIN: its sender is the receiver's child, or seeks a way to the root."),
    ("record", records.Record, "A record in a bundle; its body follows."),
    ("result", records.Result, "RESULT: one row."),
    ("tally", records.Tally, "Behind the values of a RESULT; counts at its end that are 0 are not sent."),
    ("series", records.Series, "SERIES: rows of consecutive epochs."),
    ("aggregate_state", records.AggregateState, "State of one aggregate in a partial state record."),
    ("partial", records.Partial, "PARTIAL: a partial state record of one epoch."),
    ("group_state", records.GroupState, "An aggregate's state in a group, in a STORED."),
    ("index_count", records.IndexCount, "An index of which a mote stores tuples, in a FLASH."),
    ("static_value", records.StaticValue, "A constant of its place or of its user's, in a STATUS."),
    ("status", records.Status, "STATUS: a mote about itself."),
    ("flash", records.Flash, "FLASH: how full a mote's flash is, and how worn."),
    ("command_ack", records.CommandAck, "COMMAND_ACK."),
    ("log", records.Log, "LOG: a line of text."),
    ("refusal", records.Refusal, "REFUSAL: a query this mote cannot run."),
    ("namesake", records.Namesake, "NAMESAKE: another mote has the sender's number."),
    ("way_open", ways.WayOpen, "WAY_OPEN: a way from a mote to another one leads by the receiver."),
    ("way_place", ways.WayPlace, "The place of a WAY_OPEN, and how it is gone to."),
    ("position", ways.Position, "POSITION: where the sender stands."),
    ("way_state", ways.WayState, "WAY_STATE: … and whether it leads on from the sender."),
    ("trail", ways.Trail, "TRAIL: by the sender a way leads down to a mote."),
    ("carried", ways.Carried, "CARRIED: a record on its way to another mote."),
    ("ping", ways.Ping, "The record of a PING."),
    ("answer", ways.Answer, "The record of a mote that was found."),
    ("search_command", searches.SearchCommand, "What a SEARCH command asks."),
    ("content_tree", searches.ContentTree, "A tree of a CONTENT."),
    ("content", searches.Content, "CONTENT: where the sender stands in trees for searches."),
    ("search", searches.Search, "SEARCH: who has such a value?"),
    ("found", searches.Found, "FOUND: of a search."),
    ("index_tuple", ways.IndexTuple, "A tuple of those on their way to who stores them."),
    ("index_tuples", ways.IndexTuples, "The record of tuples on their way to who stores them."),
    ("handed_tuple", ways.HandedTuple, "A tuple whose zone has changed hands."),
    ("handed_tuples", ways.HandedTuples, "The record of such tuples on their way."),
    ("kept", ways.Kept, "The record that says which of these have come."),
    ("gathered_state", ways.GatheredState, "An aggregate's state on its way to the mote that gathers."),
    ("gathered", ways.Gathered, "The record of what a mote that stores has found."),
    ("pair_row", ways.PairRow, "The record of a row on its way to the mote that joins it."),
    ("stored", records.Stored, "STORED: tuples of an index that a mote stores."),
    ("states", records.States, "STATES: aggregates over the tuples of an index that some motes store."),
    ("arrival", records.Arrival, "ARRIVAL: what became of a PING."),
    ("joined", records.Joined, "JOINED: two rows that match."),
    ("passed", records.Passed, "PASSED: how many rows a mote has had that others join."),
    ("hello", serial_line.Hello, "HELLO: only on the serial line."),
    ("time", serial_line.Time, "TIME: only on the serial line."),
    ("session", serial_line.Session, "SESSION: only on the serial line."),
    ("settings", settings.Settings, "What EEPROM keeps, from address 0."),
    ("link_header", framing.LinkHeader, "A link frame on the serial line, before COBS and CRC."),
)

_ENUMS: tuple[tuple[str, type[enum.IntEnum]], ...] = (
    ("PACKET", codes.PacketType),
    ("COMMAND", codes.CommandOp),
    ("COMMAND_STATUS", codes.CommandStatus),
    ("AGGREGATE", codes.Aggregate),
    ("QUERY", codes.QueryFlag),
    ("REFUSAL", codes.RefusalReason),
    ("INVARIANT", codes.Invariant),
    ("STORE", codes.StoreFlag),
    ("EVENT_FLAG", codes.EventFlag),
    ("MATCH", codes.Match),
    ("QUEUE", codes.QueuePolicy),
    ("POLICY", codes.Policy),
    ("BUNDLE", codes.BundleFlag),
    ("WAY", codes.WayFlag),
    ("WAY_IS", codes.WayIs),
    ("CARRIES", codes.Carries),
    ("PAIRS", codes.PairsWay),
    ("OUTCOME", codes.Outcome),
    ("OP", bytecode.Op),
    ("STORED", bytecode.StoredField),
    ("FRAME", framing.FrameKind),
)

_CONSTANTS: tuple[tuple[str, int, str], ...] = (
    ("PROTOCOL_VERSION", limits.PROTOCOL_VERSION, "first byte of every packet"),
    ("PACKET_MAXIMUM", limits.PACKET_MAXIMUM, "bytes"),
    ("BROADCAST", limits.BROADCAST, "short address of all in range"),
    ("NO_NODE", limits.NO_NODE, "no parent"),
    ("NO_LEVEL", limits.NO_LEVEL, "no way to the root"),
    ("PROGRAM_MAXIMUM", limits.PROGRAM_MAXIMUM, "bytes of a query program"),
    ("FIELDS_MAXIMUM", limits.FIELDS_MAXIMUM, "columns of a query"),
    ("JOINED_NUMBER", limits.JOINED_NUMBER, "bit of a JOINED's nulls from which on a row's number stands"),
    (
        "RESULT_NONE_BEFORE",
        limits.RESULT_NONE_BEFORE,
        "bit of a RESULT's nulls from which on epochs before a mote's first row stand",
    ),
    ("RESULT_TAKEN", limits.RESULT_TAKEN, "bit of a RESULT's nulls that turns with each mote that takes it"),
    ("PASSED_EPOCHS", limits.PASSED_EPOCHS, "from one PASSED of a mote to the next"),
    ("PAIRS_MOTES", limits.PAIRS_MOTES, "that a program's hosts and their groups tell apart"),
    ("WINDOW_MAXIMUM", limits.WINDOW_MAXIMUM, "rows in the window of a temporal aggregate"),
    ("TEMPORAL_EPOCHS", codes.TEMPORAL_EPOCHS, "in a temporal's power: its window counts epochs"),
    ("STORE_ROWS_MAXIMUM", limits.STORE_ROWS_MAXIMUM, "rows of a storage point"),
    ("STORE_BLOCK", limits.STORE_BLOCK, "bytes of a block of EEPROM or flash"),
    ("STATICS_MAXIMUM", attributes.STATICS_MAXIMUM, "static attributes that users may have"),
    ("STATIC_FIRST", attributes.STATIC_FIRST, "number of the first of them"),
    ("SOURCES_MAXIMUM", limits.SOURCES_MAXIMUM, "storage points that one query reads"),
    ("QUERIES_MAXIMUM", limits.QUERIES_MAXIMUM, "queries at once on a mote"),
    ("EVENT_RUNS", limits.EVENT_RUNS, "motes whose events run a query side by side"),
    ("NO_GROUP", limits.NO_GROUP, "value of a GROUP whose count is 0: of motes whose rows did not pass"),
    ("STOPS_MAXIMUM", limits.STOPS_MAXIMUM, "stops that a QUERY_STOP tells of"),
    ("FRAGMENT_MAXIMUM", limits.FRAGMENT_MAXIMUM, "program bytes in a QUERY_INSTALL"),
    ("FRAGMENT_REPAIRS", limits.FRAGMENT_REPAIRS, "in its offset: the version is that of its sender's set"),
    ("CARRIED_MAXIMUM", limits.CARRIED_MAXIMUM, "bytes of a record from mote to mote"),
    ("PLACE_MAXIMUM", limits.PLACE_MAXIMUM, "dm along an axis"),
    ("GATHERED_MAXIMUM", limits.GATHERED_MAXIMUM, "aggregates that a mote gathers of an index"),
    ("INDEX_ATTRIBUTES_MAXIMUM", limits.INDEX_ATTRIBUTES_MAXIMUM, "attributes of an index"),
    ("POSITIONS_ASKED", limits.POSITIONS_ASKED, "motes, in a POSITION"),
    ("SEARCH_TREES", limits.SEARCH_TREES, "in which motes are searched for"),
    ("VECTOR_MAXIMUM", limits.VECTOR_MAXIMUM, "bytes of a path vector"),
    ("HOPS_MAXIMUM", limits.HOPS_MAXIMUM, "of a way"),
    ("FOREVER", limits.FOREVER, "end of a query that runs until stopped"),
    ("PERIOD_MINIMUM_MS", limits.PERIOD_MINIMUM_MS, "shortest sample period"),
    ("PERIOD_STORED_MINIMUM_MS", limits.PERIOD_STORED_MINIMUM_MS, "… of what is stored"),
    ("PERIOD_FAST_MINIMUM_MS", limits.PERIOD_FAST_MINIMUM_MS, "… of rows that leave seldom, or together"),
    ("PERIOD_MAXIMUM_MS", limits.PERIOD_MAXIMUM_MS, "longest sample period"),
    ("TICKS_PER_SECOND", limits.TICKS_PER_SECOND, "of network time"),
    ("SETTINGS_MAGIC", settings.SETTINGS_MAGIC, "settings are valid"),
    ("ATTRIBUTE_MAXIMUM", bytecode.ATTRIBUTE_MAXIMUM, "largest number of an attribute that is sampled"),
    ("ATTRIBUTE_OWN", bytecode.ATTRIBUTE_OWN, "numbers from here on are attributes that need no sample"),
    ("ATTRIBUTE_END", bytecode.ATTRIBUTE_END, "above all numbers of attributes"),
    ("STACK_DEPTH", bytecode.STACK_DEPTH, "values on the expression stack"),
    ("MAXIMUM_POWER", bytecode.MAXIMUM_POWER, "largest power of ten of a scaling opcode"),
    ("FRAME_CONTROL_DATA", mac.FRAME_CONTROL_DATA, "802.15.4 data frame"),
    ("FRAME_CONTROL_DATA_ACK", mac.FRAME_CONTROL_DATA_ACK, "… that asks for an acknowledgement"),
    ("FRAME_CONTROL_ACK", mac.FRAME_CONTROL_ACK, "802.15.4 acknowledgement"),
    ("PAN_DEFAULT", mac.PAN_DEFAULT, "PAN id where settings are unset"),
    ("CHANNEL_DEFAULT", mac.CHANNEL_DEFAULT, "channel where settings are unset"),
    (
        "CHANNELS_DEFAULT",
        mac.channel_mask(mac.CHANNELS_DEFAULT),
        "... and what data slots hop over: bit n for channel 11 + n",
    ),
    ("LINK_FRAME_MAXIMUM", framing.FRAME_MAXIMUM, "bytes of a link frame before COBS"),
    ("LINK_WINDOW", framing.WINDOW, "link frames unacknowledged at once"),
    ("LINK_REPEAT_MS", framing.REPEAT_MS, "wait before a link frame is repeated"),
)


@cache
def digest() -> str:
    """Of all that both ends must have alike: an image that has another one belongs to another version."""
    return digest_of(generate())


def digest_of(header: str) -> str:
    """Of a header's text, but for its comments: 16 hexadecimal digits."""
    return hashlib.sha256(re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL).encode()).hexdigest()[:16]


def generate() -> str:
    """The whole header file."""
    parts = [
        "/* Generated by skerry_protocol.wire_header from the construct definitions: do not edit.\n"
        " *\n"
        " * Packets, link frames, settings and bytecode; integers are little-endian, structs are the\n"
        " * bytes on the wire. A struct whose definition ends in a variable part has it as a flexible\n"
        " * array, or, where the comment says so, as bytes that follow. */\n"
        "#ifndef SKERRY_WIRE_H\n#define SKERRY_WIRE_H\n\n#include <stdint.h>\n\n"
        "#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__\n"
        '#error "wire.h lays structs over wire bytes and needs a little-endian chip"\n#endif\n'
    ]
    parts.append("\n".join(_constant(*entry) for entry in _CONSTANTS) + "\n")
    parts += [_enum(prefix, members) for prefix, members in _ENUMS]
    parts.append(_formats())
    parts.append(_commands())
    parts.append(_attributes())
    parts += [_struct(name, definition, text) for name, definition, text in _STRUCTS]
    parts.append("#endif\n")
    return "\n".join(parts)


def _constant(name: str, value: int, text: str) -> str:
    suffix = "U" if value <= 0xFFFF else "UL"
    digits = f"0x{value:X}" if value >= 0x8000 or name.startswith("FRAME_CONTROL") else str(value)
    return f"#define WIRE_{name} {digits}{suffix} /* {text} */"


def _enum(prefix: str, members: type[enum.IntEnum]) -> str:
    text = (members.__doc__ or "").strip().splitlines()[0]
    lines = [f"    WIRE_{prefix}_{member.name} = 0x{member.value:02X}," for member in members]
    tag = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", members.__name__).lower()
    return f"/* {text} */\nenum wire_{tag} {{\n" + "\n".join(lines) + "\n};\n"


def _formats() -> str:
    lines = [f"    WIRE_FORMAT_{f.name} = {f.code}, /* {f.size} byte */" for f in attributes.ValueFormat]
    return "/* How a value is packed in a row. */\nenum wire_format {\n" + "\n".join(lines) + "\n};\n"


def _commands() -> str:
    lines = [f"    WIRE_ACTION_{a.name.upper()} = {a.number}, /* {a.takes} */" for a in commands.ACTIONS]
    actions = "/* Commands. */\nenum wire_action {\n" + "\n".join(lines) + "\n};\n"
    names = [(name, commands.event_number(name), text) for name, text in commands.MOTE_EVENTS.items()]
    lines = [f"    WIRE_EVENT_{name.upper()} = 0x{number:04X}, /* {text} */" for name, number, text in names]
    return (
        actions
        + "\n/* Events that motes raise by themselves. */\nenum wire_mote_event {\n"
        + "\n".join(lines)
        + "\n};\n"
    )


def _attributes() -> str:
    lines = []
    for attribute in attributes.BY_NUMBER.values():
        unit = f"10^-{attribute.digits} {attribute.unit}" if attribute.digits else attribute.unit or "1"
        name = f"WIRE_ATTRIBUTE_{attribute.name.upper().replace('.', '_')}"
        lines.append(f"    {name} = {attribute.number}, /* {unit}; {attribute.description} */")
    lines.append(f"    WIRE_ATTRIBUTE_COUNT = {len(attributes.ATTRIBUTES)},")
    return "/* Attribute numbers. */\nenum wire_attribute {\n" + "\n".join(lines) + "\n};\n"


def _struct(name: str, definition: Struct[Any, Any], text: str) -> str:
    lines, size = [], 0
    for renamed in definition.subcons:
        line, width = _member(renamed)
        lines.append(line)
        size += width
    body = "\n".join(lines)
    return (
        f"/* {text} */\nstruct wire_{name} {{\n{body}\n}} __attribute__((packed));\n"
        f'_Static_assert(sizeof(struct wire_{name}) == {size}, "wire_{name}");\n'
    )


def _member(renamed: Renamed[Any, Any]) -> tuple[str, int]:
    subcon, name = _unwrap(renamed), renamed.name
    comment = f" /* {renamed.docs} */" if renamed.docs else ""
    if id(subcon) in _C_TYPES:
        c_type, width = _C_TYPES[id(subcon)]
        return f"    {c_type} {name};{comment}", width
    if subcon is GreedyBytes:
        return f"    uint8_t {name}[];{comment}", 0
    if isinstance(subcon, Array):
        c_type, width = _C_TYPES[id(subcon.subcon)]
        return f"    {c_type} {name}[{subcon.count}];{comment}", width * int(subcon.count)
    if isinstance(subcon, Prefixed):
        return f"    uint8_t {name}_length;{comment or f' /* bytes of {name}, which follow */'}", 1
    if isinstance(subcon, GreedyRange):
        for struct_name, definition, _ in _STRUCTS:
            if definition is subcon.subcon and not _has_tail(definition):
                return f"    struct wire_{struct_name} {name}[];{comment}", 0
        return f"    uint8_t {name}[];{comment}", 0
    raise TypeError(f"wire.h cannot say {renamed!r}: extend skerry_protocol.wire_header")


def _unwrap(renamed: Renamed[Any, Any]) -> Construct[Any, Any]:
    """What a field is, below its name, its comment and what it is where nothing is said."""
    subcon = renamed.subcon
    while isinstance(subcon, (Renamed, Default)):
        subcon = subcon.subcon
    return subcon


def _has_tail(definition: Struct[Any, Any]) -> bool:
    return any(id(_unwrap(renamed)) not in _C_TYPES for renamed in definition.subcons)


def main(arguments: list[str] | None = None) -> int:
    """Write the header, or with ``--check`` say whether the file is what would be written."""
    parser = argparse.ArgumentParser(description=textwrap.dedent(__doc__ or "").splitlines()[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("--check", action="store_true", help="only compare; exit 1 when stale")
    options = parser.parse_args(arguments)
    text = generate()
    if not options.check:
        options.path.write_text(text)
        return 0
    there = options.path.read_text()
    if there == text:
        return 0
    lacking = [line.strip() for line in text.splitlines() if line not in there.splitlines()]
    example = f": it lacks '{lacking[0]}'" if lacking else ""
    print(f"{options.path} is stale{example}: run 'make wire'", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())

"""Writes ``docs/protocol.md`` from the definitions.

``python -m skerry_protocol.document [--check] docs/protocol.md``
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from enum import IntEnum
from pathlib import Path
from string import Template
from typing import Any

from construct import (
    Array,
    Byte,
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
    programs,
    records,
    searches,
    serial_line,
    settings,
    ways,
)

_SCALARS = {
    id(Int8ul): "u8", id(Byte): "u8", id(Int16ul): "u16", id(Int16sl): "i16", id(Int32ul): "u32", id(Int32sl): "i32",
}  # fmt: skip

#: What each packet is for, who sends it, and on which medium.
_PACKETS: dict[codes.PacketType, tuple[Struct[Any, Any], str]] = {
    codes.PacketType.BEACON: (
        beacons.Beacon,
        "Broadcast by every mote in the tree: tree, time, query version.",
    ),
    codes.PacketType.QUERY_INSTALL: (
        dissemination.QueryInstall,
        "A fragment of a query program, from the gateway and from mote to mote.",
    ),
    codes.PacketType.QUERY_STOP: (dissemination.QueryStop, "Ends a query, the same way."),
    codes.PacketType.QUERY_REQUEST: (
        dissemination.QueryRequest,
        "From a mote that hears of a newer query version to the one it heard it from.",
    ),
    codes.PacketType.COMMAND: (dissemination.Command, "From the gateway to one mote or all."),
    codes.PacketType.BUNDLE: (
        records.Bundle,
        "From a mote to its parent, unacknowledged one at a time; repeated unchanged, with the same MAC "
        "sequence number, until acknowledged.",
    ),
    codes.PacketType.RESULT: (records.Result, "One row of a query of plain rows."),
    codes.PacketType.SERIES: (
        records.Series,
        "Rows of a query with a sample period below a second, of epochs one after the other.",
    ),
    codes.PacketType.PARTIAL: (
        records.Partial,
        "The partial state record of an aggregate query and epoch; merged on the way.",
    ),
    codes.PacketType.STATUS: (records.Status, "A mote about itself: the catalog's source."),
    codes.PacketType.FLASH: (
        records.Flash,
        "Behind each STATUS of a mote that keeps rows in flash: how full it is, and how worn.",
    ),
    codes.PacketType.JOIN: (
        beacons.Join,
        "From a mote to the parent that it has chosen, which listens in its cell from then on.",
    ),
    codes.PacketType.COMMAND_ACK: (records.CommandAck, "A mote's answer to a COMMAND."),
    codes.PacketType.LOG: (records.Log, "A line of text from a mote."),
    codes.PacketType.NAMESAKE: (
        records.Namesake,
        "To whom else has the sender's number, or to a neighbour that passes it on; and the record of it.",
    ),
    codes.PacketType.WAY_OPEN: (
        ways.WayOpen,
        "Opens a way from a mote to another one, or to a place, hop by hop, in control windows.",
    ),
    codes.PacketType.WAY_STATE: (ways.WayState, "Back along a way: it does not lead on, or to its end."),
    codes.PacketType.TRAIL: (
        ways.Trail,
        "From a mote that is to be found to its parent, and on to the root: ways to it follow it down.",
    ),
    codes.PacketType.CARRIED: (ways.Carried, "A record on a way, in the way's cells."),
    codes.PacketType.POSITION: (
        ways.Position,
        "To all in range, in a control window, while a way is opened to a place: where the sender stands.",
    ),
    codes.PacketType.ARRIVAL: (records.Arrival, "What became of a PING, told to the gateway."),
    codes.PacketType.JOINED: (
        records.Joined,
        "Two rows of a pair of motes that match, joined at a mote above both.",
    ),
    codes.PacketType.PASSED: (
        records.Passed,
        "How many rows of a join of motes' rows a mote has had, where others than the gateway join them; now and then.",
    ),
    codes.PacketType.STORED: (
        records.Stored,
        "Tuples of an index that a mote stores for others: its part of the answer to an INDEX_ASK.",
    ),
    codes.PacketType.STATES: (
        records.States,
        "States of aggregates over the tuples of an index that some motes store, in answer to an INDEX_ASK; put together on the way.",
    ),
    codes.PacketType.CONTENT: (
        searches.Content,
        "To all in range, in a control window, while motes are searched for: where the sender stands in the trees, and what is below it.",
    ),
    codes.PacketType.SEARCH: (
        searches.Search,
        "From mote to mote along a tree, in control windows: who has such a value?",
    ),
    codes.PacketType.FOUND: (searches.Found, "What a search has found, and which way it went."),
    codes.PacketType.REFUSAL: (records.Refusal, "A mote cannot run a query, and why."),
    codes.PacketType.EVENT: (
        records.Event,
        "An event that the root has heard, from the root to the gateway. Among motes it travels in a COMMAND.",
    ),
    codes.PacketType.HELLO: (serial_line.Hello, "In RESET and RESET_ACK frames on the serial line only."),
    codes.PacketType.TIME: (serial_line.Time, "In TIME frames on the serial line only."),
    codes.PacketType.SESSION: (serial_line.Session, "From the gateway to the root, on the serial line only."),
}

_PARTS: tuple[tuple[str, Struct[Any, Any], str], ...] = (
    ("NeighbourEntry", beacons.NeighbourEntry, "In a BEACON."),
    ("SrtEntry", beacons.SrtEntry, "In a BEACON and a JOIN: the sender's part of a semantic routing tree."),
    (
        "SlotsEntry",
        beacons.SlotsEntry,
        "In a BEACON, before any SrtEntry: how long the slots of the levels are.",
    ),
    ("Stopped", dissemination.Stopped, "In a QUERY_STOP."),
    ("RoutedQuery", dissemination.RoutedQuery, "In a QUERY_REQUEST: a query that not every mote needs."),
    ("WayPlace", ways.WayPlace, "Behind a WAY_OPEN to a place."),
    ("Ping", ways.Ping, "The record of a CARRIED."),
    (
        "Answer",
        ways.Answer,
        "The record of a CARRIED: a mote that a search has come to has what was asked for.",
    ),
    ("SearchCommand", searches.SearchCommand, "The arguments of a SEARCH command."),
    ("ContentTree", searches.ContentTree, "In a CONTENT."),
    (
        "IndexTuples",
        ways.IndexTuples,
        "The record of a CARRIED: a mote's tuples on their way to who stores them.",
    ),
    ("IndexTuple", ways.IndexTuple, "In an IndexTuples."),
    (
        "HandedTuples",
        ways.HandedTuples,
        "The record of a CARRIED: tuples whose zone has changed hands, on their way to who stores it now.",
    ),
    ("HandedTuple", ways.HandedTuple, "In a HandedTuples."),
    ("Kept", ways.Kept, "The record of a CARRIED: which HandedTuples of a run have come."),
    (
        "Gathered",
        ways.Gathered,
        "The record of a CARRIED: what a mote that stores tuples has found, on its way to the mote that gathers it.",
    ),
    ("GatheredState", ways.GatheredState, "In a Gathered."),
    ("PairRow", ways.PairRow, "The record of a CARRIED: a row on its way to the mote that joins it."),
    (
        "Record",
        records.Record,
        "In a BUNDLE: a packet without its header.",
    ),
    ("StaticValue", records.StaticValue, "In a STATUS."),
    ("GroupState", records.GroupState, "In a STORED."),
    ("IndexCount", records.IndexCount, "In a FLASH."),
    ("AggregateState", records.AggregateState, "In a PARTIAL."),
    ("QueryProgram", programs.QueryProgram, "What QUERY_INSTALL fragments make up."),
    ("ProgramField", programs.ProgramField, "In a QueryProgram."),
    ("Event", records.Event, "Arguments of the EVENT command."),
    (
        "OnEvent",
        programs.OnEvent,
        "In a ProgramField, in place of code: ON EVENT. A condition of the event may stand behind it.",
    ),
    ("Store", programs.Store, "In a ProgramField, in place of code: the rows stay on the mote."),
    (
        "From",
        programs.From,
        "In a ProgramField, in place of code: rows are joined with those of a storage point.",
    ),
    (
        "Pairs",
        programs.Pairs,
        "In a ProgramField, in place of code: PAIRS. Behind it the condition's code, three sets of motes, and for each mote that "
        "joins pairs, where rows climb the deepest in the tree first, a PairsHost. A set is the motes' short addresses in "
        "ascending order: a byte below 128 tells of seven addresses behind those before it, the first from 0 on, with bit i set "
        "where the i-th is in the set; a byte 128 + n leaves out 7 n addresses, and followed by another one, 128 + m, both leave "
        "out 7 (128 n + m).",
    ),
    (
        "PairsHost",
        programs.PairsHost,
        "In a PAIRS. Behind it its pairs, in groups, a byte for each mote of a group: its number in the first set, and 64 where "
        "it is s, 128 where it is t. Each s is a pair with each t behind it in its group. A group begins with motes that are s "
        "alone, so that one of these behind others begins the next. A host without pairs only passes rows on. Where another host "
        "passes rows on to it, bytes below 64 stand "
        "before the groups: which of the hosts that follow does so, counted from 0 for the first of all, and the motes whose rows "
        "come from there.",
    ),
    ("Queue", programs.Queue, "In a ProgramField, in place of code: QUEUE."),
    (
        "Index",
        programs.Index,
        "In a ProgramField, in place of code: rows go to the motes that store them for others.",
    ),
    ("IndexPart", programs.IndexPart, "In an Index."),
    ("IndexRange", programs.IndexRange, "In an Index."),
    ("IndexOwner", programs.IndexOwner, "In an Index."),
    (
        "Gather",
        programs.Gather,
        "In a ProgramField, in place of code: an index is asked, and answers, among motes.",
    ),
    ("GatheredKind", programs.GatheredKind, "In a Gather."),
    ("Tally", records.Tally, "Behind the values of a RESULT."),
    ("Srt", programs.Srt, "In a ProgramField, in place of code: the query is a semantic routing tree."),
    ("SrtAxis", programs.SrtAxis, "In a Srt: an attribute, and how its values become codes of a byte."),
    (
        "Route",
        programs.Route,
        "In a ProgramField, in place of code: motes that the codes rule out need not have the query.",
    ),
    ("Budget", programs.Budget, "In a ProgramField, in place of code: LIFETIME."),
    ("Temporal", programs.Temporal, "In a ProgramField, before the expression."),
)

_STACK: dict[bytecode.Op, str] = {
    bytecode.Op.CONST8: "→ c; operand int8",
    bytecode.Op.CONST16: "→ c; operand int16",
    bytecode.Op.CONST32: "→ c; operand int32",
    bytecode.Op.NULL: "→ NULL",
    bytecode.Op.ATTR: "→ value; operand: attribute number",
    bytecode.Op.STORED: "→ value of the storage point's row; operand: 16 · point (0, 1) + field; 13 the row's number, "
    "14 and 15 milliseconds and seconds of its sample time",
    bytecode.Op.ADD: "a b → a + b",
    bytecode.Op.SUB: "a b → a − b",
    bytecode.Op.MUL: "a b → round(a · b / 10^p); operand p; 64-bit product",
    bytecode.Op.DIV: "a b → round(a · 10^p / b); operand p; 64-bit numerator",
    bytecode.Op.MOD: "a b → a − b · truncate(a / b): the dividend's sign",
    bytecode.Op.NEG: "a → −a",
    bytecode.Op.UPSCALE: "a → a · 10^p; operand p",
    bytecode.Op.DOWNSCALE: "a → round(a / 10^p); operand p",
    bytecode.Op.HYPOT: "a b → round(sqrt(a · a + b · b))",
    bytecode.Op.ABS: "a → |a|",
    bytecode.Op.HASH: "a → x, the 32 bits of a: x ^= x >> 16, x *= 0x85EBCA6B, x ^= x >> 13, x *= 0xC2B2AE35, x ^= x >> 16, all without "
    "a sign; of that the low 31 bits",
    bytecode.Op.EQ: "a b → a = b",
    bytecode.Op.NE: "a b → a ≠ b",
    bytecode.Op.LT: "a b → a < b",
    bytecode.Op.LE: "a b → a ≤ b",
    bytecode.Op.GT: "a b → a > b",
    bytecode.Op.GE: "a b → a ≥ b",
    bytecode.Op.AND: "a b → a and b: false wins over NULL",
    bytecode.Op.OR: "a b → a or b: true wins over NULL",
    bytecode.Op.NOT: "a → not a",
    bytecode.Op.IS_NULL: "a → 1 if a is NULL, else 0",
    bytecode.Op.CHANGES: "a → 1 if a, read in this epoch, can change the next value of the WINMIN or WINMAX in a column, or, NULL, that "
    "there is one, else 0; "
    "NULL where the column has no window; operand: column, from 0 on",
}


def generate() -> str:
    """The whole page: document.md with its ``$names`` filled in."""
    template = Template(Path(__file__).with_suffix(".md").read_text())
    constants = {
        name: value
        for module in (limits, codes, settings, bytecode, framing)
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, int)
    }
    return template.substitute(
        constants,
        packets="\n\n".join(_section(f"{t.name} 0x{t.value:02X}", *entry) for t, entry in _PACKETS.items()),
        parts="\n\n".join(_section(*entry) for entry in _PARTS),
        command_op=_enumeration(codes.CommandOp, "op"),
        actions=_table(
            ("command", "number", "argument"), [(a.name, a.number, a.takes) for a in commands.ACTIONS]
        ),
        command_status=_enumeration(codes.CommandStatus, "status"),
        formats=_table(
            ("format", "code", "bytes", "range"),
            [(f.name.lower(), f.code, f.size, f"{f.minimum}..{f.maximum}") for f in attributes.ValueFormat],
        ),
        aggregates=_enumeration(codes.Aggregate, "aggregate"),
        opcodes=_table(
            ("opcode", "code", "stack"), [(op.name, f"0x{op.value:02X}", _STACK[op]) for op in bytecode.Op]
        ),
        link_header=_fields(framing.LinkHeader),
        frame_kinds=_enumeration(framing.FrameKind, "kind"),
        mac_header=_fields(mac.MacHeader),
        settings=_fields(settings.Settings),
        attributes=_table(
            ("number", "name", "format", "unit", "digits", "what"),
            [
                (a.number, a.name, a.format.name.lower(), a.unit or "1", a.digits, a.description)
                for a in attributes.BY_NUMBER.values()
            ],
        ),
    )


def _section(title: str, definition: Struct[Any, Any], text: str) -> str:
    return f"### {title}\n\n{text}\n\n{_fields(definition)}"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines
    )


def _enumeration(members: type[IntEnum], column: str) -> str:
    return _table((column, "code"), [(member.name, member.value) for member in members])


def _fields(definition: Struct[Any, Any]) -> str:
    return _table(
        ("offset", "field", "type", "meaning"),
        [
            (offset, f"`{field.name}`", type, _meaning(field))
            for offset, field, type in _laid_out(definition.subcons)
        ],
    )


def _laid_out(fields: Iterable[Renamed[Any, Any]]) -> Iterable[tuple[str, Renamed[Any, Any], str]]:
    """Each field with its offset, which is unknown after a part of variable length."""
    offset: int | None = 0
    for field in fields:
        subcon = field.subcon
        while isinstance(subcon, (Renamed, Default)):
            subcon = subcon.subcon
        yield "" if offset is None else str(offset), field, _type(subcon)
        fixed = id(subcon) in _SCALARS
        offset = offset + subcon.sizeof() if fixed and offset is not None else None


def _type(subcon: Any) -> str:
    if id(subcon) in _SCALARS:
        return _SCALARS[id(subcon)]
    if subcon is GreedyBytes:
        return "bytes to the end"
    if isinstance(subcon, Prefixed):
        return "u8 length, bytes"
    if isinstance(subcon, Array):
        return f"{_SCALARS[id(subcon.subcon)]}[{subcon.count}]"
    if isinstance(subcon, GreedyRange):
        (name,) = [name for name, definition, _ in _PARTS if definition is subcon.subcon]
        return f"{name}[] to the end"
    raise TypeError(f"the page cannot say {subcon!r}: extend skerry_protocol.document")


def _meaning(field: Renamed[Any, Any]) -> str:
    return field.docs or ""


def main(arguments: list[str] | None = None) -> int:
    """Write the page, or with ``--check`` say whether the file is what would be written."""
    parser = argparse.ArgumentParser(description="Writes docs/protocol.md from the definitions.")
    parser.add_argument("path", type=Path)
    parser.add_argument("--check", action="store_true", help="only compare; exit 1 when stale")
    options = parser.parse_args(arguments)
    text = generate()
    if not options.check:
        options.path.write_text(text)
        return 0
    if options.path.read_text() == text:
        return 0
    print(f"{options.path} is stale: run python -m skerry_protocol.document {options.path}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())

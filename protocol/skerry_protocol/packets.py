"""Every packet on the air and on the serial line, once.

A packet is ``version, type, body``; all integers are little-endian. On the air it is the payload of
an IEEE 802.15.4 data frame (:mod:`skerry_protocol.mac`), on the serial line that of a link frame
(:mod:`skerry_protocol.framing`). What travels towards the root is a *record*; a BUNDLE carries
several records of one hop in one frame.
"""

from __future__ import annotations

from enum import IntEnum
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
    Struct,
)

from skerry_protocol.attributes import STATICS_MAXIMUM

#: Raised with every change that an older peer would misread.
PROTOCOL_VERSION = 3

#: Longest packet in bytes: 127 (PSDU) - 9 (MAC header) - 2 (FCS).
PACKET_MAXIMUM = 116
#: Bytes of rows in one SERIES: a packet's without its header (2), the bundle's (1), the record's (2) and the series' own (7).
SERIES_BYTES_MAXIMUM = PACKET_MAXIMUM - 12
BROADCAST = 0xFFFF
#: Short address that means "none", for a parent.
NO_NODE = 0xFFFF
#: Level of a mote that has no way to the root.
NO_LEVEL = 0xFF
#: Largest serialized query program, in bytes.
PROGRAM_MAXIMUM = 192
#: Columns of one query.
FIELDS_MAXIMUM = 12
#: Rows in the window of a temporal aggregate.
WINDOW_MAXIMUM = 64
#: Rows of a storage point.
STORE_ROWS_MAXIMUM = 1024
#: Bytes of a block of EEPROM or flash that storage points take.
STORE_BLOCK = 64
#: Storage points that one query reads.
SOURCES_MAXIMUM = 2
#: Shortest sample period in ms of a storage point, or of a query with a QUEUE: the rows wait.
PERIOD_STORED_MINIMUM_MS = 50
#: Queries that a mote runs at once.
QUERIES_MAXIMUM = 8
#: Motes whose events run a query side by side on a mote.
EVENT_RUNS = 4
#: Value of a GROUP over no row: the state counts motes whose rows did not pass, and belongs to no group.
NO_GROUP = 1
#: Stops that a QUERY_STOP tells of.
STOPS_MAXIMUM = 6
#: Program bytes in one QUERY_INSTALL fragment.
FRAGMENT_MAXIMUM = 96
#: Longest record that goes from mote to mote, in bytes.
CARRIED_MAXIMUM = 48
#: Furthest that places of motes, in dm, may lie from the origin along an axis for ways that lead to places.
PLACE_MAXIMUM = 16383
#: Attributes of an index.
INDEX_ATTRIBUTES_MAXIMUM = 6
#: Numbers of indexes are below this; a part's number times this is added where one is said as well.
INDEX_NUMBERS = 8192
#: Motes that a POSITION asks for theirs.
POSITIONS_ASKED = 10
#: Bytes of a path vector at most.
VECTOR_MAXIMUM = 20
#: Trees by which motes are searched for.
SEARCH_TREES = 3
#: Hops of a way at most.
HOPS_MAXIMUM = 64
#: In a fragment's offset, between motes: its query_version is that of a whole set, for who lacked the query in it; another change may have
#: made that version.
FRAGMENT_REPAIRS = 1
#: Network seconds: "runs until stopped".
FOREVER = 0xFFFFFFFF
#: Shortest sample period in ms: one round of the communication schedule.
PERIOD_MINIMUM_MS = 1000
#: Shortest sample period in ms where rows leave the mote seldom enough, or several in one record.
PERIOD_FAST_MINIMUM_MS = 5
#: Longest sample period in ms: one week.
PERIOD_MAXIMUM_MS = 7 * 24 * 3600 * 1000
#: Network time runs in seconds and ticks; ticks in one second.
TICKS_PER_SECOND = 32768


class VersionMismatchError(ValueError):
    """A peer speaks another protocol version."""

    def __init__(self, theirs: int) -> None:
        super().__init__(
            f"peer speaks protocol version {theirs}, this side version {PROTOCOL_VERSION}: "
            "flash the motes and install the gateway from the same release"
        )
        self.theirs = theirs


class PacketError(ValueError):
    """Bytes that are no packet; the message says what is wrong."""


class PacketType(IntEnum):
    """The byte after the version."""

    BEACON = 0x01
    QUERY_INSTALL = 0x02
    QUERY_STOP = 0x03
    QUERY_REQUEST = 0x04
    COMMAND = 0x05
    BUNDLE = 0x06
    JOIN = 0x07
    WAY_OPEN = 0x08
    WAY_STATE = 0x09
    TRAIL = 0x0A
    CARRIED = 0x0B
    POSITION = 0x0C
    CONTENT = 0x0D
    SEARCH = 0x0E
    RESULT = 0x10
    PARTIAL = 0x11
    STATUS = 0x12
    COMMAND_ACK = 0x13
    LOG = 0x14
    REFUSAL = 0x15
    EVENT = 0x16
    SERIES = 0x17
    NAMESAKE = 0x18
    ARRIVAL = 0x19
    JOINED = 0x1A
    FLASH = 0x1B
    STORED = 0x1C
    FOUND = 0x1D
    HELLO = 0x20
    TIME = 0x21
    SESSION = 0x22


class CommandOp(IntEnum):
    """What a COMMAND asks; arguments in the comment."""

    PING = 0  # answer with a STATUS record
    SET_POSITION = 1  # x: int32 cm, y: int32 cm; kept in EEPROM
    REBOOT = 2
    RUN = 3  # number: uint8, see skerry_protocol.commands; argument: int32
    EVENT = 4  # an Event; not acknowledged
    #: to: uint16, seconds: uint16; the target sends that mote a PING, which has so long; behind them x, y: int32 cm, it goes by place
    PING_TO = 5
    #: to: uint16, seconds: uint16, path vector of at most 16 bytes, from the target on; likewise by the motes that it names
    PING_BY = 7
    FIND = 6  # the target lays a trail, as another mote has a record for it; between motes, not acknowledged
    #: index and part: uint16, then of each of the part's attributes the least and the greatest point, 12 bits each in 3 bytes, lowest
    #: first; motes that may store such tuples answer with STORED records; not acknowledged. Behind them, where there is room: least
    #: epoch: uint32, how many more: uint16, 65535 all; behind these a bit for each mote that is asked for: its number modulo the bits
    INDEX_ASK = 8
    INDEX_DROP = 9  # index: uint16; its tuples are forgotten; not acknowledged
    SEARCH = 10  # a SearchCommand, to all motes; not acknowledged


class CommandStatus(IntEnum):
    """Answer in a COMMAND_ACK."""

    DONE = 0
    UNKNOWN_OP = 1
    BAD_ARGUMENT = 2


class WayFlag(IntEnum):
    """Flags of a WAY_OPEN."""

    DOWN = 1  # it has followed a trail, and must not go up again
    PLACE = 2  # it leads to a place: a WayPlace is behind it
    PERIMETER = 4  # … and goes around a hole in the field
    VECTOR = 16  # it leads by the motes of the path vector behind it
    DENIES = 8  # the sender has no trail to its destination: one that leads there by it is over


class WayIs(IntEnum):
    """What a WAY_STATE says of a way, from the sender on."""

    LOST = 0  # it does not lead on
    BACK = 1  # by a trail it would lead back to the receiver, who knows that or denies it
    OPEN = 2  # it leads to its end, a place


class Carries(IntEnum):
    """First byte of a record that goes from mote to mote: what it is."""

    PING = 1
    TUPLE = 2
    ROW = 3
    FOUND = 4


class PairsWay(IntEnum):
    """How the rows of a PAIRS come to the motes that join them."""

    CLIMB = 0  # on their way up the tree, as they pass them
    SENT = 1  # from the motes that have sampled them, each by a way
    FROM_ROOT = 2  # up the tree, and from the root by ways


class Outcome(IntEnum):
    """What became of a PING."""

    ARRIVED = 0
    NO_WAY = 1  # no mote has a way to its destination
    LATE = 2  # it was under way for longer than it may be
    NO_ROOM = 3  # too many records or ways at the mote that was asked


class Aggregate(IntEnum):
    """Aggregate of a query's field; NONE in a query of plain rows. GROUP: the field is what rows are grouped by, and only
    states of equal groups are merged."""

    NONE = 0
    COUNT = 1
    SUM = 2
    AVG = 3
    MIN = 4
    MAX = 5
    GROUP = 6
    VARIANCE = 7
    TOP = 8
    BOTTOM = 9
    HISTOGRAM = 10
    QUANTILES = 11
    DISTINCT = 12
    # Names, in queries within a tolerance, the sibling as which a mote may count; its code is the tolerance.
    REPRESENTATIVE = 13
    # In a query of plain rows: over this mote's readings in time. The code begins with a Temporal.
    WINAVG = 32
    WINSUM = 33
    WINMIN = 34
    WINMAX = 35
    WINCOUNT = 36
    WINRAND = 37
    EXPAVG = 38
    DELTA = 39
    ADPDELTA = 40
    TREND = 41
    PULSE = 48
    PULSES = 49
    # No column: what the query's LIFETIME allows each mote. The code is a Budget.
    BUDGET = 64
    # No columns either: what the query does, and waits for.
    ACTION = 65  # with each row: the command ``format``, its argument is the code's value
    SIGNAL = 66  # with the first of several rows in a row: raises an event; the code is its number, uint16, and an expression or nothing
    ON_EVENT = 67  # the query runs after an event; the code is an OnEvent
    STOP_ON = 68  # the query ends with an event; the code is its number, uint16, and a condition or nothing
    STORE = 69  # the query is a storage point: its rows stay on the mote; the code is a Store
    FROM = 70  # rows are joined with those of a storage point; the code is a From, then an Aggregate for each field to COMBINE
    INTO = 71  # rows go to a storage point; the code is its number, uint16
    QUEUE = 72  # what becomes of rows that find no room, and when rows leave; the code is a Queue
    PAIRS = 73  # rows of pairs of motes are joined at a mote above both; the code is a Pairs, with what follows it
    INDEX = 74  # rows go to the motes that store them for others; the code is an Index
    SRT = 80  # the query is a semantic routing tree; the code is an Srt
    ROUTE = 81  # the query goes only where a semantic routing tree says; the code is a Route

    @classmethod
    def _missing_(cls, value: object) -> Aggregate | None:
        """16 to 31: those from outside this tree (skerry_protocol.extensions)."""
        if not isinstance(value, int) or not 16 <= value < 32:
            return None
        member = int.__new__(cls, value)
        member._name_, member._value_ = f"OUTSIDE_{value}", value
        return cls._value2member_map_.setdefault(value, member)  # type: ignore[return-value]


class RefusalReason(IntEnum):
    """Why a mote does not run a query."""

    MALFORMED = 1  # the program is no program
    SLOTS = 2  # as many queries run as there is room for
    MEMORY = 3  # programs and windows of the queries need more bytes than there are
    TREES = 4  # as many semantic routing trees are held as the board has room for


class Invariant(IntEnum):
    """What must hold on a mote whatever it receives; where it does not, the mote starts anew and its STATUS says what it was."""

    MAIN_LOOP = 1  # the main loop comes round within two seconds
    CPU_FAULT = 2  # the processor can execute what comes next
    EVENTS = 3  # what waits in the list of events is marked as waiting
    TIMERS = 4  # a timer that runs is in the list of timers
    QUEUE = 5  # the queue's records end where the bytes in use do
    QUERY_MEMORY = 6  # a query's memory lies within that of all
    RADIO_HELD = 7  # as many frames wait for the main loop as there is room for


class QueryFlag(IntEnum):
    """Bits of a query program's flags."""

    AGGREGATE = 1  # fields are aggregates over all motes, sent as partial state records
    ONCE = 2  # a single epoch: the one at ``start``
    STAGED = (
        4  # ``where`` is conditions, each behind its length; what they read is acquired when it is their turn
    )
    SNOOP = 8  # motes withhold partial states that change nothing in what they have heard of others, or, with a REPRESENTATIVE, little


class StoreFlag(IntEnum):
    """Bits of a storage point's flags."""

    CIRCULAR = 1  # when it is full the oldest row makes room; else it takes no more
    FLASH = 2  # in EEPROM or flash, where rows outlive a restart; else in RAM


#: Bit of a Temporal's power: the window and its slide count epochs, those too whose row does not pass.
TEMPORAL_EPOCHS = 0x80


class EventFlag(IntEnum):
    """Bits of an ON_EVENT's flags."""

    NO_OVERLAP = 1  # an event while the query runs changes nothing; else it starts it anew
    TIMER = 2  # no event: each ``step`` s of network time starts it
    ALIGNED = 4  # its epochs are ``step`` s apart, counted from the event's time
    EACH = 8  # the events of several motes run it side by side, each for its own time


class Match(IntEnum):
    """Which of a storage point's rows a query meets."""

    ALL = 0  # each of them
    LINEAR = 1  # one, on the line between the two rows around the moment one period of the point ago
    COMBINE = 2  # one: those of the query's last period, aggregated


class QueuePolicy(IntEnum):
    """Which of a mote's own rows make room for a new one. Source: TinyDB 2005, 6.3.1."""

    NAIVE = 0  # none: the new row is left out
    WINAVG = 1  # the two oldest become their average
    DELTA = 2  # the one that differs least from the row sent before it is left out, and the one that differs most goes first


class Policy(IntEnum):
    """How motes choose among acceptable parents, where there is a semantic routing tree. Source: TinyDB 2005, 5.3."""

    LINK = 0  # by the links alone
    RANDOM = 1  # any
    CLOSEST = 2  # the one whose value is nearest
    CLUSTERED = 3  # the one below which the sender's values add least to those there are


class BundleFlag(IntEnum):
    """Bits of a bundle's flags."""

    PENDING = 1  # the sender has more to send in this slot
    LATER = 2  # … or may have in later rounds: its children are not done
    SESSION = 4  # so many times the session that it is of: what is of another one is not passed on


NeighbourEntry = Struct(
    "node" / Int16ul * "short address",
    "heard" / Int8ul * "share of its beacons heard lately, 0..255 = 0..100 %",
)

SrtEntry = Struct(
    "srt" / Int8ul * "number of the tree, 1..255",
    "low" / Int8ul * "codes at and below the sender: first interval, or extent along the first attribute",
    "high" / Int8ul * "…; 255 and 0: none",
    "low2" / Int8ul * "second interval, or extent along the second attribute",
    "high2" / Int8ul * "…; 255 and 0: none",
    "value" / Int8ul * "code of the sender's own first attribute",
    "value2" / Int8ul * "… and second; 0 where there is none",
    "cells"
    / Int32ul
    * "what is there now, to choose parents by: a bit for each 8 codes; of two attributes for each 16, the second's from bit 16 on",
)

SlotsEntry = Struct(
    "srt" / Int8ul * "0: no tree",
    "version" / Int8ul * "counts the root's changes of the slots, 1..255 in turn",
    "start" / Int8ul * "second from which the slots of a second entry hold, in 16 s, modulo 256",
    "table"
    / Int32ul
    * "a nibble each for levels 1, 2, 3, 4, 5 to 8, deeper; highest byte: slots, 2..30; 0: as in the beginning",
)

Beacon = Struct(
    "root" / Int16ul * "short address of the root of this network",
    "session"
    / Int16ul
    * "name of the root's session, one more at each of its starts: a change restarts the network",
    "sequence" / Int8ul * "counts this mote's beacons, for link estimation",
    "root_sequence"
    / Int8ul
    * "of the latest beacon of the root that the sender's way stands on, its own or by its parent's",
    "level" / Int8ul * "hops to the root, 0 at the root; 255 none",
    "parent" / Int16ul * "short address; 65535 none",
    "cost" / Int16ul * "expected transmissions to the root, 1/16 each; 65535 none",
    "seconds" / Int32ul * "network time at the end of the frame's SFD: seconds",
    "ticks" / Int16ul * "… and 1/32768 s within the second, 0..32767",
    "offset" / Int16ul * "network time less the sender's own clock, 1/32768 s, modulo 2 s",
    "skew" / Int16sl * "by which network time gains on that clock, 2^-24, -4095..4095",
    "query_version" / Int16ul * "version of the sender's set of queries",
    "srts"
    / Prefixed(Byte, GreedyBytes)
    * "up to two SlotsEntry, for slots that hold and that follow; a SrtEntry for each tree that it holds",
    "neighbours" / GreedyRange(NeighbourEntry) * "some of those it hears, at most 11, in turn",
)

QueryInstall = Struct(
    "query_version" / Int16ul * "version of the set that this query brings; of a repair: its sender's",
    "query" / Int8ul * "query id, 1..255",
    "total" / Int8ul * "bytes of the whole program, 1..192",
    "offset" / Int8ul * "where it lies in the program: 0 or a multiple of 96; in repairs 1 more",
    "data" / GreedyBytes * "1..96 bytes of the program",
)

Stopped = Struct(
    "query_version" / Int16ul * "version of the query set without that query",
    "query" / Int8ul * "query id; 0 stops all",
)

QueryStop = Struct(
    "query_version" / Int16ul * "version of the query set without that query",
    "query" / Int8ul * "query id; 0 stops all",
    "earlier"
    / Default(GreedyRange(Stopped), ())
    * "from mote to mote: the stops before it, at most 5, newest first",
)

QueryRequest = Struct(
    "query_version" / Int16ul * "version of the sender's query set",
    "queries"
    / GreedyBytes
    * "ids of the queries it holds whole: it lacks the others; behind a 0, a RoutedQuery for each with a route",
)

RoutedQuery = Struct(
    "query" / Int8ul * "query id",
    "srt" / Int8ul * "number of the tree; 0: the sender wants the query, and lacks it",
    "low" / Int8ul * "the codes that it asks for, as in SrtEntry",
    "high" / Int8ul,
    "low2" / Int8ul,
    "high2" / Int8ul,
)

ProgramField = Struct(
    "format"
    / Int8ul
    * "value format in the row: 1 u8, 2 i8, 3 u16, 4 i16, 5 i32; of aggregates from 8 on, cells of the state",
    "aggregate"
    / Int8ul
    * "0 none, 1 COUNT, 2 SUM, 3 AVG, 4 MIN, 5 MAX, 6 GROUP, 7 VARIANCE, 8 TOP, 9 BOTTOM, 10 HISTOGRAM, "
    "11 QUANTILES, 12 DISTINCT, 13 REPRESENTATIVE; in rows 32 WINAVG, 33 WINSUM, 34 WINMIN, 35 WINMAX, 36 WINCOUNT, 37 WINRAND, 38 EXPAVG, "
    "39 DELTA, 40 ADPDELTA, 41 TREND, 48 PULSE, 49 PULSES; no columns: 64 BUDGET, 65 ACTION, 66 SIGNAL, "
    "67 ON_EVENT, 68 STOP_ON, 69 STORE, 70 FROM, 71 INTO, 72 QUEUE, 73 PAIRS, 80 SRT, 81 ROUTE",
    "code"
    / Prefixed(Byte, GreedyBytes)
    * "expression; empty only for COUNT(*); behind a Temporal from 32 on",
)

Temporal = Struct(
    "window"
    / Int8ul
    * "rows in the window, 1..64; EXPAVG: weight of a reading 2**-window, 1..15; DELTA: low byte of the threshold; "
    "PULSES: low byte of the epochs in the window, 1..65535",
    "slide" / Int8ul * "rows from one result to the next, 1..255; DELTA, PULSES: high byte",
    "power" / Int8ul * "WINAVG, EXPAVG, TREND: the value is multiplied by 10**power before it is rounded; "
    "bit 7: window and slide are of epochs, not of rows",
)

QueryProgram = Struct(
    "flags" / Int8ul * "bit 0 aggregate, bit 1 once, bit 2 staged, bit 3 snooping",
    "period"
    / Int32ul
    * "sample period in ms, 1000..604800000; of what is stored or queued from 50, of rows neither joined nor aggregated from 5; "
    "epoch n starts at n * period",
    "start" / Int32ul * "network seconds of the first epoch's earliest start",
    "end" / Int32ul * "network seconds before which the last epoch starts; 4294967295 never",
    "where"
    / Prefixed(Byte, GreedyBytes)
    * "predicate; empty: all rows; staged: predicates in their order, each behind its length",
    "fields" / GreedyRange(ProgramField) * "1..12 columns",
)

Budget = Struct(
    "energy" / Int32ul * "nJ that an epoch takes from a mote",
    "idle" / Int32ul * "uW that a mote takes without the query",
    "capacity" / Int32ul * "J in a fresh battery",
    "full" / Int16ul * "its voltage, mV",
    "empty" / Int16ul * "voltage at which motes stop, mV; below full",
    "most" / Int8ul * "epochs from one sample to the next at most, 1..255",
)

Event = Struct(
    "event" / Int16ul * "number: CRC-16 of the name in lower case",
    "node" / Int16ul * "short address of the mote that raised it",
    "x" / Int32sl * "its position, cm",
    "y" / Int32sl * "its position, cm",
    "seconds" / Int32ul * "network time, s",
    "value" / Int32sl * "what its raiser adds to it; -2147483648: NULL",
)

OnEvent = Struct(
    "event" / Int16ul * "number of the event",
    "lasts" / Int32ul * "s from the event on in which epochs begin; at least 1",
    "flags" / Int8ul * "bit 0 no overlap, bit 1 timer, bit 2 aligned, bit 3 each",
    "group" / Int8ul * "0..7: the query starts when all events of a group have come since it last started",
    "step" / Int32ul * "timer, aligned: s, at least 1",
)

Store = Struct(
    "point" / Int16ul * "number of the storage point, chosen by the gateway",
    "rows" / Int16ul * "rows that it holds, 1..1024",
    "seconds" / Int32ul * "rows older than so many s are not seen; 0: all are",
    "flags" / Int8ul * "bit 0 circular, bit 1 flash",
    "block" / Int8ul * "flash: first of its blocks of 64 bytes",
    "blocks" / Int8ul * "flash: how many, at least 2",
)

From = Struct(
    "point" / Int16ul * "number of the storage point",
    "match" / Int8ul * "which of its rows: 0 all, 1 linear, 2 combine",
)

Pairs = Struct(
    "rows" / Int8ul * "of a mote's rows that passed so many are in its window; 0: those of so many epochs",
    "epochs" / Int16ul * "rows 0: the earlier row is at most so many epochs older than the later one",
    "delay" / Int8ul * "epochs for which rows are waited for before they are joined, 1..30",
    "motes" / Int8ul * "that are in pairs; 0: all rows go to the gateway",
    "width" / Int8ul * "bytes of a row's values without the first column, at most 24",
    "base" / Int8ul * "so many of the first of them have pairs that the gateway joins",
    "condition" / Int8ul * "bytes of code that is true for rows which match; 0: all do",
    "way" / Int8ul * "how rows come to the motes that join them, see PairsWay",
)

PairsHost = Struct(
    "host" / Int16ul * "short address of the mote that joins them",
    "rows" / Int8ul * "that it has room for",
    "pairs" / Int8ul * "how many, at least 1",
)

Queue = Struct(
    "policy" / Int8ul * "0 naive, 1 winavg, 2 delta",
    "size" / Int8ul * "rows that may wait on the mote that sampled them; 0: as many as there is room for",
    "every"
    / Int8ul
    * "one row leaves that mote each so many epochs, counted from epoch 0, in a week at most; 0: as many as the radio carries",
)

Index = Struct(
    "index"
    / Int16ul
    * "number of the index, chosen by the gateway, below 8192; where a part is said as well, 8192 times that is added",
    "parts" / Int8ul * "in which its tuples are stored: 1 to 6",
    "more"
    / GreedyBytes
    * "an IndexPart for each part, an IndexRange for each column, then an IndexOwner for each mote that stores, part by part",
)

IndexPart = Struct(
    "columns" / Int8ul * "bit i set: column i is stored there; each is in one part",
    "owners"
    / Int8ul
    * "motes that store the part, 1 to 32; the least rectangle with all of them is what is halved to zones",
)

IndexRange = Struct(
    "low" / Int32sl * "of the column's values those that are told apart: the least",
    "high" / Int32sl * "… and the greatest; what lies beyond belongs to the edge",
)

IndexOwner = Struct(
    "node" / Int16ul * "short address",
    "x" / Int16sl * "where it stands, dm",
    "y" / Int16sl,
)

SrtAxis = Struct(
    "attribute" / Int8ul * "its number",
    "low" / Int32sl * "the value whose code is 0; so is that of all below",
    "step" / Int32ul * "values to a code, at least 1; all beyond have 255",
)

Srt = Struct(
    "srt" / Int8ul * "number of the tree, 1..255, chosen by the gateway",
    "policy" / Int8ul * "how motes choose among parents: see Policy",
    "axes" / GreedyRange(SrtAxis) * "one or two",
)

Route = Struct(
    "srt" / Int8ul * "number of the tree, 1..255",
    "low" / Int8ul * "codes that it asks for: first interval, or extent along the first attribute",
    "high" / Int8ul,
    "low2" / Int8ul * "second interval (255 and 0: none), or extent along the second attribute",
    "high2" / Int8ul,
)

Command = Struct(
    "target" / Int16ul * "short address; 65535 all motes",
    "token" / Int16ul * "chosen by the sender, repeated in the acknowledgement",
    "op" / Int8ul * "see CommandOp",
    "arguments" / GreedyBytes * "at most 20 bytes",
)

Join = Struct(
    "level" / Int8ul * "hops to the root of the sender; 255: it asks for later news of the root",
    "session" / Int16ul * "of the root, that the sender lives in",
    "root_sequence" / Int8ul * "of level 255: the one that news is to be later than; else 0",
    "srts" / GreedyRange(SrtEntry) * "one for each semantic routing tree that it holds",
)

WayOpen = Struct(
    "source" / Int16ul * "mote at which the way begins",
    "number" / Int8ul * "upper five bits: counts that mote's ways; lower three: how often it was opened anew",
    "flags" / Int8ul * "see WayFlag",
    "destination" / Int16ul * "mote to which it leads; 65535: whoever stands nearest to the place",
    "hop" / Int8ul * "hops from its beginning to the receiver, at least 1",
    "every" / Int8ul * "its cells are in one round of 2 to this power, 2..8",
    "more"
    / GreedyBytes
    * "as the flags say: a WayPlace, or a path vector of at most 20 bytes, the motes behind the receiver: each is its difference "
    "to the one before it, as 2n or -2n-1, in groups of 7 bits, lowest first, all but the last with bit 7",
)

WayPlace = Struct(
    "x" / Int16sl * "place to which it leads, dm, -16383..16383",
    "y" / Int16sl,
    "sender_x" / Int16sl * "where the sender stands",
    "sender_y" / Int16sl,
    "entered_x" / Int16sl * "around a hole: where it met the hole",
    "entered_y" / Int16sl,
    "crossed"
    / Int16ul
    * "… share of the line from there to the place at which it last crossed that, in 65536ths",
    "first" / Int16ul * "… first edge of the face that it goes around: from this mote",
    "second" / Int16ul * "… to this one",
    "left" / Int8ul * "hops that may be tried yet, 0..64",
)

Position = Struct(
    "x" / Int16sl * "where the sender stands, dm, -16383..16383",
    "y" / Int16sl,
    "asked" / GreedyBytes * "motes that are to tell theirs, u16 each, at most 10",
)

WayState = Struct(
    "source" / Int16ul * "mote at which the way begins",
    "number" / Int8ul * "that of its WAY_OPEN; the lower three bits say nothing",
    "state" / Int8ul * "see WayIs",
)

Trail = Struct(
    "destination" / Int16ul * "mote to which a way leads by the sender",
    "hop" / Int8ul * "hops from it to the receiver, at least 1",
)

Carried = Struct(
    "source" / Int16ul * "mote at which the way begins",
    "number" / Int8ul * "that of its WAY_OPEN; the lower three bits say nothing",
    "sequence" / Int8ul * "counts the way's records, 1..255",
    "origin" / Int16ul * "mote that it is of: the way's source, or one whose way was lost farther on",
    "hops" / Int8ul * "that it has gone, with this one",
    "deadline" / Int16ul * "network seconds modulo 65536 after which it need not arrive",
    "record" / GreedyBytes * "1..48 bytes; the first says what it is, see Carries",
)

Ping = Struct(
    "carries" / Int8ul * "PING",
    "token" / Int16ul * "that of the PING_TO",
    "seconds" / Int32ul * "network time at which it was asked for, s",
    "ticks" / Int16ul * "… and 1/32768 s within the second",
    "way" / GreedyBytes * "motes that have had it, in order, u16 each, as far as there is room",
)

Answer = Struct(
    "carries" / Int8ul * "FOUND",
    "mote" / Int16ul * "mote that has what was searched for",
    "token" / Int16ul * "that of the search",
)

SearchCommand = Struct(
    "attribute" / Int8ul * "a static attribute: each mote tells what is below it in each tree …",
    "kind" / Int8ul * "… as 1, the interval of values, or 3, a Bloom filter",
    "seeker" / Int16ul * "mote that searches",
    "low" / Int16sl * "values from here on, as motes compare them: numbers without a sign are less by 32768",
    "high" / Int16sl * "… to here",
    "wait" / Int8ul * "control windows until it does: trees that are new have to grow",
    "roots" / Array(SEARCH_TREES, Int16ul) * "roots of the trees",
)

ContentTree = Struct(
    "root" / Int16ul * "mote at which the tree begins",
    "parent" / Int16ul * "the sender's in it; 65535: none",
    "hops" / Int8ul * "from the sender to the root; 255: it is not in the tree",
    "summary" / Array(8, Int8ul) * "of the sender and all below it, see firmware/join/summary.h",
)

Content = Struct(
    "attribute" / Int8ul * "as in a SearchCommand",
    "kind" / Int8ul,
    "left" / Int8ul * "control windows until all this is forgotten, at least 1",
    "trees" / GreedyBytes * "a ContentTree for each of the three",
)

Search = Struct(
    "attribute" / Int8ul * "as in a SearchCommand",
    "token" / Int16ul * "that of the command",
    "low" / Int16sl,
    "high" / Int16sl,
    "tree" / Int8ul * "its number, 0..2; bit 7: the search has come down, and does not go up any more",
    "except" / Int16ul * "to all in range: not for this one; else 65535",
    "path" / GreedyBytes * "motes from who searches to the sender, u16 each, 1..20",
)

IndexTuples = Struct(
    "carries" / Int8ul * "TUPLE",
    "index" / Int16ul * "number of the index, and the part",
    "node" / Int16ul * "mote that sampled them",
    "session" / Int16ul * "name of the root's session in which it did",
    "epoch" / Int32ul * "epoch number of the first",
    "tuples" / GreedyBytes * "an IndexTuple for each",
)

IndexTuple = Struct(
    "epochs" / Int8ul * "since the one before it; of the first 0",
    "nulls" / Int8ul * "bit i set: the part's column i is NULL (its bytes are 0)",
    "values" / GreedyBytes * "the part's columns in order, each in its program's format",
)

PairRow = Struct(
    "carries" / Int8ul * "ROW",
    "result"
    / GreedyBytes
    * "a RESULT, whose first column says as what the row passes: as nothing where it only keeps a way open",
)

Record = Struct(
    "type"
    / Int8ul
    * "RESULT, PARTIAL, STATUS, COMMAND_ACK, LOG, REFUSAL, SERIES, NAMESAKE, ARRIVAL, JOINED, FLASH, STORED or FOUND",
    "body" / Prefixed(Byte, GreedyBytes),
)

Bundle = Struct(
    "flags"
    / Int8ul
    * "bit 0: the sender has more to send in this slot; bit 1: it may in later rounds; bits 2 to 7: session of the root, modulo 64",
    "records" / GreedyRange(Record),
)

Result = Struct(
    "query" / Int8ul * "query id",
    "node" / Int16ul * "short address of the mote that sampled",
    "epoch" / Int32ul * "epoch number: sampled at network time epoch * period",
    "nulls" / Int16ul * "bit i set: field i is NULL (its bytes are 0)",
    "values"
    / GreedyBytes
    * "fields in order, each in its program's format; behind them a Tally, without those of its counts at the end that are 0",
)

Tally = Struct(
    "left_out" / Int16ul * "rows of the query that this mote left out since the row before; 65535: or more",
    "more" / Int16ul * "further samples that the row is the average of; 32767: or more",
)

Series = Struct(
    "query" / Int8ul * "query id",
    "node" / Int16ul * "short address of the mote that sampled",
    "epoch" / Int32ul * "epoch number of the first row; the others are those of the epochs after it",
    "values" / GreedyBytes * "row after row, as in a RESULT; none is NULL",
)

AggregateState = Struct(
    "count"
    / Int16ul
    * "values that went in; 0: none did, the value means nothing (SUM and AVG: it is a difference to add; GROUP: 0 the group of "
    "NULL, 1 no group, of motes whose rows did not pass)",
    "value"
    / Int32sl
    * "COUNT 0, SUM and AVG the sum, MIN and MAX the extreme, GROUP the group; the others: aggregate_*.c",
)

Partial = Struct(
    "query" / Int8ul * "query id",
    "epoch" / Int32ul * "epoch number",
    "motes" / Int16ul * "motes whose readings were considered",
    "overflow" / Int16ul * "bit i set: field i means nothing; no aggregate of skerry's sets it",
    "states"
    / GreedyRange(AggregateState)
    * "one per field, or as many cells as it says; zero ones at the end may be left out",
)

StaticValue = Struct(
    "attribute" / Int8ul * "number of a constant that commands set",
    "value" / Int16ul * "its 16 bits",
)

Status = Struct(
    "node" / Int16ul * "short address",
    "boots" / Int16ul * "boot count, kept in EEPROM",
    "reset_cause" / Int8ul * "the chip's reset flags (MCUSR on AVR)",
    "invariant"
    / Int8ul
    * "why the firmware ended its last run, see Invariant; 0: it did not, or was asked to",
    "board" / Int8ul * "1 iris, 2 cc2538, 255 host",
    "attributes" / Int32ul * "bit n set: attribute number n can be acquired here",
    "parent" / Int16ul * "short address; 65535 none (the root)",
    "level" / Int8ul * "hops to the root",
    "link" / Int8ul * "share of frames to the parent acknowledged, 0..255 = 0..100 %",
    "neighbours" / Int8ul * "entries in the neighbour table",
    "query_version" / Int16ul * "version of the query set it runs",
    "x" / Int32sl * "position, cm",
    "y" / Int32sl * "position, cm",
    "voltage" / Int16ul * "battery, mV; 0 unknown",
    "free_ram" / Int16ul * "bytes never used by data or stack",
    "queue_length" / Int8ul * "records waiting",
    "seconds" / Int32ul * "network time of this report, s",
    "radio_on" / Int32ul * "ms the radio was on since boot",
    "uptime" / Int32ul * "s since boot",
    "rows" / Int32ul * "rows and partial records produced since boot",
    "dropped" / Int16ul * "of them lost to a full queue",
    "sent" / Int32ul * "data frames put on the air, repetitions included",
    "repeated" / Int32ul * "of them repetitions",
    "malformed" / Int16ul * "frames and packets refused",
    "loops" / Int16ul * "parents that were given up for standing below the mote itself",
    "factory" / Int32ul * "factory number: no two motes have one",
    "statics"
    / Default(GreedyRange(StaticValue), [])
    * "room, floor and group that are not 0, and users' static attributes that are not NULL",
)

IndexCount = Struct(
    "index" / Int16ul * "its number",
    "tuples" / Int32ul * "of it that this mote stores",
)

Flash = Struct(
    "node" / Int16ul * "short address",
    "pages" / Int8ul * "pages of flash that keep tuples and storage points' rows",
    "capacity" / Int32ul * "bytes of records that fit",
    "used" / Int32ul * "bytes of them that are taken",
    "evicted" / Int32ul * "tuples that gave way to others since the mote was first flashed",
    "erased_most" / Int32ul * "erasures of the page that was erased most often",
    "erased_sum" / Int32ul * "erasures of all pages",
    "indexes" / Default(GreedyRange(IndexCount), []) * "those of which there are tuples",
)

Namesake = Struct(
    "node" / Int16ul * "short address that two motes have",
    "factory" / Int32ul * "factory number of the one that sends it",
    "other" / Int32ul * "… and of the other, as a record of who has heard it; 0: not known",
)

Arrival = Struct(
    "node" / Int16ul * "short address of the mote that tells it: where it arrived, or was lost",
    "source" / Int16ul * "mote that was asked to send it",
    "outcome" / Int8ul * "see Outcome",
    "hops" / Int8ul * "how many it took; 0: it did not arrive",
    "seconds" / Int32ul * "network time of this, s",
    "ticks" / Int16ul * "… and 1/32768 s within the second",
    "ping" / GreedyBytes * "the Ping",
)

#: The first bit of `s_nulls` and `t_nulls` that says no column's NULL, but the row's number.
JOINED_NUMBER = 13

Joined = Struct(
    "query" / Int8ul * "query id",
    "s" / Int16ul * "short address of the mote whose row passed as s",
    "s_epoch" / Int32ul * "epoch of that row",
    "s_nulls" / Int16ul * "bit i set: column i of it is NULL; bits 13..15: its number as s",
    "t" / Int16ul * "the same of the row that passed as t",
    "t_epoch" / Int32ul,
    "t_nulls" / Int16ul,
    "values" / GreedyBytes * "all columns of the row of s but the first, then those of t",
)

Stored = Struct(
    "node" / Int16ul * "short address of the mote that stores them",
    "token" / Int16ul * "that of the INDEX_ASK",
    "part" / Int16ul * "counts this mote's records of the answer, from 0 on",
    "last" / Int8ul * "1: no more follow",
    "tuples"
    / GreedyBytes
    * "of each its node, session and epoch as an IndexTuples has them, then nulls and values as an IndexTuple",
)

Found = Struct(
    "node" / Int16ul * "short address of the mote that tells it",
    "token" / Int16ul * "that of the search",
    "mote"
    / Int16ul
    * "a mote that was found, as the one that searches has heard; 65535: `node` has had the search",
    "tree" / Int8ul * "the tree in which it has; bit 7: it has what is searched for",
    "hops" / Int8ul * "of the answer's way, or of the search's",
    "frames" / Int8ul * "with which it has passed the search on",
)

CommandAck = Struct(
    "node" / Int16ul * "short address of the mote that answers",
    "token" / Int16ul * "the command's",
    "status" / Int8ul * "see CommandStatus",
)

Log = Struct(
    "node" / Int16ul * "short address",
    "severity" / Int8ul * "0 debug, 1 info, 2 warning, 3 error",
    "text" / GreedyBytes * "ASCII, at most 60 bytes",
)

Refusal = Struct(
    "node" / Int16ul * "short address of the mote that cannot run the query",
    "query" / Int8ul * "query id",
    "reason" / Int8ul * "see RefusalReason",
    "missing" / Int16ul * "bytes short, for MEMORY",
)

Hello = Struct(
    "node" / Int16ul * "short address of the root; 65535 from a gateway",
    "session" / Int16ul * "name of the root's session; 0 from a gateway",
    "seconds" / Int32ul * "network time when it was sent, s; 0 from a gateway",
    "ticks" / Int16ul * "… and 1/32768 s within the second",
    "query_version" / Int16ul * "version of the root's query set; 0 from a gateway",
    "queries" / GreedyBytes * "ids of the queries the root holds; empty from a gateway",
)

Time = Struct(
    "seconds" / Int32ul * "network time when it was sent, s",
    "ticks" / Int16ul * "… and 1/32768 s within the second",
    "more" / Int8ul * "1: records from before that time are still waiting to be sent; 0: none are",
)

Session = Struct(
    "node" / Int16ul * "short address of the root",
    "session"
    / Int16ul
    * "the last of its sessions that the gateway knows: it begins one behind that, unless its own is later",
)

#: Everything that EEPROM (AVR) or flash (ARM) keeps. Written by ``skerry-settings`` and the testbed.
Settings = Struct(
    "magic" / Int16ul * "0x5359; anything else: unset, defaults apply",
    "nodeid" / Int16ul * "short address, 0..65534",
    "pan" / Int16ul * "PAN id",
    "channel" / Int8ul * "802.15.4 channel, 11..26",
    "root" / Int8ul * "1: this mote is the root and speaks on its UART",
    "x" / Int32sl * "position, cm",
    "y" / Int32sl * "position, cm",
    "boots" / Int16ul * "boot count, raised by the firmware at each start",
    "session" / Int16ul * "name of its session as the root, raised at each start; 0: to be drawn at random",
    "factory" / Int32ul * "factory number, where the chip has none; 0: to be drawn at random",
    "room" / Int16ul * "constants of the deployment, set by commands",
    "floor" / Int16sl,
    "group" / Int16ul,
    "channels" / Int16ul * "bit n: data slots hop over channel 11 + n, too; 0: all is sent on `channel`",
    "statics"
    / Default(Array(STATICS_MAXIMUM, Int16ul), [0] * STATICS_MAXIMUM)
    * "users' static attributes, set by commands: 32768 more than the value; 0: NULL",
)
SETTINGS_MAGIC = 0x5359

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

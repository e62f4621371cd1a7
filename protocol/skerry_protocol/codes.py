"""What single bytes of packets and programs mean."""

from __future__ import annotations

from enum import IntEnum


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
    PASSED = 0x1E
    STATES = 0x1F
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
    #: epoch: uint32, how many more: uint16, 65535 all; behind these a bit for each mote that is asked for: its number modulo the bits.
    #: Or, with 7 for the part, states are asked for, which each mote tells in a STATES record: the part in
    #: three bits, and above the fourth how many, 1 to 3: uint8; bit i: the part's attribute i has bounds: uint8; of each state the place
    #: of its attribute, 15 of COUNT(*), and above it the aggregate: uint8; the least and the greatest point of each attribute with
    #: bounds: uint16 each; then epochs and motes, as above. With bit 3 of the byte that says the part, states of each group: behind the
    #: byte that says what has bounds stands by what, uint8: the place of an attribute, 13 the epoch, 14 the mote; STORED records tell
    #: these, as GroupStates
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
    GATHERED = 5
    HANDED = 6
    KEPT = 7


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
    ON_EVENT = (
        67  # the query runs after an event; the code is an OnEvent, and a condition of the event or nothing
    )
    STOP_ON = 68  # the query ends with an event; the code is its number, uint16, and a condition or nothing
    STORE = 69  # the query is a storage point: its rows stay on the mote; the code is a Store
    FROM = 70  # rows are joined with those of a storage point; the code is a From, then an Aggregate for each field to COMBINE
    INTO = 71  # rows go to a storage point; the code is its number, uint16
    QUEUE = 72  # what becomes of rows that find no room, and when rows leave; the code is a Queue
    PAIRS = 73  # rows of pairs of motes are joined at a mote above both; the code is a Pairs, with what follows it
    INDEX = 74  # rows go to the motes that store them for others; the code is an Index
    GATHER = 75  # rows are a mote's, of what others that store an index have found of its tuples; the code is a Gather
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
    HEARD = 16  # with ALIGNED: they are counted from when a mote hears of the event; of two that come in any order all keep the same one
    OWN = 32  # with the last three: each event of the mote itself runs it, for an epoch of its own; those of others do not


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

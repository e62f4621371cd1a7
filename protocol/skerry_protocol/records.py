"""What travels towards the root: rows, partial states, and what motes tell the gateway."""

from __future__ import annotations

from construct import (
    Byte,
    Default,
    GreedyBytes,
    GreedyRange,
    Int8ul,
    Int16ul,
    Int32sl,
    Int32ul,
    Prefixed,
    Struct,
)

Event = Struct(
    "event" / Int16ul * "number: CRC-16 of the name in lower case",
    "node" / Int16ul * "short address of the mote that raised it",
    "x" / Int32sl * "its position, cm",
    "y" / Int32sl * "its position, cm",
    "seconds" / Int32ul * "network time, s",
    "value" / Int32sl * "what its raiser adds to it; -2147483648: NULL",
)

Record = Struct(
    "type"
    / Int8ul
    * "RESULT, PARTIAL, STATUS, COMMAND_ACK, LOG, REFUSAL, SERIES, NAMESAKE, ARRIVAL, JOINED, FLASH, STORED, FOUND, PASSED or STATES",
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
    "nulls"
    / Int16ul
    * (
        "bit i set: field i is NULL (its bytes are 0); in a join bit 0: an odd number of hosts has taken it, and bits 12..15, "
        "of a mote's first row: epochs without one before it"
    ),
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
    "own" / Int8ul * "1: by the owners of that revision all of them are its own",
    "revision" / Int8ul * "that of the program by which this mote has looked through them",
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

Passed = Struct(
    "query" / Int8ul * "query id",
    "node" / Int16ul * "short address of the mote whose rows they are",
    "epoch" / Int32ul * "of the last of the epochs that are counted",
    "epochs" / Int8ul * "that are counted: all since the PASSED before",
    "s" / Int8ul * "epochs of them whose rows passed as s",
    "t" / Int8ul * "the same as t",
)

Stored = Struct(
    "node" / Int16ul * "short address of the mote that stores them",
    "token" / Int16ul * "that of the INDEX_ASK",
    "part" / Int16ul * "counts this mote's records of the answer, from 0 on",
    "last" / Int8ul * "1: no more follow",
    "tuples"
    / GreedyBytes
    * "of each its node, session and epoch as an IndexTuples has them, then nulls and values as an IndexTuple; or by group "
    "its key, int32, -2147483648 for NULL, and a GroupState each, where what several say of one group is all in it",
)

States = Struct(
    "token" / Int16ul * "that of the INDEX_ASK",
    "aggregates" / Int8ul * "1 to 3",
    "motes" / Int8ul * "of which these states are",
    "more"
    / GreedyBytes
    * "of each aggregate which it is: uint8; a GatheredState for each; then each mote's short address: uint16",
)

GroupState = Struct(
    "value" / Int32sl * "the sum or the extreme value",
    "count" / Int16ul * "values that are in it",
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

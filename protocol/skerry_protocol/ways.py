"""Records from any mote to any other: the ways on which they go, and what they carry."""

from __future__ import annotations

from construct import GreedyBytes, Int8ul, Int16sl, Int16ul, Int32ul, Struct

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

HandedTuples = Struct(
    "carries" / Int8ul * "HANDED",
    "index" / Int16ul * "number of the index, and the part",
    "batch" / Int16ul * "its giver's name of what it gives to one mote, drawn",
    "run" / Int8ul * "counts runs of records of the batch, each of which is acknowledged before the next one",
    "record" / Int8ul * "its number in the run, 0..7; 8: the batch is over; bit 7: the last of its run",
    "session" / Int16ul * "name of the root's session in which they were sampled",
    "epoch"
    / Int32ul
    * "epoch number of the first; where the batch is over the network second from which the receiver's states count its tuples",
    "tuples" / GreedyBytes * "a HandedTuple for each",
)

HandedTuple = Struct(
    "node" / Int16ul * "mote that sampled it",
    "epochs" / Int8ul * "since that of the first, modulo 256: from 128 before it on",
    "nulls" / Int8ul * "bit i set: the part's column i is NULL (its bytes are 0)",
    "values" / GreedyBytes * "the part's columns in order, each in its program's format",
)

Kept = Struct(
    "carries" / Int8ul * "KEPT",
    "index" / Int16ul * "number of the index, and the part",
    "batch" / Int16ul * "that of the HandedTuples",
    "run" / Int8ul * "likewise",
    "records" / Int16ul * "bit i set: record i of the run has come, and all its tuples are stored",
)

Gathered = Struct(
    "carries" / Int8ul * "GATHERED",
    "query" / Int8ul * "that has the GATHER",
    "node" / Int16ul * "mote that stores the tuples",
    "epoch"
    / Int32ul
    * "for which it has looked through them; where an event asks, that event's network second and those since its mote heard of it",
    "states" / GreedyBytes * "a GatheredState for each aggregate",
)

GatheredState = Struct(
    "low" / Int32ul * "of a signed number of 64 bits, the sum or the extreme value: its lower half",
    "high" / Int32ul * "… and the other one",
    "count" / Int32ul * "values that are in it",
)

PairRow = Struct(
    "carries" / Int8ul * "ROW",
    "result"
    / GreedyBytes
    * "a RESULT, whose first column says as what the row passes: as nothing where it only keeps a way open",
)

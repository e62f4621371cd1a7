"""What motes say of themselves to whoever hears them: tree, time, links, slots."""

from __future__ import annotations

from construct import Byte, GreedyBytes, GreedyRange, Int8ul, Int16sl, Int16ul, Int32ul, Prefixed, Struct

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

Join = Struct(
    "level" / Int8ul * "hops to the root of the sender; 255: it asks for later news of the root",
    "session" / Int16ul * "of the root, that the sender lives in",
    "root_sequence" / Int8ul * "of level 255: the one that news is to be later than; else 0",
    "srts" / GreedyRange(SrtEntry) * "one for each semantic routing tree that it holds",
)

"""Query programs: what a query, an index or a tree tells each mote to do."""

from __future__ import annotations

from construct import (
    Byte,
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

OnEvent = Struct(
    "event" / Int16ul * "number of the event",
    "lasts" / Int32ul * "s from the event on in which epochs begin; at least 1",
    "flags" / Int8ul * "bit 0 no overlap, bit 1 timer, bit 2 aligned, bit 3 each, bit 4 heard, bit 5 own",
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
    "width" / Int8ul * "bytes of a row's values without the first column, at most 24",
    "condition" / Int8ul * "bytes of code that is true for rows which match; 0: all do",
    "way" / Int8ul * "how rows come to the motes that join them, see PairsWay",
    "motes"
    / Int8ul
    * "bytes of the set of motes that join, or are in pairs that motes join, of which 64 have numbers",
    "s" / Int8ul * "… of those that are s in pairs that the gateway joins",
    "t" / Int8ul * "… of those that are t in such; all three 0: all rows go to the gateway",
)

PairsHost = Struct(
    "host" / Int8ul * "the mote that joins them, by its number in the first set, from 0",
    "rows" / Int8ul * "that it has room for",
    "groups" / Int8ul * "bytes of its groups; 0: it joins none, and only passes rows on",
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
    "revision"
    / Int8ul
    * "of two programs of an index, whose rows one mote may hold side by side, that whose revision follows the other's counts",
    "parts" / Int8ul * "in which its tuples are stored: 1 to 6",
    "keep" / Int32ul * "s for which they are: older ones are neither told nor kept",
    "more"
    / GreedyBytes
    * "an IndexPart for each part, an IndexRange for each column, then an IndexOwner for each mote that stores, part by part",
)

IndexPart = Struct(
    "columns" / Int8ul * "bit i set: column i is stored there; each is in one part",
    "settled"
    / Int8ul
    * "its first so many IndexOwners: they store, and no other mote has stored what is theirs; of a part there are 32 at most",
    "away"
    / Int8ul
    * "so many behind them: they stored once, and others store for them; the least rectangle with these and the settled is what is halved",
    "added"
    / Int8ul
    * "so many behind those: they have come, or come back, and others may have stored what is theirs",
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

Gather = Struct(
    "index" / Int16ul * "number of the index, and the part, as 8192 times its number",
    "mote" / Int16ul * "short address of the mote that gathers",
    "x" / Int16sl * "where it stands, dm",
    "y" / Int16sl,
    "zones" / Int8ul * "motes that may store what is asked for: from so many there is something to come",
    "aggregates" / Int8ul * "1 to 3",
    "more"
    / GreedyBytes
    * "a GatheredKind for each, which STORED reads as field 0, 1, 2; of each column of the part the least and the greatest point, as an "
    "INDEX_ASK has them; then a condition of the tuples, whose attributes are the index's, or nothing",
)

GatheredKind = Struct(
    "aggregate" / Int8ul * "COUNT, SUM, AVG, MIN or MAX",
    "attribute" / Int8ul * "of the index; of COUNT(*) 255",
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

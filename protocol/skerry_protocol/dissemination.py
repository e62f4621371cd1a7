"""What goes from the gateway to the motes, and how these ask each other for what they lack of it."""

from __future__ import annotations

from construct import Default, GreedyBytes, GreedyRange, Int8ul, Int16ul, Struct

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

Command = Struct(
    "target" / Int16ul * "short address; 65535 all motes",
    "token" / Int16ul * "chosen by the sender, repeated in the acknowledgement",
    "op" / Int8ul * "see CommandOp",
    "arguments" / GreedyBytes * "at most 20 bytes",
)

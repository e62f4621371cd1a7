"""What goes over the serial line between a root and its gateway only."""

from __future__ import annotations

from construct import GreedyBytes, Int8ul, Int16ul, Int32ul, Struct

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

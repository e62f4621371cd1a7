"""Searches of the network for motes by their static attributes."""

from __future__ import annotations

from construct import Array, GreedyBytes, Int8ul, Int16sl, Int16ul, Struct

from skerry_protocol.limits import SEARCH_TREES

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

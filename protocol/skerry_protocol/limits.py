"""Sizes and bounds that motes and gateway share."""

from __future__ import annotations

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

#: Aggregates that a mote gathers of an index.
GATHERED_MAXIMUM = 3

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

#: The first bit of `s_nulls` and `t_nulls` that says no column's NULL, but the row's number.
JOINED_NUMBER = 13
#: The first bit of a RESULT's `nulls` that says no column's NULL: of one that is to be joined, its mote's first in a role since it started,
#: how many epochs right before it have begun since then, none of which had such a row; 0: not told.
RESULT_NONE_BEFORE = 12
#: The bit of a RESULT's `nulls` that turns with each mote that takes it, of those that join its rows as they climb: its first column, as
#: what it has passed, is never NULL. Whoever has to know by that that another one has missed it lets it go on to the gateway.
RESULT_TAKEN = 0

#: A mote whose rows are joined elsewhere tells each so many epochs how many it has had.
PASSED_EPOCHS = 32

#: Motes that a query's program names as hosts, or as motes of pairs that these join.
PAIRS_MOTES = 64

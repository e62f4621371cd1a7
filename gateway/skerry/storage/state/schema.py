"""The tables of a gateway's state.

Each entry of :data:`MIGRATIONS` brings a database from the schema version before it to its own, which is its place in the list, from 1.
A migration that was released is never changed: what is to be otherwise is a further one.

Ids of users' queries are texts everywhere. A ``link`` is a root's place among the links that the gateway was started with. Columns that
hold JSON say so; they are details that only their own class reads. Times that end in ``_ms`` are network times.
"""

from __future__ import annotations

_FIRST = """
-- One row: the counters that no table's rows tell.
CREATE TABLE gateway (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    last_query INTEGER NOT NULL,
    last_group INTEGER NOT NULL,
    mote_memory INTEGER NOT NULL
) STRICT;

-- What users ask. started_by: the query whose rows start it; point: the number of the storage point that it makes; srt: JSON of the
-- semantic routing tree that it makes; tables: JSON of the schemas of the tables that it was planned with.
CREATE TABLE queries (
    id TEXT PRIMARY KEY,
    user TEXT NOT NULL,
    sql TEXT NOT NULL,
    created REAL NOT NULL,
    position INTEGER NOT NULL,
    finished INTEGER NOT NULL CHECK (finished IN (0, 1)),
    duration_ms INTEGER,
    linger_s REAL,
    started_by TEXT,
    point INTEGER,
    srt TEXT,
    tables TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Queries that could not be planned any more when the gateway started, until their users have stopped them.
CREATE TABLE ended_queries (
    id TEXT PRIMARY KEY,
    user TEXT NOT NULL,
    sql TEXT NOT NULL,
    why TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What the stream numbers in the log mean, for as long as there is a log. mote_query: JSON.
CREATE TABLE streams (
    number INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    query INTEGER NOT NULL,
    mote_query TEXT NOT NULL,
    since_ms INTEGER NOT NULL,
    until_ms INTEGER,
    since_utc_ms INTEGER
) STRICT;

-- Which part of which stream is a query's, of streams that have ended, too, while somebody may still read them.
CREATE TABLE query_feeds (
    query TEXT NOT NULL REFERENCES queries ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    stream INTEGER NOT NULL REFERENCES streams DEFERRABLE INITIALLY DEFERRED,
    mote_query INTEGER NOT NULL,
    period_ms INTEGER NOT NULL,
    stream_period_ms INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    until_ms INTEGER,
    before_ms INTEGER,
    PRIMARY KEY (query, stream)
) STRICT, WITHOUT ROWID;

-- Where the own feed of a query with HISTORY begins, by the address of the root.
CREATE TABLE handovers (
    query TEXT NOT NULL REFERENCES queries ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    root INTEGER NOT NULL,
    session INTEGER NOT NULL,
    asked_ms INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    PRIMARY KEY (query, root)
) STRICT, WITHOUT ROWID;

-- Roots, by the place of their links; last_mote_query, last_view: ids given last on the wire, and above, to what the gateway makes.
CREATE TABLE links (
    link INTEGER PRIMARY KEY,
    url TEXT NOT NULL,
    session INTEGER NOT NULL,
    query_version INTEGER NOT NULL,
    last_mote_query INTEGER NOT NULL,
    last_view INTEGER NOT NULL
) STRICT;

-- Network time in s when a root told it last, UTC in s then, and s of network time in one of UTC.
CREATE TABLE clocks (
    link INTEGER PRIMARY KEY REFERENCES links ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    network_s REAL NOT NULL,
    utc_s REAL NOT NULL,
    speed REAL NOT NULL
) STRICT;

-- Streams of the roots' present sessions.
CREATE TABLE current_streams (
    link INTEGER NOT NULL REFERENCES links ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    stream INTEGER NOT NULL REFERENCES streams DEFERRABLE INITIALLY DEFERRED,
    PRIMARY KEY (link, stream)
) STRICT, WITHOUT ROWID;

-- Which epochs of two sessions are one: what is added to those of ``session``.
CREATE TABLE pairings (
    leading_session INTEGER NOT NULL,
    session INTEGER NOT NULL,
    period_ms INTEGER NOT NULL,
    shift INTEGER NOT NULL,
    PRIMARY KEY (leading_session, session, period_ms)
) STRICT, WITHOUT ROWID;

-- Users' queries that share a mote query.
CREATE TABLE sharing_groups (
    number INTEGER PRIMARY KEY,
    kind TEXT NOT NULL
) STRICT;

-- How a group is served behind a link.
CREATE TABLE group_servings (
    link INTEGER NOT NULL REFERENCES links ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    sharing_group INTEGER NOT NULL,
    current INTEGER NOT NULL,
    previous INTEGER,
    stale REAL,
    promised_ms INTEGER NOT NULL,
    PRIMARY KEY (link, sharing_group)
) STRICT, WITHOUT ROWID;

-- What motes run, and what the gateway makes of it; age: the order in which they came. statement: JSON of the mote query; made_of: JSON
-- of the parts of others that the gateway makes it of, NULL where motes run it.
CREATE TABLE mote_queries (
    age INTEGER PRIMARY KEY,
    link INTEGER NOT NULL REFERENCES links ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    query INTEGER NOT NULL,
    sharing_group INTEGER,
    statement TEXT NOT NULL,
    start INTEGER NOT NULL,
    "end" INTEGER NOT NULL,
    program BLOB NOT NULL,
    made_of TEXT,
    cut_ms INTEGER NOT NULL,
    known_ms INTEGER NOT NULL,
    early_ms INTEGER,
    gone_ms INTEGER NOT NULL,
    stop_at INTEGER,
    stopped_at INTEGER,
    UNIQUE (link, query)
) STRICT;

-- Users' queries as a network knows them.
CREATE TABLE servings (
    link INTEGER NOT NULL REFERENCES links ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    query TEXT NOT NULL,
    sharing_group INTEGER,
    length_ms INTEGER,
    since_ms INTEGER NOT NULL,
    until_ms INTEGER,
    PRIMARY KEY (link, query)
) STRICT, WITHOUT ROWID;

-- The mote queries that they read there, one after the other.
CREATE TABLE serving_feeds (
    link INTEGER NOT NULL,
    query TEXT NOT NULL,
    place INTEGER NOT NULL,
    mote_query INTEGER NOT NULL,
    period_ms INTEGER NOT NULL,
    stream_period_ms INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    until_ms INTEGER,
    before_ms INTEGER,
    PRIMARY KEY (link, query, place),
    FOREIGN KEY (link, query) REFERENCES servings ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED
) STRICT, WITHOUT ROWID;

-- Motes at their last report: JSON.
CREATE TABLE motes (
    nodeid INTEGER PRIMARY KEY,
    report TEXT NOT NULL
) STRICT;

-- Events that were heard; times: JSON, UTC in s of the latest.
CREATE TABLE events (
    number INTEGER PRIMARY KEY,
    count INTEGER NOT NULL,
    times TEXT NOT NULL
) STRICT;

-- What users note about motes.
CREATE TABLE tags (
    nodeid INTEGER NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    user TEXT NOT NULL,
    set_at REAL NOT NULL,
    PRIMARY KEY (nodeid, key)
) STRICT, WITHOUT ROWID;
"""

_SENSORS = """
ALTER TABLE gateway ADD COLUMN last_sensor_stream INTEGER NOT NULL DEFAULT 0;

-- Tables of sensors that are no motes, by their names in lower case; stream: the number of their rows in the log, last_tuple: the greatest
-- number of a tuple that there has been. columns: JSON.
CREATE TABLE sensor_tables (
    name TEXT PRIMARY KEY,
    shown TEXT NOT NULL,
    owner TEXT NOT NULL,
    stream INTEGER NOT NULL UNIQUE,
    last_tuple INTEGER NOT NULL,
    columns TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Their tuples. column_values: JSON, in the order of the columns.
CREATE TABLE sensor_tuples (
    sensor_table TEXT NOT NULL REFERENCES sensor_tables ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    tuple INTEGER NOT NULL,
    column_values TEXT NOT NULL,
    PRIMARY KEY (sensor_table, tuple)
) STRICT, WITHOUT ROWID;
"""

_USERS = """
-- Who may ask where tokens are asked for. digest: SHA-256 of the token, which is nowhere itself; added: UTC in s.
CREATE TABLE users (
    name TEXT PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE CHECK (length(digest) = 32),
    added REAL NOT NULL
) STRICT, WITHOUT ROWID;
"""

_STATICS = """
-- Static attributes that users have made, by the motes' number; name '': there was one in its place, and is none. again: its place had
-- another before.
CREATE TABLE static_attributes (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    unit TEXT NOT NULL,
    user TEXT NOT NULL,
    created REAL NOT NULL,
    again INTEGER NOT NULL
) STRICT;

-- What motes are to have of what commands set; mote -1: all that have no row of their own, value NULL: nothing.
CREATE TABLE static_values (
    attribute INTEGER NOT NULL,
    mote INTEGER NOT NULL,
    value INTEGER,
    PRIMARY KEY (attribute, mote)
) STRICT, WITHOUT ROWID;
"""

_INDEXES = """
-- JSON of the index of stored tuples that a query keeps.
ALTER TABLE queries ADD COLUMN stored_index TEXT;
"""

_LONGER = """
-- Whether a query was asked before network time was known.
ALTER TABLE servings ADD COLUMN longer INTEGER NOT NULL DEFAULT 0;
"""

_LEARNT = """
-- What is learnt of joins that motes do, by the text of the queries: JSON.
CREATE TABLE learnt_joins (
    query_text TEXT PRIMARY KEY,
    learnt TEXT NOT NULL
) STRICT, WITHOUT ROWID;
"""

#: SQL, one script for each version.
MIGRATIONS: tuple[str, ...] = (_FIRST, _SENSORS, _USERS, _STATICS, _INDEXES, _LONGER, _LEARNT)

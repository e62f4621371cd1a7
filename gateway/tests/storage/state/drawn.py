"""Changes of a gateway's state as they are drawn from a seed, and what the tables are after each: one process makes them, and is killed
between any two steps of SQLite's; another says what it may have left."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from skerry.storage.state.database import Changes, StateDatabase

#: Tables that are drawn.
DRAWN = ("gateway", "queries", "query_feeds", "streams", "tags", "users")
#: By table and key, what a state is.
State = dict[str, dict[Any, dict[str, Any]]]


def query_row(query: str, text: str, finished: int) -> dict[str, Any]:
    return {
        "id": query, "user": "ada", "sql": text, "created": 1.5, "position": 7, "finished": finished, "duration_ms": None, "linger_s": None,
        "started_by": None, "point": None, "srt": None, "tables": "[]", "stored_index": None,
    }  # fmt: skip


def feed_row(query: str, stream: int, since_ms: int) -> dict[str, Any]:
    return {
        "query": query, "stream": stream, "mote_query": stream, "period_ms": 1000, "stream_period_ms": 500, "since_ms": since_ms,
        "until_ms": None, "before_ms": None,
    }  # fmt: skip


def stream_row(number: int) -> dict[str, Any]:
    return {
        "number": number, "session": 1, "query": number, "mote_query": "{}", "since_ms": 0, "until_ms": None, "since_utc_ms": None,
    }  # fmt: skip


def counters(last: int) -> dict[str, Any]:
    return {"id": 1, "last_query": last, "last_group": 0, "mote_memory": 100, "last_sensor_stream": 0}


def steps(random: Random, count: int) -> Iterator[tuple[Changes, State]]:
    """Transactions, and what the tables hold after each. Every one changes a counter, so that no two states are alike."""
    there: State = {table: {} for table in DRAWN}
    for number in range(1, count + 1):
        changes = Changes()
        stream = random.randrange(8)
        there["streams"][stream] = stream_row(stream)
        changes.put("streams", stream_row(stream))
        for _ in range(random.randrange(1, 6)):
            query = str(random.randrange(12))
            if random.random() < 0.25:
                there["queries"].pop(query, None)
                there["query_feeds"] = {
                    key: row for key, row in there["query_feeds"].items() if key[0] != query
                }
                changes.remove("queries", {"id": query})
                continue
            # Of several pages, some of them.
            text = "x" * random.choice((10, 300, 9000))
            there["queries"][query] = query_row(query, text, random.randrange(2))
            changes.put("queries", there["queries"][query])
            streams = random.sample(sorted(there["streams"]), random.randint(1, len(there["streams"])))
            feeds = {(query, each): feed_row(query, each, number) for each in streams}
            kept = {key: row for key, row in there["query_feeds"].items() if key[0] != query}
            there["query_feeds"] = kept | feeds
            changes.replace("query_feeds", {"query": query}, feeds.values())
        motes = random.sample(range(6), random.randrange(4))
        there["tags"] = {
            (mote, "room"): {"nodeid": mote, "key": "room", "value": str(number // 3), "user": "bob", "set_at": 0.5}
            for mote in motes
        }  # fmt: skip
        changes.whole("tags", there["tags"].values())
        for name in random.sample(("ada", "grace", "eve"), random.randrange(3)):
            # One who comes, goes, or has another token.
            there["users"].pop(name, None)
            if random.random() < 0.7:
                there["users"][name] = {"name": name, "digest": random.randbytes(32), "added": float(number)}
            found = there["users"].get(name)
            changes.replace("users", {"name": name}, [] if found is None else [found])
        there["gateway"] = {1: counters(number)}
        changes.whole("gateway", there["gateway"].values())
        yield changes, {table: dict(rows) for table, rows in there.items()}


def plain(state: State) -> dict[str, list[dict[str, Any]]]:
    """As :meth:`StateDatabase.load` has it, without the tables that are not drawn, in any order."""
    return {table: in_order(rows.values()) for table, rows in state.items()}


def in_order(rows: Any) -> list[dict[str, Any]]:
    return sorted(map(dict, rows), key=repr)


def save_one(directory: Path, seed: int, number: int, at: int, instructions: int) -> None:
    """Opens the database and makes the change of this number, from 0; killed at the statement of this number that SQLite begins, or where
    ``instructions`` is not 0, when its machine has done that many of them ``at`` times."""
    left = at

    def step(*_: object) -> int:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return 0

    connect = sqlite3.connect

    def watched(*arguments: Any, **named: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **named)
        if instructions:
            connection.set_progress_handler(step, instructions)
        else:
            connection.set_trace_callback(step)
        return connection

    sqlite3.connect = watched  # type: ignore[assignment]
    *_, (changes, _) = steps(Random(seed), number + 1)
    database = StateDatabase(directory)
    database.save(changes)
    step()
    database.close()

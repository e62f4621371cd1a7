"""Users joined with a table: rows a second through the proxy, every user's rows made and handed out."""

from __future__ import annotations

import dataclasses
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.machine import median, table
from skerry.delivery.engine import Engine
from skerry.planner.model.plans import Feed, QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.planner import plan_query
from skerry.storage.log.record import RECORD, Block, Records
from skerry.streams.stream import Stream
from skerry.tables.join import Joiner
from skerry.tables.store import TableStore

USERS = 10_000
TABLE_ROWS = 10_000
ROWS = 262_144
MOTES = 2_000


def _rows(seed: int) -> Records:
    rng = np.random.default_rng(seed)
    made = np.zeros(ROWS, RECORD)
    made["stream"] = 1
    made["node"] = rng.integers(0, MOTES, ROWS)
    made["epoch"] = np.arange(ROWS) // MOTES
    made["value"][:, 0] = rng.integers(-1000, 4000, ROWS)
    return made


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as directory:
        rng = np.random.default_rng(1)
        # Each user's own rows of the table: one of 10,000, of a mote that reports a 2,000th of the rows.
        watched = pa.table({"owner": np.arange(TABLE_ROWS), "mote": rng.integers(0, MOTES, TABLE_ROWS)})
        pq.write_table(watched, Path(directory) / "watched.parquet")
        store = TableStore(Path(directory))
        plans = [
            plan_query(
                "SELECT s.nodeid, s.temp, w.owner FROM sensors s, watched w "
                f"WHERE w.mote = s.nodeid AND w.owner = {user} SAMPLE PERIOD 5 s",
                tables=store.schemas(),
            )
            for user in range(USERS)
        ]
        stream = Stream(
            1,
            1,
            1,
            dataclasses.replace(merge([p for p in plans[:1] if isinstance(p, QueryPlan)]), where=None),
        )
        engine = Engine({1: stream}.get)
        for user, plan in enumerate(plans):
            assert isinstance(plan, QueryPlan)
            engine.subscribe(str(user), plan, joiner=Joiner(plan, store.get))
            engine.set_feeds(str(user), {1: Feed(str(user), 1, 5000, 5000, 0)})
        rates, delivered = [], 0
        for run in range(3):
            block = Block(run * ROWS, _rows(run))
            began = time.monotonic()
            engine.process(block)
            for user in range(USERS):
                subscriber = engine.subscriber(str(user))
                assert subscriber is not None
                found = subscriber.buffer.deliveries(block.first - 1)
                assert found is not None
                delivered += sum(len(part.numbers) for part in found[0])
            rates.append(ROWS / (time.monotonic() - began))
    assert 0.9 < delivered / (3 * ROWS * USERS / MOTES) < 1.1, "each user has one mote's rows"
    table(
        "Joins with a table",
        [
            ("users, rows of the table", f"{USERS:,}, {TABLE_ROWS:,}", ""),
            ("rows/s", f"{median(rates):,.0f}", "100,000"),
            ("deliveries/s", f"{median(rates) * USERS / MOTES:,.0f}", ""),
        ],
    )


if __name__ == "__main__":
    main()

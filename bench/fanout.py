"""Rows per second from the stream log, through Spark, to 1,000 users with range filters of 0.1 % each."""

from __future__ import annotations

import dataclasses
import tempfile
import time
from pathlib import Path

import numpy as np

from bench.machine import median, table
from skerry.plan.merge import merge
from skerry.plan.model import Feed, QueryPlan
from skerry.plan.planner import plan_query
from skerry.proxy.engine import Engine
from skerry.proxy.spark import StreamingQuery
from skerry.streams.ingest import Stream
from skerry.streams.log import StreamLog
from skerry.streams.record import RECORD

USERS = 1_000
ROWS = 1_500_000


def main() -> None:
    """Print the table."""
    plans = [
        plan_query(
            f"SELECT nodeid, temp FROM sensors WHERE temp BETWEEN {i / 100} AND {i / 100} SAMPLE PERIOD 5 s"
        )
        for i in range(USERS)
    ]
    stream = Stream(
        1, 1, 1, dataclasses.replace(merge([p for p in plans if isinstance(p, QueryPlan)]), where=None)
    )
    with tempfile.TemporaryDirectory() as directory:
        log = StreamLog(Path(directory))
        engine = Engine({1: stream}.get)
        for i, plan in enumerate(plans):
            assert isinstance(plan, QueryPlan)
            engine.subscribe(str(i), plan)
            engine.set_feeds(str(i), {1: Feed(str(i), 1, 5000, 5000, 0)})
        spark = StreamingQuery("local[2]", Path(directory), log.path, engine.process)
        log.append(_rows(1000, 0))
        spark.start()
        _wait(engine, 1000)
        rates = []
        for run in range(3):
            log.append(_rows(ROWS, run))
            began = time.monotonic()
            _wait(engine, log.rows)
            rates.append(ROWS / (time.monotonic() - began))
        found = [engine.subscriber(str(i)).buffer.deliveries(log.rows - ROWS // 2) for i in range(USERS)]  # type: ignore[union-attr]
        delivered = sum(len(part.numbers) for parts, _ in filter(None, found) for part in parts)
        spark.stop()
    assert 0.9 < delivered / (ROWS // 2) < 1.1, "0.1 % to each of 1,000 users is every row once"
    table(
        "Delivering",
        [
            (
                "rows from log to 1,000 users, range filters of 0.1 % each",
                f"{median(rates):,.0f}/s",
                "300,000/s",
            )
        ],
    )


def _rows(count: int, seed: int) -> np.ndarray:  # type: ignore[type-arg]
    rng = np.random.default_rng(seed)
    made = np.zeros(count, RECORD)
    made["stream"] = 1
    made["node"] = rng.integers(0, 54, count)
    made["epoch"] = np.arange(count) // 54
    made["sample"] = made["epoch"].astype(np.int64) * 5000
    made["value"][:, 0] = rng.integers(0, USERS, count)
    return made


def _wait(engine: Engine, rows: int) -> None:
    while engine.done < rows:
        time.sleep(0.005)


if __name__ == "__main__":
    main()

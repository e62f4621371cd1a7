"""Users joined with a table: rows a second through the proxy, every user's rows made and handed out."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Spread
from skerry.delivery.engine import Engine
from skerry.planner.model.plans import Feed, QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.planner import plan_query
from skerry.storage.log.record import RECORD, Block, Records
from skerry.streams.stream import Stream
from skerry.tables.join import Joiner
from skerry.tables.store import TableStore

#: Each reports as many rows as any other.
MOTES = 2_000


@dataclass(frozen=True)
class Options(SeedOptions):
    seed: int = option(1, "what tables and rows are drawn from")
    users: int = option(10_000, "each joined with the row of the table that he owns")
    table_rows: int = option(10_000, "rows of the table, of different owners")
    rows: int = option(262_144, "rows of a round")
    rounds: int = option(3, "how often")


def _rows(count: int, seed: int) -> Records:
    rng = np.random.default_rng(seed)
    made = np.zeros(count, RECORD)
    made["stream"] = 1
    made["node"] = rng.integers(0, MOTES, count)
    made["epoch"] = np.arange(count) // MOTES
    made["value"][:, 0] = rng.integers(-1000, 4000, count)
    return made


def engine_of(options: Options, directory: Path) -> Engine:
    """All users' plans over one stream, joined with a table that lies in the directory."""
    rng = np.random.default_rng(options.seed)
    # Each user's own rows of the table: one, of a mote that reports a 2,000th of the rows.
    owners = np.arange(options.table_rows)
    watched = pa.table({"owner": owners, "mote": rng.integers(0, MOTES, options.table_rows)})
    pq.write_table(watched, directory / "watched.parquet")
    store = TableStore(directory)
    plans = [
        plan_query(
            "SELECT s.nodeid, s.temp, w.owner FROM sensors s, watched w "
            f"WHERE w.mote = s.nodeid AND w.owner = {user} SAMPLE PERIOD 5 s",
            tables=store.schemas(),
        )
        for user in range(options.users)
    ]
    first = plans[0]
    assert isinstance(first, QueryPlan)
    engine = Engine({1: Stream(1, 1, 1, replace(merge([first]), where=None))}.get)
    for user, plan in enumerate(plans):
        assert isinstance(plan, QueryPlan)
        engine.subscribe(str(user), plan, joiner=Joiner(plan, store.get))
        engine.set_feeds(str(user), {1: Feed(str(user), 1, 5000, 5000, 0)})
    return engine


def measure(options: Options, recorder: Recorder) -> None:
    """Rounds of it."""
    with tempfile.TemporaryDirectory() as directory:
        recorder.progress("planning")
        engine = engine_of(options, Path(directory))
        rates, delivered = [], 0
        for turn in recorder.steps(range(options.rounds)):
            block = Block(turn * options.rows, _rows(options.rows, turn))
            began = time.monotonic()
            engine.process(block)
            for user in range(options.users):
                subscriber = engine.subscriber(str(user))
                assert subscriber is not None
                found = subscriber.buffer.deliveries(block.first - 1)
                assert found is not None
                delivered += sum(len(part.numbers) for part in found[0])
            rates.append(options.rows / (time.monotonic() - began))
    share = delivered / (options.rounds * options.rows * options.users / MOTES)
    assert 0.9 < share < 1.1, f"each user has one mote's rows: {share}"
    rate = Spread.of(rates)
    recorder.figure(
        f"rows joined with a table for {options.users:,} users",
        rate,
        "/s",
        ",.0f",
        better="more",
        goal=100_000,
        main=True,
    )
    recorder.figure(
        "the same, deliveries",
        Spread.of(one * options.users / MOTES for one in rates),
        "/s",
        ",.0f",
        better="more",
    )


BENCHMARK = Benchmark(measure, quick=Options(users=100, table_rows=100, rows=65_536, rounds=2), minutes=1)

"""Streams and records as a gateway would have logged them, for tests of the past."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gateway.tests.logs import STREAMS, Log
from skerry.planner.model.plans import QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.planner import plan_query
from skerry.storage.history import layout
from skerry.storage.history.answer import Answer
from skerry.storage.history.day_files import DAY_US, day_text
from skerry.storage.history.engine.engine import PastEngine
from skerry.storage.history.manifest import DayFile, Manifest, path_of
from skerry.storage.history.reader import Reader
from skerry.storage.history.store import History
from skerry.storage.log.record import RECORD, Records
from skerry.storage.log.stream_log import StreamLog
from skerry.streams.stream import Stream
from skerry.tables.join import Joiner
from skerry.tables.journal import TableJournal
from skerry.tables.store import TableStore

#: UTC in us at network time 0 of session 1: ten minutes before a midnight.
ORIGIN = (1_795_132_800 - 600) * 1_000_000


@cache
def past_engine() -> PastEngine:
    """The past's engine, of which one is enough for all tests of a process."""
    return PastEngine(Path(mkdtemp(prefix="skerry-engine-")))


def rows_behind(answer: Answer, position: int = -1) -> tuple[list[tuple[int, dict[str, Any]]], int, bool]:
    """A piece of an answer: (row number, values), the position reached, whether more may follow."""
    deliveries, position, more = answer.after(position)
    rows = [
        row
        for delivery in deliveries
        for row in zip(delivery.numbers.tolist(), delivery.columns.to_pylist(), strict=True)
    ]
    return rows, position, more


def plan_of(sql: str) -> QueryPlan:
    plan = plan_query(sql)
    assert isinstance(plan, QueryPlan)
    return plan


def stream_of(
    number: int, sql: str, since_ms: int = 0, until_ms: int | None = None, session: int = 1
) -> Stream:
    return Stream(number, session, number, merge([plan_of(sql)]), since_ms, until_ms)


def origin_of(session: int) -> int:
    """Sessions begin a day apart."""
    return ORIGIN + (session - 1) * 86_400_000_000


def plain_records(
    stream: Stream, epochs: Sequence[int], nodes: Sequence[int], seed: int = 0, nulls: float = 0.1
) -> Records:
    """A row for each epoch and mote."""
    rng = np.random.default_rng(seed)
    made = np.zeros(len(epochs) * len(nodes), RECORD)
    made["stream"] = stream.number
    made["epoch"] = np.repeat(epochs, len(nodes))
    made["node"] = np.tile(nodes, len(epochs))
    network_ms = made["epoch"].astype(np.int64) * stream.mote_query.period_ms
    made["sample"] = origin_of(stream.session) + network_ms * 1000
    made["arrival"] = made["sample"] + rng.integers(50_000, 3_000_000, len(made))
    for i, column in enumerate(stream.mote_query.columns):
        low, high = max(column.format.minimum, -500), min(column.format.maximum, 9000)
        made["value"][:, i] = rng.integers(low, high + 1, len(made))
        made["nulls"] |= ((rng.random(len(made)) < nulls) << i).astype(np.uint16)
        if stream.mote_query.aggregate:
            made["count"][:, i] = rng.integers(0, 5, len(made))
    made["value"][made["nulls"][:, None] >> np.arange(12)[None, :] & 1 == 1] = 0
    return made


def shuffled(parts: Sequence[Records], seed: int = 0, reach: int = 30) -> Records:
    """All of them in the order of time, some up to about ``reach`` places late."""
    records = np.concatenate(list(parts))
    rng = np.random.default_rng(seed)
    order = np.argsort(records["sample"], kind="stable")
    late = np.arange(len(order)) + rng.integers(0, reach, len(order)) * (rng.random(len(order)) < 0.2)
    return records[order][np.argsort(late, kind="stable")]


def ended(stream: Stream, until_ms: int) -> Stream:
    return dataclasses.replace(stream, until_ms=until_ms)


def of_one_stream(log: Log) -> Log:
    """The rows of stream 1, as one that runs all the time has them: one of a mote and an epoch."""
    first: dict[tuple[int | None, int | None], int] = {}
    for place, row in enumerate(log.rows):
        if row["stream"] == 1:
            first.setdefault((row["nodeid"], row["sample"]), place)
    places = list(first.values())
    records = log.records[places].copy()
    rows = [{**log.rows[place], "row": i} for i, place in enumerate(places)]
    records["sample"] = ORIGIN + records["epoch"].astype(np.int64) * 5_000_000
    records["arrival"] = records["sample"]
    return Log(records, rows)


def endless_past(data: Path) -> Manifest:
    """A history over whose rows a question takes far longer than any test: one file under the names of many days, of 4,000,000,000 rows."""
    days, count = 2_000, 2_000_000
    schema, constant = (
        layout.sensors_schema(),
        {"session": 1, "stream": 1, "nodeid": 1, "combined": 1, "left_out": 0, "temp": 21.5},
    )
    numbers = np.arange(count)
    columns = {
        "row": numbers,
        "network_ms": numbers,
        "time": ORIGIN + numbers * 1000,
        "arrival": ORIGIN + numbers * 1000,
    }
    columns |= {name: np.full(count, value) for name, value in constant.items()}
    table = pa.table(
        [
            pa.array(columns[field.name]).cast(field.type)
            if field.name in columns
            else pa.nulls(count, field.type)
            for field in schema
        ],
        schema=schema,
    )
    day, *others = (path_of(layout.SENSORS, day_text(ORIGIN // DAY_US + i)) for i in range(days))
    file = data / "history" / day
    file.parent.mkdir(parents=True)
    pq.write_table(table, file)
    for other in others:
        (data / "history" / other).hardlink_to(file)
    described = DayFile(count, file.stat().st_size, 0, count - 1, ORIGIN, int(columns["time"][-1]))
    found = Manifest(
        count, dict.fromkeys([day, *others], described), {layout.SENSORS: layout.MEANINGS[layout.SENSORS]}
    )
    found.save(data / "history")
    return found


def joiner_of(plan: QueryPlan, data: Path, store: TableStore) -> Joiner:
    """What joins rows of a past with tables as they have been since its beginning."""
    journal = TableJournal(data, store, lambda: 0, nullcontext())
    joiner = Joiner(plan, store.get, None, journal)
    journal.want(joiner.names)
    return joiner


class Gone:
    """The past of one log, some of it compacted; and its rows that are still there."""

    def __init__(self, directory: Path, log: Log, compacted: int) -> None:
        self.log = StreamLog(directory, 8)
        self.log.append(log.records)
        self.history = History(directory)
        self.history.compact(self.log.path, compacted, [STREAMS[1]])

    def reader(self, plan: QueryPlan, since_us: int) -> Reader:
        return self.reader_of(plan.attributes, since_us)

    def reader_of(self, attributes: frozenset[int], since_us: int) -> Reader:
        return Reader(self.history, self.log.path, [STREAMS[1]], attributes, since_us)

    def close(self) -> None:
        self.log.close()

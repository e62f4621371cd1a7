"""Windows over the rows of several networks: each holds what was sampled in its time in all of them."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gateway.tests.logs import STREAMS, plan_of
from gateway.tests.pasts import Gone, past_engine, rows_behind
from gateway.tests.windowed import GRACE_MS, PLACES, PLACES_TABLE, SCHEMAS
from skerry.delivery.engine import Engine
from skerry.planner.model.plans import Feed, QueryPlan
from skerry.storage.history.answer import Answer, PastRows
from skerry.storage.history.reader import Reader
from skerry.storage.history.store import History
from skerry.storage.log.record import RECORD, Block, Records
from skerry.storage.log.stream_log import StreamLog
from skerry.streams.stream import Stream
from skerry.tables.join import Joiner
from skerry.tables.store import TableStore

#: UTC in ms at which the first root booted, and s from then on in which rows are sampled.
BOOTED, LENGTH = 1_795_000_000_123, 300
PERIOD = 5000
#: Of roots 0 and 100.
SESSIONS = {1: 1, 2: 100 << 16 | 1}
#: AVG(temp) of readings in 0.01 °C, in 0.00001 °C, half away from zero.
MEAN = "(2000 * sum(temp) + count(*)) // (2 * count(*))"
TEMP = [column.name for column in STREAMS[1].mote_query.columns].index("temp")


@dataclass
class Two:
    """Rows of two networks, whose roots booted at different times, in the order in which they arrive."""

    streams: dict[int, Stream]
    records: Records
    #: S of network time in one of UTC, by which all below is told.
    speed: float = 1.0

    def block(self, start: int, end: int) -> Block:
        return Block(start, self.records[start:end])

    @property
    def feeds(self) -> dict[int, Feed]:
        return {n: Feed("u", 1, PERIOD, PERIOD, s.since_ms) for n, s in self.streams.items()}

    @property
    def since_us(self) -> int:
        """A second before, UTC."""
        return round((self.since_ms - 1000) * 1000 / self.speed)

    @property
    def since_ms(self) -> int:
        """From when on there are rows."""
        return round(min(stream.since_utc_ms or 0 for stream in self.streams.values()) * self.speed)

    def in_database(self, sql: str) -> list[tuple[Any, ...]]:
        """``rows`` has them all."""
        rows = pa.table(
            {
                "sample": pa.array((self.records["sample"] // 1000 * self.speed).astype(np.int64)),
                "node": pa.array(self.records["node"].astype(np.int64)),
                "temp": pa.array(self.records["value"][:, TEMP].astype(np.int64)),
            }
        )
        with duckdb.connect() as connection:
            connection.register("rows", rows)
            connection.register("places", pa.Table.from_pylist(PLACES))
            return connection.execute(sql).fetchall()

    def over(self, length: int, slide: int, since: int, grace_ms: int = GRACE_MS) -> set[int]:
        """Epochs of the windows that are over and begin behind ``since`` (in ms)."""
        last = int(self.records["sample"].max() // 1000 * self.speed)
        ends = range(0, last - grace_ms + 1, slide * 1000)
        return {end // PERIOD - 1 for end in ends[since // (slide * 1000) :] if end - length * 1000 >= since}


def two_networks(later_ms: int, seed: int, speed: float = 1.0) -> Two:
    rng = np.random.default_rng(seed)
    booted = {1: BOOTED, 2: BOOTED + later_ms}
    begin = BOOTED + 300_000
    streams = {}
    for number, utc in booted.items():
        since = -(-(begin - utc) // PERIOD) * PERIOD
        streams[number] = dataclasses.replace(
            STREAMS[1], number=number, session=SESSIONS[number], since_ms=since, since_utc_ms=utc + since
        )
    rows = []
    for number, stream in streams.items():
        for epoch in range(stream.since_ms // PERIOD, (stream.since_ms + LENGTH * 1000) // PERIOD):
            for mote in range(int(rng.integers(1, 4))):
                sample = booted[number] + epoch * PERIOD
                arrival, temp = sample + int(rng.integers(0, 4000)), int(rng.integers(1500, 3000))
                rows.append((arrival, number, mote, epoch, sample, temp))
    rows.sort()
    records = np.zeros(len(rows), RECORD)
    for record, (_, number, mote, epoch, sample, temp) in zip(records, rows, strict=True):
        record["stream"], record["node"], record["epoch"] = number, 100 * (number - 1) + mote, epoch
        record["sample"] = sample * 1000
        record["value"][TEMP] = temp
    records["sample"] = records["sample"] / speed
    streams = {
        number: dataclasses.replace(stream, since_utc_ms=round((stream.since_utc_ms or 0) / speed))
        for number, stream in streams.items()
    }
    return Two(streams, records, speed)


#: What :func:`two_networks` are made of.
boots = st.tuples(st.integers(-200_000, 200_000), st.integers(0, 2**32 - 1), st.sampled_from([1.0, 0.5]))
windows = st.sampled_from([(30, 10), (60, 60), (20, 5)])


@settings(max_examples=30)
@given(boots, windows, st.lists(st.integers(1, 60), max_size=4))
def test_a_window_holds_the_rows_of_all_networks(
    booted: tuple[int, int, float], window: tuple[int, int], cuts: list[int]
) -> None:
    two = two_networks(*booted)
    length, slide = window
    engine = Engine(two.streams.get, two.block, by_utc=True, speed=two.speed)
    engine.subscribe(
        "u",
        plan_of(
            f"SELECT epoch, AVG(temp, {length} s, {slide} s), COUNT(*, {length} s, {slide} s) FROM sensors SAMPLE PERIOD 5 s"
        ),
    )
    engine.set_feeds("u", two.feeds)
    at = 0
    for cut in [*cuts, len(two.records)]:
        engine.process(two.block(at, at + cut))
        at = min(at + cut, len(two.records))
    subscriber = engine.subscriber("u")
    assert subscriber is not None
    newest = {}
    for _, row in subscriber.buffer.after(-1) or []:
        epoch, mean, count = row.values()
        newest[epoch] = (round(mean * 10**5), count)
    assert newest
    ends = ", ".join(f"({(epoch + 1) * PERIOD})" for epoch in newest)
    found = two.in_database(
        f"SELECT ends // {PERIOD} - 1, {MEAN}, count(*) FROM (VALUES {ends}) AS e(ends) JOIN rows "
        f"ON sample >= ends - {length * 1000} AND sample < ends GROUP BY ends"
    )
    assert newest == {epoch: tuple(values) for epoch, *values in found}
    assert set(newest) == two.over(length, slide, two.since_ms), "none that is over is left out"


class Pasts(Gone):
    """The past of both networks."""

    def __init__(self, directory: Path, two: Two, end: int, compacted: int) -> None:
        self.streams = list(two.streams.values())
        self.log = StreamLog(directory, 50)
        for start in range(0, end, 30):
            self.log.append(two.records[start : min(start + 30, end)].copy())
        self.history = History(directory)
        self.history.compact(self.log.path, min(compacted, end), self.streams)

    def reader(self, plan: QueryPlan, since_us: int) -> Reader:
        return Reader(self.history, self.log.path, self.streams, plan.attributes, since_us)


def newest_of(rows: Iterable[Sequence[Any]]) -> dict[Any, tuple[Any, ...]]:
    """By epoch and group what was said last, means in 0.00001 °C."""
    return {(epoch, group): (round(mean * 10**5), count) for epoch, group, mean, count in rows}


@settings(max_examples=12)
@given(boots, windows, st.booleans(), st.integers(0, 400), st.integers(0, 400))
def test_windows_over_joins_and_over_the_past_hold_the_rows_of_all_networks(
    booted: tuple[int, int, float], window: tuple[int, int], joined: bool, asked: int, compacted: int
) -> None:
    two = two_networks(*booted)
    length, slide = window
    columns = f"AVG(temp, {length} s, {slide} s), COUNT(*, {length} s, {slide} s)"
    source, of_join, group = "sensors", "", "nodeid"
    if joined:
        source, of_join, group = "sensors AS s, places AS p", "WHERE p.node = s.nodeid", "p.floor"
    sql = f"SELECT epoch, {group}, {columns} FROM {source} {of_join} GROUP BY {group}"
    asked = min(asked, len(two.records) - 1)
    assume(joined or asked)
    plan = plan_of(f"{sql} {'HISTORY 1 day' if asked else ''} SAMPLE PERIOD 5 s", SCHEMAS)
    since_us = two.since_us
    with TemporaryDirectory() as directory:
        tables = TableStore(Path(directory))
        pq.write_table(PLACES_TABLE, Path(directory) / "places.parquet")
        gone = Pasts(Path(directory), two, asked, compacted)
        past = PastRows(plan, lambda: gone.reader(plan, since_us), asked, since_us) if asked else None
        engine = Engine(two.streams.get, two.block, by_utc=True, speed=two.speed)
        engine.subscribe("u", plan, asked, Joiner(plan, tables.get) if joined else None, past)
        engine.set_feeds("u", two.feeds)
        engine.process(two.block(asked, len(two.records)))
        subscriber = engine.subscriber("u")
        assert subscriber is not None
        found: list[Sequence[Any]] = []
        position, end = -1, len(two.records)
        while position < end - 1:
            parts, position = subscriber.buffer.deliveries(position, through=end) or ([], end)
            found += [tuple(row.values()) for part in parts for row in part.columns.to_pylist()]
        gone.log.close()
    newest = newest_of(found)
    key, tables_there = ("node", "rows") if not joined else ("floor", "rows JOIN places USING (node)")
    since = two.since_ms - (1000 if asked else 0)
    ends = ", ".join(f"({(epoch + 1) * PERIOD})" for epoch in two.over(length, slide, since))
    expected = two.in_database(
        f"SELECT ends // {PERIOD} - 1, {key}, {MEAN}, count(*) FROM (VALUES {ends}) AS e(ends), {tables_there} "
        f"WHERE sample >= ends - {length * 1000} AND sample < ends GROUP BY ALL"
    )
    assert newest == {(epoch, group): tuple(values) for epoch, group, *values in expected}


@settings(max_examples=8)
@given(boots, st.booleans(), st.integers(0, 400))
def test_past_aggregates_are_of_all_networks(
    booted: tuple[int, int, float], windowed: bool, compacted: int
) -> None:
    two = two_networks(*booted)
    columns = "epoch, AVG(temp, 20 s), COUNT(*, 20 s)" if windowed else "AVG(temp), COUNT(*)"
    plan = plan_of(f"SELECT {columns} FROM sensors HISTORY 1 day ONLY SAMPLE PERIOD 5 s")
    since_us = two.since_us
    with TemporaryDirectory() as directory:
        gone = Pasts(Path(directory), two, len(two.records), compacted)
        answer = Answer(
            plan,
            gone.reader(plan, since_us),
            len(two.records),
            past_engine(),
            since_us,
            by_utc=True,
            speed=two.speed,
        )
        rows, _, _ = rows_behind(answer)
        gone.log.close()
    step = 20_000 if windowed else PERIOD
    expected = two.in_database(
        f"SELECT (sample // {step} + 1) * {step} // {PERIOD} - 1, {MEAN}, count(*) FROM rows GROUP BY ALL"
    )
    if windowed:
        newest = newest_of((epoch, None, mean, count) for epoch, mean, count in (r.values() for _, r in rows))
        over = two.over(20, 20, two.since_ms - 1000, PERIOD)
        assert newest == {(epoch, None): (mean, count) for epoch, mean, count in expected if epoch in over}
    else:
        found = [(round(mean * 10**5), count) for mean, count in (row.values() for _, row in rows)]
        assert sorted(found) == sorted((mean, count) for _, mean, count in expected)


def test_users_of_several_networks_share_panes() -> None:
    streams = {
        n: dataclasses.replace(STREAMS[1], number=n, session=n, since_ms=0, since_utc_ms=BOOTED + n)
        for n in (1, 2)
    }
    engine = Engine(streams.get, by_utc=True)
    asked = defaultdict(set)
    for user, since in (("a", 10_000), ("b", 25_000)):
        engine.subscribe(user, plan_of("SELECT AVG(temp, 30 s) FROM sensors SAMPLE PERIOD 5 s"))
        engine.set_feeds(user, {n: Feed(user, 1, PERIOD, PERIOD, since + 5000 * n) for n in streams})
        asked[len(engine._windows.windows._shared)].add(user)
    assert asked == {1: {"a", "b"}}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("SELECT nodeid FROM sensors WHERE via = 100", [{"nodeid": 7}] * 26),
        (
            "SELECT via, COUNT(*, 60 s) FROM sensors GROUP BY via",
            [{"via": 0, "n": 12}, {"via": 100, "n": 12}],
        ),
    ],
)
def test_a_row_says_which_root_it_came_through(asked: str, expected: list[dict[str, int]]) -> None:
    streams = {
        n: dataclasses.replace(STREAMS[1], number=n, session=root << 16 | 1, since_ms=0, since_utc_ms=0)
        for n, root in ((1, 0), (2, 100))
    }
    records = np.zeros(52, RECORD)
    records["stream"], records["node"] = [1, 2] * 26, [5, 7] * 26
    records["epoch"] = np.arange(52) // 2
    records["sample"] = records["epoch"].astype(np.int64) * PERIOD * 1000
    engine = Engine(streams.get, lambda start, end: Block(start, records[start:end]), by_utc=True)
    engine.subscribe("u", plan_of(f"{asked} SAMPLE PERIOD 5 s"))
    engine.set_feeds("u", {n: Feed("u", 1, PERIOD, PERIOD, 0) for n in streams})
    engine.process(Block(0, records))
    subscriber = engine.subscriber("u")
    assert subscriber is not None
    rows = [row for _, row in subscriber.buffer.after(-1) or []]
    assert [dict(zip(expected[0], row.values(), strict=True)) for row in rows][: len(expected)] == expected

"""Each sample once where the past ends and the live stream goes on, while users come and go and rows are late."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.tests.pasts import past_engine, plan_of, rows_behind
from skerry.network.network import Network
from skerry.planner.model.plans import Feed
from skerry.sql.errors import QueryError
from skerry.storage.history.answer import Answer
from skerry.storage.history.reader import Reader
from skerry.storage.history.store import History
from skerry.storage.log.record import RECORD
from skerry.storage.log.stream_log import StreamLog
from skerry.streams.handover import Handover, handover_of, joined_feeds
from skerry.streams.intervals import authoritative

#: Network time at which a run begins, and s that it takes.
BEGIN, LENGTH = 1000, 150
UTC_US = 1_795_000_000_000_000


class Clock:
    """Network time as the run has it."""

    known = True

    def __init__(self) -> None:
        self.seconds = BEGIN

    def now(self) -> float:
        return float(self.seconds)

    def utc(self, network_ms: int) -> float:
        return UTC_US / 1e6 + network_ms / 1000


class Run:
    """Motes that sample what they were told, from its start until some s after it was to stop; rows take their time."""

    def __init__(self, data: Path, seed: int) -> None:
        self.network, self.clock = Network(lambda _: None), Clock()
        self.network.clock = self.clock  # type: ignore[assignment]
        self.network.session = 1
        self.log, self.history = StreamLog(data, 200), History(data)
        self.random = np.random.default_rng(seed)
        self.underway: list[tuple[int, Any]] = []
        self.handover: Handover | None = None
        self.feeds: dict[int, Feed] = {}
        self.stopped: dict[int, int] = {}

    def change(self, difference: Any) -> None:
        for query in difference.stop:
            self.stopped[self.network.current[query].number] = self.clock.seconds
        self.network.adopt(difference)
        self.refresh()

    def refresh(self) -> None:
        feeds = self.network.feeds("past")
        if feeds:
            self.handover = handover_of(self.handover, feeds, 1, self.clock.seconds * 1000)
            streams = list(self.network.streams.values())
            feeds = joined_feeds(feeds, self.handover, "past", self.period_ms, streams)
            for number in self.network.called_off("past", self.feeds, feeds):
                del self.feeds[number]
            self.feeds.update(feeds)

    def second(self) -> None:
        """One more second: samples are taken, rows arrive."""
        self.clock.seconds += 1
        now_ms = self.clock.seconds * 1000
        self.change(self.network.demand.advance(self.clock.seconds))
        for stream in self.network.streams.values():
            period, start = stream.mote_query.period_ms, stream.since_ms // 1000 * 1000
            if self.stopped.get(stream.number, 1 << 40) * 1000 + 3000 < now_ms:
                continue
            for sample in range(-(-(now_ms - 999) // period) * period, now_ms + 1, period):
                if sample >= start:
                    self.underway += [
                        (self._arrival(now_ms), self._record(stream, sample, node)) for node in (1, 2)
                    ]
        due = [record for at, record in self.underway if at <= now_ms]
        self.underway = [entry for entry in self.underway if entry[0] > now_ms]
        if due:
            self.log.append(np.array(due, RECORD))

    def drain(self) -> None:
        """All rows that are under way arrive."""
        records = [record for _, record in self.underway]
        self.underway = []
        if records:
            self.log.append(np.array(records, RECORD))

    def _arrival(self, now_ms: int) -> int:
        return now_ms + int(self.random.choice([0, 1000, 2000, 15_000], p=[0.5, 0.3, 0.1, 0.1]))

    def _record(self, stream: Any, sample: int, node: int) -> Any:
        record = np.zeros((), RECORD)
        record["stream"], record["node"], record["epoch"] = (
            stream.number,
            node,
            sample // stream.mote_query.period_ms,
        )
        record["sample"] = record["arrival"] = UTC_US + sample * 1000
        return record


def _sample_ms(record: Any) -> int:
    return (int(record["sample"]) - UTC_US) // 1000


def _epoch(record: Any, period_ms: int) -> tuple[int, int]:
    """Of a reading: its mote, and the epoch of a query of this period that it lies in."""
    return int(record["node"]), _sample_ms(record) // period_ms


PERIODS = [1, 2, 3, 5, 7, 10]
others = st.lists(
    st.tuples(st.integers(1, LENGTH - 30), st.integers(5, 80), st.sampled_from(PERIODS), st.sampled_from(["temp", "light", "temp, light"])),
    max_size=5,
)  # fmt: skip


def _check_epochs(records: Any, period_ms: int, end: int, found: list[int], wanted: list[int]) -> None:
    """Rows by their numbers, of which the past has those before ``end``; ``wanted``: what it would have of all."""
    epochs = [_epoch(records[number], period_ms) for number in found]
    assert set(epochs) <= {_epoch(records[number], period_ms) for number in wanted}
    for number in wanted:
        # What another query sampled, and was still under way when this one was asked, is in neither.
        off = number >= end and _sample_ms(records[number]) % period_ms
        assert off or _epoch(records[number], period_ms) in epochs
    for epoch in {epoch for epoch in epochs if epochs.count(epoch) > 1}:
        # The past had what another query sampled in this epoch, and the row of its schedule was still under way.
        first, second = [number for number, of in zip(found, epochs, strict=True) if of == epoch]
        assert first < end <= second
        assert _sample_ms(records[first]) % period_ms


@settings(max_examples=10, deadline=None)
@given(
    others,
    st.integers(5, LENGTH - 40),
    st.sampled_from(PERIODS),
    st.integers(0, 1000),
    st.integers(0, LENGTH),
)
@example(users=[(22, 80, 1, "light")], asked=95, period=1, seed=0, compact=0)
def test_each_sample_comes_once(
    tmp_path_factory: pytest.TempPathFactory,
    users: list[tuple[int, int, int, str]],
    asked: int,
    period: int,
    seed: int,
    compact: int,
) -> None:
    run = Run(tmp_path_factory.mktemp("data"), seed)
    run.period_ms = period * 1000
    plan = plan_of(f"SELECT nodeid, temp FROM sensors SAMPLE PERIOD {period} s HISTORY 1 day")
    end = None
    for second in range(LENGTH):
        for number, (came, stayed, of, columns) in enumerate(users):
            try:
                if came == second:
                    other = plan_of(f"SELECT {columns} FROM sensors SAMPLE PERIOD {of} s")
                    run.change(run.network.demand.add_user(str(number), other, run.clock.seconds))
                elif came + stayed == second and str(number) in run.network.demand.users():
                    run.change(run.network.demand.remove_user(str(number), run.clock.seconds))
            except QueryError:
                # The motes have no room for one more change now.
                continue
        if second == asked:
            try:
                difference = run.network.demand.add_user("past", plan, run.clock.seconds)
            except QueryError:
                return
            end = run.log.rows
            run.change(difference)
        if second == compact:
            run.history.compact(run.log.path, run.log.rows, list(run.network.streams.values()))
        run.second()
    assert end is not None
    run.drain()
    streams = list(run.network.streams.values())
    reader = Reader(run.history, run.log.path, streams, plan.attributes, 0)
    found = [number for number, _ in rows_behind(Answer(plan, reader, end, past_engine()))[0]]
    whole = Answer(plan, reader, run.log.rows, past_engine())
    records = np.concatenate([np.empty(0, RECORD), *(run.log.tail(run.log.rows) for _ in [0])])
    for number in range(end, run.log.rows):
        record = records[number]
        feed = run.feeds.get(int(record["stream"]))
        stream = run.network.streams[int(record["stream"])]
        if feed is not None and feed.passes(int(record["epoch"]) * stream.mote_query.period_ms):
            found.append(number)
    wanted = [number for number, _ in rows_behind(whole)[0]]
    _check_epochs(records, run.period_ms, end, found, wanted)
    keys = [(int(r["node"]), int(r["sample"])) for r in records[found]]
    assert len(set(keys)) == len(keys)
    for stream in streams:
        mine = records[records["stream"] == stream.number]
        times = mine["epoch"].astype(np.int64) * stream.mote_query.period_ms
        assert set(mine["sample"][authoritative(stream, streams, times)]) >= {
            r["sample"] for r in records[found] if r["stream"] == stream.number
        }

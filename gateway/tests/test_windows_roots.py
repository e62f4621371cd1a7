"""Windows over the rows of several networks: each holds what was sampled in its time in all of them."""

from __future__ import annotations

import dataclasses
from collections import defaultdict

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.tests.logs import STREAMS, plan_of
from skerry.plan.model import Feed
from skerry.proxy.engine import Engine
from skerry.streams.record import RECORD, Block

#: UTC in ms at which the first root booted, and s from then on in which rows are sampled.
BOOTED, LENGTH = 1_795_000_000_123, 300
PERIOD = 5000
#: AVG(temp) of readings in 0.01 °C, in 0.00001 °C, half away from zero.
MEAN = "(2000 * sum(temp) + count(*)) // (2 * count(*))"
TEMP = [column.name for column in STREAMS[1].mote_query.columns].index("temp")


@settings(max_examples=30)
@given(
    st.integers(-200_000, 200_000),
    st.sampled_from([(30, 10), (60, 60), (20, 5)]),
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(1, 60), max_size=4),
)
def test_a_window_holds_the_rows_of_all_networks(
    later_ms: int, window: tuple[int, int], seed: int, cuts: list[int]
) -> None:
    rng = np.random.default_rng(seed)
    booted = {1: BOOTED, 2: BOOTED + later_ms}
    begin = BOOTED + 300_000
    streams = {}
    for number, (session, utc) in enumerate(booted.items(), start=1):
        since = -(-(begin - utc) // PERIOD) * PERIOD
        streams[number] = dataclasses.replace(
            STREAMS[1], number=number, session=session, since_ms=since, since_utc_ms=utc + since
        )
    rows = []
    for number, stream in streams.items():
        for epoch in range(stream.since_ms // PERIOD, (stream.since_ms + LENGTH * 1000) // PERIOD):
            for mote in range(int(rng.integers(1, 4))):
                sample = booted[number] + epoch * PERIOD
                rows.append(
                    (
                        sample + int(rng.integers(0, 4000)),
                        number,
                        mote,
                        epoch,
                        sample,
                        int(rng.integers(1500, 3000)),
                    )
                )
    rows.sort()
    records = np.zeros(len(rows), RECORD)
    for record, (_, number, mote, epoch, sample, temp) in zip(records, rows, strict=True):
        record["stream"], record["node"], record["epoch"] = number, 100 * number + mote, epoch
        record["sample"] = sample * 1000
        record["value"][TEMP] = temp

    length, slide = window
    engine = Engine(streams.get, lambda start, end: Block(start, records[start:end]), by_utc=True)
    engine.subscribe(
        "u",
        plan_of(
            f"SELECT epoch, AVG(temp, {length} s, {slide} s), COUNT(*, {length} s, {slide} s) FROM sensors SAMPLE PERIOD 5 s"
        ),
    )
    engine.set_feeds("u", {n: Feed("u", 1, PERIOD, PERIOD, s.since_ms) for n, s in streams.items()})
    at = 0
    for cut in [*cuts, len(rows)]:
        engine.process(Block(at, records[at : at + cut]))
        at = min(at + cut, len(rows))
    subscriber = engine.subscriber("u")
    assert subscriber is not None
    newest = {}
    for _, row in subscriber.buffer.after(-1) or []:
        epoch, mean, count = row.values()
        newest[epoch] = (round(mean * 10**5), count)
    assert newest
    since = min(stream.since_utc_ms or 0 for stream in streams.values())
    table = ", ".join(f"({sample}, {temp})" for *_, sample, temp in rows)
    ends = ", ".join(f"({(epoch + 1) * PERIOD})" for epoch in newest)
    found = duckdb.sql(
        f"SELECT ends // {PERIOD} - 1, {MEAN}, count(*) "
        f"FROM (VALUES {ends}) AS e(ends) JOIN (VALUES {table}) AS t(sample, temp) "
        f"ON sample >= ends - {length * 1000} AND sample < ends GROUP BY ends"
    ).fetchall()
    assert newest == {epoch: tuple(values) for epoch, *values in found}
    # None that is over is left out.
    last = max(sample for *_, sample, _ in rows)
    due = {
        end // PERIOD - 1
        for end in range(0, last - PERIOD + 1, slide * 1000)[since // (slide * 1000) :]
        if end - length * 1000 >= since
    }
    assert set(newest) == due


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
        asked[len(engine._windows._shared)].add(user)
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

"""A stream joined with its own past, against DuckDB; what it says does not depend on when it is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gateway.tests.generated import NAMES, in_database
from gateway.tests.logs import STREAMS, Log, Replay, happenings, logs, plan_of, seen, steady
from gateway.tests.pasts import ORIGIN, Gone, ended, of_one_stream, plain_records, stream_of
from gateway.tests.windowed import ordered
from skerry.delivery.engine import Engine
from skerry.planner.model.joined_tables import NO_TABLES
from skerry.planner.model.plans import Feed, QueryPlan
from skerry.planner.planner import plan_query
from skerry.sql.errors import QueryError
from skerry.storage.history.past_table import EarlierRows
from skerry.storage.history.reader import Reader
from skerry.storage.history.store import History
from skerry.storage.log.record import Block
from skerry.storage.log.stream_log import StreamLog
from skerry.tables.join import Joiner

#: Further conditions → the same for DuckDB; NOW and time go by UTC, of which a second is ``speed`` s of the network's.
CONDITIONS = {
    "": "",
    "AND h.epoch = s.epoch - 1": "AND h.sample = s.sample - 5000",
    "AND h.temp < s.temp AND s.light IS NOT NULL": "AND h.temp < s.temp AND s.light IS NOT NULL",
    "AND h.time >= NOW - 10": "AND h.sample >= s.sample - 10000 * {speed}",
}


def earlier(speed: float) -> Callable[[float, int], float]:
    return lambda utc, span_ms: utc - span_ms / 1000 / speed


def joiner_of(plan: QueryPlan, gone: Gone, speed: float = 1.0) -> Joiner:
    [probe] = plan.probes
    before = EarlierRows(plan, probe.table, gone.reader_of, earlier(speed))
    return Joiner(plan, NO_TABLES.__getitem__, {probe.table.called: before.table})  # type: ignore[arg-type]


@settings(max_examples=40, deadline=None)
@given(
    logs(), st.sampled_from(list(CONDITIONS)), st.sampled_from([5, 20, 7200]), st.integers(0, 120), st.integers(0, 60),
    happenings("read", most=12), st.sampled_from([1.0, 4.0, 0.5]),
)  # fmt: skip
def test_rows_meet_those_before_them(
    log: Log,
    condition: str,
    span: int,
    compacted: int,
    begin: int,
    happening: list[tuple[str, int]],
    speed: float,
) -> None:
    log = of_one_stream(log)
    assume(log.rows)
    log.records["sample"] = ORIGIN + (log.records["sample"] - ORIGIN) / speed
    log.records["arrival"] = log.records["sample"]
    plan = plan_of(
        f"SELECT s.nodeid, s.temp, h.temp AS was, h.light * 2 AS lit FROM sensors AS s, sensors HISTORY {span} s AS h "
        f"WHERE h.nodeid = s.nodeid {condition} SAMPLE PERIOD 5 s"
    )
    begin = min(begin, len(log.rows))
    got: list[tuple[object, ...]] = []
    position = begin - 1
    with TemporaryDirectory() as directory:
        gone = Gone(Path(directory), log, min(compacted, len(log.rows)))

        def join(engine: Engine) -> None:
            engine.subscribe("u", plan, begin, joiner_of(plan, gone, speed))
            engine.set_feeds("u", {1: Feed("u", 1, 5000, 5000, 0)})

        replay = Replay(log, lambda: Engine(STREAMS.get, log.block), join)
        for kind, number in [*happening, ("rows", len(log.rows)), ("read", 0)]:
            if kind != "read":
                replay.step(kind, number)
                continue
            subscriber = replay.engine.subscriber("u")
            assert subscriber is not None
            found = subscriber.buffer.deliveries(position)
            if found is None:
                start, end = max(position + 1, begin), replay.end
                parts, position = (
                    replay.engine.replay_arrow("u", log.block(start, end), position),
                    max(position, end - 1),
                )
            else:
                parts, position = found
            for part in parts:
                rows = zip(part.numbers.tolist(), part.columns.to_pylist(), strict=True)
                got += [(row, *values.values()) for row, values in rows]
        gone.close()
    further = CONDITIONS[condition].format(speed=speed)
    expected = in_database(
        f"SELECT s.row, s.nodeid, s.temp, h.temp, h.light * 2 FROM sensors s JOIN sensors h ON h.nodeid = s.nodeid AND h.row < s.row "
        f"AND h.sample < s.sample AND h.sample >= s.sample - {span * 1000} AND s.row >= {begin} {further}",
        log.rows,
        ["row", "sample", *NAMES],
    )
    assert ordered(got) == ordered([tuple(map(seen, row)) for row in expected])


@pytest.mark.parametrize("step", [1, 7, 60])
def test_of_longer_epochs_the_past_has_the_reading_that_came_first(tmp_path: Path, step: int) -> None:
    """Also where the mote's first by the schedule is missing; and whenever it is asked for."""
    log = of_one_stream(steady(60))
    lost = {
        place for place, row in enumerate(log.rows) if row["sample"] % 20_000 == 0 and row["sample"] % 60_000
    }
    kept = [place for place in range(len(log.rows)) if place not in lost]
    log = Log(log.records[kept], [{**log.rows[place], "row": i} for i, place in enumerate(kept)])
    plan = plan_of(
        "SELECT s.nodeid, s.epoch AS epoch, h.epoch AS before FROM sensors AS s, sensors HISTORY 1 min AS h WHERE h.nodeid = s.nodeid "
        "SAMPLE PERIOD 20 s"
    )
    gone = Gone(tmp_path, log, 7)
    [probe] = plan.probes
    before = EarlierRows(plan, probe.table, gone.reader_of, earlier(1.0))
    found = []
    for start in range(0, len(log.rows), step):
        last = min(start + step, len(log.rows)) - 1
        table, _ = before.table(np.array([last]), log.records["sample"][[last]] // 1000)
        found = table.columns["epoch"].values.tolist()
    gone.close()
    newest = log.rows[-1]["sample"] // 20_000
    assert set(found) >= {newest - 1, newest - 2}
    nodes = len({row["nodeid"] for row in log.rows})
    assert [found.count(newest - back) for back in (1, 2)] == [nodes, nodes]


def test_windows_over_a_stream_beside_its_past(tmp_path: Path) -> None:
    log = of_one_stream(steady(60))
    plan = plan_of(
        "SELECT s.epoch AS epoch, AVG(s.temp - h.temp, 20 s) AS rise, COUNT(*, 20 s) AS n FROM sensors AS s, sensors HISTORY 1 min AS h "
        "WHERE h.nodeid = s.nodeid AND h.epoch = s.epoch - 2 SAMPLE PERIOD 5 s"
    )
    gone = Gone(tmp_path, log, 7)
    engine = Engine(STREAMS.get, log.block)
    engine.subscribe("u", plan, 0, joiner_of(plan, gone))
    engine.set_feeds("u", {1: Feed("u", 1, 5000, 5000, 0)})
    engine.process(log.block(0, len(log.rows)))
    parts, _ = engine.subscriber("u").buffer.deliveries(-1, through=len(log.rows))  # type: ignore[union-attr, misc]
    rows = [row for part in parts for row in part.columns.to_pylist()]
    gone.close()
    assert rows[0] == {"epoch": 3, "rise": 0.02, "n": 2}
    assert rows[1:] == [{"epoch": 4 * i + 3, "rise": 0.02, "n": 4} for i in range(1, len(rows))]
    assert len(rows) > 5


def test_the_past_goes_on_when_the_motes_query_changes(tmp_path: Path) -> None:
    """Somebody else comes, and what motes run from then on is another stream."""
    sql = "SELECT nodeid, {} FROM sensors SAMPLE PERIOD 5 s"
    streams = {1: stream_of(1, sql.format("temp"))}
    log, history, engine = StreamLog(tmp_path), History(tmp_path), Engine(streams.get)
    plan = plan_of(
        "SELECT s.nodeid, s.epoch AS epoch FROM sensors AS s, sensors HISTORY 1 min AS h "
        "WHERE h.nodeid = s.nodeid AND h.epoch = s.epoch - 1 SAMPLE PERIOD 5 s"
    )
    [probe] = plan.probes
    before = EarlierRows(
        plan,
        probe.table,
        lambda *what: Reader(history, log.path, list(streams.values()), *what),
        earlier(1.0),
    )
    engine.subscribe(
        "u",
        plan,
        0,
        Joiner(plan, NO_TABLES.__getitem__, {probe.table.called: before.table}),  # type: ignore[arg-type]
    )
    feed = Feed("u", 1, 5000, 5000, 0)
    engine.set_feeds("u", {1: feed})
    position, found = -1, []
    for epochs in (range(10), range(10, 20), range(20, 30), range(30, 60)):
        if epochs.start == 20:
            streams[1] = ended(streams[1], 110_000)
            streams[2] = stream_of(2, sql.format("temp, light"), 100_000)
            feeds = {
                1: replace(feed, until_ms=100_000),
                2: replace(feed, query=2, since_ms=100_000, before_ms=95_000),
            }
            engine.set_feeds("u", feeds)
        rows = plain_records(streams[max(streams)], epochs, [1, 2, 3])
        engine.process(Block(log.append(rows), rows))
        parts, position = engine.subscriber("u").buffer.deliveries(position, through=log.rows)  # type: ignore[union-attr, misc]
        found += [tuple(row.values()) for part in parts for row in part.columns.to_pylist()]
    log.close()
    assert found == [(node, epoch) for epoch in range(1, 60) for node in (1, 2, 3)]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("sensors AS s, sensors AS h WHERE h.nodeid = s.nodeid", "sensors stands twice in FROM"),
        ("sensors AS s, sensors HISTORY 1 day AS h", "nothing says which rows of h belong"),
        ("sensors AS s, sensors HISTORY 1 day AS h WHERE h.temp > s.temp", "as in WHERE h.nodeid = s.nodeid"),
        (
            "sensors AS s, sensors HISTORY 30 day AS h WHERE h.nodeid = s.nodeid",
            "a past of 30 day is out of range",
        ),
        ("sensors HISTORY 1 day AS h", "unknown table 's'"),
        ("sensors AS s, sensors HISTORY 1 day AS s", "two tables are called 's'"),
        ("sensors AS s WHERE s.temp > 3 HISTORY 1 day AS h", "nothing says of what 'h' is the past"),
        ("sensors AS s, sensors AS g HISTORY 1 day AS h", "nothing says of what 'h' is the past"),
        ("sensors AS s, places HISTORY 1 day AS h", "'places' has no past to be joined with"),
    ],
)
def test_a_past_without_bounds_is_refused(source: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        plan_query(f"SELECT s.nodeid FROM {source} SAMPLE PERIOD 10 s")


def test_motes_sample_what_the_past_is_asked_for() -> None:
    plan = plan_of(
        "SELECT s.nodeid FROM sensors s, sensors HISTORY 1 h AS h WHERE h.nodeid = s.nodeid AND h.light > 3 SAMPLE PERIOD 10 s"
    )
    alone = plan_of("SELECT nodeid FROM sensors WHERE light > 3 SAMPLE PERIOD 10 s")
    assert plan.attributes == alone.attributes
    assert plan.mote_where is None

"""Windows of all users in one pass, against what DuckDB says each holds at the row that brought it."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.tests.executors import Executors
from gateway.tests.logs import PERIODS, STREAMS, Log, Replay, happenings, logs, plan_of, steady
from gateway.tests.windowed import User, ordered, users
from skerry.delivery import log_rows
from skerry.delivery.engine import Engine
from skerry.planner.model.plans import Feed
from skerry.planner.model.waits import behind_ms
from skerry.planner.planner import plan_query
from skerry.sql.errors import QueryError
from skerry.storage.log.record import RECORD, Block
from skerry.streams.stream import Stream
from skerry.windows.shared_windows import Windows


@pytest.mark.slow
@settings(max_examples=30)
@given(
    logs(),
    st.lists(users, min_size=1, max_size=6),
    happenings("go", "read", most=15),
    st.sampled_from((0, 3, 1000)),
)
def test_windows_hold_what_duckdb_finds_in_them(
    log: Log, present: list[User], happening: list[tuple[str, int]], behind: int
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        # Executors may not know yet which streams windows are over.
        check_windows(log, present, happening, Executors(Path(directory), behind))


def check_windows(
    log: Log, present: list[User], happening: list[tuple[str, int]], executors: Executors
) -> None:
    for i, user in enumerate(present):
        user.name = str(i)

    def join(engine: Engine) -> None:
        for user in present:
            user.join(engine)

    replay = Replay(log, lambda: executors.engine(log.block), join, executors.process)
    for kind, number in [*happening, ("rows", len(log.rows))]:
        match kind:
            case "go" if len(present) > 1:
                replay.engine.unsubscribe(present.pop(number % len(present)).name)
            case "read":
                present[number % len(present)].read(replay.engine, log, replay.end)
            case _:
                replay.step(kind, number)
    for user in present:
        user.read(replay.engine, log, replay.end)
        in_order = list if user.order else ordered
        assert in_order(user.got) == in_order(user.duckdb_rows(log))


def test_after_a_restart_rows_are_folded_for_those_who_were_there_when_they_came(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_rows, "STEP", 5)
    log = steady(60)
    early = User([(30_000, 10_000)], None, None, None, None, None, 0, None, name="early")
    late = User([(30_000, 10_000)], None, "temp > 21", None, None, None, 101_000, None, name="late", began=20)
    engine = Engine(STREAMS.get, log.block)
    for user in (early, late):
        user.join(engine)
    given: list[int] = []
    process = Windows.process

    def counted(self: Windows, parts: Any, only: Any = None) -> Any:
        given.append(len(only))
        return process(self, parts, only)

    with monkeypatch.context() as patched:
        patched.setattr(Windows, "process", counted)
        engine.process(log.block(40, 60))
    assert given == [1] * 4 + [2] * 4
    for user in (early, late):
        user.read(engine, log, 60)
        assert ordered(user.got) == ordered(user.duckdb_rows(log))


def test_users_who_come_at_different_times_share_panes() -> None:
    log = steady(60)
    engine = Engine(STREAMS.get, log.block)
    early = User([(30_000, 10_000)], None, None, None, None, None, 0, None, name="early")
    early.join(engine)
    engine.process(log.block(0, 20))
    late = User([(60_000, 10_000)], None, None, None, None, None, 101_000, None, name="late", began=20)
    late.join(engine)
    assert len(engine._windows.windows._shared) == 1
    engine.process(log.block(20, 60))
    for user in (early, late):
        user.read(engine, log, 60)
        assert ordered(user.got) == ordered(user.duckdb_rows(log))
        assert user.got


def test_groups_by_epoch_are_as_many_as_a_window_has() -> None:
    """However long it runs: an epoch that is over makes room for another."""
    log = steady(200)
    engine = Engine(STREAMS.get, log.block)
    plan = plan_of(
        "SELECT epoch, COUNT(*, 15 s, 5 s) AS n, SUM(temp, 15 s, 5 s) AS t FROM sensors GROUP BY epoch SAMPLE PERIOD 5 s"
    )
    engine.subscribe("u", plan, 0)
    engine.set_feeds("u", {1: Feed("u", 1, 5000, PERIODS[1], 0)})
    engine.process(log.block(0, 200))
    subscriber = engine.subscriber("u")
    assert subscriber is not None
    found = subscriber.buffer.deliveries(-1, through=200)
    assert found is not None
    rows = [tuple(row.values()) for part in found[0] for row in part.columns.to_pylist()]
    # Windows end with each epoch, and hold it and the two before.
    assert rows[-3:] == [(last, 1, 20 + last / 100) for last in (193, 194, 195)]
    assert rows == [(e, 1, 20 + e / 100) for end in range(3, 197) for e in range(end - 3, end)]
    (shared,) = engine._windows.windows._shared.values()
    assert len(shared.groups.known) == 3


def test_panes_go_on_when_the_motes_query_changes() -> None:
    log = steady(60)
    engine = Engine(STREAMS.get, log.block)
    users = [User([(0, 10_000)], None, None, None, None, None, 0, None, name=str(i)) for i in range(2)]
    for user in users:
        user.join(engine)
    engine.process(log.block(0, 30))
    for user in users:
        user.until_ms = 200_000
        engine.set_feeds(user.name, user.feeds)
    assert len(engine._windows.windows._shared) == 1
    engine.process(log.block(30, 60))
    for user in users:
        user.read(engine, log, 60)
        assert ordered(user.got) == ordered(user.duckdb_rows(log))
        assert len(user.got) > 20


@pytest.mark.parametrize("batch", [1, 5, 30])
def test_groups_of_a_window_stand_in_one_order_whatever_was_seen_before(batch: int) -> None:
    """Who comes back amid them leaves out so many as he has had."""
    log = steady(60)
    log.records["node"] = np.concatenate([np.random.default_rng(i).permutation(6) for i in range(10)])
    engine = Engine(STREAMS.get, log.block)
    early, late = (
        User([(60_000, 30_000)], "nodeid", None, None, None, None, since, None, name=str(since), began=row)
        for since, row in ((0, 0), (151_000, 30))
    )
    early.join(engine)
    for first in range(0, 60, batch):
        if first == 30:
            late.join(engine)
        engine.process(log.block(first, first + batch))
    for user in (early, late):
        buffer = engine.subscriber(user.name).buffer  # type: ignore[union-attr]
        live = [row for row in buffer.after(29) or [] if row[0] >= 30]
        assert live == engine.replay(user.name, log.block(30, 60), 29)
        groups = [row["nodeid"] for _, row in live]
        assert groups == list(range(6)) * (len(groups) // 6)
        assert groups


def test_rows_of_what_was_called_off_are_in_no_window() -> None:
    """Somebody came and left again before his mote query began: motes send rows by it until they hear of that."""
    times = [(t, stream) for t in range(160) for stream, ms in PERIODS.items() if t * 1000 % ms == 0]
    steps = [(n, t * 1000 // PERIODS[n]) for t, n in times if n == 1 or t >= 100]
    records = np.zeros(len(steps), RECORD)
    records["stream"], records["epoch"] = zip(*steps, strict=True)
    engine = Engine(STREAMS.get)
    users = [("a", 5), ("b", 5), ("c", 20)]
    before = Feed("", 1, 5000, 5000, 0)
    for user, slide in users:
        plan = plan_of(f"SELECT epoch, COUNT(*, 20 s, {slide} s) AS n FROM sensors SAMPLE PERIOD 5 s")
        engine.subscribe(user, plan, 0)
        engine.set_feeds(user, {1: before})
    engine.process(Block(0, records[:19]))
    after = Feed("", 2, 5000, 2000, 100_000, None, 95_000)
    for user, _ in users:
        engine.set_feeds(user, {1: replace(before, until_ms=100_000), 2: after})
    engine.process(Block(19, records[19:20]))
    for user, _ in users:
        engine.set_feeds(user, {1: before})
    engine.process(Block(20, records[20:]))
    assert len(engine._windows.windows._shared) == 2
    for user, slide in users:
        subscriber = engine.subscriber(user)
        assert subscriber is not None
        rows = subscriber.buffer.after(-1) or []
        assert rows == engine.replay(user, Block(0, records), -1)
        assert [row["n"] for _, row in rows] == [4] * len(range(20, 144, slide))


@pytest.mark.parametrize(
    ("window", "ends"),
    [
        ("20 s", [20, 40, 60, 80, 100]),
        ("20 s, 5 s", list(range(20, 105, 5))),
        ("start, 10 s", list(range(10, 105, 10))),
    ],
)
def test_windows_end_with_for(window: str, ends: list[int]) -> None:
    """Though the same rows go on, for others and to bring the last window."""
    log = steady(60)
    plan = plan_of(f"SELECT epoch, COUNT(temp, {window}) AS n FROM sensors SAMPLE PERIOD 5 s FOR 100 s")
    feeds = {1: Feed("u", 1, 5000, 5000, 0, 100_000 + behind_ms(5000, None))}
    engine = Engine(STREAMS.get, log.block)
    engine.subscribe("u", plan, 0)
    engine.set_feeds("u", feeds)
    engine.process(log.block(0, 60))
    subscriber = engine.subscriber("u")
    assert subscriber is not None
    parts, _ = subscriber.buffer.deliveries(-1, through=60) or ([], 0)
    found = [row for part in parts for row in part.columns.to_pylist()]
    length = 1000 if window.startswith("start") else 20
    assert found == [{"epoch": end // 5 - 1, "n": min(end, length) // 5} for end in ends]


def test_a_reader_who_stops_amid_the_groups_of_a_window_gets_it_again() -> None:
    log = steady(40)
    log.records["node"] = range(40)
    engine = Engine(STREAMS.get, log.block)
    User([(50_000, 50_000)], "nodeid", None, None, None, None, 0, None, name="u").join(engine)
    engine.process(log.block(0, 40))
    buffer = engine.subscriber("u").buffer  # type: ignore[union-attr]
    rows = buffer.after(-1) or []
    assert [position for position, _ in rows] == [12] * 9 + [13] + [22] * 9 + [23] + [32] * 9 + [33]
    for read in (1, 5, 9, 10, 11):
        again = buffer.after(rows[read - 1][0]) or []
        assert again == (rows if read < 10 else rows[10:])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("AVG(temp, 5 min), MAX(temp)", "has a window, and an aggregate without it"),
        ("AVG(temp, 5 min), temp", "'temp' has one value for each mote"),
        ("AVG(temp, 5 s, 9 s)", "the longest slide is the length, 5 s"),
        ("AVG(temp, 5500 ms)", "write a multiple of the sample period of 1 s"),
        ("AVG(temp, start)", "a row for each slide"),
        ("AVG(temp, 5 min), AVG(temp, 7 min, 2 min)", "for each 2 min and 5 min have no rows in common"),
        ("AVG(temp, 9973 s), AVG(temp, 9967 s, 9973 s)", "the longest slide is the length"),
        (
            "AVG(temp, 7 day), AVG(temp, 1 min)",
            "together these windows are cut into 10,080 pieces",
        ),
        ("COUNT(*, 5)", "behind * there is room for a window only"),
        ("AVG(*, 5 min)", "only COUNT takes *"),
        ("AVG(revision, 5 min)", "unknown attribute 'revision'"),
        ("AVG(temp, 7 day, 1 s)", "604,800 pieces"),
        ("AVG(temp, 5 min, 1)", "length and slide are times"),
        ("AVG(temp, 5 min, 1 min, 1 s)", "a window has a length and a slide"),
        ("COUNT(DISTINCT temp, 5 min)", "DISTINCT has no meaning in a window"),
        ("WINAVG(3, temp), AVG(temp, 5 min)", "has a window, and an aggregate without it"),
        ("SUM(temp * 1000000000000, 5 min)", "too large to be summed up"),
    ],
)
def test_windows_that_have_no_meaning_are_refused(columns: str, message: str) -> None:
    with pytest.raises(QueryError) as refused:
        plan_query(f"SELECT {columns} FROM sensors SAMPLE PERIOD 1 s")
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("clauses", "message"),
    [
        ("ORDER BY temp SAMPLE PERIOD 1 s", "an endless stream has no last row"),
        ("LIMIT 3 SAMPLE PERIOD 1 s", "LIMIT without ORDER BY would keep any rows"),
        ("ORDER BY COUNT(*, 5 s), light SAMPLE PERIOD 1 s", "'light' has one value for each mote"),
        ("ORDER BY 1.5 SAMPLE PERIOD 1 s", "the columns are 1 to 1"),
        ("ORDER BY 2 SAMPLE PERIOD 1 s", "the columns are 1 to 1"),
        ("ORDER BY COUNT(*, 5 s) LIMIT 0 SAMPLE PERIOD 1 s", "write a whole number from 1"),
        ("ORDER BY COUNT(*, 5 s) LIMIT 1.5 SAMPLE PERIOD 1 s", "write a whole number from 1"),
        ("ORDER BY COUNT(*, 5 s) ORDER BY 1 SAMPLE PERIOD 1 s", "ORDER BY is said twice"),
    ],
)
def test_orders_that_have_no_meaning_are_refused(clauses: str, message: str) -> None:
    with pytest.raises(QueryError) as refused:
        plan_query(f"SELECT nodeid FROM sensors GROUP BY nodeid {clauses}")
    assert message in str(refused.value)


@pytest.mark.parametrize(
    "clause",
    [
        "ONCE",
        "LIFETIME 30 days",
        "HISTORY 7 day ONLY",
        "SIGNAL hot SAMPLE PERIOD 1 s",
        "INTO STORAGE POINT p SAMPLE PERIOD 1 s",
    ],
)
def test_windows_are_of_queries_that_run(clause: str) -> None:
    with pytest.raises(QueryError):
        plan_query(f"SELECT AVG(temp, 5 min) FROM sensors {clause}")


def test_windows_forget_what_is_over_however_often_what_motes_run_changes() -> None:
    """Each change begins a stream; DuckDB makes the averages of the same rows."""
    minutes, period = 90, 60_000
    query = STREAMS[1].mote_query
    query = replace(query, period_ms=period)
    temp = [column.name for column in query.columns].index("temp")
    begins = {n: (n - 1) * minutes * period for n in range(1, 41)}
    streams = {n: Stream(n, 1, n, query, since) for n, since in begins.items()}
    epochs = np.arange(minutes * len(streams))
    records = np.zeros(len(epochs), RECORD)
    records["stream"], records["epoch"] = 1 + epochs // minutes, epochs
    records["value"][:, temp] = 2000 + epochs % 977
    engine = Engine(streams.get, lambda first, end: Block(first, records[first:end]))
    users = {"early": 1, "late": 3, "last": 38}
    feeds: dict[str, dict[int, Feed]] = {user: {} for user in users}
    sizes = []
    for n, since in begins.items():
        for user, first in users.items():
            if n == first:
                engine.subscribe(user, plan_of("SELECT AVG(temp, 30 min) FROM sensors SAMPLE PERIOD 1 min"))
            if n > first:
                feeds[user][n - 1] = replace(feeds[user][n - 1], until_ms=since)
            if n >= first:
                before = since - period if n > first else None
                feeds[user][n] = Feed(user, n, period, period, since, None, before)
                engine.set_feeds(user, dict(feeds[user]))
        for first in range((n - 1) * minutes, n * minutes, 2):
            engine.process(Block(first, records[first : first + 2]))
        shared = engine._windows.windows._shared.values()
        sizes.append((len(shared), max(len(one.views) for one in shared)))
        assert max(len(views) for views in engine._windows.windows._views.values()) <= 14
    assert max(sizes) <= (len(users), 3)
    for user, first in users.items():
        found = engine.replay(user, Block(0, records), -1)
        subscriber = engine.subscriber(user)
        assert subscriber is not None
        recent = subscriber.buffer.after(len(records) - 201)
        assert recent == [row for row in found if row[0] > len(records) - 201]
        expected = duckdb.sql(
            "SELECT avg(2000 + e % 977) / 100 FROM range($rows) AS t(e) WHERE e >= $since"
            " GROUP BY e // 30 HAVING max(e) < $rows - 2 ORDER BY e // 30",
            params={"rows": len(records), "since": begins[first] // period},
        ).fetchall()
        assert [row["AVG(temp, 30 min)"] for _, row in found] == [
            pytest.approx(mean, abs=0.006) for (mean,) in expected
        ]

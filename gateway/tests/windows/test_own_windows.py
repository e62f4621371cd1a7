"""Windows over rows joined with a table, and over the past and what follows it, against DuckDB."""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gateway.tests.logs import STREAMS, Log, Replay, happenings, logs, steady
from gateway.tests.pasts import ORIGIN, Gone, joiner_of, of_one_stream, past_engine, rows_behind
from gateway.tests.windowed import (
    PLACES_TABLE,
    User,
    havings,
    named_havings,
    one_window,
    ordered,
    orders,
    several_windows,
)
from skerry.delivery import window_snapshots
from skerry.delivery.engine import Engine
from skerry.delivery.window_snapshots import WindowSnapshots
from skerry.execution.matching import Part
from skerry.planner.model.plans import Feed
from skerry.storage.history.answer import Answer, PastRows
from skerry.storage.history.reader import Reader
from skerry.storage.log.record import Block
from skerry.streams.handover import Handover, joined_feeds
from skerry.tables import store as store_module
from skerry.tables.columns import TableError
from skerry.tables.join import Joiner
from skerry.tables.store import TableStore
from skerry.windows.own_windows import Run


@pytest.fixture(autouse=True)
def look_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "LOOK_S", -1.0)


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept over a restart is kept behind each batch, and no power is cut."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(window_snapshots, "AGAIN_MAXIMUM", 1)
    monkeypatch.setattr(window_snapshots, "LEAST_S", 0.0)
    monkeypatch.setattr(window_snapshots, "TIMES_AS_LONG", 0)
    monkeypatch.setattr(window_snapshots, "BYTES_PER_S", 1 << 40)


class Kept:
    """A gateway's files of what windows hold, through restarts."""

    def __init__(self, data: Path, log: Log) -> None:
        self._data, self._log = data, log
        self._files = WindowSnapshots(data)

    def engine(self) -> Engine:
        """Of a gateway that starts."""
        self.wait()
        self._files = WindowSnapshots(self._data)
        return Engine(STREAMS.get, self._log.block, snapshots=self._files)

    def wait(self) -> None:
        self._files.wait()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> TableStore:
    return TableStore(tmp_path_factory.mktemp("tables"))


joined_users = st.builds(
    lambda windows, group, where, having, order, limit, since, lasts: User(
        windows,
        group,
        where,
        having if group == "p.name" or having not in named_havings else None,
        order,
        limit,
        since,
        None if lasts is None else since + lasts,
        joined=True,
    ),
    one_window | several_windows,
    st.sampled_from([None, "nodeid", "p.floor", "p.name", "p.name"]),
    st.sampled_from([None, "temp > 21", "nodeid = 2 OR NOT (temp <= 23 OR temp IS NULL)"]),
    st.sampled_from([None, *named_havings, *havings]),
    st.sampled_from([None, None, *orders]),
    st.sampled_from([None, 1, 2]),
    st.sampled_from([0, 0, 7000, 30_000]),
    st.sampled_from([None, None, 20_000]),
)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(
    logs(),
    st.lists(joined_users, min_size=1, max_size=3),
    happenings("table", "read", most=15),
    st.sampled_from((1, 60, 1_000_000)),
)
def test_windows_over_a_join_hold_what_duckdb_finds_in_them(
    store: TableStore, log: Log, present: list[User], happening: list[tuple[str, int]], again: int
) -> None:
    with TemporaryDirectory() as directory, patch.object(window_snapshots, "AGAIN_MAXIMUM", again):
        windows_over_a_join(store, log, present, happening, Kept(Path(directory), log))


def windows_over_a_join(
    store: TableStore, log: Log, present: list[User], happening: list[tuple[str, int]], kept: Kept
) -> None:
    table, away = store.directory / "places.parquet", store.directory / "places.away"
    away.unlink(missing_ok=True)
    pq.write_table(PLACES_TABLE, table)
    for i, user in enumerate(present):
        user.name = str(i)

    def join(engine: Engine) -> None:
        for user in present:
            user.join(engine, store.get)
        engine.resume(replay.end if replay else 0)

    def read(user: User) -> None:
        if table.exists():
            user.read(replay.engine, log, replay.end)
            return
        with suppress(TableError):
            user.read(replay.engine, log, replay.end)

    replay: Replay | None = None
    replay = Replay(log, kept.engine, join)
    for kind, number in [*happening, ("rows", len(log.rows))]:
        kept.wait()
        match kind:
            case "table":
                first, second = (table, away) if table.exists() else (away, table)
                first.rename(second)
            case "read":
                read(present[number % len(present)])
            case _:
                replay.step(kind, number)
    if away.exists():
        away.rename(table)
    for user in present:
        for _ in range(3):
            user.read(replay.engine, log, replay.end)
        in_order = list if user.order else ordered
        assert in_order(user.got) == in_order(user.duckdb_rows(log))
    kept.wait()


# ---- the past, and what follows it ----

STREAM = STREAMS[1]
past_users = st.builds(
    lambda windows, group, where, having, order, limit, joined: User(
        windows,
        group,
        where,
        having,
        order,
        limit,
        0,
        None,
        name="u",
        joined=joined or str(group).startswith("p."),
    ),
    one_window | several_windows,
    st.sampled_from([None, "nodeid", "p.floor", "p.name"]),
    st.sampled_from([None, "temp > 21", "nodeid = 2 OR NOT (temp <= 23 OR temp IS NULL)"]),
    st.sampled_from([None, None, *havings]),
    st.sampled_from([None, None, *orders]),
    st.sampled_from([None, 1, 2]),
    st.booleans(),
)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    logs(), past_users, st.integers(0, 120), st.integers(0, 120), st.sampled_from([20, 60, 7200]),
    happenings("read", most=10),
)  # fmt: skip
def test_windows_go_on_from_the_past_into_the_present(
    store: TableStore,
    log: Log,
    user: User,
    asked: int,
    compacted: int,
    span: int,
    happening: list[tuple[str, int]],
) -> None:
    log = of_one_stream(log)
    assume(log.rows)
    pq.write_table(PLACES_TABLE, store.directory / "places.parquet")
    asked = min(asked, len(log.rows))
    with TemporaryDirectory() as directory:
        gone = Gone(Path(directory), log, min(compacted, asked))
        # It is asked when so many rows have come, and its own epochs begin later.
        asked_ms = max((int(row["sample"] or 0) for row in log.rows[:asked]), default=0)
        user.clauses, user.began = f"HISTORY {span} s", asked
        user.past = asked
        user.since_ms = max(0, asked_ms - span * 1000)
        feeds = {1: Feed("u", 1, 5000, 5000, asked_ms + 10_000)}
        feeds = joined_feeds(feeds, Handover(1, asked_ms, asked_ms + 10_000), "u", 5000, [STREAM])
        since_us = ORIGIN + (asked_ms - span * 1000) * 1000

        def join(engine: Engine) -> None:
            past = PastRows(user.plan, lambda: gone.reader(user.plan, since_us), asked, since_us)
            joiner = Joiner(user.plan, store.get) if user.joined else None
            engine.subscribe("u", user.plan, asked, joiner, past)
            engine.set_feeds("u", feeds)
            engine.resume(end)

        kept, end = Kept(Path(directory), log), 0
        replay = Replay(log, kept.engine, join)
        replay.step("rows", asked)
        for kind, number in [*happening, ("rows", len(log.rows)), ("read", 0), ("read", 0)]:
            kept.wait()
            end = replay.end
            if kind != "read":
                replay.step(kind, number)
            elif replay.end >= asked:
                user.read(replay.engine, log, replay.end)
        kept.wait()
        gone.close()
    in_order = list if user.order else ordered
    assert in_order(user.got) == in_order(user.duckdb_rows(log))


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Rows of the log, from .. to, that windows of single queries were made of."""
    found, step = list[tuple[int, int]](), Run.step

    def stepped(run: Run, end: int) -> None:
        begin = run.at
        step(run, end)
        found.append((begin, run.at))

    monkeypatch.setattr(Run, "step", stepped)
    return found


def test_what_a_query_has_for_itself_goes_on_where_its_reader_was(
    store: TableStore, tmp_path: Path, looked_at: list[tuple[int, int]]
) -> None:
    """Whoever reads it, as often as the gateway starts meanwhile, and with files of others between."""
    pq.write_table(PLACES_TABLE, store.directory / "places.parquet")
    log = steady(120)
    log.records["node"] = np.arange(120) % 6
    for row in log.rows:
        row["nodeid"] = row["row"] % 6  # type: ignore[operator]
    joined = User([(60_000, 20_000)], "p.name", None, None, None, None, 0, None, name="j", joined=True)
    shared = User([(30_000, 10_000)], None, None, None, None, None, 0, None, name="s")
    kept = Kept(tmp_path, log)

    def started(rows: int) -> Engine:
        engine = kept.engine()
        engine.subscribe("j", joined.plan, 0, Joiner(joined.plan, store.get))
        engine.subscribe("s", shared.plan, 0)
        engine.resume(rows)
        for user in (joined, shared):
            engine.set_feeds(user.name, user.feeds)
        engine.catch_up(rows)
        return engine

    def come(engine: Engine, first: int, end: int) -> None:
        for at in range(first, end, 10):
            engine.process(log.block(at, at + 10))
            kept.wait()

    engine = started(0)
    come(engine, 0, 40)
    joined.read(engine, log, 40)
    come(engine, 40, 80)
    # He is away for longer than files are kept, over two starts.
    assert looked_at == [(0, 40)]
    for begin, end in ((80, 90), (90, 100)):
        engine = started(begin)
        come(engine, begin, end)
    looked_at.clear()
    joined.read(engine, log, 100)
    assert looked_at == [(40, 100)], "no row before"
    # One who begins with the first row goes the whole way.
    other = replace(joined, position=-1, got=[])
    other.read(engine, log, 100)
    assert looked_at[1][0] == 0
    come(engine, 100, 110)
    engine = started(110)
    looked_at.clear()
    come(engine, 110, 120)
    for user in (joined, other):
        user.read(engine, log, 120)
        assert ordered(user.got) == ordered(user.duckdb_rows(log))
    assert min(begin for begin, _ in looked_at) == 100
    # Who asks otherwise under the same name has nothing of it.
    kept.wait()
    asks = replace(joined, windows=[(40_000, 20_000)], position=119, got=[])
    engine = kept.engine()
    engine.subscribe("j", asks.plan, 0, Joiner(asks.plan, store.get))
    engine.resume(120)
    engine.set_feeds("j", asks.feeds)
    looked_at.clear()
    asks.read(engine, log, 120)
    assert [begin for begin, _ in looked_at] == [0]


@settings(max_examples=30, deadline=None)
@given(logs(), past_users, st.integers(0, 120), st.sampled_from([20, 60, 7200]))
def test_windows_of_the_past_alone(
    store: TableStore, log: Log, user: User, compacted: int, span: int
) -> None:
    log = of_one_stream(log)
    assume(log.rows)
    pq.write_table(PLACES_TABLE, store.directory / "places.parquet")
    with TemporaryDirectory() as directory:
        gone = Gone(Path(directory), log, min(compacted, len(log.rows)))
        asked_ms = max(int(row["sample"] or 0) for row in log.rows)
        user.clauses, user.past, user.only = f"HISTORY {span} s ONLY", len(log.rows), True
        user.since_ms = max(0, asked_ms - span * 1000)
        since_us = ORIGIN + (asked_ms - span * 1000) * 1000
        joiner = joiner_of(user.plan, Path(directory), store) if user.joined else None
        answer = Answer(
            user.plan, gone.reader(user.plan, since_us), len(log.rows), past_engine(), since_us, joiner
        )
        rows, _, more = rows_behind(answer)
        assert not more
        user.got = [(number, *values.values()) for number, values in rows]
        gone.close()
    in_order = list if user.order else ordered
    assert in_order(user.got) == in_order(user.duckdb_rows(log))


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(logs(), one_window | several_windows, st.integers(1, 100), st.integers(1, 100))
def test_windows_go_on_after_a_restart_when_the_log_has_lost_their_beginning(
    log: Log, windows: list[tuple[int, int]], compacted: int, gone_to: int
) -> None:
    log = of_one_stream(log)
    assume(log.rows)
    user = User(windows, "nodeid", None, None, None, None, 0, None, name="u")
    with TemporaryDirectory() as directory:
        gone = Gone(Path(directory), log, min(compacted, len(log.rows)))
        gone.log.drop_before(min(compacted, gone_to, len(log.rows)))
        first = gone.log.first

        def compacted_parts(start: int, end: int, attributes: Collection[int]) -> dict[int, Part]:
            reader = Reader(gone.history, gone.log.path, [STREAM], attributes, 0)
            return {n: Part(rows, numbers) for n, (numbers, rows) in reader.parts(start, end).items()}

        def left(start: int, end: int) -> Block:
            return log.block(max(start, first), max(start, first, end))

        engine = Engine(STREAMS.get, left, compacted_parts)
        user.join(engine)
        engine.process(log.block(first, len(log.rows)))
        user.position = first - 1
        user.read(engine, log, len(log.rows))
        gone.close()
    expected = [row for row in user.duckdb_rows(log) if int(str(row[0])) >= first]
    assert ordered(user.got) == ordered(expected)


@settings(max_examples=5, deadline=None)
@given(logs(), one_window | several_windows)
def test_a_file_of_the_past_that_is_damaged_stops_no_windows(
    log: Log, windows: list[tuple[int, int]]
) -> None:
    log = of_one_stream(log)
    assume(len(log.rows) > 1)
    user = User(windows, "nodeid", None, None, None, None, 0, None, name="u")
    with TemporaryDirectory() as directory:
        first = len(log.rows) // 2
        gone = Gone(Path(directory), log, first)
        for file in Path(directory).rglob("*.parquet"):
            file.write_bytes(b"nothing that was written here")

        def compacted_parts(start: int, end: int, attributes: Collection[int]) -> dict[int, Part]:
            reader = Reader(gone.history, gone.log.path, [STREAM], attributes, 0)
            return {n: Part(rows, numbers) for n, (numbers, rows) in reader.parts(start, end).items()}

        engine = Engine(STREAMS.get, lambda start, end: log.block(max(start, first), end), compacted_parts)
        user.join(engine)
        assert engine.process(log.block(first, len(log.rows))) == len(log.rows) - first
        gone.close()
    assert engine.lacking is not None
    assert ".parquet" in engine.lacking

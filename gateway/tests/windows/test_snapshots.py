"""Windows that are kept over a restart: whenever the gateway is killed, and whatever becomes of the files, each reader gets the rows that
he would have had of one that went on."""

from __future__ import annotations

import logging
import os
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.tests.executors import Executors
from gateway.tests.logs import PERIODS, STREAMS, Log, Replay, happenings, logs, plan_of, steady
from gateway.tests.windowed import User, ordered, users
from gateway.tests.windows.test_group_bounds import LONGER, QUERY, ROWS, block, limit
from skerry.delivery import window_snapshots
from skerry.delivery.engine import Engine
from skerry.delivery.window_snapshots import WindowSnapshots
from skerry.planner.model.plans import Feed
from skerry.storage import window_files
from skerry.windows.shared_windows import Windows


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are kept behind each batch, if nothing is said, and no power is cut."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(window_snapshots, "AGAIN_MAXIMUM", 1)
    monkeypatch.setattr(window_snapshots, "LEAST_S", 0.0)
    monkeypatch.setattr(window_snapshots, "TIMES_AS_LONG", 0)
    monkeypatch.setattr(window_snapshots, "BYTES_PER_S", 1 << 40)


def start(engine: Engine, present: list[User], rows: int) -> None:
    """As a gateway does: first who is there, then what is kept, then whose which rows are."""
    for user in present:
        engine.subscribe(user.name, user.plan, user.began)
    engine.resume(rows)
    for user in present:
        engine.set_feeds(user.name, user.feeds)
    engine.catch_up(rows)


@pytest.mark.slow
@settings(max_examples=15)
@given(
    logs(),
    st.lists(users, min_size=1, max_size=6),
    happenings("go", "read", "change", "damage", most=20),
    st.sampled_from((0, 1000)),
    st.sampled_from((1, 60, 1_000_000)),
)
def test_killed_at_any_point_windows_go_on_as_duckdb_finds_them(
    log: Log, present: list[User], happening: list[tuple[str, int]], behind: int, again: int
) -> None:
    for i, user in enumerate(present):
        user.name = str(i)
    with tempfile.TemporaryDirectory() as directory, patch.object(window_snapshots, "AGAIN_MAXIMUM", again):
        executors, data = Executors(Path(directory), behind), Path(directory)
        kept = WindowSnapshots(data)

        def make() -> Engine:
            nonlocal kept
            kept.wait()
            kept = WindowSnapshots(data)
            return executors.engine(log.block, kept)

        replay = Replay(log, make, lambda _: None, executors.process)
        later = [user for user in present if user.until_ms is not None]
        ends = {user.name: user.until_ms for user in later}
        for user in later[::2]:
            user.until_ms = None
        later = later[::2]
        start(replay.engine, present, 0)
        for kind, number in [*happening, ("rows", len(log.rows))]:
            match kind:
                case "go" if len(present) > 1:
                    gone = present.pop(number % len(present))
                    later = [user for user in later if user is not gone]
                    replay.engine.unsubscribe(gone.name)
                case "read":
                    present[number % len(present)].read(replay.engine, log, replay.end)
                case "change" if later and replay.end == 0:
                    # Another mote query takes over, which the gateway knows before its rows come.
                    user = later.pop()
                    user.until_ms = ends[user.name]
                    replay.engine.set_feeds(user.name, user.feeds)
                case "damage":
                    damage(data, number)
                case "restart":
                    replay.step(kind, number)
                    start(replay.engine, present, replay.end)
                case "change":
                    pass
                case _:
                    replay.step(kind, number)
                    kept.wait()
        for user in present:
            user.read(replay.engine, log, replay.end)
            in_order = list if user.order else ordered
            assert in_order(user.got) == in_order(user.duckdb_rows(log))
        kept.wait()


def damage(data: Path, number: int) -> None:
    """One of the files, if there are any."""
    files = sorted((data / window_files.DIRECTORY).glob("*.windows"))
    if not files:
        return
    file = files[number % len(files)]
    content = bytearray(file.read_bytes())
    match number % 5:
        case 0:
            file.unlink()
        case 1:
            file.write_bytes(content[: len(content) * number // 100])
        case 2 if content:
            content[number * len(content) // 100] ^= 1 + number
            file.write_bytes(content)
        case 3:
            file.write_bytes(b"")
        case _:
            # Of rows that the log does not have, as where it was put back from a copy.
            file.rename(file.with_name(f"{10**6 + number:020d}.windows"))


def rows_of(engine: Engine, text: str, position: int) -> list[tuple[int, ...]]:
    """Rows of one query behind a position, as its reader gets them in memory."""
    subscriber = engine.subscriber(text)
    assert subscriber is not None
    read = subscriber.buffer.deliveries(position, most=10**9, through=ROWS)
    assert read is not None
    return [(number, *row.values()) for delivery in read[0] for number, row in delivery.values()]


@pytest.mark.parametrize("kills", [(1600,), (100, 1200, 1201, 2400), (730, 731, 900, 2000)])
def test_groups_become_too_many_at_the_same_row_whenever_the_gateway_is_killed(
    kills: tuple[int, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The longer windows outgrow their room on the way, the others do not."""
    limit(monkeypatch, plan_of(LONGER), 500)
    found = []
    for name, killed in (("whole", ()), ("killed", kills)):
        data, got = tmp_path / name, {text: list[tuple[int, ...]]() for text in (QUERY, LONGER)}
        data.mkdir()
        troubles, at = [], 0
        for end in (*killed, ROWS):
            snapshots = WindowSnapshots(data)
            engine = Engine(STREAMS.get, block, snapshots=snapshots)
            for text in got:
                engine.subscribe(text, plan_of(text), 0)
            engine.resume(at)
            for text in got:
                engine.set_feeds(text, {1: Feed(text, 1, PERIODS[1], PERIODS[1], 0)})
            engine.catch_up(at)
            while at < end:
                upto = min(at + 90, end)
                engine.process(block(at, upto))
                for text in got:
                    got[text] += rows_of(engine, text, at - 1)
                at = upto
                snapshots.wait()
            troubles.append([s.buffer.trouble for s in map(engine.subscriber, got) if s is not None])
        found.append((got, troubles[-1]))
    assert found[0] == found[1]
    (whole, trouble), _ = found
    assert trouble[0] is None
    assert trouble[1] is not None
    assert 1000 < whole[LONGER][-1][0] < whole[QUERY][-1][0] - 500


def test_rows_that_are_in_a_file_are_not_folded_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = steady(60)
    present = [
        User([(0, 10_000), (30_000, 10_000)], None, where, None, None, None, 0, None, name=str(i))
        for i, where in enumerate((None, "temp BETWEEN 20 AND 24", "temp > 21"))
    ]

    def started(rows: int) -> Engine:
        snapshots = WindowSnapshots(tmp_path)
        engine = Engine(STREAMS.get, log.block, snapshots=snapshots)
        start(engine, present, rows)
        return engine

    engine = started(0)
    for first in range(0, 50, 10):
        engine.process(log.block(first, first + 10))
        assert engine._kept._snapshots is not None
        engine._kept._snapshots.wait()
    assert len(WindowSnapshots(tmp_path)._files.rows()) == window_files.KEPT
    given: list[int] = []
    process = Windows.process

    def counted(self: Windows, parts: Any, only: Any = None) -> Any:
        given.extend(number for part in parts.values() for number in part.numbers.tolist())
        return process(self, parts, only)

    monkeypatch.setattr(Windows, "process", counted)
    engine = started(50)
    assert given == []
    engine.process(log.block(45, 60))
    for user in present:
        user.read(engine, log, 60)
        assert ordered(user.got) == ordered(user.duckdb_rows(log))
    # Who was a moment behind finds them by a file, too; who reads from the beginning, by rows alone.
    assert given[:60] == list(range(60))
    given.clear()
    present[0].position, present[0].got = 44, []
    present[0].read(engine, log, 60)
    assert set(given) == set(range(40, 60))
    # Without any all is made of rows again, and one that is not whole is named.
    for file in tmp_path.glob("windows/*.windows"):
        file.write_bytes(file.read_bytes()[:-1] + b"!")
    given.clear()
    with caplog.at_level(logging.INFO):
        engine = started(50)
        engine.process(log.block(50, 60))
    assert given == list(range(50))
    named = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(named) == window_files.KEPT
    assert "0000050.windows: its digest is that of another content; it is taken away" in named[1]
    assert "no file has what windows hold" in caplog.text
    for user in present:
        user.position, user.got = -1, []
        user.read(engine, log, 60)
        assert ordered(user.got) == ordered(user.duckdb_rows(log))


def test_a_query_that_asks_otherwise_has_its_windows_made_of_rows(tmp_path: Path) -> None:
    """Where the state was put back from a copy, an id may be another query's."""
    log = steady(60)
    first = User([(30_000, 10_000)], None, "temp > 21", None, None, None, 0, None, name="1")
    engine = Engine(STREAMS.get, log.block, snapshots=(kept := WindowSnapshots(tmp_path)))
    start(engine, [first], 0)
    engine.process(log.block(0, 30))
    kept.wait()
    others = [
        User([(30_000, 10_000)], None, "temp BETWEEN 20 AND 24", None, None, None, 0, None, name="1"),
        User([(20_000, 10_000)], None, None, None, None, None, 0, None, name="2"),
    ]
    engine = Engine(STREAMS.get, log.block, snapshots=WindowSnapshots(tmp_path))
    start(engine, others, 30)
    engine.process(log.block(30, 60))
    for user in others:
        user.read(engine, log, 60)
        assert ordered(user.got) == ordered(user.duckdb_rows(log))


def test_what_panes_hold_comes_back_as_it_was(tmp_path: Path) -> None:
    log = steady(60)
    log.records["node"] = np.arange(60) % 7
    present = [
        User([(0, 10_000), (30_000, 10_000)], "nodeid", None, None, None, None, 0, None, name="a"),
        User([(60_000, 30_000)], None, None, None, None, None, 0, None, name="b"),
    ]
    engine = Engine(STREAMS.get, log.block, snapshots=(kept := WindowSnapshots(tmp_path)))
    start(engine, present, 0)
    engine.process(log.block(0, 60))
    kept.wait()
    again = Engine(STREAMS.get, log.block, snapshots=WindowSnapshots(tmp_path))
    start(again, present, 60)
    pairs = zip(engine._windows.windows.shared(), again._windows.windows.shared(), strict=True)
    for one, other in pairs:
        assert other.selection == one.selection
        assert (other.users, other.groups) == (one.users, one.groups)
        left, right = one.panes.state(), other.panes.state()
        for name in ("now_ms", "first", "room", "groups", "columns"):
            assert getattr(left, name) == getattr(right, name)
        for was, now in zip(one.panes._states.values(), other.panes._states.values(), strict=True):
            assert all(np.array_equal(a, b) for a, b in zip(was, now, strict=True))
        assert np.array_equal(left.motes, right.motes)


def test_feeds_that_have_changed_since_go_on_from_what_was_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = steady(60)
    present = [User([(0, 10_000)], None, None, None, None, None, 0, None, name=str(i)) for i in range(3)]
    engine = Engine(STREAMS.get, log.block, snapshots=(kept := WindowSnapshots(tmp_path)))
    start(engine, present[:2], 0)
    engine.process(log.block(0, 30))
    kept.wait()
    monkeypatch.setattr(window_snapshots, "AGAIN_MAXIMUM", 1 << 40)
    late = present[2]
    late.since_ms, late.began, late.position = 151_000, 30, 29
    late.join(engine)
    for user in present[:2]:
        user.until_ms = 200_000
        engine.set_feeds(user.name, user.feeds)
    engine.process(log.block(30, 40))
    present[0].read(engine, log, 40)
    again = Engine(STREAMS.get, log.block, snapshots=WindowSnapshots(tmp_path))
    start(again, present, 40)
    again.process(log.block(35, 60))
    for user in present:
        user.read(again, log, 60)
        assert ordered(user.got) == ordered(user.duckdb_rows(log))
        assert user.got

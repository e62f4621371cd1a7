"""One pass for all users: each gets what his query alone would give him, whatever happens meanwhile."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import Any
from unittest.mock import patch

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gateway.tests.executors import Executors
from gateway.tests.logs import STREAMS, Log, Replay, happenings, logs, plan_of, steady
from gateway.tests.users import User, users
from skerry.delivery import buffers, matched_rows
from skerry.delivery.buffers import BATCHES_MAXIMUM, Batch, FeedBuffer, Recent
from skerry.delivery.engine import Engine
from skerry.execution import user_groups
from skerry.execution.deliveries import Delivery
from skerry.execution.range_index import LEAST, MOST, RangeIndex, Sorted, in_order
from skerry.planner.model.plans import Feed
from skerry.spark import index_file
from skerry.storage import block_files
from skerry.storage.log.record import RECORD, Block, Records


@pytest.mark.slow
@settings(max_examples=60)
@given(
    logs(),
    st.lists(users, min_size=1, max_size=8),
    happenings("come", "go", "read", most=25),
    st.fixed_dictionaries(
        # From how large batches users' rows are taken out together, for how many, and how many rows at most.
        {
            "LARGE_ROWS": st.sampled_from((1, 4, user_groups.LARGE_ROWS)),
            "GROUP_USERS": st.sampled_from((2, user_groups.GROUP_USERS)),
            "GROUP_ROWS": st.sampled_from((3, user_groups.GROUP_ROWS)),
            "HELD_ROWS": st.sampled_from((5, user_groups.HELD_ROWS)),
        }
    ),
)
def test_each_user_gets_what_duckdb_answers_him_alone(
    log: Log, waiting: list[User], happening: list[tuple[str, int]], limits: dict[str, int]
) -> None:
    with ExitStack() as patches:
        for name, value in limits.items():
            patches.enter_context(patch.object(matched_rows, name, value))
        check_each_user(log, waiting, happening, lambda: Engine(STREAMS.get), Engine.process)


@pytest.mark.slow
@settings(max_examples=60)
@given(
    logs(),
    st.lists(users, min_size=1, max_size=8),
    happenings("come", "go", "read", "lag", most=25),
    st.sampled_from((0, 3, index_file.SPARE_CHANGES)),
)
def test_executors_that_know_the_users_late_lose_and_double_nothing(
    log: Log, waiting: list[User], happening: list[tuple[str, int]], spare: int
) -> None:
    with tempfile.TemporaryDirectory() as directory, patch.object(index_file, "SPARE_CHANGES", spare):
        executors = Executors(Path(directory))

        def lag(number: int) -> None:
            executors.behind = number % 7

        check_each_user(log, waiting, happening, executors.engine, executors.process, {"lag": lag})


@pytest.mark.slow
@settings(max_examples=40)
@given(
    logs(),
    st.lists(users, min_size=1, max_size=8),
    happenings("come", "go", "read", "lag", "merge", "delete", most=25),
    st.sampled_from((1, 30)),
)
def test_rows_that_are_no_longer_in_memory_come_from_files_of_blocks_or_from_the_log(
    log: Log, waiting: list[User], happening: list[tuple[str, int]], memory: int
) -> None:
    """Whatever becomes of the files while readers are on their way."""
    with (
        tempfile.TemporaryDirectory() as directory,
        patch.object(buffers, "ROWS_MAXIMUM", memory),
        patch.object(block_files, "SMALL_FILES", 0),
        patch.object(block_files, "MERGED_BYTES", 6000),
    ):
        executors = Executors(Path(directory))
        executors.publishing = True

        def lag(number: int) -> None:
            executors.behind = number % 7

        def delete(number: int) -> None:
            files = executors.files.files()
            if files:
                files[number % len(files)].path.unlink()

        others = {"lag": lag, "merge": lambda _: executors.files.merge(), "delete": delete}
        check_each_user(log, waiting, happening, executors.engine, executors.process, others)


def check_each_user(
    log: Log,
    waiting: list[User],
    happening: list[tuple[str, int]],
    make: Callable[[], Engine],
    process: Callable[[Engine, Block], int],
    others: Mapping[str, Callable[[int], None]] = MappingProxyType({}),
) -> None:
    present: list[User] = []

    def join(engine: Engine) -> None:
        for user in present:
            user.join(engine)

    replay = Replay(log, make, join, process)
    try:
        for kind, number in [("come", 0), *happening, ("rows", len(log.rows))]:
            match kind:
                case "come" if waiting:
                    user = waiting.pop()
                    user.name, user.began, user.position = str(len(waiting)), replay.end, replay.end - 1
                    present.append(user)
                    user.join(replay.engine)
                case "go" if present:
                    user = present.pop(number % len(present))
                    assert user.got == user.duckdb_rows(log, user.position + 1)
                    replay.engine.unsubscribe(user.name)
                case "read" if present:
                    present[number % len(present)].read(replay.engine, log, replay.end)
                case other if other in others:
                    others[other](number)
                case _:
                    replay.step(kind, number)
        for user in present:
            user.read(replay.engine, log, replay.end)
            assert user.got == user.duckdb_rows(log, replay.end)
    except duckdb.Error:
        assume(False)


# ---- its parts ----


def within(index: RangeIndex, batch: Sorted) -> dict[int, list[int]]:
    """Places of the values in each range that has some, by the range's place."""
    found = zip(index.order.tolist(), *(ends.tolist() for ends in index.within(batch)), strict=True)
    return {i: sorted(batch.places[first:last].tolist()) for i, first, last in found if last > first}


def test_a_range_includes_its_ends() -> None:
    ranges = [(10, 20), (int(LEAST), 9), (21, int(MOST)), (30, 25), (9, 9), (8, 8)]
    index = RangeIndex([low for low, _ in ranges], [high for _, high in ranges])
    batch = in_order(np.array([20, 9, 21, 10, 9], dtype=np.int64), np.arange(5))
    assert within(index, batch) == {0: [0, 3], 1: [1, 4], 2: [2], 4: [1, 4]}
    assert batch.within(np.int64(10), np.int64(20)).tolist() == [0, 3]
    assert batch.within(np.int64(30), np.int64(25)).tolist() == []


integers = st.integers(-(2**31), 2**31)


@given(st.lists(integers, max_size=30), st.lists(st.tuples(integers, integers), max_size=20))
def test_the_index_finds_the_values_in_each_range(values: list[int], ends: list[tuple[int, int]]) -> None:
    ends += [(value, value) for value in values[::2]] + [(value - 1, value) for value in values[::3]]
    batch = in_order(np.array(values, dtype=np.int64), np.arange(len(values)))
    having = {
        i: [place for place, value in enumerate(values) if low <= value <= high]
        for i, (low, high) in enumerate(ends)
    }
    index = RangeIndex([low for low, _ in ends], [high for _, high in ends])
    assert within(index, batch) == {i: places for i, places in having.items() if places}
    for i, (low, high) in enumerate(ends):
        assert batch.within(np.int64(low), np.int64(high)).tolist() == having[i]


class Own:
    """A batch's rows that are one user's."""

    def __init__(self, *numbers: int) -> None:
        self.numbers = np.array(numbers, np.int64)

    def delivery(self, view: object) -> Delivery:
        del view
        return Delivery(self.numbers, pa.RecordBatch.from_pydict({"row": self.numbers}))


def test_who_has_no_rows_for_long_finds_his_next_one_in_memory() -> None:
    recent = Recent()
    recent.add(Batch(5, 10, {}))
    few, often = FeedBuffer(recent, 9), FeedBuffer(recent, 9)
    for buffer in (few, often):
        buffer.see({1: None}, 10)
    often.hit(20)
    recent.add(Batch(10, 20, {1: [Own(15)]}))
    for i in range(2, BATCHES_MAXIMUM + 3):
        recent.add(Batch(10 * i, 10 * i + 10, {}))
    assert recent.floor > 19
    found = few.deliveries(9)
    assert found == ([], 10 * BATCHES_MAXIMUM + 29)
    # Of what came before memory nobody knows.
    assert FeedBuffer(recent, -1).deliveries(-1) is None
    # He has read it, or has not.
    assert often.deliveries(19) == found
    assert often.deliveries(18) is None
    # Some of what he had has been forgotten.
    for i in range(BATCHES_MAXIMUM + 3, 2 * BATCHES_MAXIMUM + 3):
        few.hit(10 * i + 10)
        recent.add(Batch(10 * i, 10 * i + 10, {1: [Own(10 * i)]}))
    few.hit(10 * i + 20)
    recent.add(Batch(10 * i + 10, 10 * i + 20, {1: [Own(10 * i + 10)]}))
    assert few.deliveries(10 * BATCHES_MAXIMUM + 29) is None


def small_log(count: int) -> Records:
    made = np.zeros(count, RECORD)
    made["stream"] = 1
    made["epoch"] = np.arange(count) // 5
    temp = [column.name for column in STREAMS[1].mote_query.columns].index("temp")
    made["value"][:, temp] = 100 * np.arange(count)
    return made


def joined(engine: Engine, sql: str, feeds: dict[int, Feed] | None = None) -> Any:
    engine.subscribe("u", plan_of(sql))
    engine.set_feeds("u", {1: Feed("u", 1, 5000, 5000, 0)} if feeds is None else feeds)
    return engine.subscriber("u").buffer  # type: ignore[union-attr]


def test_readers_resume_behind_their_position() -> None:
    engine = Engine(STREAMS.get)
    buffer = joined(engine, "SELECT nodeid FROM sensors SAMPLE PERIOD 5 s")
    assert engine.process(Block(100, small_log(100))) == 100
    assert [number for number, _ in buffer.after(180)] == list(range(181, 200))
    assert buffer.after(98) is None, "rows before the first batch are the log's to serve"


def test_a_user_is_woken_by_batches_with_rows_of_his() -> None:
    engine, woken = Engine(STREAMS.get), []
    buffer = joined(engine, "SELECT nodeid FROM sensors WHERE temp BETWEEN 50 AND 60 SAMPLE PERIOD 5 s")
    end = buffer.listen(lambda: woken.append(engine.done))
    rows = small_log(80)
    for first in range(0, 80, 20):
        engine.process(Block(first, rows[first : first + 20]))
    assert woken == [60, 80]
    end()
    engine.process(Block(80, rows[40:]))
    assert woken == [60, 80]


def test_who_asks_what_is_known_hides_nobody_who_is_not(tmp_path: Path) -> None:
    executors = Executors(tmp_path)
    engine, log, woken = executors.engine(), steady(40), list[str]()
    for name, least in (("ada", 20), ("ben", 21), ("cid", 20)):
        engine.subscribe(name, plan_of(f"SELECT temp FROM sensors WHERE temp > {least} SAMPLE PERIOD 5 s"))
        engine.set_feeds(name, {1: Feed(name, 1, 5000, 5000, 0)})
        buffer = engine.subscriber(name).buffer  # type: ignore[union-attr]
        buffer.listen(lambda name=name: woken.append(name))
    executors.behind = 1
    executors.process(engine, log.block(0, 20))
    assert sorted(woken) == ["ada", "ben", "cid"]
    got = {name: engine.subscriber(name).buffer.after(-1) for name in ("ada", "ben", "cid")}  # type: ignore[union-attr]
    assert got["ben"] is None, "the log has his rows"
    assert got["ada"] == got["cid"]
    assert [row for row, _ in got["cid"] or []] == list(range(1, 20))


@pytest.mark.parametrize("feeds", [{}, {2: Feed("u", 2, 5000, 5000, 0)}])
def test_a_stream_that_is_not_the_users_gives_nothing(feeds: dict[int, Feed]) -> None:
    engine = Engine(STREAMS.get)
    buffer = joined(engine, "SELECT temp FROM sensors SAMPLE PERIOD 5 s", feeds)
    engine.process(Block(0, small_log(100)))
    assert buffer.deliveries(-1) == ([], 99)

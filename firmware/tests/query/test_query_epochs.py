"""When queries sample: epoch n at network time n * period, whatever the mote's own clock says."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware.tests.query.mote import COMPLETE, SECOND, Mote, field, program
from skerry_protocol.attributes import BY_NAME, ValueFormat
from skerry_protocol.bytecode import Op, instruction
from skerry_protocol.codes import PacketType, QueryFlag
from skerry_protocol.limits import PERIOD_MAXIMUM_MS, QUERIES_MAXIMUM

EPOCH = [field(ValueFormat.I32, instruction(Op.ATTR, BY_NAME["epoch"].number))]
TEMP = BY_NAME["temp"].number
LIGHT = BY_NAME["light"].number
#: Ticks between a sample and its due time: a timer's tick and the rounding of two conversions.
TOLERANCE = 3
Boot = Callable[[int], Mote]


def epochs(mote: Mote, query: int | None = None) -> list[int]:
    """Epochs of the rows queued since the last call."""
    return [record.body.epoch for record in mote.records() if query in (None, record.body.query)]


def reading(attribute: int) -> list[dict[str, object]]:
    """A program's only column: one attribute."""
    return [field(ValueFormat.I32, instruction(Op.ATTR, attribute))]


def test_epochs_are_aligned_to_network_time(mote: Mote) -> None:
    mote.synchronise(100.5)
    mote.install(program(EPOCH, period=2500), 1)
    mote.run(10)
    rows = list(mote.records())
    assert [row.body.epoch for row in rows] == [41, 42, 43, 44]
    for row in rows:
        assert row.local / SECOND == pytest.approx(row.body.epoch * 2.5 - 100.5, abs=TOLERANCE / SECOND)
        assert int.from_bytes(row.body.values, "little") == row.body.epoch


def test_nothing_runs_before_network_time_is_known(mote: Mote) -> None:
    assert mote.install(program(EPOCH), 1) == COMPLETE
    mote.run(5)
    assert epochs(mote) == []
    mote.synchronise(1000.25)
    mote.run(2)
    assert epochs(mote) == [1001, 1002]


def test_start_and_end(mote: Mote) -> None:
    """The first epoch is at or after the start, the last before the end; then the slot becomes free."""
    mote.synchronise(50)
    mote.install(program(EPOCH, period=3000, start=61, end=72), 1)
    mote.run(23)
    assert epochs(mote) == [21, 22, 23]
    assert mote.queries() == [1]  # kept for the merging of its last epoch
    mote.run(20)
    assert epochs(mote) == []
    assert mote.queries() == []


def test_once_samples_the_epoch_at_its_start(mote: Mote) -> None:
    mote.synchronise(50)
    mote.install(program(EPOCH, period=4000, start=60, flags=QueryFlag.ONCE), 1)
    mote.run(40)
    assert epochs(mote) == [15]
    assert mote.queries() == []


def test_query_that_is_over_on_arrival_never_runs(mote: Mote) -> None:
    mote.synchronise(500)
    mote.install(program(EPOCH, start=10, end=20), 1)
    mote.install(program(EPOCH, start=10, flags=QueryFlag.ONCE), 2)
    mote.run(30)
    assert epochs(mote) == []
    assert mote.queries() == []


def test_finished_query_gives_way(mote: Mote) -> None:
    mote.synchronise(100)
    mote.install(program(EPOCH, end=102), 1)
    for query in range(2, QUERIES_MAXIMUM + 1):
        mote.install(program(EPOCH, period=60000), query)
    mote.run(2.5)
    assert mote.install(program(EPOCH), 9) == COMPLETE
    assert sorted(mote.queries()) == [*range(2, QUERIES_MAXIMUM + 1), 9]


@given(
    local=st.integers(0, 2**32 - 1),
    now=st.integers(0, 2**32 - 40 * 86400),
    period=st.integers(1000, 100_000) | st.integers(1000, PERIOD_MAXIMUM_MS),
    ppm=st.integers(-100, 100),
)
def test_any_time_any_period(query_library: Path, local: int, now: int, period: int, ppm: int) -> None:
    """Network ms beyond 32 bits; clocks that wrap, run fast or slow; half a day, which time_at allows."""
    mote = Mote(query_library, local)
    mote.synchronise(now, ppm)
    mote.install(program(EPOCH, period=period), 1)
    first = math.ceil(now * 1000 / period)
    span = min(3.5 * period / 1000, 43200)
    mote.run(span)
    end = (now + span * (1 + ppm * 1e-6)) * 1000
    rows = list(mote.records())
    epochs_seen = [row.body.epoch for row in rows]
    assert epochs_seen == list(range(first, first + len(rows)))
    # An epoch in the run's very last millisecond may be in or out.
    assert (first + len(rows)) * period > end - 1
    assert not rows or epochs_seen[-1] * period < end + 1
    for row in rows:
        passed = (row.local - local) % 2**32 / SECOND * (1 + ppm * 1e-6)
        assert now + passed == pytest.approx(row.body.epoch * period / 1000, abs=(TOLERANCE + 1) / SECOND)


def test_long_waits_pass_in_looks(mote: Mote) -> None:
    """A start days away is reached although timers reach 18 hours only."""
    mote.synchronise(0)
    mote.install(program(EPOCH, period=60000, start=3 * 86400), 1)
    for day in range(6):
        mote.run(43200)
        mote.synchronise((day + 1) * 43200)  # net/time keeps its reference recent
    assert epochs(mote) == [3 * 1440]


@given(steps=st.lists(st.floats(-0.4, 0.4), min_size=1, max_size=8))
def test_small_steps_of_the_clock_lose_and_repeat_nothing(query_library: Path, steps: list[float]) -> None:
    """Corrections of network time below half a second between and across epochs."""
    mote = Mote(query_library)
    mote.synchronise(1000.1)
    mote.install(program(EPOCH, period=1000), 1)
    now = 1000.1
    for step in steps:
        mote.run(1.3)
        now += 1.3 + step
        mote.synchronise(now)
    mote.run(2)
    seen = epochs(mote)
    assert seen == list(range(1001, 1001 + len(seen)))
    assert seen[-1] in {math.floor(now + 2 - 0.001), math.floor(now + 2 + 0.001)}


def test_far_step_plans_anew(mote: Mote) -> None:
    """A root that rebooted starts network time at 0 again."""
    mote.synchronise(5000)
    mote.install(program(EPOCH), 1)
    mote.run(2.5)
    mote.synchronise(10.5)
    mote.run(2)
    mote.synchronise(90000.5)
    mote.run(1)
    assert epochs(mote) == [5000, 5001, 5002, 11, 12, 90001]


def test_epoch_in(mote: Mote) -> None:
    mote.synchronise(100.5)
    mote.install(program(EPOCH, period=5000, start=103, end=125), 1)
    assert [second for second in range(90, 140) if mote.epoch_in(second)] == [105, 110, 115, 120]
    mote.install(program(EPOCH, period=7500, start=103), 2)
    assert [s for s in range(100, 130) if mote.epoch_in(s)] == [105, 110, 112, 115, 120, 127]
    mote.stop(0)
    assert not any(mote.epoch_in(second) for second in range(100, 130))


def test_epoch_in_still_knows_the_last_epoch(mote: Mote) -> None:
    """The round after the last epoch sends its rows."""
    mote.synchronise(100.5)
    mote.install(program(EPOCH, start=101, flags=QueryFlag.ONCE), 1)
    mote.run(2)
    assert [second for second in range(95, 110) if mote.epoch_in(second)] == [101]


def test_one_acquisition_for_all_queries_due_together(mote: Mote) -> None:
    mote.sensor(TEMP, 2150)
    mote.sensor(LIGHT, 300)
    mote.synchronise(99.5)
    mote.install(program(reading(TEMP), period=2000), 1)
    mote.install(program(reading(LIGHT), period=2000), 2)
    mote.install(program(EPOCH, period=2000), 3)
    mote.run(1)
    assert mote.acquisitions == 1
    assert mote.last_mask == 1 << TEMP | 1 << LIGHT
    assert {row.body.query: int.from_bytes(row.body.values, "little") for row in mote.records()} == {
        1: 2150, 2: 300, 3: 50,
    }  # fmt: skip


def test_query_due_during_an_acquisition_waits_for_it(mote: Mote) -> None:
    mote.sensor(TEMP, 1)
    mote.sensor(LIGHT, 2)
    mote.acquisition_time(0.4)
    mote.synchronise(99.9)
    mote.install(program(reading(TEMP), period=100_000), 1)  # due at 100.0
    mote.install(program(reading(LIGHT), period=1251), 2)  # due at 100.08
    mote.run(1)
    first, second = mote.records()
    assert (first.body.query, second.body.query) == (1, 2)
    assert (first.local / SECOND, second.local / SECOND) == pytest.approx((0.5, 0.9), abs=0.001)
    assert mote.acquisitions == 2


def test_foreign_acquisition_is_waited_for(mote: Mote) -> None:
    mote.sensor(TEMP, 1)
    mote.acquisition_time(0.3)
    mote.synchronise(99.9)
    mote.install(program(reading(TEMP), period=10_000), 1)
    assert mote.foreign_acquisition()
    mote.run(1)
    assert epochs(mote) == [10]


def test_stop_during_an_acquisition(mote: Mote) -> None:
    mote.sensor(TEMP, 1)
    mote.synchronise(99.9)
    mote.install(program(reading(TEMP), period=1000), 1)
    mote.run(0.15)
    mote.stop(1)
    mote.install(program(reading(TEMP), period=10_000), 2)
    mote.run(11)
    assert [(row.body.query, row.body.epoch) for row in mote.records()] == [(2, 11)]


def test_acquisition_longer_than_the_period_skips_epochs(mote: Mote) -> None:
    mote.sensor(TEMP, 1)
    mote.acquisition_time(1.5)
    mote.synchronise(99.9)
    mote.install(program(reading(TEMP), period=1000), 1)
    mote.run(6)
    assert epochs(mote) == [100, 102, 104]


def test_rows_are_counted(mote: Mote) -> None:
    mote.synchronise(0.5)
    mote.install(program(EPOCH), 1)
    mote.run(4)
    assert mote.rows == 4
    assert all(record.type is PacketType.RESULT for record in mote.records())


@pytest.mark.parametrize("period", [5, 10, 20])
@pytest.mark.parametrize("back", [0.004, 0.02, 0.049])
@pytest.mark.parametrize("after", [1.5, 1.99])
def test_no_fast_epoch_comes_twice_when_the_clock_steps_back(
    mote: Mote, period: int, back: float, after: float
) -> None:
    """By less than makes time a new one, and by several sample periods."""
    mote.synchronise(99.9)
    mote.install(
        program([field(ValueFormat.U16, instruction(Op.ATTR, BY_NAME["nodeid"].number))], period=period), 1
    )
    mote.run(after)
    mote.synchronise(99.9 + after - back)
    mote.run(1.5)
    found = [record.body.epoch + i for record in mote.records() for i in range(len(record.body.values) // 2)]
    assert found == list(range(found[0], found[-1] + 1))
    assert len(found) > 2000 / period

"""Rows that a wrong clock has dated: dated again once it is right, and none goes for its age meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.tests.pasts import stream_of
from skerry.storage.history import compaction, store
from skerry.storage.history.day_files import FILE_ROWS
from skerry.storage.history.reader import Reader
from skerry.storage.history.retention import Retention
from skerry.storage.history.store import History
from skerry.storage.log.dating import DOUBT_S, Dating, MachineClock
from skerry.storage.log.record import RECORD
from skerry.storage.log.stream_log import StreamLog, read

STREAM = stream_of(1, "SELECT nodeid, temp FROM sensors SAMPLE PERIOD 60 s")
#: UTC in s when the machine was started: 2026-11-27 23:00.
BEGAN = 1_795_820_400.0
DAY = 86_400.0
YEAR = 365 * DAY


@dataclass
class Machine:
    """``wrong_s``: what its clock is ahead by; ``gone_s``: how long it runs; ``root_s``: the same of a root, which nobody starts anew."""

    wrong_s: float = 0.0
    gone_s: float = 0.0
    root_s: float = 0.0
    starts: int = 1

    @property
    def clock(self) -> MachineClock:
        return MachineClock(
            lambda: f"run {self.starts}",
            lambda: self.gone_s,
            lambda: BEGAN + self.root_s - self.gone_s + self.wrong_s,
        )

    def run(self, seconds: float) -> None:
        self.gone_s += seconds
        self.root_s += seconds

    def start_again(self, off_s: float, wrong_s: float) -> None:
        self.root_s += off_s
        self.gone_s, self.starts, self.wrong_s = 0.0, self.starts + 1, wrong_s


class Site:
    """A gateway's log and files on such a machine."""

    def __init__(self, data: Path, machine: Machine, days: float = 365.0) -> None:
        self.data, self.machine, self.days = data, machine, days
        self.start()

    def start(self) -> None:
        self.log = StreamLog(self.data, machine_clock=self.machine.clock)
        assert self.log.dating is not None
        self.dating = self.log.dating
        self.history = History(self.data, Retention(self.days), self.dating)

    def sample(self, count: int) -> None:
        """Rows come, one a minute."""
        for _ in range(count):
            self.machine.run(60)
            self.append(self.made())

    def made(self) -> Any:
        record = np.zeros(1, RECORD)
        record["stream"], record["node"], record["epoch"] = 1, 5, round(self.machine.root_s / 60)
        record["sample"] = round((BEGAN + self.machine.root_s + self.machine.wrong_s - 1) * 1e6)
        record["arrival"] = record["sample"] + 1_000_000
        return record

    def append(self, records: Any) -> None:
        self.log.append(records)

    def compact(self) -> None:
        now = BEGAN + self.machine.root_s + self.machine.wrong_s
        self.history.compact(self.log.path, self.log.rows, [STREAM])
        self.history.retain(self.log, self.log.rows, now)

    def files(self) -> list[tuple[int, float, str]]:
        """What DuckDB finds: (row, what its time is off by in s, how far its file's day is from its time's)."""
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone='UTC'")
            return connection.execute(
                "SELECT row, epoch(time) + 1 - network_ms / 1000 - ?, left(parse_filename(filename), 10)::DATE - time::DATE "
                "FROM read_parquet(?, filename = true) ORDER BY row",
                [BEGAN, f"{self.history.path}/sensors/*.parquet"],
            ).fetchall()

    def assert_right(self) -> None:
        assert self.files() == [(row, 0.0, 0) for row in range(self.log.rows)]
        for manifest in (self.history.manifest, type(self.history.manifest).load(self.history.path)):
            assert sum(file.rows for file in manifest.files.values()) == self.log.rows
            for name, file in manifest.files.items():
                with duckdb.connect() as connection:
                    bounds = "min(row), max(row), epoch_us(min(time)), epoch_us(max(time)), count(*)"
                    found = connection.execute(
                        f"SELECT {bounds} FROM '{self.history.path}/{name}'"
                    ).fetchone()
                assert found == (file.first, file.last, file.since, file.until, file.rows)


@pytest.mark.parametrize("wrong_s", [-BEGAN, 13.7 * YEAR, -3 * DAY, 5000.0])
def test_rows_are_dated_again_when_the_clock_is_set(tmp_path: Path, wrong_s: float) -> None:
    machine = Machine()
    site = Site(tmp_path, machine)
    site.sample(90)
    site.compact()
    machine.wrong_s = wrong_s
    site.sample(40)
    site.compact()
    site.sample(30)
    machine.wrong_s = 0.0
    site.sample(20)
    logged = read(site.log.path, 0, site.log.rows)
    # In 1970 rows are dated at once as before it.
    assert site.history.due() == (wrong_s > -BEGAN)
    # Before they are compacted, too, who asks for the past finds all of it, as it is.
    site.compact()
    site.assert_right()
    assert not site.history.due()
    assert (read(site.log.path, 0, site.log.rows) == logged).all(), "what was delivered stays as it was"
    site.start()
    site.sample(5)
    site.compact()
    site.assert_right()


def test_the_past_reads_the_same_before_it_is_compacted(tmp_path: Path) -> None:
    machine = Machine(wrong_s=9 * YEAR)
    site = Site(tmp_path, machine)
    site.sample(30)
    machine.wrong_s = 0.0
    site.sample(3)
    reader = Reader(site.history, site.log.path, [STREAM], (), round(BEGAN * 1e6))
    times = reader.read(0, 33).rows.utc_ms
    assert times.tolist() == [round((BEGAN + 60 * (i + 1) - 1) * 1000) for i in range(33)]


@pytest.mark.parametrize("wrong_s", [30 * YEAR, -BEGAN])
def test_a_clock_that_is_wrong_takes_nothing_away(tmp_path: Path, wrong_s: float) -> None:
    machine = Machine()
    site = Site(tmp_path, machine, days=30)
    site.sample(90)
    site.compact()
    machine.wrong_s = wrong_s
    site.sample(10)
    site.compact()
    machine.run(3600)
    site.compact()
    assert "set by" in (site.dating.trouble() or "") or wrong_s < 0
    # The machine is started again with the wrong clock, and once more.
    for _ in range(2):
        machine.start_again(60, wrong_s)
        site.start()
        site.sample(10)
        site.compact()
    machine.wrong_s = 0.0
    site.sample(1)
    site.compact()
    site.history.retain(site.log, site.log.rows, BEGAN + machine.root_s)
    if wrong_s > 0:
        site.assert_right()
    assert len(site.files()) == 121
    # Once it has been right for a day, age counts again.
    machine.run(DOUBT_S + 1)
    assert site.dating.trouble() is None
    site.history.retain(site.log, site.log.rows, BEGAN + 40 * DAY)
    assert site.history.manifest.files == {}


def test_a_start_with_a_clock_far_ahead_takes_nothing_away(tmp_path: Path) -> None:
    machine = Machine()
    site = Site(tmp_path, machine, days=30)
    site.sample(90)
    site.compact()
    machine.start_again(600, 20 * YEAR)
    site.start()
    site.compact()
    assert "if it is wrong, set it" in (site.dating.trouble() or "")
    assert len(site.files()) == 90


def test_what_a_run_before_has_dated_is_told_by_a_root_that_went_on(tmp_path: Path) -> None:
    machine = Machine(wrong_s=-2 * YEAR)
    site = Site(tmp_path, machine)
    site.sample(50)
    site.compact()
    site.sample(4)
    machine.start_again(3600, 0.0)
    site.start()
    site.dating.went_on(2 * YEAR, 3660)
    site.sample(10)
    site.compact()
    site.assert_right()
    # … and once more, by a clock that is set only after that.
    machine.start_again(600, -BEGAN)
    site.start()
    site.dating.went_on(-BEGAN, 700)
    site.sample(10)
    machine.wrong_s = 0.0
    site.sample(1)
    site.compact()
    site.assert_right()


def test_rows_that_were_held_back_over_the_setting_are_dated_by_the_clock_that_they_came_by(
    tmp_path: Path,
) -> None:
    machine = Machine(wrong_s=YEAR)
    site = Site(tmp_path, machine)
    site.sample(3)
    machine.run(60)
    held = [site.made()]
    machine.run(60)
    held.append(site.made())
    machine.wrong_s = 0.0
    machine.run(60)
    site.append(np.concatenate([site.made(), *held]))
    site.sample(2)
    site.compact()
    site.assert_right()


class Crash(Exception):
    """Where the process ends."""


@pytest.mark.parametrize("place", ["redated", "save", "move", "end"])
def test_a_crash_while_rows_are_dated_again_loses_and_doubles_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    machine = Machine(wrong_s=-YEAR)
    site = Site(tmp_path, machine)
    site.sample(120)
    site.compact()
    machine.wrong_s = 0.0
    site.sample(3)

    def crash(*_: object) -> None:
        raise Crash

    with monkeypatch.context() as patch:
        match place:
            case "redated":
                # All new files are written, and none of them counts yet.
                real = compaction.redated
                patch.setattr(compaction, "redated", lambda *a: (real(*a), crash()))
            case "save":
                patch.setattr(type(site.history.manifest), "save", crash)
            case "move":
                patch.setattr(store, "move", crash)
            case "end":
                patch.setattr(History, "_remove_unlisted", crash)
        with pytest.raises(Crash):
            site.compact()
    site.start()
    site.compact()
    site.assert_right()
    assert not list(site.history.path.rglob("*.new"))


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([7, 40, FILE_ROWS]),
    st.lists(
        st.one_of(
            st.tuples(st.just("sample"), st.integers(1, 40)),
            st.tuples(st.just("set"), st.sampled_from([-BEGAN, -YEAR, -DAY, -30.0, 45.0, 2 * DAY, 11 * YEAR])),
            st.tuples(st.sampled_from(["compact", "restart"]), st.just(0)),
        ),
        max_size=14,
    ),
)  # fmt: skip
def test_whatever_happens_rows_are_dated_right_in_the_end(
    tmp_path_factory: pytest.TempPathFactory, file_rows: int, happenings: list[tuple[str, float]]
) -> None:
    machine = Machine()
    site = Site(tmp_path_factory.mktemp("site"), machine)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compaction, "FILE_ROWS", file_rows)
        for what, value in happenings:
            match what:
                case "sample":
                    site.sample(int(value))
                case "set":
                    machine.wrong_s = value
                case "compact":
                    site.compact()
                case _:
                    site.start()
        machine.wrong_s = 0.0
        site.sample(1)
        site.compact()
        site.assert_right()


def test_a_damaged_record_of_the_clock_is_told(tmp_path: Path) -> None:
    Site(tmp_path, Machine()).sample(1)
    (tmp_path / "clock.json").write_text("{")
    with pytest.raises(store.DataError, match=r"clock\.json is not as the gateway wrote it"):
        Dating(tmp_path)


def test_a_run_in_1970_of_which_nothing_tells_when_it_was_is_dated_before_the_next(tmp_path: Path) -> None:
    machine = Machine(wrong_s=-BEGAN)
    site = Site(tmp_path, machine)
    site.sample(20)
    site.compact()
    machine.start_again(900, 0.0)
    site.start()
    site.sample(5)
    site.compact()
    # By as much too late as the machine was off.
    off = [round(late) for _, late, _ in site.files()]
    assert off == [900] * 20 + [0] * 5

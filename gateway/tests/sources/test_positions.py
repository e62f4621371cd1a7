"""Where reading goes on: files, folders and replays over restarts of the gateway and of the process that reads, each row once."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from gateway.tests.peer import RootPeer
from gateway.tests.process import wait_for
from gateway.tests.sources.one_source import SHORT, again, come, one_source, rows, state
from skerry.sensors.definitions import define
from skerry.sources import replay_clock
from skerry.sources.opening import Opener
from skerry.sources.progress import Progress
from skerry.sources.reading import Reading
from skerry.sources.stream_type import AddressError, Read, Sensor, StreamType, types
from skerry.sql import sensor_statements
from skerry.sql.sensor_statements import CreateSensors
from skerry.storage.log.source_positions import Position
from skerry.storage.log.stream_log import StreamLog


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "streams"
    made.mkdir()
    return made


def lines(numbers: range) -> str:
    return "".join(f"{i},hill,\n" for i in numbers)


def test_each_line_of_a_file_comes_once_over_restarts_of_all(
    peer: RootPeer, tmp_path: Path, folder: Path
) -> None:
    file = folder / "rain.csv"
    file.write_text(lines(range(2500)))
    with one_source(peer, tmp_path, "file:rain.csv?format=csv&from=start", SHORT) as (gateway, query):
        # Killed while it is read: what is in the log, and no more, is not read again.
        wait_for(lambda: gateway.sources.pid is not None)
        come(gateway, query, 1)
        os.kill(gateway.sources.pid or 0, signal.SIGKILL)
        with file.open("a") as growing:
            growing.write(lines(range(2500, 3000)) + "3000,")
        assert [row[1] for row in come(gateway, query, 3000)] == list(range(3000))
    with file.open("a") as growing:
        growing.write("hill,\n" + lines(range(3001, 3100)))
    # What is written beside the log now and then is lost: the log itself has it.
    (tmp_path / "log" / "source_positions.json").unlink()
    with again(peer, tmp_path) as (gateway, query):
        assert [row[1] for row in come(gateway, query, 3100)] == list(range(3100))
        # Nobody asks for a while; then it goes on, and another file by this name is a new one.
        gateway.queries.stop(query.id, "ada")
        wait_for(lambda: not gateway.sources.status())
        with file.open("a") as growing:
            growing.write(lines(range(3100, 3103)))
        later = gateway.queries.ask("SELECT * FROM weather", "ada")
        assert [row[1] for row in come(gateway, later, 3)] == [3100, 3101, 3102]
        (folder / "new").write_text(lines(range(2)))
        (folder / "new").rename(file)
        assert [row[1] for row in come(gateway, later, 5)][3:] == [0, 1]


def test_files_of_a_folder_are_read_in_order_each_once(peer: RootPeer, tmp_path: Path, folder: Path) -> None:
    days = folder / "days"
    days.mkdir()
    (days / "day2.csv").write_text("rain,place\n" + "".join(f"{i},hill\n" for i in range(3000, 6000)))
    (days / "day1.csv").write_text("place,rain\n" + "".join(f"hill,{i}\n" for i in range(3000)))
    (days / ".day0.csv").write_text("rain\n-1\n")
    (days / "notes.txt").write_text("nobody's\n")
    address = "folder:days?settle=10ms"
    with one_source(peer, tmp_path, address, SHORT) as (gateway, query):
        assert [row[1] for row in come(gateway, query, 6000)] == list(range(6000))
        (days / "day4.jsonl").write_text('{"rain": 6000}\n\n{"rain": 6001}\n')
        come(gateway, query, 6002)
        (days / "day3.csv").write_text("rain\n7\n")
        wait_for(lambda: "passed over day3.csv" in state(gateway)["why"])
    (days / "day5.json").write_text('{"rain": 6002}\n')
    with again(peer, tmp_path) as (gateway, query):
        assert [row[1] for row in come(gateway, query, 6003)] == list(range(6003))
        wait_for(lambda: state(gateway)["state"] == "open")


def test_replays_of_one_clock_go_on_together_after_a_restart(
    peer: RootPeer, tmp_path: Path, folder: Path
) -> None:
    (folder / "a.csv").write_text(
        "rain,moment\n" + "".join(f"{i},2002-11-06 12:00:{i:02}\n" for i in range(0, 40, 2))
    )
    (folder / "b.csv").write_text(
        "rain,moment\n" + "".join(f"{i},2002-11-06 12:00:{i:02}\n" for i in range(5, 40, 2))
    )
    options = "speed=5&clock=storm"
    addresses = [f"replay:a.csv?{options}", f"replay:b.csv?{options}", "replay:b.csv?speed=6&clock=storm"]
    with one_source(peer, tmp_path, addresses[:2], SHORT) as (gateway, query):
        found = [row[1] for row in come(gateway, query, 12)]
    with again(peer, tmp_path) as (gateway, query):
        wait_for(lambda: query.finished)
        found = [row[1] for row in rows(gateway, query)]
        assert sorted(found) == sorted([*range(0, 40, 2), *range(5, 40, 2)])
        # Asked again it begins anew, and a clock has one speed.
        second = gateway.queries.ask("SELECT * FROM weather", "ada")
        assert sorted(row[1] for row in come(gateway, second, 3))[:1] == [0]
        gateway.queries.ask(f"INSERT INTO weather VALUES (3, '{addresses[2]}')", "ada")
        wait_for(
            lambda: any("all of its replays have that speed" in s["why"] for s in gateway.sources.status())
        )


def test_a_replay_shifted_to_now_is_so_after_a_restart(peer: RootPeer, tmp_path: Path, folder: Path) -> None:
    (folder / "a.jsonl").write_text(
        "".join(json.dumps({"rain": i, "moment": f"2002-11-06 12:00:0{i}"}) + "\n" for i in range(6))
    )
    began = time.time()
    with one_source(peer, tmp_path, "replay:a.jsonl?shift=now", SHORT) as (gateway, query):
        come(gateway, query, 2)
    with again(peer, tmp_path) as (gateway, query):
        wait_for(lambda: query.finished)
        found = rows(gateway, query)
    assert [row[1] for row in found] == list(range(6))
    times = [row[3].timestamp() for row in found]
    assert [round(at - times[0], 3) for at in times] == list(range(6))
    assert began - 1 < times[0] < time.time()


def test_a_clock_keeps_its_replays_together() -> None:
    noon = datetime(2002, 11, 6, 12, tzinfo=UTC)
    slow, fast = object(), object()
    clock = replay_clock.clock_of("together", None, slow)
    assert replay_clock.clock_of("together", None, fast) is clock
    with pytest.raises(AddressError, match="clock=together goes at speed=max"):
        replay_clock.clock_of("together", 2.0, object())
    # It stands until all that were opened together have told what they have.
    assert clock.wait_s(slow, noon) > 0
    assert clock.wait_s(fast, noon) > 0
    wait_for(lambda: clock.wait_s(slow, noon) <= 0)
    # As fast as can be: none is further ahead than a step of what the slowest has next.
    assert clock.wait_s(fast, noon + timedelta(seconds=1)) <= 0
    assert clock.wait_s(fast, noon + timedelta(seconds=3)) > 0
    assert clock.wait_s(slow, noon + timedelta(seconds=2)) <= 0
    assert clock.wait_s(fast, noon + timedelta(seconds=3)) <= 0
    replay_clock.left("together", clock, slow)
    assert clock.wait_s(fast, noon + timedelta(days=3)) <= 0
    replay_clock.left("together", clock, fast)
    assert replay_clock.clock_of("together", 2.0, fast) is not clock


def test_replays_catch_up_together_where_a_machine_has_stood_still(tmp_path: Path, drawn_seed: int) -> None:
    """Rows of two days within a blink: what has not been taken for a while comes in the order of its times, but for a lead."""
    minutes, steps = 2 * 1440, {"a": 1, "b": 7}
    for name, step in steps.items():
        lines = (
            f"{minute},2002-11-{6 + minute // 1440:02} {minute // 60 % 24:02}:{minute % 60:02}:00"
            for minute in range(0, minutes, step)
        )
        (tmp_path / f"{name}.csv").write_text("rain,moment\n" + "\n".join(lines))
    statement = sensor_statements.parse(SHORT)
    assert isinstance(statement, CreateSensors)
    table, opener = define(statement, "ada", 1), Opener(types(), tmp_path, None, tmp_path)
    chance, taken = random.Random(drawn_seed), list[int]()
    # Nobody begins before all are there, however long it takes to open them.
    last = object()
    clock = replay_clock.clock_of("still", 1e6, last)

    async def played() -> None:
        readings = [
            Reading(
                table,
                number,
                (number, f"replay://{tmp_path}/{name}.csv?speed=1000000&clock=still"),
                opener,
                lambda: None,
            )
            for number, name in enumerate(steps, 1)
        ]
        while len(clock._next) <= len(steps):
            await asyncio.sleep(0.001)
        replay_clock.left("still", clock, last)
        while any(one.waiting or one.state.state != "ended" for one in readings):
            # The gateway takes nothing for as long as a machine may stand still.
            await asyncio.sleep(chance.choice([0.001, 0.005, 0.1]))
            for one in readings:
                taken.extend(row.time_us for row in one.take(2048))
            assert not [one.state.why for one in readings if one.state.why]

    asyncio.run(played())
    assert len(taken) == sum(len(range(0, minutes, step)) for step in steps.values())
    behind = np.maximum.accumulate(taken) - np.array(taken)
    # What one has read is a lead ahead of the first that the other has in hand or has next.
    assert behind.max() <= replay_clock.LEAD.total_seconds() * 1e6


class Counting(StreamType):
    """Gives numbers; it says where it is after each third."""

    def __init__(self, position: str | None) -> None:
        self.position, self.told = position, 0

    def init(self, sensor: Sensor) -> None: ...

    def read(self) -> Read:
        raise AssertionError

    def kept(self, values: int) -> None:
        self.told = values

    def close(self) -> None: ...


def test_progress_is_between_what_a_type_says() -> None:
    stream = Counting("0")
    progress = Progress("a:b", None)
    progress.opened(stream)
    for value in (1, 2, 3, 4):
        assert progress.came() == value
        stream.position = "3" if value == 3 else stream.position
        progress.read_is_over(waiting=True)
    progress.taken(2, last=False)
    assert progress.behind() == (Position("a:b", "0", 2), 2)
    progress.taken(4, last=True)
    assert progress.behind() == (Position("a:b", "3", 1), 4)
    assert progress.is_flying
    progress.kept(2)
    assert (stream.told, progress.is_flying) == (2, True)
    progress.kept(4)
    assert (stream.told, progress.is_flying) == (4, False)
    # Opened again, in this process and in another: the one value behind what the type has said comes again, and is passed over.
    for later in (progress, Progress("a:b", Position("a:b", "3", 1))):
        other = Counting(later.position)
        later.opened(other)
        assert later.come_again(3) == 1
        later.came()
        later.came()
        other.position = "6"
        later.read_is_over(waiting=True)
        later.taken(later.came(), last=True)
        assert later.behind()[0] == Position("a:b", "6", 1)
    # Of another address, or of a type that begins anew, nothing is passed over.
    assert Progress("a:c", Position("a:b", "3", 1)).position is None
    anew = Progress("a:b", Position("a:b", "3", 1))
    anew.opened(Counting("0"))
    assert anew.come_again(3) == 0


def test_positions_are_in_the_log_and_outlive_it(tmp_path: Path) -> None:
    log = StreamLog(tmp_path)
    assert log.positions.get((1, 2)) is None
    log.positions.note(1, {2: Position("a:b", "7", 3, lasting=True), 3: Position("a:c", "8")})
    log.close()
    log = StreamLog(tmp_path)
    assert log.positions.get((1, 2)) == Position("a:b", "7", 3, lasting=True)
    log.forget_positions(lambda _, position: not position.lasting)
    assert StreamLog(tmp_path).positions.get((1, 3)) is None
    (tmp_path / "log" / "source_positions.json").write_text("damaged")
    assert StreamLog(tmp_path).positions.get((1, 2)) is None

"""A day of a busy gateway in an hour, which is ended again and again: whether each feed is whole, and what files and memory come to.

Users come, read, leave, come back and go; the gateway, or its Spark, is ended mostly by kill -9. Each feed is held against what DuckDB
answers of the rows that were sent. A day's volume is what a hundred motes report each ten seconds: 864,000 rows, less the 2 % that are lost
on the way, and 8,640 epochs of an aggregate. The root's time, and with it the gateway's, goes by 24 times as fast as ours.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.measuring.day_of_questions import write_places
from bench.measuring.day_of_rows import DayOfRows
from bench.measuring.day_of_users import Crowd
from bench.measuring.gateways import gateway_over
from bench.measuring.open_files import allow_open_files
from bench.measuring.processes import JAVA, PYTHON, WORKERS, memory_shares
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder, Rows
from bench.runner.result import Column, Spread
from gateway.tests.process import Daemon
from skerry import GatewayError

#: Of log, in GB: half a day, so that whoever is away while starts take minutes, on a slow machine, is not behind what is kept.
_KEPT_GB = 0.08
#: Looks at files and memory, evenly over the time.
_LOOKS = 20
#: Within so long a start must have ended, in s: of a busy machine.
_START_S = 900.0
#: What Spark's Python holds at least once batches come.
_STARTED_GIB = 0.15
#: Parts of the data directory that are told one by one.
_PARTS = ("log", "history", "matches", "state.sqlite")
#: What is done to the gateway, and how often of a hundred.
_ENDS = {
    "kill -9": 55,
    "kill -9 and again while it starts": 15,
    "SIGTERM": 15,
    "kill -9 of Spark's driver": 15,
}


@dataclass(frozen=True)
class Day(SeedOptions):
    seed: int = option(1, "what is random is drawn from it: rows, users, restarts")
    minutes: float = option(60.0, "for how long")
    users: int = option(1000, "users who are there")
    restarts: int = option(50, "how often it is ended")
    motes: int = option(100, "motes that report each ten seconds")
    speed: float = option(24.0, "s of the motes' time in one of ours")
    stay_s: float = option(360.0, "s that a user stays, on average")
    compact_s: float = option(150.0, "s between two times that somebody compacts")


@dataclass
class Look:
    """Bytes, by what holds them, and what else there is."""

    minute: float
    rows: int
    memory: dict[str, float]
    parts: dict[str, int]
    files: int
    opened: int


def measure(options: Day, recorder: Recorder) -> None:
    """One gateway, from its first query until everybody has left."""
    allow_open_files(2 * options.users + 1_000)
    day = DayOfRows(options.motes, options.speed, options.seed)
    try:
        with gateway_over(day.root.url) as daemon:
            asyncio.run(_Run(options, recorder, day, daemon).run())
    finally:
        day.root.close()


class _Run:
    def __init__(self, options: Day, recorder: Recorder, day: DayOfRows, daemon: Daemon) -> None:
        self._options, self._recorder, self._day, self._daemon = options, recorder, day, daemon
        self._chance = random.Random(options.seed)
        self._arguments = (
            "--speed", str(options.speed), "--keep-log-gb", str(_KEPT_GB), "--user-queries", "1000000", "--user-rate", "1000000",
        )  # fmt: skip
        self._looks: list[Look] = []
        self._back: list[float] = []
        self._measured: list[asyncio.Task[None]] = []
        self._ended: Counter[str] = Counter()
        self._table: Rows | None = None
        self._began = 0.0

    async def run(self) -> None:
        options, recorder, day, daemon = self._options, self._recorder, self._day, self._daemon
        self._table = recorder.table(
            "course",
            [
                Column("after", "min", ".1f"), Column("rows that came", form=","), Column("open feeds", form=","),
                Column("all processes", "GiB", ".2f", better="less"),
                *(Column(name, "GiB", ".2f") for name in (PYTHON, JAVA, WORKERS)),
                *(Column(part, "MB", ".1f") for part in _PARTS), Column("other files", "MB", ".1f"), Column("files", form=","),
                Column("open in the gateway", form=","),
            ],
        )  # fmt: skip
        daemon.data.mkdir(parents=True, exist_ok=True)
        write_places(daemon.data / "tables", day)
        length = 60 * options.minutes
        crowd = self._crowd = Crowd(
            day,
            daemon.port,
            daemon.data,
            options.seed,
            min(options.stay_s, length / 6),
            min(20.0, length / 12),
        )
        recorder.progress(f"seed {options.seed}: starting")
        await self._start()
        crowd.up.set()
        await crowd.begin()
        await self._until(lambda: len(day.programs()) == 2, 60)
        day.start()
        self._began = time.monotonic()
        crowd.come(options.users, length / 10)
        looking = asyncio.create_task(self._watch(length))
        try:
            await self._disturb(length)
            await asyncio.sleep(max(0.0, self._began + length - time.monotonic()))
            day.end()
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)
        left = day.waiting
        recorder.progress(f"over; {left:,} rows wait at the root")
        await crowd.leave_users()
        with suppress(FileNotFoundError, ProcessLookupError):
            await self._note()
        await crowd.leave()
        for task in self._measured:
            task.cancel()
        await self._tell()

    async def _start(self) -> None:
        """However long it takes, until it answers."""
        self._daemon.launch(*self._arguments)
        deadline = time.monotonic() + _START_S
        while not await asyncio.to_thread(self._answers):
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"the gateway has not started for {_START_S:.0f} s: {self._daemon.log.read_text()[-500:]}"
                )
            await asyncio.sleep(0.1)

    def _answers(self) -> bool:
        with suppress(GatewayError):
            return bool(self._daemon.client().status()["link"]["state"] == "connected")
        return False

    async def _until(self, condition: Any, limit_s: float) -> None:
        deadline = time.monotonic() + limit_s
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"nothing came of it for {limit_s:.0f} s")
            await asyncio.sleep(0.05)

    # ---- what ends it ----

    async def _disturb(self, length: float) -> None:
        """So many times, between the first tenth and the last twentieth."""
        times = sorted(self._chance.uniform(0.1, 0.95) * length for _ in range(self._options.restarts))
        for at in times:
            way = self._chance.choices(list(_ENDS), list(_ENDS.values()))[0]
            await asyncio.sleep(max(0.0, self._began + at - time.monotonic()))
            await self._end(way)
            self._ended[way] += 1

    async def _end(self, way: str) -> None:
        daemon, crowd = self._daemon, self._crowd
        began = time.monotonic()
        if way == "kill -9 of Spark's driver":
            with suppress(ValueError, ProcessLookupError):
                os.kill(daemon.driver, signal.SIGKILL)
        else:
            crowd.up.clear()
            await asyncio.to_thread(daemon.kill, signal.SIGTERM if way == "SIGTERM" else signal.SIGKILL)
            if way.endswith("starts"):
                daemon.launch(*self._arguments)
                await asyncio.sleep(self._chance.uniform(0.2, 6.0))
                await asyncio.to_thread(daemon.kill)
            await self._start()
            crowd.up.set()
        self._measured.append(asyncio.create_task(self._until_new_row(began, self._day.rows)))

    async def _until_new_row(self, began: float, sent: int) -> None:
        """A new row is one that was sent since it was there again. The next end may come before."""
        ended, witness = sum(self._ended.values()), self._crowd.witnesses[0]
        while len(witness.numbers) <= sent:
            await asyncio.sleep(0.05)
        if sum(self._ended.values()) <= ended + 1:
            self._back.append(time.monotonic() - began)

    # ---- what it holds ----

    async def _watch(self, length: float) -> None:
        """At all times that nobody ends it."""
        compacted = time.monotonic()
        for number in range(1, _LOOKS + 1):
            await asyncio.sleep(max(0.0, self._began + number * length / _LOOKS - time.monotonic()))
            await self._crowd.up.wait()
            with suppress(FileNotFoundError, ProcessLookupError):
                await self._note()
            crowd, day = self._crowd, self._day
            self._recorder.progress(
                f"seed {self._options.seed}, {(time.monotonic() - self._began) / 60:.1f} min: {day.rows:,} rows, {day.waiting:,} wait, "
                f"{crowd.came:,} users came, {crowd.checked:,} were right or told, {sum(self._ended.values())} restarts, "
                f"{len(crowd.problems)} problems"
            )
            if time.monotonic() - compacted >= self._options.compact_s:
                compacted = time.monotonic()
                await crowd.compact()

    async def _note(self) -> None:
        daemon, process = self._daemon, self._daemon.process
        assert process is not None
        look = await asyncio.to_thread(self._look, daemon, process.pid)
        self._looks.append(look)
        assert self._table is not None
        shares = [look.memory[name] for name in (PYTHON, JAVA, WORKERS)]
        other = sum(look.parts.values()) - sum(look.parts[part] for part in _PARTS)
        self._table.row(
            look.minute, look.rows, self._crowd.reading, sum(look.memory.values()), *shares,
            *(look.parts[part] / 1e6 for part in _PARTS), other / 1e6, look.files, look.opened,
        )  # fmt: skip

    def _look(self, daemon: Daemon, pid: int) -> Look:
        memory = {name: held / 2**30 for name, held in memory_shares(pid).items()}
        parts, files = dict.fromkeys([*_PARTS, "other"], 0), 0
        for folder, _, names in os.walk(daemon.data):
            for name in names:
                path = Path(folder) / name
                part = path.relative_to(daemon.data).parts[0].removesuffix("-wal")
                with suppress(FileNotFoundError):
                    parts[part if part in _PARTS else "other"] += path.stat().st_size
                    files += 1
        opened = len(os.listdir(f"/proc/{pid}/fd"))
        minute = (time.monotonic() - self._began) / 60
        return Look(minute, len(self._crowd.witnesses[0].numbers), memory, parts, files, opened)

    async def _tell(self) -> None:
        crowd, day, recorder, figure = self._crowd, self._day, self._recorder, self._recorder.figure
        options = self._options
        for problem in crowd.problems[:20]:
            recorder.problem(f"seed {options.seed}: {problem}")
        got = len(crowd.witnesses[0].numbers), len(crowd.witnesses[1].numbers)
        if got != (day.rows, day.states):
            recorder.problem(
                f"{day.rows:,} rows and {day.states:,} epochs were sent, and {got[0]:,} and {got[1]:,} came"
            )
        recorder.remark(
            f"{day.rows:,} rows and {day.states:,} states of epochs were sent, in {day.root.now() / 3600:.1f} h of the motes' time. "
            f"{crowd.came:,} users came, got {crowd.rows:,} rows over {crowd.connections:,} connections; {crowd.unanswered} questions were "
            "cut off before their answer, and asked again."
        )
        recorder.remark(
            "Asked were: "
            + ", ".join(f"{kind} {count:,}" for kind, count in sorted(crowd.kinds.items()))
            + "."
        )
        recorder.remark(
            "Ended was: " + ", ".join(f"{way} {count}" for way, count in self._ended.items()) + "."
        )
        named = f"{options.users:,} users who come and go, {options.restarts} restarts"
        figure(
            f"feeds that were not whole, {named}", len(crowd.problems), "", ",", better="less", goal=0, main=True,
        )  # fmt: skip
        figure("feeds that were checked", crowd.checked, form=",")
        if self._back:
            figure(
                "from its end until a new row is at its reader",
                Spread.of(self._back),
                "s",
                ".1f",
                better="less",
            )
        # While it starts it holds less.
        held = [sum(look.memory.values()) for look in self._looks if look.memory[WORKERS] > _STARTED_GIB]
        if held:
            figure("memory of all processes at most", max(held), "GiB", ".2f", better="less", main=True)
            part = max(1, len(held) // 3)
            times = median(held[-part:]) / median(held[:part])
            figure("the last third's ÷ the first third's, median", times, "", ".2f", better="less", goal=1.15)
        kept = [_bounded(look) for look in self._looks]
        part = max(1, len(kept) // 3)
        figure(
            "files but those of the past, median of the last third",
            median(kept[-part:]) / 1e6,
            "MB",
            ".1f",
            better="less",
        )
        figure("at most", max(kept) / 1e6, "MB", ".1f", better="less", goal=250, main=True)


def _bounded(look: Look) -> int:
    """Bytes of all that is not to grow with the rows there have been."""
    return sum(held for part, held in look.parts.items() if part != "history")


BENCHMARK = Benchmark(measure, quick=Day(minutes=2.0, users=30, restarts=2), minutes=65)

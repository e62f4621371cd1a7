"""Many users on one stream: rows a second, latency, memory, coming, beside a streaming query of Spark's for each.

All but Spark's own queries in one process, one measurement after the other in several rounds, so that what else runs on the machine
meets them alike. A row counts as delivered when its user holds it as Arrow columns.
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from statistics import median

from bench.measuring.crowd import RATE, STEPS, Crowd
from bench.measuring.plans import plan_of
from bench.measuring.processes import processor_seconds, proportional_memory
from bench.measuring.rounds import alternated, ratio
from bench.runner.benchmark import Benchmark, Options, option
from bench.runner.recorder import Recorder
from bench.runner.result import Spread


@dataclass(frozen=True)
class Users(Options):
    users: tuple[int, ...] = option((1, 10, 100, 1_000, 10_000), "how many there are, in turn")
    rounds: int = option(3, "how often each")
    rows: int = option(1_048_576, "rows at once whose rate is measured")
    length: int = option(8, "s in which rows come whose latency is measured, at least")
    fewest: int = option(40, "rows that somebody wants in that time, at least")
    separate: int = option(30, "users who have a streaming query of Spark's own each; 0: none have")
    warm: int = option(30, "s of rows for those before they are measured")
    apart: int = option(20, "s of rows whose latency is measured with those")


def measure(options: Users, recorder: Recorder) -> None:
    """One engine for all users, then a query of Spark's own for some."""
    most = max(options.users)
    ours: list[float] = []
    with Crowd(1) as crowd:
        for _ in recorder.steps(range(4), "Java compiles what is used"):
            crowd.append(options.rows)
            crowd.wait()

        def both(users: int) -> tuple[float, float]:
            crowd.resize(users)
            return _rate(crowd, options.rows), _wait(crowd, options)

        ways = {users: lambda users=users: both(users) for users in options.users}
        found = alternated(ways, options.rounds, recorder, counted)
        taken = {}
        for users in recorder.steps([users for users in (100, most) if users <= most], "nobody reads"):
            crowd.resize(users)
            taken[users] = [_taken(crowd, options.rows) for _ in range(options.rounds)]
        firsts = [_first(crowd, i) for i in recorder.steps(range(5), "a user comes")]
        memory = proportional_memory()
        if options.separate:
            crowd.resize(options.separate)
            ours = [
                _wait(crowd, options)
                for _ in recorder.steps(range(options.rounds), f"{options.separate} users")
            ]
    rates = {users: [rate for rate, _ in one] for users, one in found.items()}
    waits = {users: [wait for _, wait in one] for users, one in found.items()}
    figure = recorder.figure
    for users in options.users:
        figure(
            f"rows from log to {counted(users)}", Spread.of(rates[users]), "/s", ",.0f", better="more", goal=400_000,
            main=users in (1, most),
        )  # fmt: skip
    for users in options.users:
        figure(
            f"append → row at its user, {counted(users)}", Spread.of(1e3 * wait for wait in waits[users]), "ms", ".0f",
            better="less", main=users in (1, most),
        )  # fmt: skip
    for users, times in taken.items():
        figure(
            f"processor time of the gateway and Spark's driver (Python) for a million rows before anybody reads, {counted(users)}",
            Spread.of(times), "s", ".3f", better="less",
        )  # fmt: skip
    figure(
        f"latency with {most:,} users ÷ with 1",
        ratio(waits[most], waits[1]),
        "",
        ".2f",
        better="less",
        goal=1.5,
    )
    figure(
        f"user added among {most:,} → his first row", Spread.of(1e3 * first for first in firsts), "ms", ".0f",
        better="less", goal=1000,
    )  # fmt: skip
    figure(
        f"memory of gateway's proxy and Spark, {most:,} users", memory / 2**30, "GiB", ".2f", better="less", goal=2.79,
        reference="3 GB",
    )  # fmt: skip
    if options.separate:
        recorder.progress(f"{options.separate} streaming queries of Spark's own")
        apart, own = _separate(options), Spread.of(ours)
        figure(
            f"append → row at its user, {options.separate} separate queries of Spark's",
            1e3 * apart,
            "ms",
            ",.0f",
        )
        figure(
            f"the same, ours with {options.separate} users",
            Spread.of(1e3 * wait for wait in ours),
            "ms",
            ",.0f",
            better="less",
        )
        figure(
            "latency with a streaming query of Spark's for each user ÷ ours",
            apart / own.value,
            "",
            ".0f",
            better="more",
            goal=40,
            main=True,
        )


def counted(users: int) -> str:
    """So many users, in words."""
    return f"{users:,} user{'s' * (users != 1)}"


def _rate(crowd: Crowd, rows: int) -> float:
    """Rows a second until every user has read his."""
    delivered = crowd.delivered
    crowd.append(rows)
    began = time.monotonic()
    crowd.wait()
    took = time.monotonic() - began
    share = (crowd.delivered - delivered) / rows / crowd.users
    assert 0.0008 < share < 0.0012, f"each user gets a thousandth, not {share}"
    return rows / took


def _taken(crowd: Crowd, rows: int) -> float:
    """Processor time, in s for a million rows, of this process, but for who appends them, and of the driver, without readers."""
    crowd.readers = False
    driver = crowd.spark.pid
    assert driver is not None
    took = time.process_time() - time.thread_time() + processor_seconds(driver)
    crowd.append(rows)
    crowd.wait()
    took = time.process_time() - time.thread_time() + processor_seconds(driver) - took
    crowd.readers = True
    crowd.wait()
    return took / rows * 1e6


def _wait(crowd: Crowd, options: Users) -> float:
    """Median time from appending a row to its user having it, in s; a row a millisecond."""
    crowd.waits.clear()
    crowd.waiting = True
    # A thousandth of the rows is a user's.
    crowd.trickle(max(options.length, options.fewest / (RATE * 0.001 * crowd.users)))
    crowd.wait()
    crowd.waiting = False
    return median(crowd.waits)


def _first(crowd: Crowd, number: int) -> float:
    """Time from adding a user who wants every row to his first one, in s, while rows flow."""
    crowd.trickle(1)
    user, began = f"new {number}", time.monotonic()
    crowd.add(user, plan_of("SELECT nodeid, light FROM sensors SAMPLE PERIOD 1 s"))
    while user not in crowd.firsts:
        crowd.trickle(1 / STEPS)
    took = crowd.firsts[user] - began
    crowd.remove(user)
    return took


def _separate(options: Users) -> float:
    """As :func:`_wait`, with a streaming query of Spark's for each user, in a process that has nothing of ours."""
    numbers = map(str, (options.separate, options.warm, options.apart))
    command = [sys.executable, "-m", "bench.gateway.separate_queries", *numbers]
    return float(subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout)


BENCHMARK = Benchmark(
    measure,
    quick=Users(users=(1, 10), rounds=1, rows=131_072, length=2, fewest=8, separate=2, warm=2, apart=4),
    minutes=9,
)

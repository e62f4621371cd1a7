"""Windowed averages for many users: rows a second from the log, through Spark, until each has read his; what the gateway takes."""

from __future__ import annotations

import time
from dataclasses import dataclass

from bench.measuring.crowd import MOTES, Crowd
from bench.measuring.plans import plan_of
from bench.measuring.processes import processor_seconds
from bench.measuring.rounds import alternated
from bench.runner.benchmark import Benchmark, Options, option
from bench.runner.recorder import Recorder
from bench.runner.result import Spread

#: Distinct windows: lengths and slides in s.
WINDOWS = [(10 * (1 + i), 10 * (1 + i % 5)) for i in range(50)]
#: Rounds in which Java compiles what is used.
WARM = 2


@dataclass(frozen=True)
class Users(Options):
    users: int = option(1_000, "how many")
    rows: int = option(524_288, "rows of a round")
    rounds: int = option(5, "rounds that count")


def measure(options: Users, recorder: Recorder) -> None:
    """Rounds of it."""
    users, rows = options.users, options.rows
    with Crowd() as crowd:
        for i in range(users):
            length, slide = WINDOWS[i % len(WINDOWS)]
            window = f"{length} s, {min(slide, length)} s"
            crowd.add(str(i), plan_of(f"SELECT epoch, AVG(light, {window}) FROM sensors SAMPLE PERIOD 1 s"))

        def once() -> float:
            delivered, ended = crowd.delivered, crowd.log.rows // MOTES
            crowd.append(rows)
            began = time.monotonic()
            crowd.wait()
            took = time.monotonic() - began
            lasted = crowd.log.rows // MOTES - ended
            expected = sum(lasted / min(window) for window in WINDOWS) * users / len(WINDOWS)
            assert 0.95 < (crowd.delivered - delivered) / expected < 1.05, (
                "each user has a row for each slide"
            )
            return rows / took

        def unread() -> tuple[float, float]:
            """Processor time of this process, but for who appends rows, and of Spark's driver, in s for a million rows."""
            driver = crowd.spark.pid
            assert driver is not None
            crowd.readers = False
            own, others = time.process_time() - time.thread_time(), processor_seconds(driver)
            crowd.append(rows)
            crowd.wait()
            own, others = time.process_time() - time.thread_time() - own, processor_seconds(driver) - others
            crowd.readers = True
            crowd.wait()
            return own / rows * 1e6, others / rows * 1e6

        rates = alternated({"windows": once}, WARM + options.rounds, recorder)["windows"][WARM:]
        taken = [unread() for _ in recorder.steps(range(options.rounds), "nobody reads")]
    recorder.figure(
        f"rows from the log to {users:,} users' averages over {len(WINDOWS)} distinct windows", Spread.of(rates), "/s",
        ",.0f", better="more", goal=350_000, main=True,
    )  # fmt: skip
    for process, times in zip(
        ("the gateway", "Spark's driver (Python)"), zip(*taken, strict=True), strict=True
    ):
        recorder.figure(
            f"processor time of {process} for a million rows before anybody reads", Spread.of(times), "s", ".3f",
            better="less",
        )  # fmt: skip


BENCHMARK = Benchmark(measure, quick=Users(users=50, rounds=1), minutes=1)

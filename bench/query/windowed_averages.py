"""Windowed averages for many users: rows a second from the log, through Spark, until every user has read his windows."""

from __future__ import annotations

import time
from dataclasses import dataclass

from bench.measuring.crowd import MOTES, Crowd
from bench.measuring.plans import plan_of
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

        rates = alternated({"windows": once}, WARM + options.rounds, recorder)["windows"][WARM:]
    recorder.figure(
        f"rows from the log to {users:,} users' averages over {len(WINDOWS)} distinct windows", Spread.of(rates), "/s",
        ",.0f", better="more", goal=100_000, main=True,
    )  # fmt: skip


BENCHMARK = Benchmark(measure, quick=Users(users=50, rounds=1), minutes=1)

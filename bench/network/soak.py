"""Soaks: networks, links and faults drawn from seeds, and whether what has to hold does. ``hil_tests/soak.py`` says what that is."""

from __future__ import annotations

from dataclasses import dataclass

from bench.measuring.emulated import started
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column, Spread
from hil_tests import soak

AGAIN = "bench run network soak --seed {}"


@dataclass(frozen=True)
class Options(SeedOptions):
    seed: int = option(1, "the first")
    seeds: int = option(1, "how many, from that on")
    minutes: float = option(10.0, "of virtual time with faults, in each")


def measure(options: Options, recorder: Recorder) -> None:
    """A row for each seed; a problem where something did not hold."""
    table = recorder.table(
        "seeds",
        [
            Column("seed"), Column("motes"), Column("rows while it goes wrong", "%", ".1f", better="more"),
            Column("rows after", "%", ".2f", better="more"), Column("time off", "ms", ".2f", better="less"),
            Column("came twice"), Column("faults"), Column("what did not hold"),
        ],
    )  # fmt: skip
    outcomes = []
    for seed in recorder.steps(range(options.seed, options.seed + options.seeds), "seeds"):
        try:
            outcome = soak.run(started(soak.draw(seed, options.minutes), 0), options.minutes)
        except AssertionError as error:
            table.row(seed, None, None, None, None, None, None, str(error))
            recorder.problem(f"{error}; again with: {AGAIN.format(seed)}")
            continue
        outcomes.append(outcome)
        faults = ", ".join(f"{count} {kind}" for kind, count in sorted(outcome.faults.items()))
        table.row(
            seed, outcome.motes, 100 * outcome.yield_during, 100 * outcome.yield_after, 1e3 * outcome.worst_time_s,
            outcome.duplicates, faults, "; ".join(outcome.problems) or None,
        )  # fmt: skip
        for problem in outcome.problems:
            recorder.problem(f"{problem}; again with: {AGAIN.format(seed)}")
    if not outcomes:
        return
    recorder.figure(
        "rows of living motes while it goes wrong", Spread.mean(100 * one.yield_during for one in outcomes), "%", ".1f",
        better="more",
    )  # fmt: skip
    recorder.figure(
        f"rows after {options.minutes:g} minutes of faults and 42 to recover, the worst seed",
        100 * min(one.yield_after for one in outcomes), "%", ".2f", better="more", goal=100 * soak.FINAL_YIELD, main=True,
    )  # fmt: skip
    recorder.figure(
        "clocks off after, the worst seed", 1e3 * max(one.worst_time_s for one in outcomes), "ms", ".2f", better="less",
        goal=1e3 * soak.TIME_ERROR_S, main=True,
    )  # fmt: skip
    recorder.figure(
        "rows that came twice to the root's line, in a run",
        Spread.mean(one.duplicates for one in outcomes),
        "",
        ".1f",
    )


BENCHMARK = Benchmark(measure, quick=Options(minutes=1.0), minutes=1)

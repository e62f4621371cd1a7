"""One more query beside ten thousand, asked through HTTP: until the gateway has answered, and has remembered it on the disk."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

import numpy as np

from bench.measuring.crowd import SPAN, WIDTH, filtered
from bench.measuring.gateways import gateway_and_root
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from gateway.tests.process import wait_for


@dataclass(frozen=True)
class Options(SeedOptions):
    crowds: tuple[int, ...] = option((0, 1_000, 10_000), "queries there are when others are timed")
    timed: int = option(50, "queries that are timed beside each crowd")


def measure(options: Options, recorder: Recorder) -> None:
    """One gateway, asked by more and more."""
    rng = np.random.default_rng(options.seed)
    most = max(options.crowds)
    with gateway_and_root() as (daemon, root):
        daemon.start("--user-queries", str(2 * most + options.timed), "--user-rate", "100000")
        client = daemon.client("crowd")
        # Conditions of all others lie within these.
        client.query(filtered(0))
        client.query(filtered(SPAN - WIDTH))
        wait_for(root.programs)
        there = 2
        for crowd in options.crowds:
            while there < crowd:
                client.query(filtered(int(rng.integers(0, SPAN - WIDTH))))
                there += 1
                recorder.progress(f"{there:,} queries")
            times = []
            for _ in range(options.timed):
                low = int(rng.integers(0, SPAN - WIDTH))
                began = time.monotonic()
                rows_of = client.query(filtered(low))
                times.append(1e3 * (time.monotonic() - began))
                client.stop(rows_of.id)
            recorder.figure(
                f"one more query beside {crowd:,}, until its answer, median of {options.timed}", statistics.median(times),
                "ms", ".0f", better="less",
            )  # fmt: skip
            took = sorted(times)[int(0.95 * options.timed)]
            recorder.figure(
                f"one more query beside {crowd:,}, 95 %",
                took,
                "ms",
                ".0f",
                better="less",
                goal=100,
                main=crowd == most,
            )


BENCHMARK = Benchmark(measure, quick=Options(crowds=(0, 50), timed=10), minutes=3)

"""What a gateway's process takes for a row of many roots, from the bytes of their lines until it is in the log and acknowledged.

Without ports, threads and Spark, so that nothing else is in it.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench.measuring.serial_streams import Root
from bench.runner.benchmark import Benchmark, Options, option
from bench.runner.recorder import Recorder
from bench.runner.result import Spread
from skerry.service.gateway import Gateway


@dataclass(frozen=True)
class Lines(Options):
    roots: int = option(100, "roots, each with twenty motes, that bring a window of rows at a time")
    turns: int = option(200, "windows of each root in a round")
    rounds: int = option(5, "how often")


class _Intake:
    """A gateway, and the roots' ends of its lines."""

    def __init__(self, roots: int, data: Path) -> None:
        self.gateway = Gateway([f"root {place}" for place in range(roots)], data)
        self._roots = [Root(place) for place in range(roots)]
        self._said = [bytearray() for _ in range(roots)]
        for one, said in zip(self.gateway.roots, self._said, strict=True):
            one.link.attach(said.extend)
        while not all(one.network.clock.known for one in self.gateway.roots):
            self.turn()
        self.gateway.queries.ask("SELECT nodeid, temp FROM sensors WHERE temp > 29.9 SAMPLE PERIOD 1 s", "u")
        while not all(root.query is not None for root in self._roots):
            self.turn()

    def turn(self) -> float:
        """Each root says what it has to, and hears the gateway's answer; processor time of the gateway's part, s."""
        now = time.monotonic()
        for root, said in zip(self._roots, self._said, strict=True):
            root.feed(bytes(said))
            said.clear()
            root.send(now)
        came = [bytes(root.out) for root in self._roots]
        for root in self._roots:
            root.out.clear()
        began = time.process_time()
        self.gateway.links.take(came)
        return time.process_time() - began

    def round(self, turns: int) -> float:
        """Processor time of a row, s."""
        for root in self._roots:
            root.due = root.stored + 1_000_000
        self.turn()
        before = self.gateway.log.rows
        taken = sum(self.turn() for _ in range(turns))
        return taken / (self.gateway.log.rows - before)


def measure(options: Lines, recorder: Recorder) -> None:
    """Rounds of it."""
    with tempfile.TemporaryDirectory(prefix="skerry-bench-") as directory:
        intake = _Intake(options.roots, Path(directory))
        try:
            found = []
            for number in range(options.rounds):
                found.append(1e6 * intake.round(options.turns))
                recorder.progress(f"round {number + 1}: {found[-1]:.1f} µs a row")
        finally:
            intake.gateway.close()
    recorder.figure(
        f"processor time of a row of {options.roots} roots, from its line's bytes to the log", Spread.of(found), "µs", ".1f",
        better="less", goal=25, main=True,
    )  # fmt: skip


BENCHMARK = Benchmark(measure, quick=Lines(roots=10, turns=20, rounds=2), minutes=0.5)

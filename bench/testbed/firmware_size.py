"""Flash and RAM of the mote images, beside their limits."""

from __future__ import annotations

import re
import subprocess
import sys

from bench.runner.benchmark import Benchmark, Options
from bench.runner.provenance import PROJECT
from bench.runner.recorder import Recorder

BOARDS = {"iris": "IRIS", "cc2538": "CC2538"}
MEMORIES = {"flash": "flash", "RAM": "static RAM with worst-case stack"}


def measure(_options: Options, recorder: Recorder) -> None:
    """Build, and read what the build says."""
    recorder.progress("building")
    out = subprocess.run(
        ["make", "--no-print-directory", "-C", str(PROJECT / "firmware"), f"PYTHON={sys.executable}"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    for board, name in BOARDS.items():
        part = out[out.index(f"{board}.elf") :]
        for memory, what in MEMORIES.items():
            found = re.search(rf"^{memory}: (\d+) of (\d+) bytes", part, re.MULTILINE)
            assert found, part
            size, limit = map(int, found.groups())
            recorder.figure(f"{what}, {name}", size, "bytes", better="less", goal=limit, main=True)


BENCHMARK = Benchmark(measure, quick=Options(), minutes=0.5)

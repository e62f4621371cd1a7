"""One more query beside ten thousand, asked through HTTP: until the gateway has answered, and has remembered it."""

from __future__ import annotations

import signal
import tempfile
import time
from pathlib import Path

import numpy as np

from bench.crowd import SPAN, WIDTH, filtered
from bench.machine import median, table
from gateway.tests.peer import RootPeer
from gateway.tests.process import Daemon, wait_for

#: Users there are when queries are timed.
CROWDS = [0, 1_000, 10_000]
TIMED = 50


def main() -> None:
    """Print the table."""
    rng = np.random.default_rng(1)
    rows = []
    root = RootPeer()
    with tempfile.TemporaryDirectory() as directory:
        daemon = Daemon(root.url, Path(directory) / "data")
        daemon.start("--user-queries", str(2 * CROWDS[-1]), "--user-rate", "100000")
        client = daemon.client("crowd")
        # Conditions of all others lie within these.
        client.query(filtered(0))
        client.query(filtered(SPAN - WIDTH))
        wait_for(root.programs)
        there = 2
        for crowd in CROWDS:
            while there < crowd:
                client.query(filtered(int(rng.integers(0, SPAN - WIDTH))))
                there += 1
                if there % 1000 == 0:
                    print(f"{there:,} queries", flush=True)
            times = []
            for _ in range(TIMED):
                low = int(rng.integers(0, SPAN - WIDTH))
                began = time.monotonic()
                rows_of = client.query(filtered(low))
                times.append(time.monotonic() - began)
                client.stop(rows_of.id)
            took = sorted(times)
            goal = "100 ms" if crowd == CROWDS[-1] else ""
            rows.append((f"{crowd:,} queries, median of {TIMED}", f"{median(times) * 1e3:.0f} ms", goal))
            rows.append(
                (f"{crowd:,} queries, 95th percentile", f"{took[int(0.95 * TIMED)] * 1e3:.0f} ms", "")
            )
        daemon.kill(signal.SIGTERM)
    root.close()
    table("One more query through HTTP: POST until the answer, on the disk", rows)


if __name__ == "__main__":
    main()

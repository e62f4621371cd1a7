"""Windowed averages for many users: rows a second from the log, through Spark, until every user has read his windows."""

from __future__ import annotations

import time

from bench.crowd import MOTES, Crowd, plan_of
from bench.machine import median, table

USERS = 1_000
#: Distinct windows: lengths and slides in s.
WINDOWS = [(10 * (1 + i), 10 * (1 + i % 5)) for i in range(50)]
ROWS = 524_288
ROUNDS = 5


def main() -> None:
    """Print the table."""
    rates = []
    with Crowd() as crowd:
        for i in range(USERS):
            length, slide = WINDOWS[i % len(WINDOWS)]
            window = f"{length} s, {min(slide, length)} s"
            crowd.add(str(i), plan_of(f"SELECT epoch, AVG(light, {window}) FROM sensors SAMPLE PERIOD 1 s"))
        for _ in range(2 + ROUNDS):  # Java compiles what is used in the first ones
            delivered, ended = crowd.delivered, crowd.log.rows // MOTES
            crowd.append(ROWS)
            began = time.monotonic()
            crowd.wait()
            rates.append(ROWS / (time.monotonic() - began))
            lasted = crowd.log.rows // MOTES - ended
            expected = sum(lasted / min(window) for window in WINDOWS) * USERS / len(WINDOWS)
            assert 0.95 < (crowd.delivered - delivered) / expected < 1.05, (
                "each user has a row for each slide"
            )
    table(
        f"Windows: {USERS:,} users, averages over {len(set(WINDOWS))} distinct windows, median of {ROUNDS} rounds",
        [("rows from log to users' windows", f"{median(rates[2:]):,.0f}/s", "100,000/s")],
    )


if __name__ == "__main__":
    main()

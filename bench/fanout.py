"""Many users on one stream: rows a second, latency, memory, coming, beside a streaming query of Spark's for each.

All but Spark's own queries in one process, one measurement after the other in several rounds, so that what else runs on the machine
meets them alike. A row counts as delivered when its user holds it as Arrow columns.
"""

from __future__ import annotations

import subprocess
import sys
import time

from bench.crowd import RATE, STEPS, Crowd, plan_of
from bench.machine import median, proportional_memory, table

USERS = (1, 10, 100, 1_000, 10_000)
SEPARATE = 30
ROUNDS = 3
ROWS = 1_048_576
#: For how long in s rows come for latencies: until so many of them have been somebody's.
LENGTH, FEWEST = 8, 40


def main() -> None:
    """Print the table."""
    rates: dict[int, list[float]] = {users: [] for users in USERS}
    waits: dict[int, list[float]] = {users: [] for users in USERS}
    with Crowd(1) as crowd:
        for _ in range(4):  # Java compiles what is used
            crowd.append(ROWS)
            crowd.wait()
        for _ in range(ROUNDS):
            for users in USERS:
                crowd.resize(users)
                rates[users].append(_rate(crowd))
                waits[users].append(_wait(crowd))
        firsts = [_first(crowd, i) for i in range(5)]
        memory = proportional_memory()
        crowd.resize(SEPARATE)
        ours = median([_wait(crowd) for _ in range(ROUNDS)])
    slower = median([many / one for many, one in zip(waits[10_000], waits[1], strict=True)])
    table(
        f"Delivering: range filters of 0.1 % each, median of {ROUNDS} rounds",
        [
            *(
                (f"rows from log to {users:,} users", f"{median(rates[users]):,.0f}/s", "400,000/s")
                for users in USERS
            ),
            *(
                (f"append → row at its user, {users:,} users", f"{1000 * median(waits[users]):.0f} ms", "")
                for users in USERS
            ),
            ("latency with 10,000 users ÷ with 1", f"{slower:.2f}", "1.5"),
            ("user added among 10,000 → his first row", f"{1000 * median(firsts):.0f} ms", "1 s"),
            ("memory of gateway's proxy and Spark with 10,000 users", f"{memory / 2**30:.2f} GiB", "3 GB"),
        ],
    )
    apart = _separate()
    table(
        f"{SEPARATE} users, 0.1 % each: one streaming query of Spark's own for each, and ours",
        [
            ("append → row at its user, separate queries", f"{1000 * apart:,.0f} ms", ""),
            ("append → row at its user, ours", f"{1000 * ours:,.0f} ms", ""),
            ("separate ÷ ours", f"{apart / ours:.0f}", "40"),
        ],
    )


def _rate(crowd: Crowd) -> float:
    """Rows a second until every user has read his."""
    delivered = crowd.delivered
    crowd.append(ROWS)
    began = time.monotonic()
    crowd.wait()
    took = time.monotonic() - began
    share = (crowd.delivered - delivered) / ROWS / crowd.users
    assert 0.0008 < share < 0.0012, f"each user gets a thousandth, not {share}"
    return ROWS / took


def _wait(crowd: Crowd) -> float:
    """Median time from appending a row to its user having it, in s; a row a millisecond."""
    crowd.waits.clear()
    crowd.waiting = True
    # A thousandth of the rows is a user's.
    crowd.trickle(max(LENGTH, FEWEST / (RATE * 0.001 * crowd.users)))
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


def _separate() -> float:
    """As :func:`_wait`, with a streaming query of Spark's for each user, in a process that has nothing of ours."""
    command = [sys.executable, "-m", "bench.separate", str(SEPARATE)]
    return float(subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout)


if __name__ == "__main__":
    main()

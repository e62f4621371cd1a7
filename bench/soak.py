"""Soaks: networks, links and faults drawn from seeds, and whether what has to hold does. ``hil_tests/soak.py`` says what that is."""

from __future__ import annotations

import argparse
import sys
import time

from hil_tests import soak
from skerry_testbed.pytest import NetworkHandle


def main() -> None:
    """A line for each seed; exit code 1 when something did not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first")
    parser.add_argument("--seeds", type=int, default=1, help="how many, from that on")
    parser.add_argument("--minutes", type=float, default=10.0, help="of virtual time with faults, in each")
    options = parser.parse_args()
    print("| seed | motes | rows while it goes wrong | rows after | time off | came twice | faults | |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    failed = []
    for seed in range(options.seed, options.seed + options.seeds):
        began = time.monotonic()
        try:
            net = NetworkHandle(soak.draw(seed, options.minutes))
            net.advance(2.5)
            net.line.connect()
            outcome = soak.run(net, options.minutes)
        except AssertionError as error:
            print(f"| {seed} | | | | | | | {error} |", flush=True)
            failed.append(seed)
            continue
        faults = ", ".join(f"{count} {kind}" for kind, count in sorted(outcome.faults.items()))
        what = "; ".join(outcome.problems) or f"{time.monotonic() - began:.0f} s"
        print(
            f"| {seed} | {outcome.motes} | {outcome.yield_during:.1%} | {outcome.yield_after:.2%} | {outcome.worst_time_s * 1e3:.2f} ms"
            f" | {outcome.duplicates} | {faults} | {what} |",
            flush=True,
        )
        if outcome.problems:
            failed.append(seed)
    if failed:
        sys.exit(
            f"failed: {', '.join(map(str, failed))}; again with: python -m bench.soak --seed {failed[0]}"
        )


if __name__ == "__main__":
    main()
